//! Reads one ledger in a view: converts numbers back to names, and entries to log entries and transactions.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use ledger_codec::Corrupt;
use ledger_core::{
    AccountAddress, Asset, HoldingVolumes, Idempotency, IdempotencyKey, LogEntry, LogId, LogPayload,
    Metadata, Posting, Postings, PriorRequest, Reference, Target, Timestamp, Transaction, TransactionId,
    Volumes,
};
use ledger_index::{LogRow, tables};
use ledger_journal::entry::{
    AddressRef, Body, EntryOffsets, Event, LogRecord, MetadataRecord, NameRef, Record, TargetRecord,
    TransactionRecord, ValueRef, find_in_chunk, prior_request,
};
use ledger_journal::{Chunk, JournalReader, Position};
use smol_str::SmolStr;

use super::open_pages::OpenPages;
use crate::error::ReadError;
use crate::lookup::{missing, missing_in};
use crate::projection::{AccountPage, FoundHolding, value_of};
use crate::view::{LedgerHead, View};

/// Returns the reference in an entry.
pub(crate) fn reference_of<'a>(record: &Record<'a>) -> Option<&'a str> {
    match &record.body {
        Body::Log(LogRecord { event: Event::Transaction(transaction), .. }) => transaction.reference,
        Body::Log(_) | Body::Document(_) => None,
    }
}

/// Returns the idempotency key in an entry, and the data that recognises its request.
pub(crate) fn idempotency_of<'a>(record: &Record<'a>) -> Option<(&'a str, PriorRequest)> {
    match &record.body {
        Body::Log(log) => prior_request(log),
        Body::Document(_) => None,
    }
}

/// Returns the error for an entry that is missing from its chunk: its ledger was removed since the view was taken, or
/// the chunk is damaged.
fn missing_entry(chunk: &Chunk) -> ReadError {
    if chunk.has_holes() { ReadError::LedgerRemoved } else { missing("an entry") }
}

/// A transaction as its entry records it.
#[derive(Clone, Debug)]
pub(crate) struct RecordedTransaction {
    pub(crate) postings: Postings,
    pub(crate) timestamp: Timestamp,
    pub(crate) reference: Option<Reference>,
    pub(crate) metadata: Metadata,
}

/// Looks up the addresses of accounts that are not published yet, by number.
type AddressLookup<'a> = &'a dyn Fn(u32) -> Option<SmolStr>;

/// A chunk with the offsets of its entries.
struct OpenChunk {
    chunk: Chunk,
    /// The offsets of the entries. Empty until the second lookup in the chunk.
    offsets: OnceCell<EntryOffsets>,
}

impl OpenChunk {
    fn holds(&self, position: Position) -> bool {
        self.chunk.first() <= position && position < self.chunk.next()
    }
}

/// Reads one ledger. Not shared between threads, because it caches lookups.
pub(crate) struct LedgerReader {
    pub(crate) journal: Arc<dyn JournalReader>,
    pub(crate) view: Arc<View>,
    pub(crate) ledger: u32,
    /// The last chunk that was read. Entries of a list often share a chunk.
    chunk: RefCell<Option<Rc<OpenChunk>>>,
    pages: OpenPages,
    /// The assets that were looked up, by number.
    assets: RefCell<HashMap<u32, Asset, RandomState>>,
}

impl LedgerReader {
    /// Creates a reader of `ledger`, which must exist in `view`.
    pub(crate) fn new(journal: Arc<dyn JournalReader>, view: Arc<View>, ledger: u32) -> Self {
        Self {
            journal,
            view,
            ledger,
            chunk: RefCell::default(),
            pages: OpenPages::default(),
            assets: RefCell::default(),
        }
    }

    /// Returns a reader of the same ledger in another view.
    pub(crate) fn with_view(&self, view: Arc<View>) -> Self {
        Self::new(self.journal.clone(), view, self.ledger)
    }

