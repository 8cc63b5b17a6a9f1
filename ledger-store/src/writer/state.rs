//! The authoritative state: what decisions are made on.
//!
//! It runs ahead of the disk by the batches that are not flushed yet. It never asks what lags behind: what
//! changed since the index was last flushed is kept here, and the rest stands in the index exactly.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compact_str::CompactString;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use ledger_codec::Corrupt;
use ledger_core::schema::Enforcement;
use ledger_core::script::Scratch;
use ledger_core::{BucketName, LedgerName};
use ledger_index::{IndexSnapshot, KeyRow, KnownKeys, Row, TableView, VersionRow};
use ledger_journal::Position;
use smallvec::SmallVec;

use super::accounts::{AccountTable, DocumentState, Near, NewState, Place};
use super::fence::Fence;
use super::holding::{HoldingState, Holdings};
use super::recent::Recent;
use super::recent_keys::{RecentKey, RecentKeys};
use super::schema::SchemaCache;
use crate::documents::TransactionDocument;
use crate::documents::overlay::{Before, Merged, Overlay};
use crate::error::ReadError;
use crate::fingerprint::{Fingerprints, KeyKind, KeyPrint, Subject, key_space, subject_space};
use crate::lookup::{self, missing, missing_in};
use crate::options::Shares;
use crate::projection::{PieceMark, StoredAccount};
use crate::query::LedgerInfo;
use crate::removal::{SectionLedgers, name_in};
use crate::verify::{Violation, ViolationCode};
use crate::view::{Counters, Directory, LedgerHead};

/// A ledger as the writer knows it.
pub(crate) struct LedgerState {
    pub(crate) head: LedgerHead,
    /// The asset that was used last, with its number: most ledgers have few.
    last_asset: Option<(CompactString, u32)>,
    /// The metadata keys that were used last, each by its place among those of its transaction: most of these are
    /// alike.
    last_keys: SmallVec<[LastKey; LAST_KEYS]>,
}

/// Number of the metadata keys used last that are remembered.
const LAST_KEYS: usize = 4;

/// A metadata key that was used last.
struct LastKey {
    text: CompactString,
    id: u32,
    /// Of what fingerprints of a transaction's metadata are made.
    print: KeyPrint,
}

impl LedgerState {
    pub(crate) fn new(head: LedgerHead) -> Self {
        Self { head, last_asset: None, last_keys: SmallVec::new() }
    }

    pub(crate) fn counters(&mut self) -> &mut Counters {
        &mut self.head.counters
    }

    /// The number of an asset, if it has one.
    pub(crate) fn asset(&mut self, asset: &str) -> Option<u32> {
        if let Some((text, id)) = &self.last_asset
            && text == asset
        {
            return Some(*id);
        }
        let id = self.head.assets.id(asset)?;
        self.last_asset = Some((asset.into(), id));
        Some(id)
    }

    /// The number of a metadata key that stands at this place among others, if it has one.
    pub(crate) fn key(&mut self, at: usize, key: &str, fingerprints: &Fingerprints) -> Option<u32> {
        if let Some(last) = self.last_keys.get(at)
            && last.text == key
        {
            return Some(last.id);
        }
        let id = self.head.keys.id(key)?;
        let print = fingerprints.key(subject_space(self.head.info.id, Subject::Transaction), key);
        let now = LastKey { text: key.into(), id, print };
        if let Some(last) = self.last_keys.get_mut(at) {
            *last = now;
        } else if at == self.last_keys.len() && at < LAST_KEYS {
            self.last_keys.push(now);
        }
        Some(id)
    }

    /// The fingerprint of a metadata key of a transaction, if it was used last at this place.
    pub(crate) fn last_print(&self, at: usize, id: u32) -> Option<KeyPrint> {
        self.last_keys.get(at).filter(|last| last.id == id).map(|last| last.print)
    }

    /// Forgets the names that were used last, since their numbers may be taken back.
    pub(crate) fn forget_names(&mut self) {
        self.last_asset = None;
        self.last_keys.clear();
    }
}

/// The record for undoing a submission that is all or nothing, or a dry run.
pub(crate) struct Undo {
    pub(crate) next: Position,
    /// Ledgers that may change, with their counters as they were.
    pub(crate) ledgers: SmallVec<[(u32, Counters); 1]>,
    /// Accounts as they were; `None` for one that was new.
    pub(crate) accounts: HashMap<Place, Option<super::accounts::AccountState>, RandomState>,
    pub(crate) keys: Vec<RecentKey>,
    pub(crate) documents: Vec<((u32, u64), Option<TransactionDocument>)>,
    /// Keyed documents, as their flush had them before.
    pub(crate) keyed: Vec<(Box<[u8]>, Before)>,
}

