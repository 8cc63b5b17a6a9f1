//! The effect of an entry on the state, and the rows it projects into.
//!
//! This is the one place for both: the writer comes here with what it has just decided, recovery with what
//! it has read back, and the rows that readers see are made of nothing else.

use std::borrow::Cow;
use std::collections::BTreeMap;

use compact_str::CompactString;
use ledger_codec::Corrupt;
use ledger_core::{AccountAddress, Amount, Metadata, MetadataValue, Timestamp, Volumes};
use ledger_index::{
    DisplacedRow, EffectiveRow, HistoryRow, KeyRow, LogRow, Quantity, TermRow, TransactionRow, VersionRow,
};
use ledger_journal::entry::{
    AddressRef, Body, DocumentRecord, Event, LogRecord, MetadataRecord, NameRef, Recognition, Record,
    TargetRecord, TransactionRecord, ValueRef,
};
use smallvec::SmallVec;

use super::accounts::{DocumentState, NewState, Place};
use super::ahead::KeyPrints;
use super::holding::{HoldingState, Holdings};
use super::state::{Located, State};
use crate::documents::{LEDGERS, MAPPINGS, TransactionDocument, decode_ledger};
use crate::error::ReadError;
use crate::fingerprint::{KeyKind, Subject, key_space, subject_space};
use crate::projection::{NewAccount, NewHolding, PieceBuilder};
use crate::quantity::quantity_of;
use crate::removal::name_in;
use crate::verify::ViolationCode;
use crate::view::Counters;

/// Known facts about the things that an entry names.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// Where its accounts are, in the order in which it names them: its holdings', then those whose metadata
    /// it sets. Empty where that is not known, as in a replay.
    pub(crate) located: SmallVec<[Located; 4]>,
    /// The metadata with which the transaction was recorded that it changes or reverts.
    pub(crate) original: Option<Metadata>,
    /// The changes of that transaction so far.
    pub(crate) changed: Prior<Box<TransactionDocument>>,
    /// The value where the entry puts a document or a schema.
    pub(crate) stored: Prior<Box<[u8]>>,
    /// The fingerprints of its keys.
    pub(crate) prints: KeyPrints,
    /// Metadata that the chart of a schema gives to the accounts that it is the first to use, ascending by address.
    pub(crate) defaults: Vec<(AccountAddress, Metadata)>,
}

/// The value where an entry puts something. The writer reads it before it changes anything, so that a failed read
/// leaves nothing half done; a replay reads it when it gets there.
#[derive(Debug, Default)]
pub(crate) enum Prior<T> {
    /// It was not looked up.
    #[default]
    Unread,
    /// There is nothing.
    Absent,
    /// This.
    Found(T),
}

impl<T: Clone> Prior<T> {
    /// The result of a lookup.
    pub(crate) fn of(found: Option<T>) -> Self {
        found.map_or(Self::Absent, Self::Found)
    }

    pub(super) fn or_read(
        &self,
        read: impl FnOnce() -> Result<Option<T>, ReadError>,
    ) -> Result<Option<T>, ReadError> {
        match self {
            Self::Unread => read(),
            Self::Absent => Ok(None),
            Self::Found(found) => Ok(Some(found.clone())),
        }
    }
}

/// A date that makes no first usage earlier.
const AFTER_ALL: Timestamp = Timestamp::from_micros(i64::MAX);

/// When what an entry tells was first recorded: imported transactions say so where it is not the date of their log.
fn recorded_at(log: &LogRecord<'_>) -> Timestamp {
    match &log.event {
        Event::Transaction(transaction) => transaction.inserted_at.unwrap_or(log.date),
        _ => log.date,
    }
}

/// An account that the entry touches.
struct Touched {
    place: Place,
    /// Whether a version of its document must be written.
    document_changed: bool,
}

impl State {
    /// Reads what applying a log will change and is not in memory yet, so that [`State::apply`] reads nothing.
    ///
    /// It takes 80 instructions of about 6,130 for a payment between two known accounts, by callgrind over a release
    /// build that applies 300 submissions of 100 payments each to a store in memory.
    #[inline]
    pub(super) fn load_changed(&mut self, log: &LogRecord<'_>, hints: &Hints) -> Result<(), ReadError> {
        // Nearly always: accounts get no metadata, and none is used earlier than ever before.
        if let Event::Transaction(transaction) = &log.event
            && hints.located.len() == transaction.holdings.len()
        {
            let used_at = transaction.timestamp;
            let is_first = |place: Place| used_at < self.accounts.get(place).first_usage;
            if !hints.located.iter().any(|located| located.account.is_some_and(|(place, _)| is_first(place)))
            {
                return Ok(());
            }
        }
        self.load_some(log, hints)
    }