    /// Returns the head of the ledger.
    pub(crate) fn head(&self) -> Result<&LedgerHead, ReadError> {
        self.view.heads.get(self.ledger).ok_or_else(|| missing("a ledger"))
    }

    /// Returns the address of an account.
    pub(crate) fn address(&self, account: u32) -> Result<AccountAddress, ReadError> {
        if let Some(address) = self.view.addresses.get(self.ledger, account) {
            return Ok(address);
        }
        let made = self
            .view
            .memtables
            .iter()
            .rev()
            .find_map(|memtable| memtable.memtable.account(self.ledger, account));
        let text = if let Some(made) = made {
            Some(made.address.clone())
        } else {
            let key = AccountPage::key(self.ledger, account);
            let found = self
                .view
                .index
                .read(tables::ACCOUNTS, &key, |page| Ok(AccountPage::find_address(page, account)))?;
            found.transpose()?.flatten()
        };
        let address = parse_address(text.ok_or_else(|| missing_in(&self.view.index, "an account"))?)?;
        self.view.addresses.put(self.ledger, account, address.clone());
        Ok(address)
    }

    /// Returns the asset with a number.
    pub(crate) fn asset(&self, asset: u32) -> Result<Asset, ReadError> {
        if let Some(known) = self.assets.borrow().get(&asset) {
            return Ok(known.clone());
        }
        let text = self.head()?.assets.text(asset).ok_or_else(|| missing("an asset"))?;
        let parsed = Asset::try_from(text).map_err(|_| Corrupt { what: "asset" })?;
        self.assets.borrow_mut().insert(asset, parsed.clone());
        Ok(parsed)
    }