/// Everything a decision can ask.
pub(crate) struct State {
    /// By number, from 1.
    pub(crate) ledgers: Vec<LedgerState>,
    pub(crate) directory: Directory,
    /// The section of the journal that the ledger of each bucket has that was put last; 0 is that of documents.
    pub(super) buckets: BTreeMap<BucketName, u32>,
    /// The sections that were ever given to a ledger.
    pub(super) sections: BTreeMap<u32, SectionLedgers>,
    /// Sections whose entries were found to be gone. Only while entries are replayed.
    pub(super) holes: BTreeSet<u32>,
    pub(crate) accounts: AccountTable,
    /// References and idempotency keys.
    pub(crate) keys: RecentKeys,
    /// By them nearly every reference, key and new address is proved new.
    pub(crate) known: KnownKeys,
    /// Changes of transactions after they were recorded, by ledger and id.
    pub(crate) documents: Recent<(u32, u64), TransactionDocument>,
    /// Documents and the indexes over them.
    keyed: Overlay,
    pub(crate) fingerprints: Fingerprints,
    /// The position that the next entry gets.
    pub(crate) next: Position,
    /// The flush that will hold what is written now.
    pub(crate) flush: u64,
    /// Ledgers that changed since the last flush began, and the one that changed last.
    changed: BTreeSet<u32>,
    last_changed: u32,
    /// How many rows the last batch had, and of how many commands: the next will be alike.
    pub(crate) last_rows: PieceMark,
    pub(crate) last_commands: usize,
    /// The memory of the scripts that are run.
    pub(crate) scratch: Scratch,
    index: StoredState,
    /// Where accounts are by number; only while entries are replayed.
    by_number: Option<HashMap<(u32, u32), Place, RandomState>>,
    /// Defects of the entries applied so far; only while entries are replayed, since what was just
    /// decided is right by construction.
    pub(crate) audit: Option<Vec<Violation>>,
    /// Numbers that no entry may give again.
    pub(crate) fence: Fence,
    pub(crate) undo: Option<Undo>,
    /// Applying an entry failed in the middle, and was not taken back.
    pub(super) half_changed: bool,
    /// Which of the next reads fails, counted from 1; 0 if none does.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fail_read: std::cell::Cell<u64>,
    pub(crate) schemas: SchemaCache,
    pub(crate) enforcement: Enforcement,
}

/// The part of the state that stands in the index.
struct StoredState {
    snapshot: IndexSnapshot,
    generation: u64,
    flushed: u64,
    keys: TableView<KeyRow>,
    versions: TableView<VersionRow>,
}

impl StoredState {
    fn new(snapshot: IndexSnapshot, generation: u64, flushed: u64) -> Self {
        let keys = TableView::new(Vec::new(), snapshot.clone());
        let versions = TableView::new(Vec::new(), snapshot.clone());
        Self { snapshot, generation, flushed, keys, versions }
    }
}

/// An account that a command names, as far as it exists, and for a holding its asset in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    /// By which the account is found.
    pub(crate) hash: u64,
    /// Where it is, and its number.
    pub(crate) account: Option<(Place, u32)>,
    /// The number of the asset.
    pub(crate) asset: Option<u32>,
    /// The number of the holding.
    pub(crate) holding: Option<u32>,
}

impl Located {
    fn account(hash: u64, account: Option<(Place, u32)>) -> Self {
        Self { hash, account, asset: None, holding: None }
    }

    /// Where the account is.
    pub(crate) fn place(&self) -> Option<Place> {
        self.account.map(|(place, _)| place)
    }
}

