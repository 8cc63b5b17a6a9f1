//! Flushes: write the rows of memtables into the index in one durable commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger_codec::{Corrupt, Reader, put_varint};
use ledger_core::{Timestamp, WireHash};
use ledger_index::{
    ABOUT_KEY, BackdatedRow, Commit, DocumentRow, EffectiveRow, FORMAT, HistoryRow, IndexError, IndexFile,
    IndexSnapshot, IndexWrite, KeyRow, LogRow, Merged, PlainTable, TermRow, TransactionRow, VersionRow,
    for_each_run_table, linked, merged, tables, write_run,
};
use ledger_journal::{ChainHash, Position, StoreId};

use crate::documents::indexed;
use crate::fingerprint::{Subject, ledger_of_space, subject_space};
use crate::hashes::checkpoint_key;
use crate::projection::{
    ACCOUNT_PLACES, AccountPage, CurrentHolding, HoldingPage, Memtable, NewAccount, NewHolding,
    StoredAccount, UsagePage, accounts_of, holding_of_key, holdings_of, order_of,
};
use crate::tombstones::Tombstone;
use crate::view::{Counters, LedgerHead};

/// The key of the number of ledgers in the table `ABOUT`.
const LEDGERS_KEY: &[u8] = b"ledgers";

/// Identifies the journal that an index belongs to, and how much of it the index holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watermark {
    pub(crate) store: StoreId,
    /// The index holds exactly the entries before this position.
    pub(crate) next: Position,
    /// The chain hash of the journal before that position.
    pub(crate) chain: ChainHash,
    /// The index holds the wire hash checkpoints of all entries before this position.
    pub(crate) hashed: Position,
}

impl Watermark {
    /// Layout: format (4 bytes, big-endian), store id, chain, both positions (varints).
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.extend_from_slice(&FORMAT.to_be_bytes());
        out.extend_from_slice(&self.store.0);
        out.extend_from_slice(&self.chain.0);
        put_varint(&mut out, self.next.get());
        put_varint(&mut out, self.hashed.get());
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes);
        if reader.u32()? != FORMAT {
            return Err(Corrupt { what: "format" });
        }
        let store = StoreId(reader.array()?);
        let chain = ChainHash(reader.array()?);
        let next = Position::new(reader.varint()?).ok_or(Corrupt { what: "position" })?;
        let hashed = Position::new(reader.varint()?).ok_or(Corrupt { what: "position" })?;
        Ok(Self { store, next, chain, hashed })
    }

    /// Reads the watermark of an index. Returns `None` if nothing was ever flushed into it.
    pub(crate) fn read(index: &IndexSnapshot) -> Result<Option<Self>, IndexError> {
        let found = index.read(tables::ABOUT, ABOUT_KEY, |bytes| {
            Self::decode(bytes).map_err(|corrupt| IndexError::corrupt(tables::ABOUT, corrupt))
        })?;
        if found.is_none() && !index.is_unwritten()? {
            return Err(IndexError::damaged(tables::ABOUT, "it does not say how far it goes"));
        }
        Ok(found)
    }
}

/// Returns how many ledgers the entries in an index have created, including those that were removed for good.
///
/// The count is stored apart from the ledgers, so a missing ledger is noticed.
pub(crate) fn ledger_count(index: &IndexSnapshot) -> Result<u32, IndexError> {
    let found = index.read(tables::ABOUT, LEDGERS_KEY, decode_count)?;
    Ok(found.unwrap_or(0))
}

fn decode_count(bytes: &[u8]) -> Result<u32, IndexError> {
    let corrupt = |_| IndexError::damaged(tables::ABOUT, "the number of ledgers");
    bytes.try_into().map(u32::from_be_bytes).map_err(corrupt)
}

/// Writes the watermark and the number of ledgers.
fn write_about(
    write: &IndexWrite,
    heads: &[(u32, LedgerHead)],
    watermark: Watermark,
) -> Result<(), IndexError> {
    let mut table = write.table(tables::ABOUT)?;
    let before = table.get(LEDGERS_KEY)?.map_or(Ok(0), |bytes| decode_count(&bytes))?;
    // A new ledger is always among the changed ones, and numbers ascend.
    let ledgers = heads.iter().map(|(ledger, _)| *ledger).fold(before, u32::max);
    table.put(LEDGERS_KEY, &ledgers.to_be_bytes())?;
    table.put(ABOUT_KEY, &watermark.encode())
}

