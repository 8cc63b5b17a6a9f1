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

    /// Returns true if the rules check something before a script runs, for which
    /// [`check_before_script`](crate::check_before_script) needs facts.
    ///
    /// ```
    /// use ledger_core::{LegacyRules, Rules};
    /// assert!(!Rules::Current.has_checks_before_script());
    /// assert!(Rules::Legacy(LegacyRules::default().into()).has_checks_before_script());
    /// ```
    pub fn has_checks_before_script(&self) -> bool {
        matches!(self, Self::Legacy(_))
    }
}
