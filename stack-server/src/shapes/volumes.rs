//! Postings and volumes, which have the same JSON form in v1 and v2. `ledger_store::json` defines the form. The
//! functions of this module write it into the server's [`Json`]. [`Json::text`] returns the library's writer in it.

use ledger_core::{HoldingVolumes, Posting, Volumes};
use ledger_store::json;

use crate::http::response::Json;

pub(crate) use ledger_store::json::volumes_before;

/// Writes `{"source":…,"destination":…,"amount":…,"asset":…}`.
pub(crate) fn write_posting(json: &mut Json, posting: &Posting) {
    json::write_posting(json.text(), posting);
}

/// Writes a map from account to asset to volumes. Takes the account and the asset from the holding, but not the
/// volumes: those beside it may be the ones [before the transaction](volumes_before). Holdings must be sorted by
/// account and asset.
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
