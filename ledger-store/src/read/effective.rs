//! Computes volumes in effective order as of the recording of a transaction.

use std::collections::BTreeMap;

use ledger_core::{
    AccountAddress, Asset, HoldingVolumes, LogPayload, Posting, Switch, Timestamp, Transaction, Volumes,
};
use ledger_index::{Quantity, TransactionRow, Way};

use super::flows;
use super::flows::{Flows, Until};
use super::session::Session;
use crate::error::ReadError;
use crate::lookup::missing;
use crate::quantity::quantity_of;

/// The place of the transactions that were recorded after a given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaterTransactions {
    /// All of them are in memory, because the transaction was recorded just now.
    InMemory,
    /// They may be anywhere, because the transaction may be old.
    Anywhere,
}

/// Adds the effective volumes to the payload of a log entry, if its ledger keeps them and they differ from the
/// volumes.
pub(crate) fn add_effective_volumes(
    session: &Session,
    payload: &mut LogPayload,
    later: LaterTransactions,
) -> Result<(), ReadError> {
    if let LogPayload::NewTransaction { transaction, effective_volumes, .. }
    | LogPayload::RevertedTransaction { transaction, effective_volumes, .. } = payload
        && effective_volumes.is_none()
        && session.head.info.features.effective_volumes == Switch::On
    {
        *effective_volumes = effective_at_commit(session, transaction, later)?;
    }
    Ok(())
}

/// Returns the volumes of a transaction's holdings right after it in effective order, without transactions that
/// were recorded later. Returns `None` if they equal the volumes in insertion order.
fn effective_at_commit(
    session: &Session,
    transaction: &Transaction,
    later: LaterTransactions,
) -> Result<Option<Vec<HoldingVolumes>>, ReadError> {
    let (id, timestamp) = (transaction.id.get(), transaction.timestamp);
    if timestamp == transaction.inserted_at && session.head.counters.ahead == 0 {
        return Ok(None);
    }
    let row = session.transactions().last_in((session.ledger(), id), (session.ledger(), id))?;
    let row = row.ok_or_else(|| missing("a transaction that was recorded"))?;
    if row.timestamp == row.date {
        return without_dated_later(session, transaction, &row);
    }
    let before = before_in_order(session, &row)?;
    let volumes_of = |held: &HoldingVolumes| {
        let mut flows = flows_before(session, held, &before, &row, later)?;
        flows.add_postings(transaction, held);
        Ok(flows.volumes())
    };
    changed_volumes(transaction, volumes_of)
}

/// Adds the effective volumes to an entry of a dry run, after the entries that the dry run decided before. Their
/// moves are in `moves`, to which the entry's own are added. The snapshot contains none of them, but may contain
/// other transactions with the same ids.
pub(crate) fn add_dry_run_volumes(
    session: &Session,
    payload: &mut LogPayload,
    moves: &mut DryRunMoves,
) -> Result<(), ReadError> {
    if let LogPayload::NewTransaction { transaction, effective_volumes, .. }
    | LogPayload::RevertedTransaction { transaction, effective_volumes, .. } = payload
        && session.head.info.features.effective_volumes == Switch::On
    {
        *effective_volumes = effective_in_dry_run(session, transaction, moves)?;
        moves.add(transaction);
    }
    Ok(())
}

fn effective_in_dry_run(
    session: &Session,
    transaction: &Transaction,
    moves: &DryRunMoves,
) -> Result<Option<Vec<HoldingVolumes>>, ReadError> {
    // Other transactions may have got ids from the first one of the dry run on.
    let row = TransactionRow {
        ledger: session.ledger(),
        transaction: moves.first.unwrap_or(transaction.id.get()),
        position: 0,
        log: 0,
        timestamp: transaction.timestamp.as_micros(),
        date: transaction.inserted_at.as_micros(),
    };
    let before = before_in_order(session, &row)?;
    let volumes_of = |held: &HoldingVolumes| {
        let mut flows = flows_before(session, held, &before, &row, LaterTransactions::InMemory)?;
        moves.add_to(&mut flows, held, transaction.timestamp);
        flows.add_postings(transaction, held);
        Ok(flows.volumes())
    };
    changed_volumes(transaction, volumes_of)
}

/// Returns the moves before a transaction in effective order. Of the transactions that were recorded later, they
/// include only backdated ones, which [`without_later`] subtracts.
fn before_in_order(session: &Session, row: &TransactionRow) -> Result<Until, ReadError> {
    Ok(match (flows::until_effective(session, row)?, row.transaction.checked_sub(1)) {
        (Until::Date { timestamp, recorded, .. }, Some(last)) => Until::Date {
            timestamp,
            transaction: last,
            recorded: recorded.map(|recorded| recorded.min(last)),
        },
        _ => Until::Never,
    })
}