    /// Passes the entry at a position to `then`.
    pub(crate) fn with_record<T>(
        &self,
        position: Position,
        then: impl FnOnce(&Record<'_>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let kept = self.chunk.borrow().clone();
        if let Some(kept) = kept.filter(|kept| kept.holds(position)) {
            // A chunk with a second lookup usually gets more of them.
            let offsets = if let Some(offsets) = kept.offsets.get() {
                offsets
            } else {
                let offsets = EntryOffsets::of(&kept.chunk)?;
                kept.offsets.get_or_init(|| offsets)
            };
            let record = offsets.find(&kept.chunk, position)?.ok_or_else(|| missing_entry(&kept.chunk))?;
            return then(&record);
        }
        let chunk = self.journal.read(position)?.ok_or_else(|| missing("an entry"))?;
        let opened = Rc::new(OpenChunk { chunk, offsets: OnceCell::new() });
        *self.chunk.borrow_mut() = Some(opened.clone());
        let record = find_in_chunk(&opened.chunk, position)?.ok_or_else(|| missing_entry(&opened.chunk))?;
        then(&record)
    }

    /// Returns the log entry at a position as it was recorded.
    pub(crate) fn entry(&self, position: Position) -> Result<LogEntry, ReadError> {
        self.with_record(position, |record| self.log_entry(record))
    }

    /// Returns the entry of a row of the table of logs.
    pub(crate) fn entry_of_row(&self, row: &LogRow) -> Result<LogEntry, ReadError> {
        self.entry(Position::new(row.position).ok_or(Corrupt { what: "position of a log" })?)
    }

    /// Converts a record to a log entry.
    pub(crate) fn log_entry(&self, record: &Record<'_>) -> Result<LogEntry, ReadError> {
        let Body::Log(log) = &record.body else { return Err(Corrupt { what: "entry without a log" }.into()) };
        let (idempotency, request_hash) = match &log.idempotency {
            None => (None, None),
            Some(record) if record.key.is_empty() => (None, Some(record.hash.into())),
            Some(record) => {
                let key = IdempotencyKey::parse(record.key);
                let key = key.map_err(|_| Corrupt { what: "idempotency key" })?;
                (Some(Idempotency { key, hash: record.hash.into() }), None)
            }
        };
        Ok(LogEntry {
            id: LogId::new(log.log),
            date: log.date,
            idempotency,
            request_hash,
            schema_version: log.schema_version.map(Into::into),
            payload: self.payload(log)?,
            defaults: self.defaults(log)?,
        })
    }

    fn defaults(&self, log: &LogRecord<'_>) -> Result<Vec<(AccountAddress, Metadata)>, ReadError> {
        match &log.event {
            Event::Transaction(record) => {
                let defaults = record.account_metadata[..record.defaults].iter();
                defaults
                    .map(|(account, metadata)| {
                        Ok((self.address_of(account, &|_| None)?, self.metadata(metadata)?))
                    })
                    .collect()
            }
            Event::SetMetadata { target: TargetRecord::Account(account), defaults, .. }
                if !defaults.is_empty() =>
            {
                Ok(vec![(self.address_of(account, &|_| None)?, self.metadata(defaults)?)])
            }
            _ => Ok(Vec::new()),
        }
    }

    fn payload(&self, log: &LogRecord<'_>) -> Result<LogPayload, ReadError> {
        Ok(match &log.event {
            Event::Transaction(record) => {
                let transaction = Box::new(self.transaction(log, record)?);
                let effective_volumes = match &record.effective {
                    Some(volumes) => Some(self.holding_volumes(record, volumes.iter())?),
                    None => None,
                };
                if let Some(reverted) = record.reverts {
                    let reverted = TransactionId::new(reverted);
                    LogPayload::RevertedTransaction { reverted, transaction, effective_volumes }
                } else {
                    let mut account_metadata = Vec::with_capacity(record.account_metadata.len());
                    for (account, metadata) in &record.account_metadata[record.defaults..] {
                        account_metadata
                            .push((self.address_of(account, &|_| None)?, self.metadata(metadata)?));
                    }
                    LogPayload::NewTransaction { transaction, account_metadata, effective_volumes }
                }
            }
            Event::SetMetadata { target, metadata, .. } => {
                LogPayload::SetMetadata { target: self.target(target)?, metadata: self.metadata(metadata)? }
            }
            Event::DeleteMetadata { target, key } => {
                LogPayload::DeleteMetadata { target: self.target(target)?, key: self.key(key)? }
            }
            Event::InsertedSchema { schema } => LogPayload::InsertedSchema { schema: (*schema).into() },
        })
    }

    /// Converts a record to a transaction as it was recorded, without later metadata and reverts.
    pub(crate) fn transaction(
        &self,
        log: &LogRecord<'_>,
        record: &TransactionRecord<'_>,
    ) -> Result<Transaction, ReadError> {
        let reference = reference_in(record)?;
        Ok(Transaction {
            id: TransactionId::new(record.id),
            postings: self.postings(record, &|_| None)?,
            metadata: self.metadata(&record.metadata)?,
            timestamp: record.timestamp,
            reference,
            template: record.template.map(Into::into),
            inserted_at: record.inserted_at.unwrap_or(log.date),
            updated_at: record.inserted_at.unwrap_or(log.date),
            reverted_at: None,
            post_commit_volumes: self
                .holding_volumes(record, record.holdings.iter().map(|holding| &holding.after))?,
        })
    }

    /// Returns the parts of a recorded transaction that a decision needs. `lookup` finds the accounts that are not
    /// published yet.
    pub(crate) fn recorded(
        &self,
        record: &Record<'_>,
        lookup: AddressLookup<'_>,
    ) -> Result<RecordedTransaction, ReadError> {
        let Body::Log(LogRecord { event: Event::Transaction(transaction), .. }) = &record.body else {
            return Err(Corrupt { what: "entry that is no transaction" }.into());
        };
        Ok(RecordedTransaction {
            postings: self.postings(transaction, lookup)?,
            timestamp: transaction.timestamp,
            reference: reference_in(transaction)?,
            metadata: self.metadata(&transaction.metadata)?,
        })
    }

    fn postings(
        &self,
        record: &TransactionRecord<'_>,
        lookup: AddressLookup<'_>,
    ) -> Result<Postings, ReadError> {
        let mut postings = Postings::with_capacity(record.moves.len());
        for posting in &record.moves {
            let holding = |at: u32| record.holdings.get(at as usize).ok_or(Corrupt { what: "posting" });
            let (source, destination) = (holding(posting.source)?, holding(posting.destination)?);
            postings.push(Posting {
                source: self.address_of(&source.account, lookup)?,
                destination: self.address_of(&destination.account, lookup)?,
                amount: posting.amount.clone(),
                asset: self.asset_of(&source.asset)?,
            });
        }
        Ok(postings)
    }

    fn holding_volumes<'v>(
        &self,
        record: &TransactionRecord<'_>,
        volumes: impl Iterator<Item = &'v Volumes>,
    ) -> Result<Vec<HoldingVolumes>, ReadError> {
        let mut all = Vec::with_capacity(record.holdings.len());
        for (holding, volumes) in record.holdings.iter().zip(volumes) {
            all.push(HoldingVolumes {
                account: self.address_of(&holding.account, &|_| None)?,
                asset: self.asset_of(&holding.asset)?,
                volumes: volumes.clone(),
            });
        }
        sort_volumes(&mut all);
        Ok(all)
    }

