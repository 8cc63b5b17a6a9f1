//! The rows of some consecutive entries, sorted, in memory and immutable.

use std::sync::Arc;

use compact_str::CompactString;

use crate::index::{
    DisplacedRow, EffectiveRow, HistoryRow, KeyRow, LogRow, PieceRows, Row, TermRow, TransactionRow,
    VersionRow, merge_pieces, piece_bytes, seal_piece, sort_rows,
};

/// An account that an entry was the first to name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewAccount {
    /// The ledger.
    pub(crate) ledger: u32,
    /// The account's number in it.
    pub(crate) account: u32,
    /// The address.
    pub(crate) address: CompactString,
}

/// A holding that an entry was the first to touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewHolding {
    /// The ledger.
    pub(crate) ledger: u32,
    /// The holding's number in it.
    pub(crate) holding: u32,
    /// The account's number.
    pub(crate) account: u32,
    /// The asset's number.
    pub(crate) asset: u32,
}

/// What stands under a key of the documents after some entry; `None` where it was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredDocument {
    /// The key, of a document or of an entry of an index.
    pub(crate) key: Box<[u8]>,
    /// The value.
    pub(crate) value: Option<Box<[u8]>>,
}

/// Sorted rows of every table.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) history: PieceRows<HistoryRow>,
    pub(crate) displaced: PieceRows<DisplacedRow>,
    pub(crate) keys: PieceRows<KeyRow>,
    pub(crate) terms: PieceRows<TermRow>,
    pub(crate) logs: PieceRows<LogRow>,
    pub(crate) transactions: PieceRows<TransactionRow>,
    pub(crate) versions: PieceRows<VersionRow>,
    pub(crate) effective: PieceRows<EffectiveRow>,
    /// Ascending by ledger and address.
    pub(crate) accounts: Arc<[NewAccount]>,
    /// The same accounts as places in `accounts`, ascending by ledger and number.
    pub(crate) accounts_by_number: Arc<[u32]>,
    /// Ascending by ledger and holding.
    pub(crate) holdings: Arc<[NewHolding]>,
    /// The same holdings as places in `holdings`, ascending by ledger, account and asset.
    pub(crate) holdings_by_account: Arc<[u32]>,
    /// Ascending by key, each once.
    pub(crate) documents: Arc<[StoredDocument]>,
    /// Rows of all tables.
    pub(crate) rows: usize,
    /// Bytes of all of it in memory.
    pub(crate) bytes: usize,
}

/// Gathers rows in the order of their entries.
#[derive(Default, Debug)]
pub(crate) struct PieceBuilder {
    pub(crate) history: Vec<HistoryRow>,
    pub(crate) displaced: Vec<DisplacedRow>,
    pub(crate) keys: Vec<KeyRow>,
    pub(crate) terms: Vec<TermRow>,
    pub(crate) logs: Vec<LogRow>,
    pub(crate) transactions: Vec<TransactionRow>,
    pub(crate) versions: Vec<VersionRow>,
    pub(crate) effective: Vec<EffectiveRow>,
    pub(crate) accounts: Vec<NewAccount>,
    pub(crate) holdings: Vec<NewHolding>,
    pub(crate) documents: Vec<StoredDocument>,
}

/// A place to return to, see [`PieceBuilder::mark`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PieceMark([usize; 11]);

impl PieceBuilder {
    /// With room for `count` commands whose rows are in number as those of `like`, which were `like_count`.
    pub(crate) fn with_room(count: usize, like: PieceMark, like_count: usize) -> Self {
        /// Vectors grow fast up to here; and what is much beyond may never be needed.
        const ROOM_MIN: usize = 64;
        let room = |rows: usize| match rows * count / like_count.max(1) {
            rows if rows < ROOM_MIN => 0,
            rows => rows + rows / 16,
        };
        let PieceMark([history, displaced, keys, terms, logs, transactions, _, effective, ..]) = like;
        Self {
            history: Vec::with_capacity(room(history)),
            displaced: Vec::with_capacity(room(displaced)),
            keys: Vec::with_capacity(room(keys)),
            terms: Vec::with_capacity(room(terms)),
            logs: Vec::with_capacity(room(logs)),
            transactions: Vec::with_capacity(room(transactions)),
            effective: Vec::with_capacity(room(effective)),
            ..Self::default()
        }
    }

