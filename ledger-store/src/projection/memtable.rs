//! Memtables: sorted, immutable rows of some consecutive entries, in memory.

use std::sync::Arc;

use ledger_index::{
    DocumentRow, MemtableRows, Row, for_each_run_table, freeze_memtable, memtable_bytes, merge_memtables,
    sort_rows,
};
use smol_str::SmolStr;

use super::document_table::{DocumentHash, DocumentTable};

/// An account that an entry of this memtable was the first to name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewAccount {
    /// Number of the ledger.
    pub(crate) ledger: u32,
    /// Number of the account in its ledger.
    pub(crate) account: u32,
    /// Address of the account.
    pub(crate) address: SmolStr,
}

impl NewAccount {
    /// Returns a number that ascends with ledger and account.
    fn number(&self) -> u128 {
        u128::from(self.ledger) << 32 | u128::from(self.account)
    }
}

/// Sorts accounts by ledger and address. Fast for accounts that consist of a few sorted parts.
fn sort_accounts(accounts: &mut [NewAccount]) {
    accounts.sort_by(|one, other| (one.ledger, &one.address).cmp(&(other.ledger, &other.address)));
}

/// Returns the accounts of memtables, sorted by ledger and address.
pub(crate) fn accounts_of(memtables: &[Arc<Memtable>]) -> Vec<NewAccount> {
    let accounts = memtables.iter().flat_map(|memtable| memtable.accounts.iter().cloned());
    let mut accounts: Vec<NewAccount> = accounts.collect();
    sort_accounts(&mut accounts);
    accounts
}

/// A holding that an entry of this memtable was the first to touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewHolding {
    /// Number of the ledger.
    pub(crate) ledger: u32,
    /// Number of the holding in its ledger.
    pub(crate) holding: u32,
    /// Number of the account.
    pub(crate) account: u32,
    /// Number of the asset.
    pub(crate) asset: u32,
}

impl NewHolding {
    /// Returns a number that ascends with ledger, account and asset.
    fn of_account(&self) -> u128 {
        u128::from(self.ledger) << 64 | u128::from(self.account) << 32 | u128::from(self.asset)
    }
}

/// Sorts holdings by ledger and number. Fast for holdings that consist of a few sorted parts.
fn sort_holdings(holdings: &mut [NewHolding]) {
    holdings.sort_by_key(|holding| (holding.ledger, holding.holding));
}

/// Returns the holdings of memtables, sorted by ledger and number.
pub(crate) fn holdings_of(memtables: &[Arc<Memtable>]) -> Vec<NewHolding> {
    let holdings = memtables.iter().flat_map(|memtable| memtable.holdings.iter().copied());
    let mut holdings: Vec<NewHolding> = holdings.collect();
    sort_holdings(&mut holdings);
    holdings
}

