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

/// Further keys of pools: by date, and by name, which one has.
pub(crate) const BY_DATE: u32 = 1;
pub(crate) const BY_NAME: u32 = 2;
/// The further key of members: by account.
const BY_ACCOUNT: u32 = 1;

/// Most members that are made with a pool, in one commit.
pub(crate) const MEMBERS_MAX: usize = 800;

/// A pool, without its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) created_at: Timestamp,
}

/// That an account is in a pool.
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
    /// The common prefix of the keys of a pool's members.
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

/// The pool with an id.
pub(crate) fn find(snapshot: &Snapshot, id: &Uuid) -> Result<Option<Versioned<Pool>>, ReadError> {
    record::find(snapshot, id.bytes())
}

/// The accounts of a pool.
pub(crate) fn members(snapshot: &Snapshot, pool: &Uuid) -> Result<Vec<AccountId>, ReadError> {
    let found = record::with_prefix::<Member>(snapshot, None, &Member::prefix(pool))?;
    Ok(found.into_iter().map(|member| member.value.account).collect())
}

/// The pools that an account is in.
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

/// The sum of the members' balances at a time, by asset.
pub(crate) fn balances(
    snapshot: &Snapshot,
    pool: &Uuid,
    at: Timestamp,
) -> Result<BTreeMap<String, Balance>, ReadError> {
    let mut sums = BTreeMap::new();
    for account in members(snapshot, pool)? {
        let rows = record::with_prefix::<AccountBalance>(snapshot, None, &balance::prefix(&account))?;
        // In the order of assets and dates: of two that meet at a time, the later counts.
        let mut valid: BTreeMap<String, Balance> = BTreeMap::new();
        for row in rows.into_iter().map(|row| row.value).filter(|row| row.is_within(Some(at), at)) {
            valid.insert(row.asset, row.balance);
        }
        for (asset, balance) in valid {
            *sums.entry(asset).or_insert(Balance::ZERO) += &balance;
        }
    }
    Ok(sums)
}