impl Counters {
    /// Layout: varints, the date as 8 bytes, one byte for `in_use`, varints.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(40);
        for number in [
            self.next_log,
            self.next_transaction,
            self.transactions,
            u64::from(self.accounts),
            u64::from(self.holdings),
            u64::from(self.assets),
            u64::from(self.keys),
        ] {
            put_varint(&mut out, number);
        }
        out.extend_from_slice(&self.last_date.as_micros().to_be_bytes());
        out.push(u8::from(self.in_use));
        put_varint(&mut out, u64::from(self.schemas));
        put_varint(&mut out, self.ahead);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes);
        let (next_log, next_transaction, transactions) =
            (reader.varint()?, reader.varint()?, reader.varint()?);
        let (accounts, holdings) = (reader.varint_u32()?, reader.varint_u32()?);
        let (assets, keys) = (reader.varint_u32()?, reader.varint_u32()?);
        let last_date = Timestamp::from_micros(i64::from_be_bytes(reader.array()?));
        let in_use = reader.u8()? != 0;
        let schemas = reader.varint_u32()?;
        let ahead = reader.varint()?;
        Ok(Self {
            next_log,
            next_transaction,
            transactions,
            accounts,
            holdings,
            last_date,
            assets,
            keys,
            in_use,
            schemas,
            ahead,
        })
    }
}

