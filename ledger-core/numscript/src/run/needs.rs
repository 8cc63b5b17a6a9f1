//! The needs of a run: balances and metadata that it must know to go on.

use std::sync::Arc;

use crate::program::AccountId;
use ledger_values::{AccountAddress, Balance, MetadataValue};
use smol_str::SmolStr;

/// A need in the numbers of the run.
#[derive(Clone, Debug)]
pub(super) enum Needed {
    /// The balance of a holding.
    Balance(usize),
    /// The balances of all assets of an account that differ only in precision.
    Scales { account: AccountId, base: SmolStr },
    /// A metadata value of an account.
    Metadata { account: AccountId, key: Arc<str> },
}

/// The state of a question for metadata.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Asked,
    /// The answer, or `None` if the account has no such metadata.
    Known(Option<SmolStr>),
}

/// A balance or metadata value that the run must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need<'a> {
    /// The balance of one asset and colour in an account.
    Balance {
        /// The account.
        account: &'a AccountAddress,
        /// The asset. A script may name one that no ledger can hold.
        asset: &'a str,
        /// The colour, or an empty text.
        color: &'a str,
    },
    /// Every uncoloured balance of the account in `base` or in an asset that begins with `base` and `/`.
    Scales {
        /// The account.
        account: &'a AccountAddress,
        /// The asset without its precision.
        base: &'a str,
    },
    /// A metadata value of an account.
    Metadata {
        /// The account.
        account: &'a AccountAddress,
        /// The metadata key.
        key: &'a str,
    },
}

/// Source of answers: a ledger, or a test.
pub trait Reads {
    /// Error of a failed read.
    type Error;

    /// Returns the balance of `color` funds of an asset in an account. An absent balance is zero.
    ///
    /// # Errors
    ///
    /// The error of the reader.
    fn balance(&mut self, account: &AccountAddress, asset: &str, color: &str)
    -> Result<Balance, Self::Error>;

    /// Returns the uncoloured balances of an account in `base` and in each asset that begins with `base` and
    /// `/`.
    ///
    /// # Errors
    ///
    /// The error of the reader.
    fn scales(
        &mut self,
        account: &AccountAddress,
        base: &str,
    ) -> Result<Vec<(SmolStr, Balance)>, Self::Error>;

    /// Returns a metadata value of an account.
    ///
    /// # Errors
    ///
    /// The error of the reader.
    fn metadata(&mut self, account: &AccountAddress, key: &str)
    -> Result<Option<MetadataValue>, Self::Error>;
}

/// An empty ledger: all balances are zero, and no account has metadata.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyLedger;

impl Reads for EmptyLedger {
    type Error = std::convert::Infallible;

    fn balance(&mut self, _: &AccountAddress, _: &str, _: &str) -> Result<Balance, Self::Error> {
        Ok(Balance::ZERO)
    }

    fn scales(&mut self, _: &AccountAddress, _: &str) -> Result<Vec<(SmolStr, Balance)>, Self::Error> {
        Ok(Vec::new())
    }

    fn metadata(&mut self, _: &AccountAddress, _: &str) -> Result<Option<MetadataValue>, Self::Error> {
        Ok(None)
    }
}
