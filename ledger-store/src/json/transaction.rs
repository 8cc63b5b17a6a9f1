//! Writes transactions in the JSON form of v2 and of events.

use ledger_core::{Features, HoldingVolumes, JsonWriter, Switch, Transaction};

use super::volumes::{volumes_before, write_holdings, write_posting};

/// Tells whether a ledger keeps effective volumes, which are part of its move history.
pub fn keeps_effective_volumes(features: Features) -> bool {
    let Features { effective_volumes, moves_history, .. } = features;
    (effective_volumes, moves_history) == (Switch::On, Switch::On)
}

/// Writes a transaction in the response to its create or revert, with all volumes that the ledger keeps. Without
/// separate effective volumes, both maps hold the volumes by insertion.
///
/// ```
/// use ledger_store::{Store, json, ledger_core::JsonWriter};
/// let ledger = Store::in_memory().ledger("main")?;
/// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// let recorded = ledger.get_transaction(1)?.transaction;
/// let mut text = JsonWriter::with_capacity(1_000);
/// json::write_recorded(&mut text, &recorded, None, true);
/// let text = String::from_utf8(text.as_bytes().to_vec())?;
/// let volumes = r#""users:1":{"USD":{"input":5,"output":0,"balance":5}}"#;
/// assert!(text.contains("\"postCommitEffectiveVolumes\":") && text.matches(volumes).count() == 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_recorded(
    json: &mut JsonWriter,
    transaction: &Transaction,
    effective: Option<&[HoldingVolumes]>,
    effective_kept: bool,
) {
    let committed = transaction.post_commit_volumes.as_slice();
    let effective = effective_kept.then(|| effective.unwrap_or(committed));
    write_transaction(json, transaction, Some(committed), effective);
}

/// Writes a transaction with the volumes that its holdings have right after it: `committed` by insertion, `effective`
/// by effective date. Subtracting its own postings gives the volumes before it.
pub fn write_transaction(
    json: &mut JsonWriter,
    transaction: &Transaction,
    committed: Option<&[HoldingVolumes]>,
    effective: Option<&[HoldingVolumes]>,
) {
    let committed = committed.filter(|volumes| !volumes.is_empty());
    let effective = effective.filter(|volumes| !volumes.is_empty());
    json.raw("{\"postings\":[").list(&transaction.postings, write_posting);
    json.raw("],\"metadata\":").metadata(&transaction.metadata);
    json.raw(",\"timestamp\":").time(transaction.timestamp);
    if let Some(reference) = &transaction.reference {
        json.raw(",\"reference\":").string(reference.as_str());
    }
    json.raw(",\"id\":").integer(transaction.id.get());
    json.raw(",\"insertedAt\":").time(transaction.inserted_at);
    json.raw(",\"updatedAt\":").time(transaction.updated_at);
    if let Some(at) = transaction.reverted_at {
        json.raw(",\"revertedAt\":").time(at);
    }
    if let Some(template) = &transaction.template {
        json.raw(",\"template\":").string(template);
    }
    let names = [",\"postCommitVolumes\":", ",\"postCommitEffectiveVolumes\":"];
    write_both(json, names, committed, effective, |json, volumes| {
        write_holdings(json, volumes.iter().map(|holding| (holding, &holding.volumes)));
    });
    json.raw(",\"reverted\":").boolean(transaction.reverted_at.is_some());
    let names = [",\"preCommitVolumes\":", ",\"preCommitEffectiveVolumes\":"];
    write_both(json, names, committed, effective, |json, volumes| {
        write_holdings(json, volumes.iter().zip(&volumes_before(transaction, volumes)));
    });
    json.raw("}");
}

/// Writes volumes by insertion and by effective date. They differ only if the client chose a date; otherwise the
/// second map is a copy of the first.
fn write_both(
    json: &mut JsonWriter,
    names: [&str; 2],
    committed: Option<&[HoldingVolumes]>,
    effective: Option<&[HoldingVolumes]>,
    write: impl Fn(&mut JsonWriter, &[HoldingVolumes]),
) {
    let mut written = None;
    if let Some(volumes) = committed {
        json.raw(names[0]);
        let from = json.len();
        write(json, volumes);
        written = Some((volumes, from..json.len()));
    }
    if let Some(volumes) = effective {
        json.raw(names[1]);
        match written {
            Some((same, bytes)) if std::ptr::eq(same, volumes) => {
                json.repeat(bytes);
            }
            _ => write(json, volumes),
        }
    }
}
