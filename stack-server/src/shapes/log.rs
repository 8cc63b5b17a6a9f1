//! Logs in the JSON form of v2 lists, exports and pipelines.

use ledger_store::{FedLog, LogView, json};

use crate::http::response::Json;

pub(crate) use ledger_store::json::LogShape;

/// Writes a log in the form of lists and exports.
pub(crate) fn write_log(json: &mut Json, view: &LogView, shape: LogShape) {
    json::write_log(json.text(), view, shape);
}

/// Writes a log of a feed. Its last member is the name of its ledger.
pub(crate) fn write_log_of(json: &mut Json, fed: &FedLog) {
    json::write_log_of(json.text(), fed);
}

/// Writes the member `data` of a log.
pub(crate) fn write_data(json: &mut Json, view: &LogView, shape: LogShape) {
    json::write_data(json.text(), view, shape);
}
