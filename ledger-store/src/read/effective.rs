//! Volumes in effective order as they were when a transaction was recorded.

use ledger_core::{HoldingVolumes, LogPayload, Posting, Switch, Transaction};

use super::flows::{Flows, Until};
use super::session::Session;
use crate::error::ReadError;
use crate::index::{Quantity, TransactionRow, Way};

/// Where transactions may be that were recorded after the one in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Later {
    /// In memory: it was recorded just now.
    InMemory,
    /// Anywhere: it may be old.
    Anywhere,
}

impl Session {
    /// Adds them to what a log entry says of a transaction, if its ledger keeps them and they differ.
    pub(crate) fn add_effective_volumes(
        &self,
        payload: &mut LogPayload,
        later: Later,
    ) -> Result<(), ReadError> {
        if let LogPayload::NewTransaction { transaction, effective_volumes, .. }
        | LogPayload::RevertedTransaction { transaction, effective_volumes, .. } = payload
            && effective_volumes.is_none()
            && self.head.info.features.effective_volumes == Switch::On
        {
            *effective_volumes = self.effective_at_commit(transaction, later)?;
        }
        Ok(())
    }

    /// Totals of a transaction's holdings right after it in effective order, where nothing counts that was
    /// recorded after it. `None` if they are those in order of insertion.
    ///
    /// This moment may hold the transaction or, for a dry run, not.
    fn effective_at_commit(
        &self,
        transaction: &Transaction,
        later: Later,
    ) -> Result<Option<Vec<HoldingVolumes>>, ReadError> {
        let (id, timestamp) = (transaction.id.get(), transaction.timestamp);
        if timestamp == transaction.inserted_at && self.head.counters.ahead == 0 {
            return Ok(None);
        }
        // What is only tried has no row, and was not imported with a date of its own.
        let stored = self.transactions().last_in((self.ledger(), id), (self.ledger(), id))?;
        if let Some(row) = stored.as_ref().filter(|row| row.timestamp == row.date) {
            return self.without_dated_later(transaction, row);
        }
        let until = self.until_effective(&stored.unwrap_or(TransactionRow {
            ledger: self.ledger(),
            transaction: id,
            position: 0,
            log: 0,
            timestamp: timestamp.as_micros(),
            date: transaction.inserted_at.as_micros(),
        }))?;
        let before = match (until, id.checked_sub(1)) {
            (Until::Date { timestamp, recorded, .. }, Some(last)) => Until::Date {
                timestamp,
                transaction: last,
                recorded: recorded.map(|recorded| recorded.min(last)),
            },
            _ => Until::Never,
        };
        let mut all = Vec::with_capacity(transaction.post_commit_volumes.len());
        for held in &transaction.post_commit_volumes {
            let mut flows = match self.holding_of(held)? {
                Some(holding) => {
                    let mut flows = self.flows(holding, &before)?;
                    if before != Until::Never {
                        self.without_later(holding, timestamp.as_micros(), id, later, &mut flows)?;
                    }
                    flows
                }
                None => Flows::NONE,
            };
            for posting in &transaction.postings {
                let (input, output) = moved(posting, held);
                flows.add(&input, &output, 0);
            }
            let volumes = flows.volumes();
            all.push(HoldingVolumes { account: held.account.clone(), asset: held.asset.clone(), volumes });
        }
        Ok((all != transaction.post_commit_volumes).then_some(all))
    }

    /// The same for a transaction that is not displaced: everything that was recorded before it goes before it, but for
    /// what is dated later than it.
    fn without_dated_later(
        &self,
        transaction: &Transaction,
        row: &TransactionRow,
    ) -> Result<Option<Vec<HoldingVolumes>>, ReadError> {
        let Some(after) = row.timestamp.checked_add(1) else { return Ok(None) };
        let mut effective = None;
        for (at, held) in transaction.post_commit_volumes.iter().enumerate() {
            let Some(holding) = self.holding_of(held)? else { continue };
            let key = self.holding_key(holding);
            let mut later = Flows::NONE;
            let to = (key, i64::MAX, u64::MAX);
            for displaced in self.displaced().cursor((key, after, 0), to, Way::Ascending) {
                self.meter.row()?;
                let displaced = displaced?;
                if displaced.transaction < row.transaction {
                    later.add(&displaced.input, &displaced.output, 1);
                }
            }
            if later.moves > 0 {
                let (input, output) = (&held.volumes.input, &held.volumes.output);
                let mut flows = Flows { input: input.into(), output: output.into(), moves: later.moves };
                flows.take(&later.input, &later.output, later.moves)?;
                let all = effective.get_or_insert_with(|| transaction.post_commit_volumes.clone());
                all[at].volumes = flows.volumes();
            }
        }
        Ok(effective.filter(|all| *all != transaction.post_commit_volumes))
    }

    fn holding_of(&self, held: &HoldingVolumes) -> Result<Option<u32>, ReadError> {
        let Some(account) = self.account_number(held.account.as_str())? else { return Ok(None) };
        let Some(asset) = self.head.assets.id(held.asset.as_str()) else { return Ok(None) };
        let holdings = self.reader.holdings(account)?;
        Ok(holdings.into_iter().find(|(have, _)| *have == asset).map(|(_, holding)| holding))
    }

    /// Takes out what displaced transactions moved that are dated earlier but were recorded later.
    fn without_later(
        &self,
        holding: u32,
        timestamp: i64,
        id: u64,
        later: Later,
        flows: &mut Flows,
    ) -> Result<(), ReadError> {
        let key = self.holding_key(holding);
        if later == Later::Anywhere {
            for row in self.displaced().cursor((key, i64::MIN, 0), (key, timestamp, 0), Way::Ascending) {
                self.meter.row()?;
                let row = row?;
                if row.transaction >= id && row.timestamp < timestamp {
                    flows.take(&row.input, &row.output, 1)?;
                }
            }
            return Ok(());
        }
        for piece in self.displaced().pieces() {
            let start = piece.partition_point(|row| row.holding < key);
            let dated =
                piece[start..].iter().take_while(|row| row.holding == key && row.timestamp < timestamp);
            for row in dated.filter(|row| row.transaction >= id) {
                flows.take(&row.input, &row.output, 1)?;
            }
        }
        Ok(())
    }
}

/// What a posting moves into and out of a holding.
fn moved(posting: &Posting, held: &HoldingVolumes) -> (Quantity, Quantity) {
    let part = |is_end: bool| if is_end { Quantity::from(&posting.amount) } else { Quantity::ZERO };
    let same = posting.asset == held.asset;
    (part(same && posting.destination == held.account), part(same && posting.source == held.account))
}
