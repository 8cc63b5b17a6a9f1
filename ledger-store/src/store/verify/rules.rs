//! Rules over a whole store: keys are unique, and inputs equal outputs.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use ledger_codec::Corrupt;
use ledger_core::Volumes;
use ledger_index::{DroppedLedgers, IndexSnapshot, KeyRow, Row, TableView, TransactionRow, Way, tables};
use ledger_journal::entry::find_in_chunk;
use ledger_journal::{JournalReader, Position};

use super::findings::{Findings, Stop};
use crate::error::ReadError;
use crate::fingerprint::{KeyKind, key_space, ledger_of_space};
use crate::lookup::{self, missing};
use crate::projection::HoldingPage;
use crate::read::{idempotency_of, reference_of};
use crate::violation::ViolationCode;

/// Checks that references, idempotency keys and addresses are unique.
///
/// Reads the texts only where fingerprints are equal, so it needs little memory.
pub(super) fn unique(
    index: &IndexSnapshot,
    dropped: &DroppedLedgers,
    journal: &Arc<dyn JournalReader>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let keys = TableView::<KeyRow>::new(Vec::new(), index.clone());
    let mut same: Vec<KeyRow> = Vec::new();
    for row in keys.cursor(KeyRow::first_key(), KeyRow::last_key(), Way::Ascending) {
        let row = match row {
            Ok(row) => row,
            Err(error) => return findings.index_error(&error),
        };
        if dropped.contains(&KeyRow::ledger_of(&row.key())) {
            continue;
        }
        if same.last().is_some_and(|last| (last.space, last.fingerprint) != (row.space, row.fingerprint)) {
            texts_differ(&same, index, journal, findings)?;
            same.clear();
        }
        same.push(row);
    }
    texts_differ(&same, index, journal, findings)
}

fn texts_differ(
    same: &[KeyRow],
    index: &IndexSnapshot,
    journal: &Arc<dyn JournalReader>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    if same.len() < 2 {
        return Ok(());
    }
    let mut seen: Vec<(String, u64)> = Vec::new();
    for row in same {
        let (ledger, code, text) = match text_of(row, index, journal) {
            Ok(found) => found,
            Err(error) => return findings.read_error(&error),
        };
        match seen.iter().find(|(have, _)| *have == text) {
            Some((_, first)) => {
                let detail = format!("{text:?} names {first} and {}", row.value);
                let position = (code == ViolationCode::IdempotencyDuplicate).then_some(row.value);
                findings.add(code, Some(ledger), position, detail)?;
            }
            None => seen.push((text, row.value)),
        }
    }
    Ok(())
}

/// Returns the text that a row of the table of keys stands for, with its ledger and the code to report.
fn text_of(
    row: &KeyRow,
    index: &IndexSnapshot,
    journal: &Arc<dyn JournalReader>,
) -> Result<(u32, ViolationCode, String), ReadError> {
    let ledger = ledger_of_space(row.space);
    let entry = |position: u64| {
        let position = Position::new(position).ok_or(Corrupt { what: "position" })?;
        journal.read(position)?.ok_or_else(|| missing("an entry")).map(|chunk| (position, chunk))
    };
    if row.space == key_space(ledger, KeyKind::Address) {
        let account = u32::try_from(row.value).map_err(|_| Corrupt { what: "number of an account" })?;
        let account = lookup::stored_account(index, ledger, account)?;
        let address = account.ok_or_else(|| missing("an account"))?.address.to_string();
        return Ok((ledger, ViolationCode::AccountMismatch, address));
    }
    if row.space == key_space(ledger, KeyKind::Idempotency) {
        let (position, chunk) = entry(row.value)?;
        let record = find_in_chunk(&chunk, position)?.ok_or_else(|| missing("an entry"))?;
        let (key, _) = idempotency_of(&record).ok_or_else(|| missing("an idempotency key"))?;
        return Ok((ledger, ViolationCode::IdempotencyDuplicate, key.to_owned()));
    }
    let transactions = TableView::<TransactionRow>::new(Vec::new(), index.clone());
    let transaction = transactions.get((ledger, row.value))?.ok_or_else(|| missing("a transaction"))?;
    let (position, chunk) = entry(transaction.position)?;
    let record = find_in_chunk(&chunk, position)?.ok_or_else(|| missing("an entry"))?;
    let reference = reference_of(&record).ok_or_else(|| missing("a reference"))?;
    Ok((ledger, ViolationCode::ReferenceDuplicate, reference.to_owned()))
}

/// Checks that the inputs and outputs of every asset are equal in each ledger.
pub(super) fn balanced(
    index: &IndexSnapshot,
    dropped: &DroppedLedgers,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let mut sums: BTreeMap<(u32, u32), Volumes> = BTreeMap::new();
    let pages = match index.range(tables::HOLDINGS, Bound::Unbounded, Bound::Unbounded) {
        Ok(pages) => pages,
        Err(error) => return findings.index_error(&error),
    };
    for page in pages {
        let read = page.map_err(ReadError::from).and_then(|(key, page)| {
            let (ledger, _) = key.split_first_chunk::<4>().ok_or(Corrupt { what: "key of a page" })?;
            Ok((u32::from_be_bytes(*ledger), HoldingPage::all(&page)?))
        });
        let (ledger, holdings) = match read {
            Ok(page) => page,
            Err(error) => return findings.read_error(&error),
        };
        if dropped.contains(&ledger) {
            continue;
        }
        for (_, holding) in holdings {
            let sum = sums.entry((ledger, holding.asset)).or_default();
            sum.input += &holding.volumes.input;
            sum.output += &holding.volumes.output;
        }
    }
    for ((ledger, asset), Volumes { input, output }) in sums {
        if input != output {
            let detail = format!("of asset {asset} {input} went into accounts and {output} out of them");
            findings.add(ViolationCode::Unbalanced, Some(ledger), None, detail)?;
        }
    }
    Ok(())
}
