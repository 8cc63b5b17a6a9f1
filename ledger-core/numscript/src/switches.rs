//! The differences between the profiles, one switch for each.

use super::options::Profile;

impl Profile {
    /// Returns the switches of a profile.
    pub(super) const fn switches(self) -> Switches {
        match self {
            Self::Default => Switches {
                zero_postings: ZeroPostings::Drop,
                kept: KeptFunds::AtEnd,
                extra_variables: ExtraVariables::Refuse,
                negative_variable: NegativeVariable::Refuse,
                escapes: Escapes::Replace,
                check: Check::Fatal,
                world_balance: WorldBalance::Stored,
                save: Save::Protect,
            },
            Self::Interpreter => Switches {
                zero_postings: ZeroPostings::Drop,
                kept: KeptFunds::InPlace,
                extra_variables: ExtraVariables::Ignore,
                negative_variable: NegativeVariable::Accept,
                escapes: Escapes::Raw,
                check: Check::Off,
                world_balance: WorldBalance::Zero,
                save: Save::Forgive,
            },
            Self::Machine => Switches {
                zero_postings: ZeroPostings::Keep,
                kept: KeptFunds::AtEnd,
                extra_variables: ExtraVariables::Refuse,
                negative_variable: NegativeVariable::Refuse,
                escapes: Escapes::Replace,
                check: Check::Strict,
                world_balance: WorldBalance::Stored,
                save: Save::Subtract,
            },
        }
    }
}

/// The switches of a profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switches {
    pub(super) zero_postings: ZeroPostings,
    pub(super) kept: KeptFunds,
    pub(super) extra_variables: ExtraVariables,
    pub(super) negative_variable: NegativeVariable,
    pub(super) escapes: Escapes,
    pub(super) check: Check,
    pub(super) world_balance: WorldBalance,
    pub(super) save: Save,
}

/// Treatment of postings of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZeroPostings {
    Drop,
    Keep,
}

/// Selection of the funds that `kept` keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptFunds {
    /// The rest after all destinations.
    AtEnd,
    /// The amount that a destination in this place would receive.
    InPlace,
}

/// Treatment of values for variables that the script does not declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtraVariables {
    Refuse,
    Ignore,
}

/// Treatment of negative monetary variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NegativeVariable {
    Refuse,
    Accept,
}

/// Meaning of backslashes in strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    Replace,
    Raw,
}

/// Findings of the checker that keep a script from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// No findings.
    Off,
    /// The fatal findings.
    Fatal,
    /// The fatal findings, and those that the machine refuses in addition.
    Strict,
}

/// Result of `balance(@world, …)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorldBalance {
    Stored,
    Zero,
}

/// Effect of `save` on the balance that later statements see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Save {
    /// Subtracts the saved amount, but stops at zero. A debt stays.
    Protect,
    /// Subtracts the saved amount, but stops at zero. Saving an amount from a debt sets the balance to zero.
    Forgive,
    /// Subtracts the saved amount even below zero: that much must come in before anything can be taken.
    /// Saving everything leaves zero and no debt.
    Subtract,
}
