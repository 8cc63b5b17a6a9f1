//! Volumes: the total input and output of an account per asset.

use crate::amount::{Amount, Balance};
use crate::names::{AccountAddress, Asset};

/// Total input and output of one asset in one account.
///
/// ```
/// use ledger_values::{Amount, Volumes};
/// let volumes = Volumes { input: Amount::from(7_u64), output: Amount::from(5_u64) };
/// assert_eq!(volumes.balance(), 2);
/// assert!(volumes.covers(&Amount::from(2_u64)) && !volumes.covers(&Amount::from(3_u64)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Volumes {
    /// The sum of all amounts that the account received.
    pub input: Amount,
    /// The sum of all amounts that the account sent.
    pub output: Amount,
}

impl Volumes {
    /// Returns input minus output.
    pub fn balance(&self) -> Balance {
        Balance::of(&self.input, &self.output)
    }

    /// Tells whether the account can send `amount` and keep a balance of zero or more.
    pub fn covers(&self, amount: &Amount) -> bool {
        self.input >= self.output.clone() + amount
    }
}

/// The volumes of one asset in one account.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HoldingVolumes {
    /// The account that holds the asset.
    pub account: AccountAddress,
    /// The asset that is held.
    pub asset: Asset,
    /// The volumes of the asset in the account.
    pub volumes: Volumes,
}
