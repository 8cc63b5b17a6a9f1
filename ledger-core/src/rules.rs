//! The rules by which a transaction is checked.

use std::sync::Arc;

use crate::mapping::Mapping;

/// The rules that check the postings of a transaction. They do not apply to the postings of a script.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Rules {
    /// The rules of API v2.
    #[default]
    Current,
    /// The rules of API v1.
    Legacy(Arc<LegacyRules>),
}

/// Settings of a ledger under the rules of API v1.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LegacyRules {
    /// The contracts of the ledger.
    pub mapping: Mapping,
    /// Whether a transaction may have a date before that of the last one.
    pub past_dates: PastDates,
}

/// Treatment of transactions dated before the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PastDates {
    /// The ledger records them.
    #[default]
    Accept,
    /// The ledger refuses them.
    Refuse,
}
