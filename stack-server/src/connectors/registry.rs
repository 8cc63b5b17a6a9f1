//! The connectors that can be installed.

use crate::connectors::definition::Definition;
use crate::connectors::{banking_circle, currency_cloud, dummy_pay, generic, modulr, stripe, wise};

/// The connectors of this server.
pub(crate) static DEFINITIONS: &[Definition] = &[
    stripe::DEFINITION,
    dummy_pay::DEFINITION,
    wise::DEFINITION,
    modulr::DEFINITION,
    currency_cloud::DEFINITION,
    banking_circle::DEFINITION,
    generic::DEFINITION,
];

/// Returns the connector with this name in any case.
pub(crate) fn find(definitions: &'static [Definition], name: &str) -> Option<&'static Definition> {
    definitions.iter().find(|definition| definition.provider.eq_ignore_ascii_case(name))
}