macro_rules! define_merged_tables {
    ($($(#[$doc:meta])* $table:ident: $row:ty;)*) => {
        /// The rows of all memtables of a flush in key order, by table.
        struct MergedTables<'a> {
            $($(#[$doc])* $table: Merged<'a, $row>,)*
        }

        impl<'a> MergedTables<'a> {
            fn of(memtables: &'a [Arc<Memtable>]) -> Self {
                Self { $($table: merged(memtables.iter().map(|memtable| &memtable.$table)),)* }
            }
        }
    };
}

for_each_run_table!(define_merged_tables);

/// Writes everything of a flush. The memtables must be in order of age. The rows are durable when this returns.
pub(crate) fn write(
    index: &IndexFile,
    memtables: &[Arc<Memtable>],
    heads: &[(u32, LedgerHead)],
    hashes: &[((u32, u64), WireHash)],
    watermark: Watermark,
) -> Result<(), IndexError> {
    let write = index.begin_write(Commit::Durable)?;
    let before = index.snapshot()?;
    let new_holdings = holdings_of(memtables);
    let MergedTables { history, backdated, keys, terms, logs, transactions, versions, effective, documents } =
        MergedTables::of(memtables);
    write_history(&write, history, &new_holdings)?;
    write_run::<BackdatedRow, _>(&write, linked(backdated))?;
    write_run::<KeyRow, _>(&write, keys)?;
    write_run::<TermRow, _>(&write, terms)?;
    write_run::<LogRow, _>(&write, logs)?;
    write_run::<TransactionRow, _>(&write, transactions)?;
    write_run::<VersionRow, _>(&write, versions)?;
    write_run::<EffectiveRow, _>(&write, effective)?;
    write_accounts(&write, memtables, &new_holdings)?;
    write_first_usages(&write, memtables)?;
    write_heads(&write, heads)?;
    write_documents(&write, &before, documents)?;
    if !hashes.is_empty() {
        let mut table = write.table(tables::HASHES)?;
        for ((ledger, log), hash) in hashes {
            table.put(&checkpoint_key(*ledger, *log), hash.as_bytes())?;
        }
    }
    write_about(&write, heads, watermark)?;
    write.commit()
}

fn page_error(table: &'static str) -> impl Fn(Corrupt) -> IndexError {
    move |corrupt| IndexError::corrupt(table, corrupt)
}

/// Writes the history rows and, from the last row of each holding, the holding's current state. `new` must ascend.
fn write_history(
    write: &IndexWrite,
    rows: Merged<'_, HistoryRow>,
    new: &[NewHolding],
) -> Result<(), IndexError> {
    let mut holdings = Holdings { table: write.table(tables::HOLDINGS)?, open: None, new };
    let mut failed = None;
    let mut last: Option<&HistoryRow> = None;
    let history = rows.take_while(|row: &&HistoryRow| {
        if let Some(last) = last.filter(|last| last.holding != row.holding) {
            failed = holdings.put(last).err();
        }
        last = Some(row);
        failed.is_none()
    });
    write_run::<HistoryRow, _>(write, history)?;
    if let Some(error) = failed {
        return Err(error);
    }
    if let Some(last) = last {
        holdings.put(last)?;
    }
    holdings.close()
}

/// Updates pages of holdings in ascending order of their numbers.
struct Holdings<'a> {
    table: PlainTable<'a>,
    open: Option<([u8; 8], HoldingPage)>,
    /// New holdings that are not written yet, ascending.
    new: &'a [NewHolding],
}

impl Holdings<'_> {
    /// Stores the state of a holding after its last row.
    fn put(&mut self, row: &HistoryRow) -> Result<(), IndexError> {
        let (ledger, holding) = holding_of_key(row.holding);
        while let Some((first, rest)) = self.new.split_first()
            && (first.ledger, first.holding) < (ledger, holding)
        {
            self.new = rest;
        }
        let made = self.new.first().filter(|new| (new.ledger, new.holding) == (ledger, holding));
        let made = made.map(|new| (new.account, new.asset));
        let page = self.page(HoldingPage::key(ledger, holding))?;
        let (account, asset) = made
            .or(page.identity(holding))
            .ok_or_else(|| IndexError::corrupt(tables::HOLDINGS, Corrupt { what: "a holding is missing" }))?;
        let current = CurrentHolding {
            account,
            asset,
            transaction_count: row.ordinal,
            input: &row.input,
            output: &row.output,
            backdated: row.backdated.as_deref(),
        };
        page.put(holding, current);
        Ok(())
    }

    /// Returns the page with a key, after writing the page before it.
    fn page(&mut self, key: [u8; 8]) -> Result<&mut HoldingPage, IndexError> {
        if self.open.as_ref().is_none_or(|(have, _)| *have != key) {
            self.write_open()?;
            let page = match self.table.get(&key)? {
                Some(stored) => HoldingPage::decode(&stored).map_err(page_error(tables::HOLDINGS))?,
                None => HoldingPage::empty(),
            };
            self.open = Some((key, page));
        }
        Ok(&mut self.open.as_mut().expect("the page was opened above").1)
    }

    fn write_open(&mut self) -> Result<(), IndexError> {
        match self.open.take() {
            Some((key, page)) => self.table.put(&key, &page.encode()),
            None => Ok(()),
        }
    }

    fn close(mut self) -> Result<(), IndexError> {
        self.write_open()
    }
}

#[derive(Debug)]
enum AccountChange<'a> {
    New(&'a str),
    Holding(u32, u32),
}

fn first_usage(row: &VersionRow) -> Result<Timestamp, Corrupt> {
    Reader::new(&row.bytes).array().map(|bytes| Timestamp::from_micros(i64::from_be_bytes(bytes)))
}

fn write_accounts(
    write: &IndexWrite,
    memtables: &[Arc<Memtable>],
    new_holdings: &[NewHolding],
) -> Result<(), IndexError> {
    let mut changes: BTreeMap<(u32, u32), Vec<(u32, AccountChange<'_>)>> = BTreeMap::new();
    let mut push = |ledger: u32, account: u32, change| {
        changes.entry((ledger, account / ACCOUNT_PLACES)).or_default().push((account, change));
    };
    for memtable in memtables {
        for at in memtable.accounts_by_number.iter() {
            let account = &memtable.accounts[*at as usize];
            push(account.ledger, account.account, AccountChange::New(&account.address));
        }
    }
    for holding in new_holdings {
        push(holding.ledger, holding.account, AccountChange::Holding(holding.asset, holding.holding));
    }
    let mut table = write.table(tables::ACCOUNTS)?;
    for ((ledger, page_number), changes) in changes {
        let key = AccountPage::key(ledger, page_number * ACCOUNT_PLACES);
        let mut page = match table.get(&key)? {
            Some(stored) => AccountPage::decode(&stored).map_err(page_error(tables::ACCOUNTS))?,
            None => AccountPage::default(),
        };
        for (account, change) in changes {
            let missing = || IndexError::corrupt(tables::ACCOUNTS, Corrupt { what: "an account is missing" });
            match change {
                AccountChange::New(address) => {
                    page.entry(account, || StoredAccount { address: address.into(), holdings: Vec::new() });
                }
                AccountChange::Holding(asset, holding) => {
                    let holdings = &mut page.get_mut(account).ok_or_else(missing)?.holdings;
                    if let Err(at) = holdings.binary_search_by_key(&asset, |(asset, _)| *asset) {
                        holdings.insert(at, (asset, holding));
                    }
                }
            }
        }
        table.put(&key, &page.encode())?;
    }
    let addresses: Vec<_> = accounts_of(memtables).iter().map(address_entry).collect();
    let addresses = addresses.iter().map(|(key, account)| (key.as_slice(), account.as_slice()));
    write.table(tables::ADDRESSES)?.put_ascending(addresses)
}

/// Returns the row of an account in the table of addresses.
fn address_entry(account: &NewAccount) -> (Vec<u8>, [u8; 4]) {
    (
        [account.ledger.to_be_bytes().as_slice(), account.address.as_bytes()].concat(),
        account.account.to_be_bytes(),
    )
}

fn write_first_usages(write: &IndexWrite, memtables: &[Arc<Memtable>]) -> Result<(), IndexError> {
    let mut usages: Vec<(u32, u32, Timestamp)> = Vec::new();
    for memtable in memtables {
        for rows in memtable.versions.chunk_by(|a, b| (a.space, a.id) == (b.space, b.id)) {
            let row = rows.last().expect("`chunk_by` yields no empty chunk");
            let ledger = ledger_of_space(row.space);
            if row.space == subject_space(ledger, Subject::Account) {
                let usage = first_usage(row).map_err(page_error(tables::USAGES))?;
                let account = u32::try_from(row.id).map_err(|_| Corrupt { what: "number of an account" });
                usages.push((ledger, account.map_err(page_error(tables::USAGES))?, usage));
            }
        }
    }
    // The memtables are in order of age, so the last row of an account is the newest.
    let order = order_of(usages.iter().map(|usage| u128::from(usage.0) << 32 | u128::from(usage.1)));
    let usages: Vec<_> = order.iter().map(|at| usages[*at as usize]).collect();
    let mut table = write.table(tables::USAGES)?;
    for usages in usages.chunk_by(|a, b| UsagePage::key(a.0, a.1) == UsagePage::key(b.0, b.1)) {
        let key = UsagePage::key(usages[0].0, usages[0].1);
        let mut page = match table.get(&key)? {
            Some(stored) => UsagePage::decode(&stored).map_err(page_error(tables::USAGES))?,
            None => UsagePage::empty(),
        };
        let mut changed = false;
        for (_, account, usage) in usages {
            changed |= page.put(*account, *usage);
        }
        if changed {
            table.put(&key, &page.encode())?;
        }
    }
    Ok(())
}

/// The kind of name that a number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum NameKind {
    Asset = 1,
    Key = 2,
}

/// Returns the key of a name in the table of names.
pub(crate) fn name_key(ledger: u32, kind: NameKind, id: u32) -> [u8; 9] {
    let mut key = [0; 9];
    key[..4].copy_from_slice(&ledger.to_be_bytes());
    key[4] = kind as u8;
    key[5..].copy_from_slice(&id.to_be_bytes());
    key
}

fn write_heads(write: &IndexWrite, heads: &[(u32, LedgerHead)]) -> Result<(), IndexError> {
    let mut table = write.table(tables::HEADS)?;
    let mut names = write.table(tables::NAMES)?;
    let mut removed = write.table(tables::REMOVED)?;
    for (ledger, head) in heads {
        let key = ledger.to_be_bytes();
        if head.is_removed {
            table.delete(&key)?;
            if removed.get(&key)?.is_none() {
                let tombstone =
                    Tombstone { info: head.info.clone(), section: head.section, is_reclaimed: false };
                removed.put(&key, &tombstone.encode())?;
            }
            continue;
        }
        let before = match table.get(&key)? {
            Some(stored) => Some(Counters::decode(&stored).map_err(page_error(tables::HEADS))?),
            None => None,
        };
        let counters = &head.counters;
        for (kind, table, from, to) in [
            (NameKind::Asset, &head.assets, before.map_or(0, |before| before.assets), counters.assets),
            (NameKind::Key, &head.keys, before.map_or(0, |before| before.keys), counters.keys),
        ] {
            for id in from..to {
                let text = table.text(id).expect("every number below the counter has a text");
                names.put(&name_key(*ledger, kind, id), text.as_bytes())?;
            }
        }
        table.put(&key, &counters.encode())?;
    }
    Ok(())
}

/// Writes the newest change of every key.
fn write_documents(
    write: &IndexWrite,
    before: &IndexSnapshot,
    documents: Merged<'_, DocumentRow>,
) -> Result<(), IndexError> {
    let mut rows = documents.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let newest = std::iter::from_fn(|| {
        loop {
            let row = rows.next()?;
            if rows.peek().is_none_or(|next| next.key != row.key) {
                return Some(row);
            }
        }
    });
    indexed::write(write, before, newest)
}
