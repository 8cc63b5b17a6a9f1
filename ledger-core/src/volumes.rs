//! What went into an account and what went out of it, per asset.

use crate::amount::{Amount, Balance};
use crate::names::{AccountAddress, Asset};

/// The totals of one asset in one account since the beginning.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Volumes {
    /// Everything received.
    pub input: Amount,
    /// Everything sent.
    pub output: Amount,
}

impl Volumes {
    /// Input minus output.
    pub fn balance(&self) -> Balance {
        Balance::of(&self.input, &self.output)
    }

    /// Whether `amount` can be sent without the balance going below zero.
    pub fn covers(&self, amount: &Amount) -> bool {
        self.input >= self.output.clone() + amount
    }
}

/// The volumes of one asset in one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldingVolumes {
    /// The account.
    pub account: AccountAddress,
    /// The asset.
    pub asset: Asset,
    /// Its totals.
    pub volumes: Volumes,
}
