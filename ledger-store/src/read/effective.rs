//! Volumes in effective order as they were when a transaction was recorded.

use std::collections::BTreeMap;

use ledger_core::{
    AccountAddress, Asset, HoldingVolumes, LogPayload, Posting, Switch, Timestamp, Transaction, Volumes,
};
use ledger_index::{Quantity, TransactionRow, Way};

use super::flows::{Flows, Until};
use super::session::Session;
use crate::error::ReadError;
use crate::lookup::missing;
use crate::quantity::quantity_of;

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
    fn effective_at_commit(
        &self,
        transaction: &Transaction,
        later: Later,
    ) -> Result<Option<Vec<HoldingVolumes>>, ReadError> {
        let (id, timestamp) = (transaction.id.get(), transaction.timestamp);
        if timestamp == transaction.inserted_at && self.head.counters.ahead == 0 {
            return Ok(None);
        }
        let row = self.transactions().last_in((self.ledger(), id), (self.ledger(), id))?;
        let row = row.ok_or_else(|| missing("a transaction that was recorded"))?;
        if row.timestamp == row.date {
            return self.without_dated_later(transaction, &row);
        }
        let before = self.before_in_order(&row)?;
        let volumes_of = |held: &HoldingVolumes| {
            let mut flows = self.flows_before(held, &before, &row, later)?;
            flows.add_postings(transaction, held);
            Ok(flows.volumes())
        };
        changed_volumes(transaction, volumes_of)
    }

    /// Adds them to an entry that a dry run decided, after all that it decided before: those `moves`, to which its own
    /// are added. The moment holds none of them, but may hold other transactions with their ids.
    pub(crate) fn add_tried_volumes(
        &self,
        payload: &mut LogPayload,
        moves: &mut TriedMoves,
    ) -> Result<(), ReadError> {
        if let LogPayload::NewTransaction { transaction, effective_volumes, .. }
        | LogPayload::RevertedTransaction { transaction, effective_volumes, .. } = payload
            && self.head.info.features.effective_volumes == Switch::On
        {
            *effective_volumes = self.effective_if_done(transaction, moves)?;
            moves.add(transaction);
        }
        Ok(())
    }

    fn effective_if_done(
        &self,
        transaction: &Transaction,
        moves: &TriedMoves,
    ) -> Result<Option<Vec<HoldingVolumes>>, ReadError> {
        // Ids from that of the first on may have been given to others since.
        let row = TransactionRow {
            ledger: self.ledger(),
            transaction: moves.first.unwrap_or(transaction.id.get()),
            position: 0,
            log: 0,
            timestamp: transaction.timestamp.as_micros(),
            date: transaction.inserted_at.as_micros(),
        };
        let before = self.before_in_order(&row)?;
        let volumes_of = |held: &HoldingVolumes| {
            let mut flows = self.flows_before(held, &before, &row, Later::InMemory)?;
            moves.add_to(&mut flows, held, transaction.timestamp);
            flows.add_postings(transaction, held);
            Ok(flows.volumes())
        };
        changed_volumes(transaction, volumes_of)
    }

    /// Moves before a transaction in effective order, of those that were recorded before it; displaced ones of those
    /// recorded after it are among them, see [`Session::without_later`].
    fn before_in_order(&self, row: &TransactionRow) -> Result<Until, ReadError> {
        Ok(match (self.until_effective(row)?, row.transaction.checked_sub(1)) {
            (Until::Date { timestamp, recorded, .. }, Some(last)) => Until::Date {
                timestamp,
                transaction: last,
                recorded: recorded.map(|recorded| recorded.min(last)),
            },
            _ => Until::Never,
        })
    }

    fn flows_before(
        &self,
        held: &HoldingVolumes,
        before: &Until,
        row: &TransactionRow,
        later: Later,
    ) -> Result<Flows, ReadError> {
        let Some(holding) = self.holding_of(held)? else { return Ok(Flows::NONE) };
        let mut flows = self.flows(holding, before)?;
        if *before != Until::Never {
            self.without_later(holding, row.timestamp, row.transaction, later, &mut flows)?;
        }
        Ok(flows)
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
                let mut flows =
                    Flows { input: quantity_of(input), output: quantity_of(output), moves: later.moves };
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

/// Volumes of a transaction's holdings; `None` if they are those in order of insertion.
fn changed_volumes(
    transaction: &Transaction,
    volumes_of: impl Fn(&HoldingVolumes) -> Result<Volumes, ReadError>,
) -> Result<Option<Vec<HoldingVolumes>>, ReadError> {
    let mut all = Vec::with_capacity(transaction.post_commit_volumes.len());
    for held in &transaction.post_commit_volumes {
        let volumes = volumes_of(held)?;
        all.push(HoldingVolumes { account: held.account.clone(), asset: held.asset.clone(), volumes });
    }
    Ok((all != transaction.post_commit_volumes).then_some(all))
}

/// Moves of transactions that a dry run decided.
#[derive(Debug, Default)]
pub(crate) struct TriedMoves {
    /// The id of the first of them.
    first: Option<u64>,
    holdings: BTreeMap<(AccountAddress, Asset), MovesOfHolding>,
}

/// Moves of one holding, with their dates.
#[derive(Debug)]
struct MovesOfHolding {
    total: Flows,
    latest: Timestamp,
    moves: Vec<(Timestamp, Quantity, Quantity)>,
}

impl TriedMoves {
    fn add(&mut self, transaction: &Transaction) {
        self.first.get_or_insert(transaction.id.get());
        let date = transaction.timestamp;
        for held in &transaction.post_commit_volumes {
            let key = (held.account.clone(), held.asset.clone());
            let of_holding = self.holdings.entry(key).or_insert_with(|| MovesOfHolding {
                total: Flows::NONE,
                latest: date,
                moves: Vec::new(),
            });
            let mut own = Flows::NONE;
            own.add_postings(transaction, held);
            of_holding.total.add(&own.input, &own.output, 0);
            of_holding.latest = of_holding.latest.max(date);
            of_holding.moves.push((date, own.input, own.output));
        }
    }

    /// Adds to the flows of a holding those that are dated by `until`.
    fn add_to(&self, flows: &mut Flows, held: &HoldingVolumes, until: Timestamp) {
        let Some(of_holding) = self.holdings.get(&(held.account.clone(), held.asset.clone())) else { return };
        if of_holding.latest <= until {
            return flows.add(&of_holding.total.input, &of_holding.total.output, 0);
        }
        for (_, input, output) in of_holding.moves.iter().filter(|(date, ..)| *date <= until) {
            flows.add(input, output, 0);
        }
    }
}

impl Flows {
    /// Adds what a transaction moves into and out of a holding.
    fn add_postings(&mut self, transaction: &Transaction, held: &HoldingVolumes) {
        for posting in &transaction.postings {
            let (input, output) = moved(posting, held);
            self.add(&input, &output, 0);
        }
    }
}

/// Amounts that a posting moves into and out of a holding.
fn moved(posting: &Posting, held: &HoldingVolumes) -> (Quantity, Quantity) {
    let part = |is_end: bool| if is_end { quantity_of(&posting.amount) } else { Quantity::ZERO };
    let same = posting.asset == held.asset;
    (part(same && posting.destination == held.account), part(same && posting.source == held.account))
}