fn flows_before(
    session: &Session,
    held: &HoldingVolumes,
    before: &Until,
    row: &TransactionRow,
    later: LaterTransactions,
) -> Result<Flows, ReadError> {
    let Some(holding) = holding_of(session, held)? else { return Ok(Flows::NONE) };
    let mut flows = flows::of_holding(session, holding, before)?;
    if *before != Until::Never {
        without_later(session, holding, row.timestamp, row.transaction, later, &mut flows)?;
    }
    Ok(flows)
}

/// Computes the effective volumes of a transaction that is not backdated: every transaction that was recorded
/// before it counts, except those with a later date.
fn without_dated_later(
    session: &Session,
    transaction: &Transaction,
    row: &TransactionRow,
) -> Result<Option<Vec<HoldingVolumes>>, ReadError> {
    let Some(after) = row.timestamp.checked_add(1) else { return Ok(None) };
    let mut effective = None;
    for (at, held) in transaction.post_commit_volumes.iter().enumerate() {
        let Some(holding) = holding_of(session, held)? else { continue };
        let key = session.holding_key(holding);
        let mut later = Flows::NONE;
        let to = (key, i64::MAX, u64::MAX);
        for backdated in session.backdated().cursor((key, after, 0), to, Way::Ascending) {
            session.meter.row()?;
            let backdated = backdated?;
            if backdated.transaction < row.transaction {
                later.add(&backdated.input, &backdated.output, 1);
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

fn holding_of(session: &Session, held: &HoldingVolumes) -> Result<Option<u32>, ReadError> {
    let Some(account) = session.account_number(held.account.as_str())? else { return Ok(None) };
    let Some(asset) = session.head.assets.id(held.asset.as_str()) else { return Ok(None) };
    let holdings = session.reader.holdings(account)?;
    Ok(holdings.into_iter().find(|(have, _)| *have == asset).map(|(_, holding)| holding))
}

/// Subtracts the moves of backdated transactions that are dated earlier but were recorded later.
fn without_later(
    session: &Session,
    holding: u32,
    timestamp: i64,
    id: u64,
    later: LaterTransactions,
    flows: &mut Flows,
) -> Result<(), ReadError> {
    let key = session.holding_key(holding);
    if later == LaterTransactions::Anywhere {
        for row in session.backdated().cursor((key, i64::MIN, 0), (key, timestamp, 0), Way::Ascending) {
            session.meter.row()?;
            let row = row?;
            if row.transaction >= id && row.timestamp < timestamp {
                flows.take(&row.input, &row.output, 1)?;
            }
        }
        return Ok(());
    }
    for memtable in session.backdated().memtables() {
        let start = memtable.partition_point(|row| row.holding < key);
        let dated =
            memtable[start..].iter().take_while(|row| row.holding == key && row.timestamp < timestamp);
        for row in dated.filter(|row| row.transaction >= id) {
            flows.take(&row.input, &row.output, 1)?;
        }
    }
    Ok(())
}

/// Returns the volumes of a transaction's holdings, or `None` if they equal the volumes in insertion order.
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

/// The moves of the transactions that a dry run has decided.
#[derive(Debug, Default)]
pub(crate) struct DryRunMoves {
    /// The id of the first transaction.
    first: Option<u64>,
    holdings: BTreeMap<(AccountAddress, Asset), MovesOfHolding>,
}

/// The moves of one holding with their dates.
#[derive(Debug)]
struct MovesOfHolding {
    total: Flows,
    latest: Timestamp,
    moves: Vec<(Timestamp, Quantity, Quantity)>,
}

impl DryRunMoves {
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

    /// Adds the moves dated up to `until` to the flows of a holding.
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
    /// Adds the input and output of a transaction in a holding.
    fn add_postings(&mut self, transaction: &Transaction, held: &HoldingVolumes) {
        for posting in &transaction.postings {
            let (input, output) = moved(posting, held);
            self.add(&input, &output, 0);
        }
    }
}

/// Returns the input and output of a posting in a holding.
fn moved(posting: &Posting, held: &HoldingVolumes) -> (Quantity, Quantity) {
    let part = |is_end: bool| if is_end { quantity_of(&posting.amount) } else { Quantity::ZERO };
    let same = posting.asset == held.asset;
    (part(same && posting.destination == held.account), part(same && posting.source == held.account))
}