impl State {
    pub(crate) fn new(
        index: IndexSnapshot,
        flushed: u64,
        fingerprints: Fingerprints,
        next: Position,
        shares: Shares,
    ) -> Result<Self, ReadError> {
        let flush = flushed + 1;
        let known = KnownKeys::load(&index, KeyRow::TABLE, shares.filters, flush)?;
        let index = StoredState::new(index, 0, flushed);
        Ok(Self {
            ledgers: Vec::new(),
            directory: Directory::default(),
            buckets: BTreeMap::new(),
            sections: BTreeMap::new(),
            holes: BTreeSet::new(),
            accounts: AccountTable::new(shares.accounts),
            keys: RecentKeys::new(flush),
            known,
            documents: Recent::new(flush),
            keyed: Overlay::new(flush),
            fingerprints,
            next,
            flush,
            changed: BTreeSet::new(),
            last_changed: 0,
            last_rows: PieceMark::default(),
            last_commands: 0,
            scratch: Scratch::default(),
            index,
            by_number: None,
            audit: None,
            fence: Fence::default(),
            undo: None,
            half_changed: false,
            #[cfg(any(test, feature = "testing"))]
            fail_read: std::cell::Cell::new(0),
            schemas: SchemaCache::new(shares.schemas),
            enforcement: Enforcement::default(),
        })
    }

    /// Reads from an index that holds everything up to flush `flushed`, and may forget what that holds.
    ///
    /// # Errors
    ///
    /// If its filters cannot be read; then everything is as it was.
    pub(crate) fn adopt(&mut self, index: &IndexSnapshot, flushed: u64) -> Result<(), ReadError> {
        self.reading()?;
        self.known.adopt(index, flushed)?;
        self.release(StoredState::new(index.clone(), self.index.generation, flushed));
        Ok(())
    }

    /// Does as [`Self::adopt`] with an index that is another file, or the same one opened anew.
    ///
    /// # Errors
    ///
    /// If its filters cannot be read; then everything is as it was.
    pub(crate) fn adopt_file(
        &mut self,
        index: &IndexSnapshot,
        generation: u64,
        flushed: u64,
    ) -> Result<(), ReadError> {
        self.reading()?;
        self.known.adopt_file(index, flushed)?;
        self.release(StoredState::new(index.clone(), generation, flushed));
        Ok(())
    }

    /// Reads from this from now on, and forgets what it holds.
    fn release(&mut self, index: StoredState) {
        let flushed = index.flushed;
        self.index = index;
        self.keys.release(flushed);
        self.documents.release(flushed);
        self.keyed.release(flushed);
    }

    /// Which file the index read here is, as [`crate::view::View`] counts them.
    pub(crate) fn generation(&self) -> u64 {
        self.index.generation
    }

