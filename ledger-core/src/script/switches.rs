//! What sets the profiles apart.

use super::options::Profile;

impl Profile {
    /// The switches of a profile.
    pub(super) const fn switches(self) -> Switches {
        match self {
            Self::Default => Switches {
                zero_postings: ZeroPostings::Drop,
                kept: Kept::AtEnd,
                surplus: Surplus::Refuse,
                negative_variable: NegativeVariable::Refuse,
                escapes: Escapes::Replace,
                check: Check::Fatal,
                world_balance: WorldBalance::Stored,
                save: Save::Protect,
            },
            Self::Interpreter => Switches {
                zero_postings: ZeroPostings::Drop,
                kept: Kept::InPlace,
                surplus: Surplus::Ignore,
                negative_variable: NegativeVariable::Accept,
                escapes: Escapes::Raw,
                check: Check::Off,
                world_balance: WorldBalance::Zero,
                save: Save::Forgive,
            },
            Self::Machine => Switches {
                zero_postings: ZeroPostings::Keep,
                kept: Kept::AtEnd,
                surplus: Surplus::Refuse,
                negative_variable: NegativeVariable::Refuse,
                escapes: Escapes::Replace,
                check: Check::Strict,
                world_balance: WorldBalance::Stored,
                save: Save::Subtract,
            },
        }
    }
}

/// Where the engines differ, one switch for each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switches {
    pub(super) zero_postings: ZeroPostings,
    pub(super) kept: Kept,
    pub(super) surplus: Surplus,
    pub(super) negative_variable: NegativeVariable,
    pub(super) escapes: Escapes,
    pub(super) check: Check,
    pub(super) world_balance: WorldBalance,
    pub(super) save: Save,
}

/// What becomes of postings that move nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZeroPostings {
    Drop,
    Keep,
}

/// Which funds `kept` keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// What is left when all destinations are served.
    AtEnd,
    /// What would be delivered at that point.
    InPlace,
}

/// What becomes of variables that the script does not declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surplus {
    Refuse,
    Ignore,
}

/// Whether a monetary variable may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NegativeVariable {
    Refuse,
    Accept,
}

/// Whether backslashes in strings mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    Replace,
    Raw,
}

/// Which findings of the checker stop a script before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// None.
    Off,
    /// The fatal ones.
    Fatal,
    /// These, and what the old machine refused besides.
    Strict,
}

/// What `balance(@world, …)` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorldBalance {
    Stored,
    Zero,
}

/// What `save` makes of a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Save {
    /// What is left, but nothing where more is saved than there is. A debt stays as it is.
    Protect,
    /// The same, but a debt from which an amount is saved is none any more.
    Forgive,
    /// What is left, also below zero: that much must come in before anything can be taken. Saving everything leaves
    /// nothing, and no debt.
    Subtract,
}
