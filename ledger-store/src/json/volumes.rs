//! Postings and volumes, which have the same JSON form in v1 and v2.

use ledger_core::{HoldingVolumes, JsonWriter, Posting, Transaction, Volumes};

/// Writes `{"source":…,"destination":…,"amount":…,"asset":…}`.
pub fn write_posting(json: &mut JsonWriter, posting: &Posting) {
    json.raw("{\"source\":").plain_string(posting.source.as_str());
    json.raw(",\"destination\":").plain_string(posting.destination.as_str());
    json.raw(",\"amount\":").amount(&posting.amount);
    json.raw(",\"asset\":").plain_string(posting.asset.as_str()).raw("}");
}

/// Writes a map from account to asset to volumes. The holdings are sorted by account and asset, which is the order
/// of the map keys.
pub fn write_holdings<'a>(
    json: &mut JsonWriter,
    holdings: impl Iterator<Item = (&'a HoldingVolumes, &'a Volumes)>,
) {
    json.raw("{");
    let mut account = None;
    for (holding, volumes) in holdings {
        if account == Some(&holding.account) {
            json.raw(",");
        } else {
            json.raw(if account.is_some() { "}," } else { "" });
            json.plain_string(holding.account.as_str()).raw(":{");
            account = Some(&holding.account);
        }
        json.plain_string(holding.asset.as_str()).raw(":");
        write_volumes(json, volumes);
    }
    json.raw(if account.is_some() { "}}" } else { "}" });
}

/// Writes `{"input":…,"output":…,"balance":…}`.
pub fn write_volumes(json: &mut JsonWriter, volumes: &Volumes) {
    json.raw("{\"input\":").amount(&volumes.input);
    json.raw(",\"output\":").amount(&volumes.output);
    json.raw(",\"balance\":").balance(&volumes.balance()).raw("}");
}

/// Subtracts the transaction's own postings from the volumes after it. The order stays that of `after`.
///
/// ```
/// use ledger_store::{Store, json, ledger_core::JsonWriter};
/// let ledger = Store::in_memory().ledger("main")?;
/// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// ledger.transaction().posting("users:1", "shops:1", 3, "USD").commit()?;
/// let second = ledger.get_transaction(2)?.transaction;
/// let after = &second.post_commit_volumes;
/// let before = json::volumes_before(&second, after);
/// assert_eq!((before[1].balance(), after[1].volumes.balance()), (5.into(), 2.into()));
/// let mut text = JsonWriter::with_capacity(1_000);
/// json::write_holdings(&mut text, after.iter().zip(&before).skip(1));
/// assert_eq!(text.as_bytes(), br#"{"users:1":{"USD":{"input":5,"output":0,"balance":5}}}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn volumes_before(transaction: &Transaction, after: &[HoldingVolumes]) -> Vec<Volumes> {
    let mut before: Vec<Volumes> = after.iter().map(|holding| holding.volumes.clone()).collect();
    for posting in &transaction.postings {
        let find = |account| {
            after.binary_search_by(|have| (&have.account, &have.asset).cmp(&(account, &posting.asset)))
        };
        // The volumes include the transaction's own postings. A missing or smaller holding means broken data, and is
        // written unchanged.
        if let Ok(at) = find(&posting.source)
            && let Some(output) = before[at].output.checked_sub(&posting.amount)
        {
            before[at].output = output;
        }
        if let Ok(at) = find(&posting.destination)
            && let Some(input) = before[at].input.checked_sub(&posting.amount)
        {
            before[at].input = input;
        }
    }
    before
}