    /// Called before every read of what is not in memory, so that tests can fail it.
    #[inline]
    #[cfg_attr(not(any(test, feature = "testing")), expect(clippy::unused_self, reason = "tests use it"))]
    #[cfg_attr(
        not(any(test, feature = "testing")),
        expect(clippy::unnecessary_wraps, reason = "it fails in tests")
    )]
    pub(super) fn reading(&self) -> Result<(), ReadError> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(left) = self.fail_read.get().checked_sub(1) {
            self.fail_read.set(left);
            if left == 0 {
                return Err(ReadError::Io { reason: "injected failure of a read".to_owned() });
            }
        }
        Ok(())
    }

    /// Whether an entry was applied in part. Nothing may be decided or committed on such a state.
    pub(crate) fn is_half_changed(&self) -> bool {
        self.half_changed
    }

    /// The last flush that the index read here holds.
    pub(crate) fn flushed(&self) -> u64 {
        self.index.flushed
    }

    /// Assigns later writes to the next flush; returns the number of the one that ends.
    pub(crate) fn begin_flush(&mut self) -> u64 {
        let ended = self.flush;
        self.flush += 1;
        self.keys.begin(self.flush);
        self.known.end_flush(ended);
        self.documents.begin(self.flush);
        self.keyed.begin(self.flush);
        ended
    }

    /// Notes that a ledger changed: its head belongs into the next flush.
    pub(crate) fn note_ledger(&mut self, ledger: u32) {
        if self.last_changed != ledger {
            self.last_changed = ledger;
            self.changed.insert(ledger);
        }
    }

    /// The heads that the flush must hold which begins now.
    pub(crate) fn take_changed_heads(&mut self) -> Vec<(u32, LedgerHead)> {
        self.last_changed = 0;
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|ledger| (ledger, self.ledger(ledger).head.clone())).collect()
    }

    /// Entries are replayed from now on: accounts are found by number.
    pub(crate) fn begin_replay(&mut self) {
        self.by_number = Some(HashMap::with_hasher(RandomState::default()));
        self.audit.get_or_insert_default();
    }

    /// Replaying is over.
    pub(crate) fn end_replay(&mut self) {
        self.by_number = None;
        self.audit = None;
        self.holes.clear();
    }

    /// Notes that a replayed entry breaks a rule.
    pub(crate) fn report(&mut self, code: ViolationCode, ledger: u32, position: u64, detail: String) {
        let name =
            self.ledgers.get((ledger as usize).wrapping_sub(1)).map(|ledger| ledger.head.info.name.clone());
        if let Some(audit) = &mut self.audit {
            audit.push(Violation { code, ledger: name, position: Some(position), detail });
        }
    }

    /// Makes room, between submissions.
    pub(crate) fn evict(&mut self) {
        if self.by_number.is_none() {
            self.accounts.evict(self.index.flushed);
        }
    }

    /// Makes room in the middle of a replay: places by number are forgotten with the accounts.
    pub(crate) fn evict_replayed(&mut self) {
        self.accounts.evict(self.index.flushed);
        self.begin_replay();
        let accounts = &self.accounts;
        if let Some(by_number) = &mut self.by_number {
            by_number
                .extend(accounts.iter().map(|(place, account)| ((account.ledger, account.account), place)));
        }
    }

    /// Stored metadata with its keys as text.
    pub(crate) fn metadata_of(
        &self,
        ledger: u32,
        record: &ledger_journal::entry::MetadataRecord<'_>,
    ) -> Result<ledger_core::Metadata, ReadError> {
        let keys = &self.ledgers[ledger as usize - 1].head.keys;
        let mut metadata = ledger_core::Metadata::with_capacity(record.len());
        for (key, value) in record {
            let text = match key {
                ledger_journal::entry::NameRef::Known(id) => {
                    keys.text(*id).ok_or_else(|| missing("a metadata key"))?
                }
                ledger_journal::entry::NameRef::New(_, text)
                | ledger_journal::entry::NameRef::Inline(text) => (*text).into(),
            };
            metadata.insert(text, super::apply::value_of(*value));
        }
        Ok(metadata)
    }

    /// The ledger with a number.
    pub(crate) fn ledger(&mut self, ledger: u32) -> &mut LedgerState {
        &mut self.ledgers[ledger as usize - 1]
    }

    /// The number of a ledger that is not deleted.
    pub(crate) fn live_ledger(&self, name: &LedgerName) -> Option<u32> {
        let number = self.ledger_number(name)?;
        self.ledgers[number as usize - 1].head.info.deleted_at.is_none().then_some(number)
    }

    /// The number of a ledger, deleted or not, unless it was removed for good.
    pub(crate) fn ledger_number(&self, name: &LedgerName) -> Option<u32> {
        self.directory.get(name)
    }

    /// Puts a ledger that a document tells of; one with its number is replaced.
    pub(crate) fn put_ledger(&mut self, info: LedgerInfo, section: u32, counters: impl FnOnce() -> Counters) {
        let at = info.id as usize - 1;
        self.buckets.insert(info.bucket.clone(), section);
        self.directory.insert(info.name.clone(), info.id);
        self.sections.entry(section).or_default().add(&info);
        let info = Arc::new(info);
        if let Some(ledger) = self.ledgers.get_mut(at) {
            if let Some(before) = self.sections.get_mut(&ledger.head.section) {
                before.take(&ledger.head.info);
            }
            ledger.head.info = info;
        } else {
            assert_eq!(at, self.ledgers.len(), "ledgers are numbered without a gap");
            let head = LedgerHead {
                info,
                section,
                assets: crate::names::Names::default(),
                keys: crate::names::Names::default(),
                counters: counters(),
                mapping: None,
                is_removed: false,
            };
            self.ledgers.push(LedgerState::new(head));
        }
    }

    /// Puts the mapping of a ledger.
    pub(crate) fn put_mapping(&mut self, name: &[u8], text: &[u8]) -> Result<(), Corrupt> {
        let corrupt = Corrupt { what: "mapping of a ledger" };
        let number = self.ledger_number(&name_in(name)?).ok_or(corrupt)?;
        let text = std::str::from_utf8(text).map_err(|_| corrupt)?;
        self.note_ledger(number);
        self.ledger(number).head.mapping = Some(text.into());
        Ok(())
    }

    /// Finds an account as [`State::locate`] does, with less where it was looked for before.
    pub(crate) fn locate_near(
        &mut self,
        ledger: u32,
        address: &str,
        near: Option<&Near>,
    ) -> Result<Located, ReadError> {
        match near.and_then(|near| self.accounts.find_near(near, ledger, address)) {
            Some((hash, account)) => Ok(Located::account(hash, Some(account))),
            None => self.locate(ledger, address),
        }
    }

    /// Finds an account, in memory or in the index.
    pub(crate) fn locate(&mut self, ledger: u32, address: &str) -> Result<Located, ReadError> {
        let hash = self.accounts.hash(ledger, address);
        if let Some(account) = self.accounts.find(hash, ledger, address) {
            return Ok(Located::account(hash, Some(account)));
        }
        let index = &self.index;
        if self.known.prove_absent(self.probe_key(ledger, KeyKind::Address, address)) {
            return Ok(Located::account(hash, None));
        }
        self.reading()?;
        let found = lookup::find_account(&index.snapshot, &index.keys, &self.fingerprints, ledger, address)?;
        let account = match found {
            Some((account, stored)) => Some((self.load(hash, ledger, account, stored)?, account)),
            None => None,
        };
        Ok(Located::account(hash, account))
    }

    /// Finds an account that exists, by number. Only while entries are replayed.
    pub(crate) fn locate_number(&mut self, ledger: u32, account: u32) -> Result<Place, ReadError> {
        let by_number = self.by_number.as_ref().expect("accounts are located by number only in a replay");
        if let Some(place) = by_number.get(&(ledger, account)) {
            return Ok(*place);
        }
        let stored = lookup::stored_account(&self.index.snapshot, ledger, account)?;
        let stored = stored.ok_or_else(|| missing("an account"))?;
        let hash = self.accounts.hash(ledger, &stored.address);
        self.load(hash, ledger, account, stored)
    }

    fn load(
        &mut self,
        hash: u64,
        ledger: u32,
        account: u32,
        stored: StoredAccount,
    ) -> Result<Place, ReadError> {
        self.reading()?;
        let first_usage = lookup::stored_first_usage(&self.index.snapshot, ledger, account)?;
        let mut holdings = Vec::with_capacity(stored.holdings.len());
        for (asset, holding) in &stored.holdings {
            let found = lookup::stored_holding(&self.index.snapshot, ledger, *holding)?;
            let found = found.ok_or_else(|| missing_in(&self.index.snapshot, "a holding"))?;
            let displaced = found.displaced.map(|sums| *sums);
            holdings.push(HoldingState::stored((*asset, *holding), found.ordinal, &found.volumes, displaced));
        }
        let new = NewState {
            ledger,
            account,
            address: stored.address,
            first_usage,
            holdings: Holdings::from(holdings),
            document: DocumentState::Stored,
        };
        Ok(self.put_account(hash, new, 0))
    }

    /// Puts an account into memory. `flush` is 0 for one that stands in the index.
    pub(crate) fn put_account(&mut self, hash: u64, new: NewState, flush: u64) -> Place {
        let key = (new.ledger, new.account);
        let place = self.accounts.insert(hash, new, flush);
        if let Some(by_number) = &mut self.by_number {
            by_number.insert(key, place);
        }
        place
    }

    /// Makes sure that an account's document is in memory.
    pub(crate) fn load_document(&mut self, place: Place) -> Result<(), ReadError> {
        let account = self.accounts.get(place);
        if !matches!(account.document, DocumentState::Stored) {
            return Ok(());
        }
        self.reading()?;
        let document =
            lookup::account_document(&self.index.versions, account.ledger, account.account, u64::MAX)?
                .ok_or_else(|| missing_in(&self.index.snapshot, "the document of an account"))?;
        self.accounts.set_document(place, document);
        Ok(())
    }

    /// The key space and the fingerprint of a reference or an idempotency key.
    pub(crate) fn probe_key(&self, ledger: u32, kind: KeyKind, text: &str) -> (u64, u64) {
        let space = key_space(ledger, kind);
        (space, self.fingerprints.of(space, text))
    }

    /// Values under a key that the index holds: others with the same fingerprint can be among them.
    pub(crate) fn stored_keys(&self, (space, fingerprint): (u64, u64)) -> Result<Vec<u64>, ReadError> {
        self.reading()?;
        Ok(self.index.keys.probe(space, fingerprint)?)
    }

    /// The value under a key of the documents.
    pub(crate) fn stored_document(&self, key: &[u8]) -> Result<Option<Box<[u8]>>, ReadError> {
        self.reading()?;
        self.keyed.get(&self.index.snapshot, key)
    }

    /// The values under the keys of the documents from one up to another.
    pub(crate) fn scan_documents<'a>(
        &'a self,
        from: &'a [u8],
        to: &'a [u8],
    ) -> Result<Merged<'a>, ReadError> {
        self.reading()?;
        self.keyed.scan(&self.index.snapshot, from, to)
    }

    /// Puts or removes what stands under a key of the documents.
    pub(crate) fn keep_document(&mut self, key: Box<[u8]>, value: Option<Box<[u8]>>) {
        let previous = self.keyed.put(key.clone(), value);
        if let Some(undo) = &mut self.undo {
            undo.keyed.push((key, previous));
        }
    }

    /// The changes of a transaction after it was recorded.
    pub(crate) fn transaction_document(
        &self,
        ledger: u32,
        transaction: u64,
    ) -> Result<Option<TransactionDocument>, ReadError> {
        if let Some(document) = self.documents.get(&(ledger, transaction)) {
            return Ok(Some(document.clone()));
        }
        self.reading()?;
        lookup::transaction_document(&self.index.versions, ledger, transaction, u64::MAX)
    }

    /// Remembers an account as it is before it changes, where changes may be taken back.
    #[inline]
    pub(crate) fn note_change(&mut self, place: Place) {
        if let Some(undo) = &mut self.undo {
            let accounts = &self.accounts;
            undo.accounts.entry(place).or_insert_with(|| Some(accounts.get(place).clone()));
        }
    }

    /// Remembers that an account is new, where that may be taken back.
    pub(crate) fn note_new(&mut self, place: Place) {
        if let Some(undo) = &mut self.undo {
            undo.accounts.insert(place, None);
        }
    }

    /// From now on every change of this ledger can be taken back.
    pub(crate) fn begin_undo(&mut self, ledger: u32) {
        self.begin_undo_of_documents();
        self.include_in_undo(ledger);
    }

    /// From now on every change of documents can be taken back, and of ledgers that are
    /// [included](State::include_in_undo).
    pub(crate) fn begin_undo_of_documents(&mut self) {
        self.undo = Some(Undo {
            next: self.next,
            ledgers: SmallVec::new(),
            accounts: HashMap::with_hasher(RandomState::default()),
            keys: Vec::new(),
            documents: Vec::new(),
            keyed: Vec::new(),
        });
    }

    /// Lets the undo that has begun take back changes of this ledger too. The ledger must not have changed since.
    pub(crate) fn include_in_undo(&mut self, ledger: u32) {
        let counters = *self.ledger(ledger).counters();
        if let Some(undo) = &mut self.undo
            && undo.ledgers.iter().all(|(included, _)| *included != ledger)
        {
            undo.ledgers.push((ledger, counters));
        }
    }

    /// Keeps what was changed since [`State::begin_undo`].
    pub(crate) fn keep(&mut self) {
        self.undo = None;
    }

    /// Takes back everything since [`State::begin_undo`].
    pub(crate) fn take_back(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        for (place, account) in undo.accounts {
            match account {
                Some(account) => self.accounts.restore(place, account),
                None => self.accounts.remove(place),
            }
        }
        for key in undo.keys.into_iter().rev() {
            self.keys.undo(&key);
        }
        for (key, previous) in undo.documents.into_iter().rev() {
            self.documents.undo(&key, previous);
        }
        if !undo.keyed.is_empty() {
            self.schemas.clear();
        }
        for (key, previous) in undo.keyed.into_iter().rev() {
            self.keyed.undo(&key, previous);
        }
        for (ledger, counters) in undo.ledgers {
            let ledger = self.ledger(ledger);
            ledger.head.counters = counters;
            ledger.head.assets.truncate(counters.assets as usize);
            ledger.head.keys.truncate(counters.keys as usize);
            ledger.forget_names();
        }
        self.next = undo.next;
        self.half_changed = false;
        #[cfg(debug_assertions)]
        if self.accounts.is_small()
            && let Err(differs) = self.check_bytes()
        {
            panic!("after an undo {differs}");
        }
    }

    /// Compares the counts of bytes, by which memory is bounded, with what is held.
    ///
    /// # Errors
    ///
    /// The difference.
    #[cfg(any(test, debug_assertions, feature = "testing"))]
    pub(crate) fn check_bytes(&self) -> Result<(), String> {
        self.accounts.check_bytes()?;
        self.keys.check_bytes()
    }
}