    #[cold]
    fn load_some(&mut self, log: &LogRecord<'_>, hints: &Hints) -> Result<(), ReadError> {
        let (holdings, used_at) = match &log.event {
            Event::Transaction(transaction) => (transaction.holdings.len(), transaction.timestamp),
            Event::SetMetadata { .. } | Event::DeleteMetadata { .. } => (0, log.date),
            Event::InsertedSchema { .. } => return Ok(()),
        };
        for (at, place) in hints.located.iter().map(Located::place).enumerate() {
            // Documents change of accounts that get metadata, and of those that are used earlier than ever before.
            if let Some(place) = place
                && (at >= holdings || used_at < self.accounts.get(place).first_usage)
            {
                self.load_document(place)?;
            }
        }
        Ok(())
    }

    /// Applies an entry: the state is then as it was right after it, and its rows are in `rows`. If this fails the
    /// state is [half changed](State::is_half_changed), unless it is taken back.
    pub(crate) fn apply(
        &mut self,
        record: &Record<'_>,
        hints: &Hints,
        rows: &mut PieceBuilder,
    ) -> Result<(), ReadError> {
        if record.position != self.next {
            return Err(Corrupt { what: "entries are not in order" }.into());
        }
        self.next = self.next.next();
        let applied = match &record.body {
            Body::Log(log) => self.apply_log(record.position.get(), log, hints, rows),
            Body::Document(document) => self.apply_document(record.position.get(), document, hints, rows),
        };
        if applied.is_err() {
            self.half_changed = true;
        }
        applied
    }

    fn apply_document(
        &mut self,
        position: u64,
        document: &DocumentRecord<'_>,
        hints: &Hints,
        rows: &mut PieceBuilder,
    ) -> Result<(), ReadError> {
        if let (LEDGERS, Some(value)) = (document.collection, document.value) {
            let (info, section) = decode_ledger(document.key, value)?;
            if info.id == 0 || info.id as usize > self.ledgers.len() + 1 {
                return Err(Corrupt { what: "number of a ledger" }.into());
            }
            if info.id as usize > self.ledgers.len() {
                self.fence.take_ledger(info.id)?;
            }
            let first = info.first_id.get();
            self.note_ledger(info.id);
            let counters = Counters { next_log: first, next_transaction: first, ..Counters::NEW };
            self.put_ledger(info, section, || counters);
        }
        if let (LEDGERS, None) = (document.collection, document.value) {
            let number = self.ledger_number(&name_in(document.key)?);
            let number = number.ok_or(Corrupt { what: "removal of a ledger that is not there" })?;
            if self.ledger(number).head.info.deleted_at.is_none() {
                return Err(Corrupt { what: "removal of a ledger that is not deleted" }.into());
            }
            self.note_ledger(number);
            self.remove_ledger(number);
        }
        if let (MAPPINGS, Some(value)) = (document.collection, document.value) {
            self.put_mapping(document.key, value)?;
        }
        self.put_document(position, document, &hints.stored, rows)
    }

