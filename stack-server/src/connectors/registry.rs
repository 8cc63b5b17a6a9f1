//! The connectors that can be installed.

use crate::connectors::definition::Row;
use crate::connectors::{banking_circle, currency_cloud, dummy_pay, generic, modulr, stripe, wise};

/// The connectors of this server.
pub(crate) static ROWS: &[Row] = &[
    stripe::ROW,
    dummy_pay::ROW,
    wise::ROW,
    modulr::ROW,
    currency_cloud::ROW,
    banking_circle::ROW,
    generic::ROW,
];

/// Returns the connector with this name in any case.
pub(crate) fn find(rows: &'static [Row], name: &str) -> Option<&'static Row> {
    rows.iter().find(|row| row.provider.eq_ignore_ascii_case(name))
}