    /// Returns the holdings that a transaction touches: the number of each, with its volumes right after the
    /// transaction.
    pub(crate) fn touched(
        &self,
        record: &TransactionRecord<'_>,
    ) -> Result<Vec<(u32, HoldingVolumes)>, ReadError> {
        let mut touched = Vec::with_capacity(record.holdings.len());
        for holding in &record.holdings {
            let volumes = HoldingVolumes {
                account: self.address_of(&holding.account, &|_| None)?,
                asset: self.asset_of(&holding.asset)?,
                volumes: holding.after.clone(),
            };
            touched.push((holding.holding, volumes));
        }
        touched.sort_unstable_by(|(_, a), (_, b)| (&a.account, &a.asset).cmp(&(&b.account, &b.asset)));
        Ok(touched)
    }

    fn target(&self, target: &TargetRecord<'_>) -> Result<Target, ReadError> {
        Ok(match target {
            TargetRecord::Account(account) => Target::Account(self.address_of(account, &|_| None)?),
            TargetRecord::Transaction(id) => Target::Transaction(TransactionId::new(*id)),
            TargetRecord::Unknown(address) => Target::Account(parse_address(*address)?),
        })
    }

    fn address_of(
        &self,
        account: &AddressRef<'_>,
        lookup: AddressLookup<'_>,
    ) -> Result<AccountAddress, ReadError> {
        if let Some(text) = account.new {
            return parse_address(text);
        }
        match lookup(account.account) {
            Some(text) => parse_address(text),
            None => self.address(account.account),
        }
    }

    fn asset_of(&self, asset: &NameRef<'_>) -> Result<Asset, ReadError> {
        match asset {
            NameRef::New(_, text) | NameRef::Inline(text) => {
                Asset::parse(text).map_err(|_| Corrupt { what: "asset" }.into())
            }
            NameRef::Known(id) => self.asset(*id),
        }
    }

    fn key(&self, key: &NameRef<'_>) -> Result<SmolStr, ReadError> {
        match key {
            NameRef::New(_, text) | NameRef::Inline(text) => Ok((*text).into()),
            NameRef::Known(id) => self.head()?.keys.text(*id).ok_or_else(|| missing("a metadata key")),
        }
    }

    fn metadata(&self, record: &MetadataRecord<'_>) -> Result<Metadata, ReadError> {
        let mut metadata = Metadata::with_capacity(record.len());
        for (key, value) in record {
            let value: &ValueRef<'_> = value;
            metadata.insert(self.key(key)?, value_of(*value));
        }
        Ok(metadata)
    }

