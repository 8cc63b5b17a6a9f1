//! Transactions in the JSON form of v2 and of events.

use ledger_core::{HoldingVolumes, Transaction};
use ledger_store::json;

use crate::http::response::Json;

pub(crate) use ledger_store::json::keeps_effective_volumes;

/// Writes a transaction in the response to its create or revert. See [`json::write_recorded`].
pub(crate) fn write_recorded(
    json: &mut Json,
    transaction: &Transaction,
    effective: Option<&[HoldingVolumes]>,
    effective_kept: bool,
) {
    json::write_recorded(json.text(), transaction, effective, effective_kept);
}

/// Writes a transaction with the volumes that its holdings have right after it: `committed` by insertion, `effective`
/// by effective date. See [`json::write_transaction`].
pub(crate) fn write_transaction(
    json: &mut Json,
    transaction: &Transaction,
    committed: Option<&[HoldingVolumes]>,
    effective: Option<&[HoldingVolumes]>,
) {
    json::write_transaction(json.text(), transaction, committed, effective);
}
