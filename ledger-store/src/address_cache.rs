//! Caches account addresses by number for all readers of a store.
//!
//! A page of a list names thousands of accounts, most of which earlier pages named too, and each address would need a
//! read of another page of the index. The address behind a number never changes, so all snapshots share one cache.

use std::mem;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use ledger_core::AccountAddress;
use parking_lot::Mutex;

/// Number of parts of the cache. Each has its own lock.
const SHARDS: usize = 64;

/// Approximate memory of an entry, apart from the text of an address that does not fit inline.
const ENTRY_BYTES: usize = 56;

/// The number of a ledger and of an account in it.
type Key = (u32, u32);

type Known = HashMap<Key, AccountAddress, RandomState>;

/// One part of the cache, in two generations. When the young one is full, it becomes the old one, and the old entries
/// are dropped. A hit moves an entry back into the young one.
#[derive(Default)]
struct Shard {
    young: Known,
    old: Known,
    /// Number of bytes in the young generation.
    bytes: usize,
}

/// The most recently used addresses, within a limit of memory.
pub(crate) struct AddressCache {
    shards: Box<[Mutex<Shard>]>,
    /// Maximum number of bytes in the young generation of each part.
    young_max: usize,
}

impl AddressCache {
    /// Creates an empty cache that holds up to about `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, young_max: bytes / SHARDS / 2 }
    }

    /// Returns the part for an account. Consecutive numbers map to different parts.
    fn shard(&self, (ledger, account): Key) -> &Mutex<Shard> {
        &self.shards[ledger.wrapping_add(account) as usize % SHARDS]
    }

    /// Returns the address of an account if it is cached.
    pub(crate) fn get(&self, ledger: u32, account: u32) -> Option<AccountAddress> {
        let key = (ledger, account);
        let mut shard = self.shard(key).lock();
        if let Some(address) = shard.young.get(&key) {
            return Some(address.clone());
        }
        let address = shard.old.remove(&key)?;
        shard.put(key, address.clone(), self.young_max);
        Some(address)
    }

    /// Adds the address of an account.
    pub(crate) fn put(&self, ledger: u32, account: u32, address: AccountAddress) {
        let key = (ledger, account);
        self.shard(key).lock().put(key, address, self.young_max);
    }
}

impl Shard {
    fn put(&mut self, key: Key, address: AccountAddress, young_max: usize) {
        let bytes = ENTRY_BYTES + address.as_str().len();
        if self.bytes + bytes > young_max {
            self.old = mem::take(&mut self.young);
            self.bytes = 0;
        }
        if self.young.insert(key, address).is_none() {
            self.bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(account: u32) -> AccountAddress {
        AccountAddress::parse(&format!("users:{account:030}")).expect("an address")
    }

    #[test]
    fn an_address_is_found_under_its_ledger_and_number() {
        let cache = AddressCache::new(1 << 20);
        cache.put(1, 7, address(7));
        assert_eq!(cache.get(1, 7), Some(address(7)));
        assert_eq!((cache.get(2, 7), cache.get(1, 8), cache.get(2, 6)), (None, None, None));
    }

    #[test]
    fn it_stays_within_its_bytes() {
        let bytes = 1 << 20;
        let cache = AddressCache::new(bytes);
        for account in 0..100_000 {
            cache.put(1, account, address(account));
            assert_eq!(cache.get(1, 5).is_some(), account >= 5, "asked for all the time, at {account}");
        }
        let (mut kept, mut room) = (0, 0);
        for shard in &cache.shards {
            let shard = shard.lock();
            kept += shard.young.len() + shard.old.len();
            room += shard.young.allocation_size() + shard.old.allocation_size();
        }
        let texts = kept * address(0).as_str().len();
        assert!(room + texts <= bytes, "{room} of tables and {texts} of texts");
        assert!(kept * 4 * ENTRY_BYTES > bytes, "{kept} of them");
        assert!(cache.get(1, 99_999).is_some());
        assert!(cache.get(1, 0).is_none(), "long ago");
    }
}
