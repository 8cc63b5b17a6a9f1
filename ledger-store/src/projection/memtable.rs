//! Memtables: sorted, immutable rows of some consecutive entries, in memory.

use std::sync::Arc;

use ledger_index::{
    BackdatedRow, DocumentRow, EffectiveRow, HistoryRow, KeyRow, LogRow, MemtableRows, Row, TermRow,
    TransactionRow, VersionRow, freeze_memtable, memtable_bytes, merge_memtables, sort_rows,
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

/// A memtable: the sorted rows of every table.
#[derive(Clone, Debug)]
pub(crate) struct Memtable {
    pub(crate) history: MemtableRows<HistoryRow>,
    pub(crate) backdated: MemtableRows<BackdatedRow>,
    pub(crate) keys: MemtableRows<KeyRow>,
    pub(crate) terms: MemtableRows<TermRow>,
    pub(crate) logs: MemtableRows<LogRow>,
    pub(crate) transactions: MemtableRows<TransactionRow>,
    pub(crate) versions: MemtableRows<VersionRow>,
    pub(crate) effective: MemtableRows<EffectiveRow>,
    /// Ascending by ledger and address.
    pub(crate) accounts: Arc<[NewAccount]>,
    /// Indexes into `accounts`, ascending by ledger and number.
    pub(crate) accounts_by_number: Arc<[u32]>,
    /// Ascending by ledger and holding.
    pub(crate) holdings: Arc<[NewHolding]>,
    /// Indexes into `holdings`, ascending by ledger, account and asset.
    pub(crate) holdings_by_account: Arc<[u32]>,
    pub(crate) documents: MemtableRows<DocumentRow>,
    document_table: DocumentTable,
    /// Number of rows in all tables.
    pub(crate) rows: usize,
    /// Size in memory, in bytes.
    pub(crate) bytes: usize,
}

/// Collects rows in the order of their entries, until they become a memtable.
#[derive(Default, Debug)]
pub(crate) struct MemtableBuilder {
    pub(crate) history: Vec<HistoryRow>,
    pub(crate) backdated: Vec<BackdatedRow>,
    pub(crate) keys: Vec<KeyRow>,
    pub(crate) terms: Vec<TermRow>,
    pub(crate) logs: Vec<LogRow>,
    pub(crate) transactions: Vec<TransactionRow>,
    pub(crate) versions: Vec<VersionRow>,
    pub(crate) effective: Vec<EffectiveRow>,
    pub(crate) accounts: Vec<NewAccount>,
    pub(crate) holdings: Vec<NewHolding>,
    pub(crate) documents: Vec<DocumentRow>,
}

/// A state of the builder to which [`MemtableBuilder::reset`] returns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemtableSizes([usize; 11]);

impl MemtableBuilder {
    /// Creates a builder for `count` commands. Estimates capacity from `like`, the number of rows of `like_count`
    /// commands.
    pub(crate) fn with_room(count: usize, like: MemtableSizes, like_count: usize) -> Self {
        /// Minimum capacity to reserve. Below it, vectors grow fast by themselves; above it, rare tables would waste
        /// memory.
        const CAPACITY_MIN: usize = 64;
        let capacity = |rows: usize| match rows * count / like_count.max(1) {
            rows if rows < CAPACITY_MIN => 0,
            rows => rows + rows / 16,
        };
        let MemtableSizes([history, backdated, keys, terms, logs, transactions, _, effective, ..]) = like;
        Self {
            history: Vec::with_capacity(capacity(history)),
            backdated: Vec::with_capacity(capacity(backdated)),
            keys: Vec::with_capacity(capacity(keys)),
            terms: Vec::with_capacity(capacity(terms)),
            logs: Vec::with_capacity(capacity(logs)),
            transactions: Vec::with_capacity(capacity(transactions)),
            effective: Vec::with_capacity(capacity(effective)),
            ..Self::default()
        }
    }

    /// Returns the current state, for [`MemtableBuilder::reset`].
    pub(crate) fn mark(&self) -> MemtableSizes {
        MemtableSizes([
            self.history.len(),
            self.backdated.len(),
            self.keys.len(),
            self.terms.len(),
            self.logs.len(),
            self.transactions.len(),
            self.versions.len(),
            self.effective.len(),
            self.accounts.len(),
            self.holdings.len(),
            self.documents.len(),
        ])
    }

    /// Drops the rows that were added since a mark.
    pub(crate) fn reset(&mut self, mark: MemtableSizes) {
        let MemtableSizes(
            [
                history,
                backdated,
                keys,
                terms,
                logs,
                transactions,
                versions,
                effective,
                accounts,
                holdings,
                documents,
            ],
        ) = mark;
        self.history.truncate(history);
        self.backdated.truncate(backdated);
        self.keys.truncate(keys);
        self.terms.truncate(terms);
        self.logs.truncate(logs);
        self.transactions.truncate(transactions);
        self.versions.truncate(versions);
        self.effective.truncate(effective);
        self.accounts.truncate(accounts);
        self.holdings.truncate(holdings);
        self.documents.truncate(documents);
    }

    /// Sorts all rows and returns them as a memtable.
    pub(crate) fn seal(self) -> Memtable {
        let Self {
            history,
            backdated,
            keys,
            terms,
            logs,
            transactions,
            versions,
            effective,
            mut accounts,
            mut holdings,
            documents,
        } = self;
        accounts.sort_unstable_by(|a, b| (a.ledger, &a.address).cmp(&(b.ledger, &b.address)));
        holdings.sort_unstable_by_key(|holding| (holding.ledger, holding.holding));
        Memtable::from_parts(Parts {
            history: sorted_rows(history),
            backdated: sorted_rows(backdated),
            keys: sorted_rows(keys),
            terms: sorted_rows(terms),
            logs: sorted_rows(logs),
            transactions: sorted_rows(transactions),
            versions: sorted_rows(versions),
            effective: sorted_rows(effective),
            accounts,
            holdings,
            documents: newest_of_each(&documents),
        })
    }
}

fn sorted_rows<R: Row>(mut rows: Vec<R>) -> MemtableRows<R> {
    if !rows.is_sorted_by_key(Row::key) {
        sort_rows(&mut rows);
    }
    freeze_memtable(rows)
}

/// Sorts changes of documents, which are in order of age, and keeps the newest of each key.
fn newest_of_each(documents: &[DocumentRow]) -> MemtableRows<DocumentRow> {
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
    freeze_memtable(newest.map(|(_, at)| documents[*at as usize].clone()).collect())
}

/// The sorted rows of a memtable that is being created.
struct Parts {
    history: MemtableRows<HistoryRow>,
    backdated: MemtableRows<BackdatedRow>,
    keys: MemtableRows<KeyRow>,
    terms: MemtableRows<TermRow>,
    logs: MemtableRows<LogRow>,
    transactions: MemtableRows<TransactionRow>,
    versions: MemtableRows<VersionRow>,
    effective: MemtableRows<EffectiveRow>,
    accounts: Vec<NewAccount>,
    holdings: Vec<NewHolding>,
    documents: MemtableRows<DocumentRow>,
}

impl Parts {
    /// Returns the number of rows in all tables.
    fn rows(&self) -> usize {
        self.history.len()
            + self.backdated.len()
            + self.keys.len()
            + self.terms.len()
            + self.logs.len()
            + self.transactions.len()
            + self.versions.len()
            + self.effective.len()
            + self.accounts.len()
            + self.holdings.len()
            + self.documents.len()
    }

    /// Returns the size of the memtable in memory, in bytes.
    fn bytes(&self) -> usize {
        memtable_bytes(&self.history)
            + memtable_bytes(&self.backdated)
            + memtable_bytes(&self.keys)
            + memtable_bytes(&self.terms)
            + memtable_bytes(&self.logs)
            + memtable_bytes(&self.transactions)
            + memtable_bytes(&self.versions)
            + memtable_bytes(&self.effective)
            + self.accounts.len() * (size_of::<NewAccount>() + 4)
            + self.holdings.len() * (size_of::<NewHolding>() + 4)
            + memtable_bytes(&self.documents)
    }
}

impl Memtable {
    fn from_parts(parts: Parts) -> Self {
        let document_table = DocumentTable::of(&parts.documents);
        let (rows, bytes) = (parts.rows(), parts.bytes() + document_table.bytes());
        let Parts {
            history,
            backdated,
            keys,
            terms,
            logs,
            transactions,
            versions,
            effective,
            accounts,
            holdings,
            documents,
        } = parts;
        let mut accounts_by_number: Vec<u32> = (0..accounts.len() as u32).collect();
        accounts_by_number.sort_unstable_by_key(|at| {
            let account = &accounts[*at as usize];
            (account.ledger, account.account)
        });
        let mut holdings_by_account: Vec<u32> = (0..holdings.len() as u32).collect();
        holdings_by_account.sort_unstable_by_key(|at| {
            let holding = &holdings[*at as usize];
            (holding.ledger, holding.account, holding.asset)
        });
        Self {
            history,
            backdated,
            keys,
            terms,
            logs,
            transactions,
            versions,
            effective,
            accounts: accounts.into(),
            accounts_by_number: accounts_by_number.into(),
            holdings: holdings.into(),
            holdings_by_account: holdings_by_account.into(),
            documents,
            document_table,
            rows,
            bytes,
        }
    }

    /// Merges memtables into one. `memtables` are in order of age.
    pub(crate) fn merge(memtables: &[Arc<Memtable>]) -> Self {
        fn all<R: Row>(
            memtables: &[Arc<Memtable>],
            table: impl Fn(&Memtable) -> &MemtableRows<R>,
        ) -> MemtableRows<R> {
            let rows: Vec<MemtableRows<R>> = memtables
                .iter()
                .map(|memtable| table(memtable).clone())
                .filter(|rows| !rows.is_empty())
                .collect();
            merge_memtables(&rows)
        }
        let mut accounts: Vec<NewAccount> =
            memtables.iter().flat_map(|memtable| memtable.accounts.iter().cloned()).collect();
        accounts.sort_by(|a, b| (a.ledger, &a.address).cmp(&(b.ledger, &b.address)));
        let mut holdings: Vec<NewHolding> =
            memtables.iter().flat_map(|memtable| memtable.holdings.iter().copied()).collect();
        holdings.sort_by_key(|holding| (holding.ledger, holding.holding));
        Self::from_parts(Parts {
            history: all(memtables, |memtable| &memtable.history),
            backdated: all(memtables, |memtable| &memtable.backdated),
            keys: all(memtables, |memtable| &memtable.keys),
            terms: all(memtables, |memtable| &memtable.terms),
            logs: all(memtables, |memtable| &memtable.logs),
            transactions: all(memtables, |memtable| &memtable.transactions),
            versions: all(memtables, |memtable| &memtable.versions),
            effective: all(memtables, |memtable| &memtable.effective),
            accounts,
            holdings,
            documents: all(memtables, |memtable| &memtable.documents),
        })
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