    /// Finds the account with an address in the memtables and in the directory of addresses. `None` does not prove that
    /// the account does not exist; only [`Session::account_number`] proves that.
    ///
    /// [`Session::account_number`]: super::session::Session::account_number
    pub(super) fn account_number(&self, address: &str) -> Result<Option<u32>, ReadError> {
        let made = self
            .view
            .memtables
            .iter()
            .find_map(|memtable| memtable.memtable.account_at(self.ledger, address));
        if let Some(made) = made {
            return Ok(Some(made.account));
        }
        let mut key = Vec::with_capacity(4 + address.len());
        key.extend_from_slice(&self.ledger.to_be_bytes());
        key.extend_from_slice(address.as_bytes());
        let found = self
            .view
            .index
            .read(tables::ADDRESSES, &key, |number| Ok(number.try_into().map(u32::from_be_bytes)))?;
        match found {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(Corrupt { what: "number of an account" }.into()),
        }
    }

    /// Returns the number of the holding of an asset in an account, if it exists.
    pub(crate) fn holding(&self, account: u32, asset: u32) -> Result<Option<u32>, ReadError> {
        for memtable in &self.view.memtables {
            if let Some(made) =
                memtable.memtable.holdings_of(self.ledger, account).find(|made| made.asset == asset)
            {
                return Ok(Some(made.holding));
            }
        }
        let find = |page: &[u8]| Ok(AccountPage::find_holding(page, account, asset));
        let found = self.view.index.read(tables::ACCOUNTS, &AccountPage::key(self.ledger, account), find)?;
        match found.transpose()?.unwrap_or(FoundHolding::NoAccount) {
            FoundHolding::Holding(holding) => Ok(Some(holding)),
            FoundHolding::NoHolding => Ok(None),
            FoundHolding::NoAccount => self.check_is_new(account).map(|()| None),
        }
    }

    /// Checks that an account that the index lacks is newer than the index.
    fn check_is_new(&self, account: u32) -> Result<(), ReadError> {
        let mut memtables = self.view.memtables.iter();
        let is_new = memtables.any(|memtable| memtable.memtable.account(self.ledger, account).is_some());
        if is_new { Ok(()) } else { Err(missing_in(&self.view.index, "an account")) }
    }

    /// Returns the volumes of a holding in the index, and the number of transactions that moved it.
    pub(crate) fn stored_holding(&self, holding: u32) -> Result<Option<(Volumes, u32)>, ReadError> {
        self.pages.holding(&self.view.index, self.ledger, holding)
    }

    /// Returns asset and number of every holding of an account, ascending by asset number.
    pub(crate) fn holdings(&self, account: u32) -> Result<Vec<(u32, u32)>, ReadError> {
        let stored = self.pages.holdings_of(&self.view.index, self.ledger, account)?;
        let mut holdings = match stored {
            Some(stored) => stored,
            None => self.check_is_new(account).map(|()| Vec::new())?,
        };
        for memtable in &self.view.memtables {
            let made = memtable.memtable.holdings_of(self.ledger, account);
            holdings.extend(made.map(|holding| (holding.asset, holding.holding)));
        }
        holdings.sort_unstable();
        Ok(holdings)
    }
}

/// Sorts volumes as a log lists them: by account and asset.
pub(crate) fn sort_volumes(volumes: &mut [HoldingVolumes]) {
    volumes.sort_unstable_by(|a, b| (&a.account, &a.asset).cmp(&(&b.account, &b.asset)));
}

fn reference_in(record: &TransactionRecord<'_>) -> Result<Option<Reference>, ReadError> {
    let parse = |text| Reference::parse(text).map_err(|_| Corrupt { what: "reference" });
    Ok(record.reference.map(parse).transpose()?)
}

fn parse_address(text: impl TryInto<AccountAddress>) -> Result<AccountAddress, ReadError> {
    text.try_into().map_err(|_| Corrupt { what: "address" }.into())
}