/// Defines the memtable and its builder, with a field for each table.
macro_rules! define_memtable {
    ($($(#[$doc:meta])* $table:ident: $row:ty;)*) => {
        /// A memtable: the sorted rows of every table.
        #[derive(Clone, Debug)]
        pub(crate) struct Memtable {
            $($(#[$doc])* pub(crate) $table: MemtableRows<$row>,)*
            /// Ascending by ledger and address.
            pub(crate) accounts: Arc<[NewAccount]>,
            /// Indexes into `accounts`, ascending by ledger and number.
            pub(crate) accounts_by_number: Arc<[u32]>,
            /// Ascending by ledger and holding.
            pub(crate) holdings: Arc<[NewHolding]>,
            /// Indexes into `holdings`, ascending by ledger, account and asset.
            pub(crate) holdings_by_account: Arc<[u32]>,
            document_table: DocumentTable,
            /// Number of rows in all tables.
            pub(crate) rows: usize,
            /// Size in memory, in bytes.
            pub(crate) bytes: usize,
        }

        /// Collects rows in the order of their entries, until they become a memtable.
        #[derive(Default, Debug)]
        pub(crate) struct MemtableBuilder {
            $($(#[$doc])* pub(crate) $table: Vec<$row>,)*
            pub(crate) accounts: Vec<NewAccount>,
            pub(crate) holdings: Vec<NewHolding>,
        }

        /// A state of the builder to which [`MemtableBuilder::reset`] returns.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct MemtableSizes {
            $($table: usize,)*
            accounts: usize,
            holdings: usize,
        }

        impl MemtableBuilder {
            /// Creates a builder for `count` commands. Estimates capacity from `like`, the number of rows of
            /// `like_count` commands.
            pub(crate) fn with_capacity_for(count: usize, like: MemtableSizes, like_count: usize) -> Self {
                let capacity = |rows: usize| capacity(rows * count / like_count.max(1));
                Self {
                    $($table: Vec::with_capacity(capacity(like.$table)),)*
                    ..Self::default()
                }
            }

            /// Returns the current state, for [`MemtableBuilder::reset`].
            pub(crate) fn mark(&self) -> MemtableSizes {
                MemtableSizes {
                    $($table: self.$table.len(),)*
                    accounts: self.accounts.len(),
                    holdings: self.holdings.len(),
                }
            }

            /// Drops the rows that were added since a mark.
            pub(crate) fn reset(&mut self, mark: MemtableSizes) {
                $(self.$table.truncate(mark.$table);)*
                self.accounts.truncate(mark.accounts);
                self.holdings.truncate(mark.holdings);
            }

            /// Sorts all rows and returns them as a memtable.
            pub(crate) fn seal(mut self) -> Memtable {
                sort_accounts(&mut self.accounts);
                sort_holdings(&mut self.holdings);
                self.documents = newest_of_each(&self.documents);
                let tables = Tables { $($table: sorted_rows(self.$table),)* };
                Memtable::new(tables, self.accounts, self.holdings)
            }
        }

        /// The sorted rows of a memtable that is being created, apart from accounts and holdings.
        struct Tables {
            $($table: MemtableRows<$row>,)*
        }

        impl Tables {
            /// Merges the rows of memtables, which are in order of age.
            fn merged(memtables: &[Arc<Memtable>]) -> Self {
                Self { $($table: merged_rows(memtables, |memtable| &memtable.$table),)* }
            }

            /// Returns the number of rows in all tables.
            fn rows(&self) -> usize {
                0 $(+ self.$table.len())*
            }

            /// Returns the size of the rows in memory, in bytes.
            fn bytes(&self) -> usize {
                0 $(+ memtable_bytes(&self.$table))*
            }
        }

        impl Memtable {
            /// Creates a memtable of sorted rows. Accounts are in the order of their addresses, holdings in that of
            /// their numbers.
            fn new(tables: Tables, accounts: Vec<NewAccount>, holdings: Vec<NewHolding>) -> Self {
                let document_table = DocumentTable::of(&tables.documents);
                Self {
                    rows: tables.rows() + accounts.len() + holdings.len(),
                    bytes: tables.bytes()
                        + document_table.bytes()
                        + accounts.len() * (size_of::<NewAccount>() + size_of::<u32>())
                        + holdings.len() * (size_of::<NewHolding>() + size_of::<u32>()),
                    $($table: tables.$table,)*
                    accounts_by_number: order_of(accounts.iter().map(NewAccount::number)),
                    accounts: accounts.into(),
                    holdings_by_account: order_of(holdings.iter().map(NewHolding::of_account)),
                    holdings: holdings.into(),
                    document_table,
                }
            }
        }
    };
}

for_each_run_table!(define_memtable);

/// Returns the capacity to reserve for an expected number of rows. Small vectors grow fast by themselves, and
/// capacity in rare tables would waste memory.
const fn capacity(rows: usize) -> usize {
    const CAPACITY_MIN: usize = 64;
    if rows < CAPACITY_MIN { 0 } else { rows + rows / 16 }
}

/// Returns the indexes of items in the order of their keys. Items with equal keys keep their order.
pub(crate) fn order_of(keys: impl Iterator<Item = u128>) -> Arc<[u32]> {
    let mut order: Vec<(u128, u32)> = keys.zip(0..).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

fn merged_rows<R: Row>(
    memtables: &[Arc<Memtable>],
    table: impl Fn(&Memtable) -> &MemtableRows<R>,
) -> MemtableRows<R> {
    let tables = memtables.iter().map(|memtable| table(memtable).clone());
    merge_memtables(&tables.filter(|rows| !rows.is_empty()).collect::<Vec<_>>())
}

fn sorted_rows<R: Row>(mut rows: Vec<R>) -> MemtableRows<R> {
    if !rows.is_sorted_by(Row::is_before) {
        sort_rows(&mut rows);
    }
    freeze_memtable(rows)
}

/// Returns the newest change of each document, sorted by key. `documents` are in order of age.
fn newest_of_each(documents: &[DocumentRow]) -> Vec<DocumentRow> {
    let mut order: Vec<(u128, u32)> = documents.iter().map(Row::key_rank).zip(0..).collect();
    // The ranks decide most comparisons, without a look at the keys, which are elsewhere in memory.
    order.sort_unstable_by(|one, other| {
        let place = |at: u32| (&documents[at as usize].key, at);
        one.0.cmp(&other.0).then_with(|| place(one.1).cmp(&place(other.1)))
    });
    let same = |one: &(u128, u32), other: &(u128, u32)| {
        one.0 == other.0 && documents[one.1 as usize].key == documents[other.1 as usize].key
    };
    let newest = order.chunk_by(same).filter_map(<[_]>::last);
    newest.map(|(_, at)| documents[*at as usize].clone()).collect()
}

impl Memtable {
    /// Merges memtables into one. `memtables` are in order of age.
    pub(crate) fn merge(memtables: &[Arc<Memtable>]) -> Self {
        Self::new(Tables::merged(memtables), accounts_of(memtables), holdings_of(memtables))
    }

    /// Returns the account with this number, if the memtable has it.
    pub(crate) fn account(&self, ledger: u32, account: u32) -> Option<&NewAccount> {
        let account_at = |at: &u32| &self.accounts[*at as usize];
        let number = |at: &u32| (account_at(at).ledger, account_at(at).account);
        let by_number = &self.accounts_by_number;
        let (first, last) = (number(by_number.first()?), number(by_number.last()?));
        let wanted = (ledger, account);
        if wanted < first || wanted > last {
            return None;
        }
        // Numbers are dense: if the memtable has one ledger, the index follows from the number.
        if first.0 == last.0
            && let Some(at) = by_number.get((account - first.1) as usize)
            && number(at) == wanted
        {
            return Some(account_at(at));
        }
        let found = by_number.binary_search_by_key(&wanted, number).ok()?;
        Some(account_at(&by_number[found]))
    }

    /// Returns the change of a document, if the memtable has one. `hash` is that of its full key.
    pub(crate) fn document(&self, key: &[u8], hash: DocumentHash) -> Option<&DocumentRow> {
        self.document_table.find(&self.documents, key, hash).map(|at| &self.documents[at])
    }

    /// Returns the changes of document keys from one key up to another.
    pub(crate) fn documents_between(&self, from: &[u8], to: &[u8]) -> &[DocumentRow] {
        let start = self.documents.partition_point(|have| *have.key < *from);
        let end = self.documents.partition_point(|have| *have.key < *to);
        &self.documents[start..end.max(start)]
    }

    /// Returns the account with this address, if the memtable has it.
    pub(crate) fn account_at(&self, ledger: u32, address: &str) -> Option<&NewAccount> {
        self.accounts
            .binary_search_by(|account| (account.ledger, account.address.as_str()).cmp(&(ledger, address)))
            .ok()
            .map(|at| &self.accounts[at])
    }

    /// Returns the new holdings of an account, ascending by asset number.
    pub(crate) fn holdings_of(&self, ledger: u32, account: u32) -> impl Iterator<Item = &NewHolding> {
        let key = |at: &u32| {
            let holding = &self.holdings[*at as usize];
            (holding.ledger, holding.account)
        };
        let start = self.holdings_by_account.partition_point(|at| key(at) < (ledger, account));
        self.holdings_by_account[start..]
            .iter()
            .take_while(move |at| key(at) == (ledger, account))
            .map(|at| &self.holdings[*at as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_accounts_by_number_in_any_memtable() {
        for ledgers in [1..=1_u32, 1..=3] {
            let mut builder = MemtableBuilder::default();
            for ledger in ledgers.clone() {
                // Addresses and numbers are in different orders.
                let accounts = (7..40).map(|account| NewAccount {
                    ledger,
                    account,
                    address: format!("a:{}", 100 - account).into(),
                });
                builder.accounts.extend(accounts);
            }
            let memtable = builder.seal();
            for ledger in 0..=4 {
                for account in 0..50 {
                    let found = memtable.account(ledger, account).map(|found| (found.ledger, found.account));
                    let is_there = ledgers.contains(&ledger) && (7..40).contains(&account);
                    assert_eq!(found, is_there.then_some((ledger, account)), "{ledgers:?}");
                }
            }
        }
        assert_eq!(MemtableBuilder::default().seal().account(1, 0), None);
    }
}
