//! Postings and volumes, which have the same JSON form in v1 and v2. `ledger_store::json` defines the form. The
//! functions of this module write it into the server's [`Json`], whose `text` is the writer of the library.

use ledger_core::{HoldingVolumes, Posting, Volumes};
use ledger_store::json;

use crate::http::response::Json;

pub(crate) use ledger_store::json::volumes_before;

/// Writes `{"source":…,"destination":…,"amount":…,"asset":…}`.
pub(crate) fn write_posting(json: &mut Json, posting: &Posting) {
    json::write_posting(json.text(), posting);
}

/// Writes a map from account to asset to volumes. Each holding gives the account and the asset. The volumes come
/// separately, because they may be those [before the transaction](volumes_before). Holdings must be sorted by account
/// and asset.
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
