//! Postings and volumes, which have the same JSON form in v1 and v2.

use ledger_core::{HoldingVolumes, Posting, Volumes};
use ledger_store::json;

use crate::http::response::Json;

pub(crate) use ledger_store::json::volumes_before;

/// Writes `{"source":…,"destination":…,"amount":…,"asset":…}`.
pub(crate) fn write_posting(json: &mut Json, posting: &Posting) {
    json::write_posting(json.text(), posting);
}

/// Writes a map from account to asset to volumes, in the order of the holdings.
pub(crate) fn write_holdings<'a>(
    json: &mut Json,
    holdings: impl Iterator<Item = (&'a HoldingVolumes, &'a Volumes)>,
) {
    json::write_holdings(json.text(), holdings);
}

/// Writes `{"input":…,"output":…,"balance":…}`.
pub(crate) fn write_volumes(json: &mut Json, volumes: &Volumes) {
    json::write_volumes(json.text(), volumes);
}