    /// Remembers this state, to return to with [`PieceBuilder::reset`].
    pub(crate) fn mark(&self) -> PieceMark {
        PieceMark([
            self.history.len(),
            self.displaced.len(),
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

    /// Drops what was added since the mark.
    pub(crate) fn reset(&mut self, mark: PieceMark) {
        let PieceMark(
            [
                history,
                displaced,
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
        self.displaced.truncate(displaced);
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

    /// Sorts everything and fixes it for readers.
    pub(crate) fn seal(self) -> Piece {
        let Self {
            history,
            displaced,
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
        Piece::of(Parts {
            history: sealed(history),
            displaced: sealed(displaced),
            keys: sealed(keys),
            terms: sealed(terms),
            logs: sealed(logs),
            transactions: sealed(transactions),
            versions: sealed(versions),
            effective: sealed(effective),
            accounts,
            holdings,
            documents: last_of_each(documents),
        })
    }
}

fn sealed<R: Row>(mut rows: Vec<R>) -> PieceRows<R> {
    if !rows.is_sorted_by_key(Row::key) {
        sort_rows(&mut rows);
    }
    seal_piece(rows)
}

/// Of changes in order of age the last of each key, ascending.
fn last_of_each(mut documents: Vec<StoredDocument>) -> Vec<StoredDocument> {
    documents.sort_by(|a, b| a.key.cmp(&b.key));
    documents.dedup_by(|later, earlier| {
        let same = later.key == earlier.key;
        if same {
            std::mem::swap(later, earlier);
        }
        same
    });
    documents
}

struct Parts {
    history: PieceRows<HistoryRow>,
    displaced: PieceRows<DisplacedRow>,
    keys: PieceRows<KeyRow>,
    terms: PieceRows<TermRow>,
    logs: PieceRows<LogRow>,
    transactions: PieceRows<TransactionRow>,
    versions: PieceRows<VersionRow>,
    effective: PieceRows<EffectiveRow>,
    accounts: Vec<NewAccount>,
    holdings: Vec<NewHolding>,
    documents: Vec<StoredDocument>,
}

impl Piece {
    fn of(parts: Parts) -> Self {
        let Parts {
            history,
            displaced,
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
        let document_bytes: usize = documents
            .iter()
            .map(|document| {
                size_of::<StoredDocument>()
                    + document.key.len()
                    + document.value.as_ref().map_or(0, |v| v.len())
            })
            .sum();
        let bytes = piece_bytes(&history)
            + piece_bytes(&displaced)
            + piece_bytes(&keys)
            + piece_bytes(&terms)
            + piece_bytes(&logs)
            + piece_bytes(&transactions)
            + piece_bytes(&versions)
            + piece_bytes(&effective)
            + accounts.len() * (size_of::<NewAccount>() + 4)
            + holdings.len() * (size_of::<NewHolding>() + 4)
            + document_bytes;
        let rows = history.len()
            + displaced.len()
            + keys.len()
            + terms.len()
            + logs.len()
            + transactions.len()
            + versions.len()
            + effective.len()
            + accounts.len()
            + holdings.len()
            + documents.len();
        Self {
            history,
            displaced,
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
            documents: documents.into(),
            rows,
            bytes,
        }
    }

    /// One piece with the rows of all, which are in order of age.
    pub(crate) fn merge(pieces: &[Arc<Piece>]) -> Self {
        fn all<R: Row>(pieces: &[Arc<Piece>], table: impl Fn(&Piece) -> &PieceRows<R>) -> PieceRows<R> {
            let rows: Vec<PieceRows<R>> =
                pieces.iter().map(|piece| table(piece).clone()).filter(|rows| !rows.is_empty()).collect();
            merge_pieces(&rows)
        }
        let mut accounts: Vec<NewAccount> =
            pieces.iter().flat_map(|piece| piece.accounts.iter().cloned()).collect();
        accounts.sort_by(|a, b| (a.ledger, &a.address).cmp(&(b.ledger, &b.address)));
        let mut holdings: Vec<NewHolding> =
            pieces.iter().flat_map(|piece| piece.holdings.iter().copied()).collect();
        holdings.sort_by_key(|holding| (holding.ledger, holding.holding));
        Self::of(Parts {
            history: all(pieces, |piece| &piece.history),
            displaced: all(pieces, |piece| &piece.displaced),
            keys: all(pieces, |piece| &piece.keys),
            terms: all(pieces, |piece| &piece.terms),
            logs: all(pieces, |piece| &piece.logs),
            transactions: all(pieces, |piece| &piece.transactions),
            versions: all(pieces, |piece| &piece.versions),
            effective: all(pieces, |piece| &piece.effective),
            accounts,
            holdings,
            documents: last_of_each(
                pieces.iter().flat_map(|piece| piece.documents.iter().cloned()).collect(),
            ),
        })
    }

    /// The account with this number, if it was made here.
    pub(crate) fn account(&self, ledger: u32, account: u32) -> Option<&NewAccount> {
        let account_at = |at: &u32| &self.accounts[*at as usize];
        let number = |at: &u32| (account_at(at).ledger, account_at(at).account);
        let by_number = &self.accounts_by_number;
        let (first, last) = (number(by_number.first()?), number(by_number.last()?));
        let wanted = (ledger, account);
        if wanted < first || wanted > last {
            return None;
        }
        // Numbers are dense: where the piece is of one ledger, the place is known.
        if first.0 == last.0
            && let Some(at) = by_number.get((account - first.1) as usize)
            && number(at) == wanted
        {
            return Some(account_at(at));
        }
        let found = by_number.binary_search_by_key(&wanted, number).ok()?;
        Some(account_at(&by_number[found]))
    }

    /// What became of a key of the documents, if anything.
    pub(crate) fn document(&self, key: &[u8]) -> Option<&StoredDocument> {
        self.documents.binary_search_by(|have| (*have.key).cmp(key)).ok().map(|at| &self.documents[at])
    }

    /// What became of the keys of the documents from one up to another.
    pub(crate) fn documents_between(&self, from: &[u8], to: &[u8]) -> &[StoredDocument] {
        let start = self.documents.partition_point(|have| *have.key < *from);
        let end = self.documents.partition_point(|have| *have.key < *to);
        &self.documents[start..end.max(start)]
    }

    /// The account with this address.
    pub(crate) fn account_at(&self, ledger: u32, address: &str) -> Option<&NewAccount> {
        self.accounts
            .binary_search_by(|account| (account.ledger, account.address.as_str()).cmp(&(ledger, address)))
            .ok()
            .map(|at| &self.accounts[at])
    }

    /// New holdings of an account, ascending by asset number.
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
    fn accounts_are_found_by_number_whatever_else_is_in_the_piece() {
        for ledgers in [1..=1_u32, 1..=3] {
            let mut builder = PieceBuilder::default();
            for ledger in ledgers.clone() {
                // Addresses in another order than the numbers.
                let accounts = (7..40).map(|account| NewAccount {
                    ledger,
                    account,
                    address: format!("a:{}", 100 - account).into(),
                });
                builder.accounts.extend(accounts);
            }
            let piece = builder.seal();
            for ledger in 0..=4 {
                for account in 0..50 {
                    let found = piece.account(ledger, account).map(|found| (found.ledger, found.account));
                    let is_there = ledgers.contains(&ledger) && (7..40).contains(&account);
                    assert_eq!(found, is_there.then_some((ledger, account)), "{ledgers:?}");
                }
            }
        }
        assert_eq!(PieceBuilder::default().seal().account(1, 0), None);
    }
}
