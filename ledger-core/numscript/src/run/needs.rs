//! The needs of a run: balances and metadata that it must know to go on.

use std::sync::Arc;

use compact_str::CompactString;
use dashu_int::IBig;

use super::{Run, Step, Stop};
use crate::limits::SCRIPT_TEXT_BYTES_MAX;
use crate::program::{AccountId, AssetId, WORLD_ID};
use crate::switches::WorldBalance;
use ledger_values::{AccountAddress, Balance, MetadataValue};

/// A need in the numbers of the run.
#[derive(Clone, Debug)]
pub(super) enum Needed {
    /// The balance of a holding.
    Balance(usize),
    /// The balances of all assets of an account that differ only in precision.
    Scales { account: AccountId, base: CompactString },
    /// A metadata value of an account.
    Metadata { account: AccountId, key: Arc<str> },
}

/// The state of a question for metadata.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Asked,
    /// The answer, or `None` if the account has no such metadata.
    Known(Option<CompactString>),
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
    ) -> Result<Vec<(CompactString, Balance)>, Self::Error>;

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
pub struct Blank;

impl Reads for Blank {
    type Error = std::convert::Infallible;

    fn balance(&mut self, _: &AccountAddress, _: &str, _: &str) -> Result<Balance, Self::Error> {
        Ok(Balance::ZERO)
    }

    fn scales(&mut self, _: &AccountAddress, _: &str) -> Result<Vec<(CompactString, Balance)>, Self::Error> {
        Ok(Vec::new())
    }

    fn metadata(&mut self, _: &AccountAddress, _: &str) -> Result<Option<MetadataValue>, Self::Error> {
        Ok(None)
    }
}

impl Run<'_> {
    /// Lists the needs that keep the run from going on, each once.
    pub fn needs(&self) -> impl ExactSizeIterator<Item = Need<'_>> {
        self.scratch.needed.iter().map(|needed| match needed {
            Needed::Balance(holding) => {
                let held = &self.scratch.books.holdings[*holding];
                Need::Balance {
                    account: self.account(held.account),
                    asset: self.asset_name(held.asset),
                    color: self.scratch.colors.get(held.color),
                }
            }
            Needed::Scales { account, base } => Need::Scales { account: self.account(*account), base },
            Needed::Metadata { account, key } => Need::Metadata { account: self.account(*account), key },
        })
    }

    /// Reads and answers all needs of the run.
    ///
    /// # Errors
    ///
    /// The first error of the reader. The run keeps the answers before it.
    pub fn answer<R: Reads>(&mut self, reads: &mut R) -> Result<(), R::Error> {
        self.scratch.rounds += 1;
        let mut needed = std::mem::take(&mut self.scratch.needed);
        for need in &needed {
            match need {
                Needed::Balance(holding) => {
                    let held = &self.scratch.books.holdings[*holding];
                    let color = self.scratch.colors.get(held.color);
                    let (account, asset) = (self.account(held.account), self.asset_name(held.asset));
                    let balance = reads.balance(account, asset, color)?;
                    let held = &mut self.scratch.books.holdings[*holding];
                    held.stored = Some(balance.into_integer());
                    held.noted = false;
                }
                Needed::Scales { account, base } => {
                    let balances = reads.scales(self.account(*account), base)?;
                    self.told_scales(*account, base.clone(), balances);
                }
                Needed::Metadata { account, key } => {
                    let value = reads.metadata(self.account(*account), key)?;
                    let text = value.map(|value| match value {
                        MetadataValue::Text(text) | MetadataValue::Json(text) => text,
                    });
                    let bytes = text.as_ref().map_or(0, CompactString::len);
                    self.scratch.read_bytes = self.scratch.read_bytes.saturating_add(bytes);
                    // Above the limit the run will fail anyway, and needs no text.
                    let text = text.filter(|_| self.scratch.read_bytes <= SCRIPT_TEXT_BYTES_MAX);
                    self.scratch.read.insert((*account, key.clone()), Answer::Known(text));
                }
            }
        }
        needed.clear();
        self.scratch.needed = needed;
        Ok(())
    }

    fn told_scales(
        &mut self,
        account: AccountId,
        base: CompactString,
        balances: Vec<(CompactString, Balance)>,
    ) {
        for (asset, balance) in balances {
            let asset = self.asset_id(&asset);
            let at = self.scratch.books.holding(account, asset, 0);
            // The first answer holds for the whole run.
            self.scratch.books.holdings[at].stored.get_or_insert_with(|| balance.into_integer());
        }
        self.scratch.whole.insert((account, base));
    }

    /// Returns the current balance of a holding.
    pub(super) fn balance(&mut self, holding: usize) -> Step<IBig> {
        if let Some(balance) = self.scratch.books.balance(holding) {
            return Ok(balance);
        }
        self.note(holding);
        self.scratch.books.balance(holding).ok_or(Stop::Missing)
    }

    /// Notes a need for a balance unless it is known or noted.
    pub(super) fn note(&mut self, holding: usize) {
        let held = &self.scratch.books.holdings[holding];
        if held.stored.is_some() || held.noted {
            return;
        }
        let is_known_zero = held.account == WORLD_ID && self.switches.world_balance == WorldBalance::Zero
            || held.color == 0 && self.is_whole(held.account, held.asset);
        let held = &mut self.scratch.books.holdings[holding];
        if is_known_zero {
            held.stored = Some(IBig::ZERO);
        } else {
            held.noted = true;
            self.scratch.needed.push(Needed::Balance(holding));
        }
    }

    /// Tells whether all precisions of an asset in an account are known.
    fn is_whole(&self, account: AccountId, asset: AssetId) -> bool {
        let whole = &self.scratch.whole;
        !whole.is_empty() && {
            let name = self.asset_name(asset);
            let base = name.split_once('/').map_or(name.as_str(), |(base, _)| base);
            whole.contains(&(account, CompactString::new(base)))
        }
    }
}
