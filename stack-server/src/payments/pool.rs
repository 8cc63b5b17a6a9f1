//! Pools: named sets of accounts, whose balances are summed.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger_core::{Balance, Timestamp};
use ledger_store::{Collection, DocumentKey, ReadError, Snapshot};

use crate::collections::{POOL_MEMBERS, POOLS};
use crate::payments::balance::{self, AccountBalance};
use crate::payments::codec::{Decoder, Encoder, date_key};
use crate::payments::ids::{self, AccountId};
use crate::payments::record::{self, Record, Versioned, ordered, unique};
use crate::uuid::Uuid;

/// Indexes of pools: by date, and by name, which is unique.
pub(crate) const BY_DATE: u32 = 1;
pub(crate) const BY_NAME: u32 = 2;
/// The index of members by account.
const BY_ACCOUNT: u32 = 1;

/// Maximum number of members of a new pool. The pool and its members are one commit.
pub(crate) const MEMBERS_MAX: usize = 800;

/// A pool, without its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) created_at: Timestamp,
}

/// The membership of an account in a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) pool: Uuid,
    pub(crate) account: AccountId,
}

impl Record for Pool {
    const COLLECTION: Collection = POOLS;
    const NAME: &'static str = "a pool";

    fn key(&self) -> Vec<u8> {
        self.id.bytes().to_vec()
    }

    fn keys(&self) -> Vec<DocumentKey> {
        vec![ordered(BY_DATE, date_key(self.created_at)), unique(BY_NAME, self.name.as_bytes())]
    }

    fn encode(&self, out: &mut Encoder) {
        out.text(&self.name).time(self.created_at);
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        let id = Uuid::from_bytes(key.try_into().ok()?);
        Some(Self { id, name: input.string()?, created_at: input.time()? })
    }
}

impl Member {
    /// Returns the common prefix of the keys of a pool's members.
    pub(crate) fn prefix(pool: &Uuid) -> Vec<u8> {
        pool.bytes().to_vec()
    }
}

impl Record for Member {
    const COLLECTION: Collection = POOL_MEMBERS;
    const NAME: &'static str = "a member of a pool";

    fn key(&self) -> Vec<u8> {
        [&self.pool.bytes()[..], &self.account.key()].concat()
    }

    fn keys(&self) -> Vec<DocumentKey> {
        vec![ordered(BY_ACCOUNT, self.account.key())]
    }

    fn encode(&self, out: &mut Encoder) {
        out.text(&self.account.connector.provider);
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        let provider: Arc<str> = input.text()?.into();
        let (pool, account) = key.split_first_chunk::<16>()?;
        let (connector, reference) = ids::of_key(account, provider)?;
        Some(Self { pool: Uuid::from_bytes(*pool), account: AccountId { connector, reference } })
    }
}

/// Returns the pool with this id.
pub(crate) fn find(snapshot: &Snapshot, id: &Uuid) -> Result<Option<Versioned<Pool>>, ReadError> {
    record::find(snapshot, id.bytes())
}

/// Returns the accounts of a pool.
pub(crate) fn members(snapshot: &Snapshot, pool: &Uuid) -> Result<Vec<AccountId>, ReadError> {
    let found = record::with_prefix::<Member>(snapshot, None, &Member::prefix(pool))?;
    Ok(found.into_iter().map(|member| member.value.account).collect())
}

/// Returns the pools that contain an account.
pub(crate) fn pools_of(snapshot: &Snapshot, account: &AccountId) -> Result<Vec<Uuid>, ReadError> {
    let key = account.key();
    let range = ledger_store::DocumentRange {
        from: std::ops::Bound::Included(key.clone()),
        to: std::ops::Bound::Included(key),
        ..ledger_store::DocumentRange::default()
    };
    let found = snapshot.documents_by(POOL_MEMBERS, BY_ACCOUNT, &range)?;
    found.iter().map(|document| Ok(record::of::<Member>(document)?.value.pool)).collect()
}

/// Returns the sum of the members' balances at a time, by asset. A balance is valid until the provider reports another
/// one, so the newest balance is valid at any later time.
pub(crate) fn balances(
    snapshot: &Snapshot,
    pool: &Uuid,
    at: Timestamp,
) -> Result<BTreeMap<String, Balance>, ReadError> {
    let mut sums = BTreeMap::new();
    for account in members(snapshot, pool)? {
        let rows = record::with_prefix::<AccountBalance>(snapshot, None, &balance::prefix(&account))?;
        // The records are ordered by asset and date, so the last one that began by this time counts.
        let mut valid: BTreeMap<String, Balance> = BTreeMap::new();
        for row in rows.into_iter().map(|row| row.value).filter(|row| row.created_at <= at) {
            valid.insert(row.asset, row.balance);
        }
        for (asset, balance) in valid {
            *sums.entry(asset).or_insert(Balance::ZERO) += &balance;
        }
    }
    Ok(sums)
}
