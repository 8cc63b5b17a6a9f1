//! The history of balances at providers: one record for each period without a change.

#![allow(
    clippy::cast_possible_truncation,
    reason = "stored balances have references of at most 512 bytes, and assets of at most 64"
)]

use std::sync::Arc;

use ledger_core::{Balance, Timestamp};
use ledger_store::{Collection, Direction, DocumentKey, DocumentRange, ReadError, Snapshot};

use crate::collections::PAYMENT_BALANCES;
use crate::payments::codec::{Decoder, Encoder, date_key, number_key, text_key};
use crate::payments::ids::{AccountId, ConnectorId, REFERENCE_BYTES_MAX};
use crate::payments::record::{self, Record, Versioned, ordered, prefixed};
use crate::uuid::Uuid;

/// Indexes of balances, each below its account, by the field that it sorts by.
pub(crate) const BY_DATE: u32 = 1;
pub(crate) const BY_LAST_UPDATE: u32 = 2;
pub(crate) const BY_ASSET: u32 = 3;
pub(crate) const BY_BALANCE: u32 = 4;

/// The balance of an account in one asset during a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountBalance {
    pub(crate) account: AccountId,
    pub(crate) asset: String,
    /// Start of the period.
    pub(crate) created_at: Timestamp,
    /// Last time at which the provider reported this balance.
    pub(crate) last_updated_at: Timestamp,
    pub(crate) balance: Balance,
}

/// A balance that a connector reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewBalance {
    /// The provider's reference of the account.
    pub(crate) account: String,
    pub(crate) asset: String,
    pub(crate) at: Timestamp,
    pub(crate) balance: Balance,
}

/// Returns the common prefix of the keys of an account's balances.
pub(crate) fn prefix(account: &AccountId) -> Vec<u8> {
    let mut key = account.connector.installation.bytes().to_vec();
    key.extend_from_slice(&(account.reference.len() as u16).to_be_bytes());
    key.extend_from_slice(account.reference.as_bytes());
    key
}

/// Returns the common prefix of the keys of an account's balances in one asset.
fn asset_prefix(account: &AccountId, asset: &str) -> Vec<u8> {
    let mut key = prefix(account);
    key.push(asset.len() as u8);
    key.extend_from_slice(asset.as_bytes());
    key
}

impl Record for AccountBalance {
    const COLLECTION: Collection = PAYMENT_BALANCES;
    const NAME: &'static str = "a balance";

    fn key(&self) -> Vec<u8> {
        let mut key = asset_prefix(&self.account, &self.asset);
        key.extend_from_slice(&date_key(self.created_at));
        key
    }

    fn keys(&self) -> Vec<DocumentKey> {
        let prefix = prefix(&self.account);
        let below = |key: &[u8]| [&prefix[..], key].concat();
        vec![
            ordered(BY_DATE, below(&date_key(self.created_at))),
            ordered(BY_LAST_UPDATE, below(&date_key(self.last_updated_at))),
            ordered(BY_ASSET, below(&text_key(&self.asset))),
            ordered(BY_BALANCE, below(&number_key(&self.balance))),
        ]
    }

    fn encode(&self, out: &mut Encoder) {
        out.text(&self.account.connector.provider).time(self.last_updated_at).number(&self.balance);
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        let provider: Arc<str> = input.text()?.into();
        let (installation, rest) = key.split_first_chunk::<16>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (reference, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        let (length, rest) = rest.split_first()?;
        let (asset, date) = rest.split_at_checked(usize::from(*length))?;
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
        let micros = u64::from_be_bytes(date.try_into().ok()?) ^ (1 << 63);
        let connector = ConnectorId { provider, installation: Uuid::from_bytes(*installation) };
        Some(Self {
            account: AccountId { connector, reference: text(reference)? },
            asset: text(asset)?,
            created_at: Timestamp::from_micros(micros.cast_signed()),
            last_updated_at: input.time()?,
            balance: input.number()?,
        })
    }
}

impl AccountBalance {
    /// Returns whether the balance was valid at some time between `from` and `to`.
    pub(crate) fn is_within(&self, from: Option<Timestamp>, to: Timestamp) -> bool {
        from.is_none_or(|from| self.last_updated_at >= from) && self.created_at <= to
    }
}

/// Returns the newest record of an account's balance of an asset.
pub(crate) fn newest(
    snapshot: &Snapshot,
    account: &AccountId,
    asset: &str,
) -> Result<Option<Versioned<AccountBalance>>, ReadError> {
    let prefix = asset_prefix(account, asset);
    let range = DocumentRange { limit: 1, ..prefixed(&prefix, Direction::Descending) };
    snapshot.documents(PAYMENT_BALANCES, &range)?.first().map(record::of).transpose()
}

impl NewBalance {
    /// Returns the records that change. The newest record is extended to this time. If the balance has changed, there
    /// is also a new record.
    pub(crate) fn merge_into(
        self,
        connector: &ConnectorId,
        newest: Option<AccountBalance>,
    ) -> Vec<AccountBalance> {
        let account = AccountId { connector: connector.clone(), reference: self.account };
        let next = AccountBalance {
            account,
            asset: self.asset,
            created_at: self.at,
            last_updated_at: self.at,
            balance: self.balance,
        };
        let Some(newest) = newest else { return vec![next] };
        // Ignore a report that is older than the newest record.
        if next.created_at < newest.last_updated_at {
            return vec![];
        }
        if next.balance == newest.balance {
            let is_known = newest.last_updated_at == next.created_at;
            let moved = AccountBalance { last_updated_at: next.created_at, ..newest };
            return if is_known { vec![] } else { vec![moved] };
        }
        if next.created_at == newest.created_at {
            return vec![next];
        }
        vec![AccountBalance { last_updated_at: next.created_at, ..newest }, next]
    }

    /// Returns whether account and asset are short enough for the keys of documents.
    pub(crate) fn fits(&self) -> bool {
        !self.account.is_empty()
            && self.account.len() <= REFERENCE_BYTES_MAX
            && (1..=64).contains(&self.asset.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    fn connector() -> ConnectorId {
        ConnectorId { provider: "GENERIC".into(), installation: Uuid::from_bytes([7; 16]) }
    }

    fn fetched(micros: i64, balance: i64) -> NewBalance {
        NewBalance {
            account: "a".to_owned(),
            asset: "EUR/2".to_owned(),
            at: at(micros),
            balance: Balance::from(balance),
        }
    }

    #[test]
    fn only_a_change_makes_another_record() {
        let first = fetched(1, 5).merge_into(&connector(), None);
        assert_eq!(first.len(), 1);
        let same = fetched(4, 5).merge_into(&connector(), first.first().cloned());
        assert_eq!((same[0].created_at, same[0].last_updated_at, same.len()), (at(1), at(4), 1));
        let changed = fetched(9, -2).merge_into(&connector(), same.first().cloned());
        assert_eq!((changed[0].last_updated_at, changed[0].balance.clone()), (at(9), 5.into()));
        assert_eq!((changed[1].created_at, changed[1].balance.clone()), (at(9), (-2).into()));
        for late in [fetched(8, 5), fetched(9, -2)] {
            assert_eq!(late.merge_into(&connector(), changed.last().cloned()), []);
        }
    }

    #[test]
    fn a_balance_is_read_as_it_was_written() {
        let balance = fetched(-3, 12).merge_into(&connector(), None).remove(0);
        let mut out = Encoder::default();
        balance.encode(&mut out);
        let bytes = out.into_bytes();
        assert_eq!(AccountBalance::decode(&balance.key(), &mut Decoder::new(&bytes)), Some(balance));
    }
}