    fn apply_log(
        &mut self,
        position: u64,
        log: &LogRecord<'_>,
        hints: &Hints,
        rows: &mut PieceBuilder,
    ) -> Result<(), ReadError> {
        let ledger = log.ledger;
        if ledger == 0 || self.ledgers.len() < ledger as usize {
            return Err(Corrupt { what: "entry of a ledger that was not created" }.into());
        }
        self.fence.admit(log)?;
        self.note_ledger(ledger);
        let counters = self.ledger(ledger).counters();
        // What is imported into a ledger without a log may begin before its first id.
        let begins = log.imported && counters.is_new();
        if (log.log < counters.next_log && !begins) || log.log == u64::MAX {
            return Err(Corrupt { what: "log id that does not ascend" }.into());
        }
        counters.next_log = log.log + 1;
        counters.in_use |= !log.imported;
        counters.last_date = counters.last_date.max(log.date);
        let date = counters.last_date;
        rows.logs.push(LogRow { ledger, log: log.log, position, date: date.as_micros() });
        // A log without a key may have the hash of a request.
        if let Some((text, request)) = Recognition::of(log).filter(|(text, _)| !text.is_empty()) {
            let known = hints.prints.idempotency;
            self.put_key(ledger, KeyKind::Idempotency, known, (text, position, Some(request)), rows);
        }
        let mut touched = SmallVec::<[Touched; 4]>::new();
        match &log.event {
            Event::Transaction(transaction) => {
                self.apply_transaction(position, log, date, transaction, hints, &mut touched, rows)?;
            }
            Event::SetMetadata { target: TargetRecord::Account(account), defaults, metadata } => {
                // One write: what is set goes over what the account begins with.
                let mut given = self.take_metadata(ledger, defaults)?;
                given.merge(&self.take_metadata(ledger, metadata)?);
                let metadata = given;
                self.set_account_metadata(
                    log,
                    account,
                    hints.located.first(),
                    &metadata,
                    &mut touched,
                    (position, rows),
                )?;
            }
            Event::DeleteMetadata { target: TargetRecord::Account(account), key } => {
                let key = self.take_key(ledger, key)?;
                // A removal is no use of the account: an account whose first use lies ahead keeps that date.
                let place = self.touch(log, account, hints.located.first(), AFTER_ALL, &mut touched, rows)?;
                self.delete_account_key(place, log.date, &key, &mut touched, (position, rows))?;
            }
            Event::SetMetadata { target: TargetRecord::Transaction(id), metadata, .. } => {
                let set = self.take_metadata(ledger, metadata)?;
                self.change_transaction((ledger, *id), (position, log.date), hints, rows, |document| {
                    document.metadata.merge(&set);
                })?;
            }
            Event::DeleteMetadata { target: TargetRecord::Transaction(id), key } => {
                let key = self.take_key(ledger, key)?;
                self.change_transaction((ledger, *id), (position, log.date), hints, rows, |document| {
                    document.metadata.remove(&key);
                })?;
            }
            // An account that nobody ever named stays unknown.
            Event::DeleteMetadata { target: TargetRecord::Unknown(_), key } => {
                self.take_key(ledger, key)?;
            }
            Event::SetMetadata { target: TargetRecord::Unknown(_), .. } => {
                return Err(Corrupt { what: "metadata of an account without a number" }.into());
            }
            Event::InsertedSchema { schema } => {
                self.put_schema(position, ledger, schema, &hints.stored, rows)?;
            }
        }
        self.write_documents(position, &touched, rows);
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one entry, each borrowed apart")]
    fn apply_transaction(
        &mut self,
        position: u64,
        log: &LogRecord<'_>,
        date: Timestamp,
        transaction: &TransactionRecord<'_>,
        hints: &Hints,
        touched: &mut SmallVec<[Touched; 4]>,
        rows: &mut PieceBuilder,
    ) -> Result<(), ReadError> {
        let (ledger, id) = (log.ledger, transaction.id);
        if id == u64::MAX {
            return Err(Corrupt { what: "transaction id" }.into());
        }
        let counters = self.ledger(ledger).counters();
        counters.next_transaction = counters.next_transaction.max(id + 1);
        counters.transactions += 1;
        let timestamp = transaction.timestamp;
        let displaced = timestamp != date;
        if timestamp > date || log.date != date || transaction.inserted_at.is_some() {
            counters.ahead += 1;
        }
        rows.transactions.push(TransactionRow {
            ledger,
            transaction: id,
            position,
            log: log.log,
            timestamp: timestamp.as_micros(),
            date: date.as_micros(),
        });
        if displaced {
            rows.effective.push(EffectiveRow { ledger, timestamp: timestamp.as_micros(), transaction: id });
        }
        for (at, holding) in transaction.holdings.iter().enumerate() {
            let place = self.touch(log, &holding.account, hints.located.get(at), timestamp, touched, rows)?;
            let asset = self.take_asset(ledger, &holding.asset)?;
            self.note_change(place);
            let flush = self.flush;
            if holding.is_new {
                let counters = self.ledger(ledger).counters();
                if holding.holding != counters.holdings {
                    return Err(Corrupt { what: "number of a new holding" }.into());
                }
                counters.holdings += 1;
                rows.holdings.push(NewHolding {
                    ledger,
                    holding: holding.holding,
                    account: holding.account.account,
                    asset,
                });
                if !self.accounts.add_holding(place, HoldingState::new(asset, holding.holding), flush) {
                    return Err(Corrupt { what: "holding that was made before" }.into());
                }
            }
            let account = self.accounts.change(place, flush);
            let found = account.holdings.binary_search_by_key(&asset, |have| have.asset);
            let state =
                &mut account.holdings[found.map_err(|_| Corrupt { what: "holding that was not made" })?];
            if state.holding != holding.holding {
                return Err(Corrupt { what: "number of a holding" }.into());
            }
            let before = self.audit.is_some().then(|| state.totals());
            let (mut is_source, mut is_destination) = (false, false);
            for posting in &transaction.moves {
                is_source |= posting.source as usize == at;
                is_destination |= posting.destination as usize == at;
            }
            if displaced {
                let before = state.totals();
                let input = difference(&holding.after.input, &before.input)?;
                let output = difference(&holding.after.output, &before.output)?;
                state.add_displaced(&input, &output);
                rows.displaced.push(DisplacedRow::new(
                    holding_key(ledger, holding.holding),
                    timestamp.as_micros(),
                    id,
                    input,
                    output,
                ));
            }
            state.ordinal += 1;
            state.set_totals(&holding.after);
            // Filled where it lies: a copy of what was written just now would wait for all that was written before.
            rows.history.push(HistoryRow::EMPTY);
            let row = rows.history.last_mut().expect("it was pushed");
            row.holding = holding_key(ledger, holding.holding);
            row.transaction = id;
            row.input = quantity_of(&holding.after.input);
            row.output = quantity_of(&holding.after.output);
            row.displaced = state.displaced();
            row.ordinal = state.ordinal;
            row.is_displaced = displaced;
            row.is_source = is_source;
            row.is_destination = is_destination;
            if let Some(before) = before
                && let Some(wrong) = wrong_volumes(before, transaction, at)
            {
                self.report(ViolationCode::VolumeMismatch, ledger, position, wrong);
            }
        }
        if !transaction.metadata.is_empty() {
            let space = subject_space(ledger, Subject::Transaction);
            for (at, (key, value)) in transaction.metadata.iter().enumerate() {
                let known = match key {
                    NameRef::Known(id) => self.ledgers[ledger as usize - 1].last_print(at, *id),
                    NameRef::New(..) | NameRef::Inline(_) => None,
                };
                let key = match known {
                    Some(key) => key,
                    None => self.with_key(ledger, key, |state, key| state.fingerprints.key(space, key))?,
                };
                let term = self.fingerprints.term_of(key, &shown(*value));
                rows.terms.push(TermRow::new(space, term, id, position, true));
            }
        }
        // One write of each account, whatever says something of it: what is set goes over what it begins with.
        let mut given: Vec<(Place, Metadata)> = Vec::with_capacity(transaction.account_metadata.len());
        let mut begun: BTreeMap<u32, usize> = BTreeMap::new();
        for (at, (account, metadata)) in transaction.account_metadata.iter().enumerate() {
            let metadata = self.take_metadata(ledger, metadata)?;
            // Accounts with defaults are new: they are made by this entry.
            let hint = at.checked_sub(transaction.defaults);
            let hint = hint.and_then(|at| hints.located.get(transaction.holdings.len() + at));
            let place = self.touch(log, account, hint, timestamp, touched, rows)?;
            if at < transaction.defaults {
                begun.insert(account.account, at);
            } else if let Some(begun) = begun.get(&account.account) {
                given[*begun].1.merge(&metadata);
                continue;
            }
            given.push((place, metadata));
        }
        for (place, metadata) in given {
            self.merge_account_metadata(place, recorded_at(log), &metadata, touched, (position, rows))?;
        }
        // Behind what is near: this is written to where nobody was for long, and copies right after it would wait.
        if let Some(reference) = transaction.reference {
            let known = hints.prints.reference;
            self.put_key(ledger, KeyKind::Reference, known, (reference, id, None), rows);
        }
        if let Some(reverted) = transaction.reverts {
            let mut before = None;
            self.change_transaction((ledger, reverted), (position, log.date), hints, rows, |document| {
                before = document.reverted.replace((id, log.date));
            })?;
            if let Some((by, _)) = before {
                let detail = format!("transaction {reverted} was reverted by {by} already");
                self.report(ViolationCode::RevertRule, ledger, position, detail);
            }
        }
        Ok(())
    }

    /// The place of an account that the entry names; one that is new is put.
    #[inline]
    fn touch(
        &mut self,
        log: &LogRecord<'_>,
        account: &AddressRef<'_>,
        hint: Option<&Located>,
        used_at: Timestamp,
        touched: &mut SmallVec<[Touched; 4]>,
        rows: &mut PieceBuilder,
    ) -> Result<Place, ReadError> {
        // Nearly always: it is where it was found, and was used before.
        if account.new.is_none()
            && let Some(place) = hint.and_then(Located::place)
            && used_at >= self.accounts.get(place).first_usage
        {
            return Ok(place);
        }
        self.touch_first(log, account, hint, used_at, touched, rows)
    }

    #[cold]
    fn touch_first(
        &mut self,
        log: &LogRecord<'_>,
        account: &AddressRef<'_>,
        hint: Option<&Located>,
        used_at: Timestamp,
        touched: &mut SmallVec<[Touched; 4]>,
        rows: &mut PieceBuilder,
    ) -> Result<Place, ReadError> {
        let ledger = log.ledger;
        let recorded = recorded_at(log);
        let Some(address) = account.new else {
            let place = match hint.and_then(Located::place) {
                Some(place) => place,
                // Made by this very entry, or found by number in a replay.
                None => match self.made_here(ledger, account.account, touched) {
                    Some(place) => place,
                    None => self.locate_number(ledger, account.account)?,
                },
            };
            if used_at < self.accounts.get(place).first_usage {
                self.note_change(place);
                let flush = self.flush;
                self.accounts.change(place, flush).first_usage = used_at;
                self.load_document(place)?;
                self.accounts.edit_document(place, |document| {
                    document.first_usage = used_at;
                    document.updated_at = recorded;
                });
                mark(touched, place);
            }
            return Ok(place);
        };
        let counters = self.ledger(ledger).counters();
        if account.account != counters.accounts {
            return Err(Corrupt { what: "number of a new account" }.into());
        }
        counters.accounts += 1;
        let hash = hint.map_or_else(|| self.accounts.hash(ledger, address), |hint| hint.hash);
        let (space, fingerprint) = self.probe_key(ledger, KeyKind::Address, address);
        self.known.add((space, fingerprint));
        rows.keys.push(KeyRow { space, fingerprint, value: u64::from(account.account) });
        rows.accounts.push(NewAccount { ledger, account: account.account, address: address.into() });
        let new = NewState {
            ledger,
            account: account.account,
            address: address.into(),
            first_usage: used_at,
            holdings: Holdings::NONE,
            document: DocumentState::Plain { inserted_at: recorded, updated_at: recorded },
        };
        let place = self.put_account(hash, new, self.flush);
        self.note_new(place);
        touched.push(Touched { place, document_changed: true });
        Ok(place)
    }

    fn made_here(&self, ledger: u32, account: u32, touched: &[Touched]) -> Option<Place> {
        touched.iter().map(|touched| touched.place).find(|place| {
            let have = self.accounts.get(*place);
            (have.ledger, have.account) == (ledger, account)
        })
    }

    /// Writes a version of each document that the entry changed: one, whatever the number of changes.
    fn write_documents(&mut self, position: u64, touched: &[Touched], rows: &mut PieceBuilder) {
        for touched in touched.iter().filter(|touched| touched.document_changed) {
            let account = self.accounts.get(touched.place);
            let Some(bytes) = account.document().map(|document| document.encode()) else { continue };
            let space = subject_space(account.ledger, Subject::Account);
            rows.versions.push(VersionRow { space, id: u64::from(account.account), position, bytes });
        }
    }

    fn set_account_metadata(
        &mut self,
        log: &LogRecord<'_>,
        account: &AddressRef<'_>,
        hint: Option<&Located>,
        metadata: &Metadata,
        touched: &mut SmallVec<[Touched; 4]>,
        (position, rows): (u64, &mut PieceBuilder),
    ) -> Result<(), ReadError> {
        let place = self.touch(log, account, hint, log.date, touched, rows)?;
        self.merge_account_metadata(place, log.date, metadata, touched, (position, rows))
    }

    fn merge_account_metadata(
        &mut self,
        place: Place,
        date: Timestamp,
        metadata: &Metadata,
        touched: &mut SmallVec<[Touched; 4]>,
        (position, rows): (u64, &mut PieceBuilder),
    ) -> Result<(), ReadError> {
        self.edit_account_metadata(place, date, touched, (position, rows), |have| have.merge(metadata))
    }

    fn delete_account_key(
        &mut self,
        place: Place,
        date: Timestamp,
        key: &str,
        touched: &mut SmallVec<[Touched; 4]>,
        (position, rows): (u64, &mut PieceBuilder),
    ) -> Result<(), ReadError> {
        self.edit_account_metadata(place, date, touched, (position, rows), |have| {
            have.remove(key);
        })
    }

    fn edit_account_metadata(
        &mut self,
        place: Place,
        date: Timestamp,
        touched: &mut SmallVec<[Touched; 4]>,
        (position, rows): (u64, &mut PieceBuilder),
        edit: impl FnOnce(&mut Metadata),
    ) -> Result<(), ReadError> {
        self.note_change(place);
        self.load_document(place)?;
        let flush = self.flush;
        let account = self.accounts.change(place, flush);
        let (ledger, number) = (account.ledger, account.account);
        let mut change = None;
        self.accounts.edit_document(place, |document| {
            let before = document.metadata.clone();
            edit(&mut document.metadata);
            if document.metadata != before {
                document.updated_at = date;
                change = Some((before, document.metadata.clone()));
            }
        });
        let Some((before, after)) = change else { return Ok(()) };
        let space = subject_space(ledger, Subject::Account);
        self.put_terms(space, u64::from(number), position, &before, &after, rows);
        mark(touched, place);
        Ok(())
    }

    fn change_transaction(
        &mut self,
        (ledger, id): (u32, u64),
        (position, date): (u64, Timestamp),
        hints: &Hints,
        rows: &mut PieceBuilder,
        change: impl FnOnce(&mut TransactionDocument),
    ) -> Result<(), ReadError> {
        let changed = hints.changed.or_read(|| Ok(self.transaction_document(ledger, id)?.map(Box::new)));
        let mut document = match changed? {
            Some(document) => *document,
            None => TransactionDocument {
                updated_at: date,
                reverted: None,
                metadata: hints.original.clone().expect("who applies a change of a transaction has read it"),
            },
        };
        let (before, reverted) = (document.metadata.clone(), document.reverted);
        change(&mut document);
        if document.metadata == before && document.reverted == reverted {
            return Ok(());
        }
        document.updated_at = date;
        let space = subject_space(ledger, Subject::Transaction);
        self.put_terms(space, id, position, &before, &document.metadata, rows);
        rows.versions.push(VersionRow { space, id, position, bytes: document.encode() });
        let previous = self.documents.insert((ledger, id), document);
        if let Some(undo) = &mut self.undo {
            undo.documents.push(((ledger, id), previous));
        }
        Ok(())
    }

    fn put_terms(
        &self,
        space: u64,
        id: u64,
        position: u64,
        before: &Metadata,
        after: &Metadata,
        rows: &mut PieceBuilder,
    ) {
        let mut push = |key: &str, value: &MetadataValue, present| {
            let term = self.fingerprints.term(space, key, &value.as_shown());
            rows.terms.push(TermRow::new(space, term, id, position, present));
        };
        // Values that differ in kind only are one term: then it neither goes nor comes.
        for (key, value) in before.iter() {
            if after.get(key).is_none_or(|now| now.as_shown() != value.as_shown()) {
                push(key, value, false);
            }
        }
        for (key, value) in after.iter() {
            if before.get(key).is_none_or(|then| then.as_shown() != value.as_shown()) {
                push(key, value, true);
            }
        }
    }

    /// Puts a key with its value and, for an idempotency key, its request; `known` is its fingerprint, if it was
    /// computed before.
    fn put_key(
        &mut self,
        ledger: u32,
        kind: KeyKind,
        known: Option<u64>,
        (text, value, request): (&str, u64, Option<Recognition>),
        rows: &mut PieceBuilder,
    ) {
        let space = key_space(ledger, kind);
        let fingerprint = known.unwrap_or_else(|| self.fingerprints.of(space, text));
        debug_assert_eq!(fingerprint, self.fingerprints.of(space, text), "of this key");
        rows.keys.push(KeyRow { space, fingerprint, value });
        self.known.add((space, fingerprint));
        let key = self.keys.put(ledger, fingerprint, text, value, request);
        if let Some(undo) = &mut self.undo {
            undo.keys.push(key.clone());
        }
    }

    // Names: an entry that is the first to use one gives it its number.

    fn take_asset(&mut self, ledger: u32, asset: &NameRef<'_>) -> Result<u32, ReadError> {
        match asset {
            NameRef::Known(id) => Ok(*id),
            NameRef::New(id, text) => {
                let ledger = self.ledger(ledger);
                if ledger.head.assets.len() == *id as usize {
                    ledger.head.assets.add(text);
                    ledger.counters().assets = id + 1;
                }
                Ok(*id)
            }
            NameRef::Inline(_) => Err(Corrupt { what: "asset without a number" }.into()),
        }
    }

    fn with_key<T>(
        &mut self,
        ledger: u32,
        key: &NameRef<'_>,
        then: impl FnOnce(&Self, &str) -> T,
    ) -> Result<T, ReadError> {
        match key {
            NameRef::New(id, text) => {
                let ledger = self.ledger(ledger);
                if ledger.head.keys.len() == *id as usize {
                    ledger.head.keys.add(text);
                    ledger.counters().keys = id + 1;
                }
                Ok(then(self, text))
            }
            NameRef::Inline(text) => Ok(then(self, text)),
            NameRef::Known(id) => {
                let text =
                    self.ledger(ledger).head.keys.text(*id).ok_or(Corrupt { what: "number of a key" })?;
                Ok(then(self, &text))
            }
        }
    }

    fn take_key(&mut self, ledger: u32, key: &NameRef<'_>) -> Result<CompactString, ReadError> {
        self.with_key(ledger, key, |_, text| text.into())
    }

    fn take_metadata(&mut self, ledger: u32, record: &MetadataRecord<'_>) -> Result<Metadata, ReadError> {
        let mut metadata = Metadata::with_capacity(record.len());
        for (key, value) in record {
            let key = self.take_key(ledger, key)?;
            metadata.insert(key, value_of(*value));
        }
        Ok(metadata)
    }
}

/// The defect of the volumes that a transaction gives its holding at this place.
fn wrong_volumes(before: Volumes, transaction: &TransactionRecord<'_>, at: usize) -> Option<String> {
    let mut expected = before;
    for posting in &transaction.moves {
        if posting.source as usize == at {
            expected.output += &posting.amount;
        }
        if posting.destination as usize == at {
            expected.input += &posting.amount;
        }
    }
    let found = &transaction.holdings[at].after;
    (expected != *found).then(|| {
        format!(
            "transaction {} leaves a holding at input {} output {}, not {} {}",
            transaction.id, expected.input, expected.output, found.input, found.output
        )
    })
}

fn mark(touched: &mut SmallVec<[Touched; 4]>, place: Place) {
    match touched.iter_mut().find(|touched| touched.place == place) {
        Some(touched) => touched.document_changed = true,
        None => touched.push(Touched { place, document_changed: true }),
    }
}

/// The key of a holding in the history tables.
pub(crate) fn holding_key(ledger: u32, holding: u32) -> u64 {
    u64::from(ledger) << 32 | u64::from(holding)
}

/// A stored metadata value as a value.
pub(crate) fn value_of(value: ValueRef<'_>) -> MetadataValue {
    match value {
        ValueRef::Text(text) => MetadataValue::Text(text.into()),
        ValueRef::Json(text) => MetadataValue::Json(text.into()),
    }
}

/// A stored metadata value as filters compare it.
fn shown(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Text(text) => Cow::Borrowed(text),
        ValueRef::Json(json) => MetadataValue::json_as_shown(json),
    }
}

fn difference(after: &Amount, before: &Amount) -> Result<Quantity, Corrupt> {
    let moved = after.checked_sub(before).ok_or(Corrupt { what: "volumes that shrink" })?;
    Ok(quantity_of(&moved))
}
