//! What a run must be told.

use std::sync::Arc;

use compact_str::CompactString;
use dashu_int::IBig;

use super::{Run, Step, Stop};
use crate::amount::Balance;
use crate::limits::SCRIPT_TEXT_BYTES_MAX;
use crate::metadata::MetadataValue;
use crate::names::AccountAddress;
use crate::script::program::{AccountId, AssetId, WORLD_ID};
use crate::script::switches::WorldBalance;

/// A need by numbers.
#[derive(Clone, Debug)]
pub(super) enum Needed {
    /// The balance of a holding.
    Balance(usize),
    /// The balances of all assets of an account that differ only in precision.
    Scales { account: AccountId, base: CompactString },
    /// A value of an account's metadata.
    Metadata { account: AccountId, key: Arc<str> },
}

/// What became of a question for metadata.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Asked,
    /// `None`: there is none.
    Told(Option<CompactString>),
}

/// Something that a run must be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need<'a> {
    /// A balance.
    Balance {
        /// The account.
        account: &'a AccountAddress,
        /// The asset, which may be none that a ledger can hold.
        asset: &'a str,
        /// The colour, or empty.
        color: &'a str,
    },
    /// Every uncoloured balance of the account in an asset that is `base` or begins with `base` and `/`.
    Scales {
        /// The account.
        account: &'a AccountAddress,
        /// The asset without its precision.
        base: &'a str,
    },
    /// A value of an account's metadata.
    Metadata {
        /// The account.
        account: &'a AccountAddress,
        /// The key.
        key: &'a str,
    },
}

/// Whoever can answer: a ledger, or a test.
pub trait Reads {
    /// Why it cannot.
    type Error;

    /// The balance of `color` funds of an asset in an account; what is not there is zero.
    ///
    /// # Errors
    ///
    /// Of the reader.
    fn balance(&mut self, account: &AccountAddress, asset: &str, color: &str)
    -> Result<Balance, Self::Error>;

    /// The uncoloured balances of an account in each asset that is `base` or begins with `base` and `/`.
    ///
    /// # Errors
    ///
    /// Of the reader.
    fn scales(
        &mut self,
        account: &AccountAddress,
        base: &str,
    ) -> Result<Vec<(CompactString, Balance)>, Self::Error>;

    /// A value of an account's metadata.
    ///
    /// # Errors
    ///
    /// Of the reader.
    fn metadata(&mut self, account: &AccountAddress, key: &str)
    -> Result<Option<MetadataValue>, Self::Error>;
}

/// Books without an entry.
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
    /// What the run must be told before it can go on, each thing once.
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

    /// Tells the run everything that it needs.
    ///
    /// # Errors
    ///
    /// The first of the reader's. The run is then as it was, but for what it was told before.
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
                    // Where there is too much, the run will fail for it, and needs no more of it.
                    let text = text.filter(|_| self.scratch.read_bytes <= SCRIPT_TEXT_BYTES_MAX);
                    self.scratch.read.insert((*account, key.clone()), Answer::Told(text));
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
            // The first answer is the truth for the whole run.
            self.scratch.books.holdings[at].stored.get_or_insert_with(|| balance.into_integer());
        }
        self.scratch.whole.insert((account, base));
    }

    /// The balance of a holding as it is now.
    pub(super) fn balance(&mut self, holding: usize) -> Step<IBig> {
        if let Some(balance) = self.scratch.books.balance(holding) {
            return Ok(balance);
        }
        self.note(holding);
        self.scratch.books.balance(holding).ok_or(Stop::Missing)
    }

    /// Sees to it that a balance is known or asked for.
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

    /// Whether all precisions of an asset in an account were told.
    fn is_whole(&self, account: AccountId, asset: AssetId) -> bool {
        let whole = &self.scratch.whole;
        !whole.is_empty() && {
            let name = self.asset_name(asset);
            let base = name.split_once('/').map_or(name.as_str(), |(base, _)| base);
            whole.contains(&(account, CompactString::new(base)))
        }
    }
}
