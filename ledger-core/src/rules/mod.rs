//! The rules by which a transaction is checked, where API v1 and API v2 differ.

mod current;
mod legacy;
mod mapping;
mod posting_rules;

use std::sync::Arc;

use self::current::CurrentRules;
pub use self::legacy::{LegacyRules, PastDates};
pub use self::mapping::{Contract, Mapping, Operand, Rule};
use self::posting_rules::PostingRules;
pub(crate) use self::posting_rules::check_reference;

/// The rules that check the postings of a transaction. They do not check the funds of a script's postings.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Rules {
    /// The rules of API v2.
    #[default]
    Current,
    /// The rules of API v1.
    Legacy(Arc<LegacyRules>),
}

impl Rules {
    /// Returns the rules behind their interface.
    pub(crate) fn get(&self) -> &dyn PostingRules {
        match self {
            Self::Current => &CurrentRules,
            Self::Legacy(rules) => &**rules,
        }
    }
}
