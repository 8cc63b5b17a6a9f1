//! One command: what it needs is found, it is decided, and its entry is applied.

use compact_str::CompactString;
use ledger_core::enforcement::{check, resolve};
use ledger_core::limits::{ADDRESS_BYTES_MAX, METADATA_BYTES_MAX};
use ledger_core::settle;
use ledger_core::{
    AccountAddress, Amount, Command, CreateTransaction, Decision, Facts, KnownTransaction, LegacyLog,
    LogEntry, LogId, Memento, Metadata, Movement, Needs, PastDates, Posting, Postings, Reference, Rejection,
    Rules, SchemaVersion, SlotList, Target, Timestamp, TransactionId, Volumes, check_before_script, decide,
    needs, reverting_reference,
};
use ledger_journal::entry::{Body, Event, IdempotencyRecord, LedgerBase, LogRecord, Recognition, Record};
use ledger_journal::{MAX_CHUNK_PAYLOAD_BYTES, Position, SectionId};

use super::accounts::{DocumentState, Near, Place};
use super::apply::{Hints, Prior};
use super::batch::Batch;
use super::holding::HoldingState;
use super::payload::{Told, created};
use super::script::ScriptReads;
use super::state::{Located, State};
use crate::error::ReadError;
use crate::fingerprint::{KeyKind, key_space};
use crate::hashes::ChainId;
use crate::scripts::{Compiled, Prepared};
use crate::submission::{Detail, Receipt, Request};

/// The result of a command before its batch is on disk.
#[derive(Debug)]
pub(crate) enum Decided {
    /// It is in the batch.
    Done(Receipt),
    /// It was done before: the log entry that is `later` entries after the one at `position`.
    Replay { position: Position, later: u64 },
    /// It is refused.
    Refused(Rejection),
    /// It was not tried, or is undone.
    Cancelled,
    /// A failed read of something that it needs. Nothing of it happened.
    Failed(ReadError),
}

/// The common context of the commands of a submission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) ledger: u32,
    pub(crate) now: Timestamp,
    /// How much each answer says.
    pub(crate) detail: Detail,
}

/// Written entries that are perhaps not published yet; the batch in hand included.
pub(crate) trait Written {
    /// The transaction as it was recorded; `None` if there is none.
    fn transaction(
        &self,
        batch: &mut Batch,
        ledger: u32,
        id: TransactionId,
    ) -> Result<Option<RecordedTransaction>, ReadError>;

    /// The program of a script.
    fn compile(&self, script: &str) -> Compiled;

    /// The reference of a transaction.
    fn reference(&self, batch: &mut Batch, ledger: u32, id: u64) -> Result<Option<CompactString>, ReadError>;

    /// The idempotency key of an entry, and by what its request is recognized.
    fn idempotency(
        &self,
        batch: &mut Batch,
        position: Position,
    ) -> Result<Option<(CompactString, Recognition)>, ReadError>;
}

/// A transaction as its entry has it.
#[derive(Clone, Debug)]
pub(crate) struct RecordedTransaction {
    pub(crate) postings: Postings,
    pub(crate) timestamp: Timestamp,
    pub(crate) reference: Option<Reference>,
    pub(crate) metadata: Metadata,
}

impl State {
    /// Decides a command and, if it is accepted, applies its entry. Returns nothing where it was done: then `receipt`,
    /// which is empty, was filled where it lies. A copy of what was written just now waits until all that was written
    /// before it has left the processor.
    pub(crate) fn execute(
        &mut self,
        setting: Setting,
        prepared: Prepared<'_>,
        batch: &mut Batch,
        written: &impl Written,
        receipt: &mut Receipt,
    ) -> Result<Option<Decided>, ReadError> {
        let Setting { ledger, now, detail } = setting;
        let Prepared { request, at, program, several, prints, near } = prepared;
        let Request { command, idempotency, schema_version } = request;
        if let Some(idempotency) = idempotency
            && let Some((position, first)) =
                self.used_key(ledger, idempotency.key.as_str(), prints.idempotency, batch, written)?
        {
            if first.admits(&idempotency.hash, command, several) {
                return Ok(Some(Decided::Replay { position, later: 0 }));
            }
            return Ok(Some(Decided::Refused(Rejection::IdempotencyMismatch {
                key: idempotency.key.as_str().into(),
                computed: idempotency.hash.clone(),
                stored: first.hash,
            })));
        }
        let schema = match schema_version {
            None => None,
            Some(version) => match self.named_schema(ledger, version)? {
                Ok(schema) => Some(schema),
                Err(rejection) => return Ok(Some(Decided::Refused(rejection))),
            },
        };
        let schema = schema.as_ref().and_then(|schema| schema.as_ref().as_ref().ok());
        let has_schemas = self.ledger(ledger).counters().schemas > 0;
        let named = schema_version.as_deref().zip(schema);
        let mut violation = match resolve(command, named, has_schemas, self.enforcement) {
            Ok(violation) => violation,
            Err(rejection) => return Ok(Some(Decided::Refused(rejection))),
        };
        if let Command::CreateTransaction(create) = command
            && let Movement::Script(script) = &create.movement
        {
            // The script of a template is known only now; it is compiled once.
            let of_template = if program.is_none() { Some(written.compile(&script.plain)) } else { None };
            let program = program.or(of_template.as_ref()).expect("one of them is there");
            if let Err(rejection) = self.settle(ledger, create, program, now, batch, written)? {
                return Ok(Some(Decided::Refused(rejection)));
            }
        }
        let mut facts = Facts::default();
        let mut hints = Hints { prints, ..Hints::default() };
        self.find_target(ledger, command, &mut facts, &mut hints, batch, written)?;
        let slots = self.find_holdings((ledger, near), command, &mut facts, &mut hints, batch, written)?;
        if self.has_too_many_assets(ledger, &hints.located) {
            return Ok(Some(Decided::Refused(Rejection::TooManyAssets)));
        }
        hints.defaults = self.defaults(ledger, schema, command)?;
        if is_too_large(command, &facts, &hints.defaults) {
            let rejection = Rejection::TransactionTooLarge { bytes_max: ENTRY_BYTES_MAX };
            return Ok(Some(Decided::Refused(rejection)));
        }
        self.find_rest(ledger, command, &mut facts, &mut hints, batch, written)?;
        let date = self.date(ledger, now);
        let state = self.ledger(ledger);
        let base = LedgerBase {
            ledger,
            log: state.head.counters.next_log,
            transaction: state.head.counters.next_transaction,
            date: date.as_micros(),
        };
        let section = SectionId(state.head.section);
        let decision = match decide(command, &slots, &mut facts, date) {
            Ok(decision) => decision,
            Err(rejection) => return Ok(Some(Decided::Refused(rejection))),
        };
        if let Some((version, schema)) = named {
            match check(&decision, version, schema, self.enforcement) {
                Ok(outside) => violation = violation.or(outside),
                Err(rejection) => return Ok(Some(Decided::Refused(rejection))),
            }
        }
        let schema_version = schema_version.as_deref().map(SchemaVersion::as_str);
        let mut record = Record {
            position: self.next,
            body: Body::Log(LogRecord {
                ledger,
                log: base.log,
                date,
                idempotency: idempotency.as_ref().map(|idempotency| IdempotencyRecord {
                    key: idempotency.key.as_str(),
                    hash: &idempotency.hash,
                }),
                schema_version,
                imported: false,
                event: Event::blank(),
            }),
        };
        if let Body::Log(log) = &mut record.body {
            self.put_event((ledger, base.transaction), &decision, &facts, &hints, &mut log.event);
            self.load_changed(log, &hints)?;
        }
        self.apply(&record, &hints, &mut batch.rows)?;
        batch.chunks.push(&record, section, base);
        drop(record);
        let features = self.ledger(ledger).head.info.features;
        let id = TransactionId::new(base.transaction);
        if ChainId::legacy(ledger).is_kept(features) {
            let log = LegacyLog::of_decision(&decision, base.log, id, date);
            batch.unhashed.push_legacy(ledger, base.log, &log);
        }
        let transaction = match &decision {
            Decision::Transaction(_) => Some(id),
            Decision::SetMetadata { .. }
            | Decision::DeleteMetadata { .. }
            | Decision::InsertSchema { .. } => None,
        };
        if ChainId::wire(ledger).is_kept(features) {
            if let (Detail::Ids, Command::CreateTransaction(_)) = (detail, &*command) {
                batch.unhashed.push_create(ledger, base.log, at, id, date);
            } else {
                let key = idempotency.as_ref().map(|have| &have.key);
                let memento = Memento::of_decision(&decision, id, date, key, schema_version);
                batch.unhashed.push(ledger, base.log, &memento);
            }
        }
        let entry = match detail {
            Detail::Ids => None,
            Detail::Entry => Some(Box::new(LogEntry {
                id: LogId::new(base.log),
                date,
                request_hash: None,
                schema_version: schema_version.map(Into::into),
                defaults: std::mem::take(&mut hints.defaults),
                payload: match Told::of(decision, facts.volumes, id, date) {
                    Told::Created(transaction) => created(transaction, command),
                    Told::Payload(payload) => payload,
                },
                idempotency: idempotency.take().map(|idempotency| *idempotency),
            })),
        };
        receipt.log = LogId::new(base.log);
        receipt.transaction = transaction;
        receipt.date = date;
        receipt.entry = entry;
        receipt.violation = violation.map(Box::new);
        Ok(None)
    }

    /// The date of the next entry: dates of a log do not step back.
    fn date(&mut self, ledger: u32, now: Timestamp) -> Timestamp {
        self.ledger(ledger).head.counters.last_date.max(now)
    }

    /// Whether the new ones among the assets of these holdings are more than the ledger has numbers for.
    pub(super) fn has_too_many_assets(&mut self, ledger: u32, holdings: &[Located]) -> bool {
        let new = holdings.iter().filter(|holding| holding.asset.is_none()).count();
        new > 0 && self.ledger(ledger).head.assets.len() + new > crate::names::NAMES_MAX
    }

    /// Finds what a command needs beside holdings: whether its reference is taken, and the accounts that get
    /// metadata.
    pub(super) fn find_rest(
        &mut self,
        ledger: u32,
        command: &Command,
        facts: &mut Facts,
        hints: &mut Hints,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<(), ReadError> {
        if let Command::CreateTransaction(create) = command {
            if let Some(reference) = &create.reference {
                facts.reference_taken =
                    self.reference_taken(ledger, reference.as_str(), hints, batch, written)?;
            }
            for account in create.account_metadata.keys() {
                hints.located.push(self.locate(ledger, account.as_str())?);
            }
        }
        if let Command::InsertSchema(insert) = command {
            facts.schema_exists = self.has_schema(ledger, &insert.version)?;
            if !facts.schema_exists {
                hints.stored = Prior::Absent;
            }
        }
        if let (Command::RevertTransaction(revert), Some(original)) = (command, &facts.transaction)
            && let Some(reference) = reverting_reference(&revert.rules, original)
        {
            facts.reference_taken =
                self.reference_taken(ledger, reference.as_str(), hints, batch, written)?;
        }
        if let Command::SetMetadata { target: Target::Account(account), .. }
        | Command::DeleteMetadata { target: Target::Account(account), .. } = command
        {
            hints.located.push(self.locate(ledger, account.as_str())?);
        }
        Ok(())
    }

    /// Runs the script of a command and puts what it says in its place, unless the command is refused before that.
    fn settle(
        &mut self,
        ledger: u32,
        create: &mut CreateTransaction,
        program: &Compiled,
        now: Timestamp,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<Result<(), Rejection>, ReadError> {
        if let Rules::Legacy(rules) = &create.rules {
            let mut facts = Facts::default();
            if let Some(reference) = &create.reference {
                let hints = &mut Hints::default();
                facts.reference_taken =
                    self.reference_taken(ledger, reference.as_str(), hints, batch, written)?;
            }
            if rules.past_dates == PastDates::Refuse {
                facts.last_date = self.last_date(ledger, batch, written)?;
            }
            let checked = check_before_script(create, &facts, self.date(ledger, now));
            if checked.is_err() {
                return Ok(checked);
            }
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let settled = settle(create, program, &mut scratch, &mut ScriptReads { state: self, ledger });
        // What an unusual script took is not held for ever.
        if scratch.is_small() {
            self.scratch = scratch;
        }
        settled
    }

    /// The entry that a key was used for, and the hash that it was used with. `known` is its fingerprint, if it was
    /// computed before.
    pub(super) fn used_key(
        &self,
        ledger: u32,
        key: &str,
        known: Option<u64>,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<Option<(Position, Recognition)>, ReadError> {
        let probe = match known {
            Some(fingerprint) => (key_space(ledger, KeyKind::Idempotency), fingerprint),
            None => self.probe_key(ledger, KeyKind::Idempotency, key),
        };
        if self.known.prove_absent(probe) {
            return Ok(None);
        }
        if let Some(recent) = self.keys.find(ledger, KeyKind::Idempotency, probe.1, key) {
            return Ok(Position::new(recent.value).zip(recent.request.as_deref().cloned()));
        }
        for position in self.stored_keys(probe)? {
            self.reading()?;
            if let Some(position) = Position::new(position)
                && let Some((have, recognition)) = written.idempotency(batch, position)?
                && have == key
            {
                return Ok(Some((position, recognition)));
            }
        }
        Ok(None)
    }

    fn reference_taken(
        &self,
        ledger: u32,
        reference: &str,
        hints: &mut Hints,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<bool, ReadError> {
        let space = key_space(ledger, KeyKind::Reference);
        let fingerprint =
            *hints.prints.reference.get_or_insert_with(|| self.fingerprints.of(space, reference));
        let probe = (space, fingerprint);
        if self.known.prove_absent(probe) {
            return Ok(false);
        }
        if self.keys.find(ledger, KeyKind::Reference, fingerprint, reference).is_some() {
            return Ok(true);
        }
        for id in self.stored_keys(probe)? {
            self.reading()?;
            if written.reference(batch, ledger, id)?.is_some_and(|have| have == reference) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Loads the transaction that a command is about.
    pub(super) fn find_target(
        &mut self,
        ledger: u32,
        command: &Command,
        facts: &mut Facts,
        hints: &mut Hints,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<(), ReadError> {
        let id = match command {
            Command::RevertTransaction(revert) => revert.id,
            Command::SetMetadata { target: Target::Transaction(id), .. }
            | Command::DeleteMetadata { target: Target::Transaction(id), .. } => *id,
            Command::CreateTransaction(_)
            | Command::InsertSchema(_)
            | Command::SetMetadata { target: Target::Account(_), .. }
            | Command::DeleteMetadata { target: Target::Account(_), .. } => return Ok(()),
        };
        if id.get() >= self.ledger(ledger).head.counters.next_transaction {
            return Ok(());
        }
        self.reading()?;
        let Some(recorded) = written.transaction(batch, ledger, id)? else { return Ok(()) };
        let document = self.transaction_document(ledger, id.get())?;
        hints.original = Some(recorded.metadata.clone());
        hints.changed = Prior::of(document.clone().map(Box::new));
        facts.transaction = Some(KnownTransaction {
            postings: recorded.postings,
            timestamp: recorded.timestamp,
            reference: recorded.reference,
            reverted: document.as_ref().is_some_and(|document| document.reverted.is_some()),
            metadata: document.map_or(recorded.metadata, |document| document.metadata),
        });
        Ok(())
    }

    /// Finds the accounts and volumes that a command moves. `near` is where the ends of its postings may be.
    pub(super) fn find_holdings(
        &mut self,
        (ledger, near): (u32, &[Near]),
        command: &Command,
        facts: &mut Facts,
        hints: &mut Hints,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<SlotList, ReadError> {
        let needs = needs(command, facts.transaction.as_ref());
        // Where no two ends are one holding, these are in the same order.
        let near = if near.len() == needs.holdings.len() { near } else { &[] };
        for (at, holding) in needs.holdings.iter().enumerate() {
            let mut located = self.locate_near(ledger, holding.account.as_str(), near.get(at))?;
            located.asset = self.ledger(ledger).asset(holding.asset.as_str());
            let have = match (located.place(), located.asset) {
                (Some(place), Some(asset)) => self.accounts.get(place).holding(asset),
                _ => None,
            };
            located.holding = have.map(|have| have.holding);
            facts.volumes.push(have.map_or_else(Volumes::default, HoldingState::totals));
            hints.located.push(located);
        }
        let Needs { slots, metadata, last_date, .. } = needs;
        for slot in metadata {
            if let Some(place) = hints.located[slot as usize].place() {
                facts.metadata.push((slot, self.account_metadata(place)?));
            }
        }
        if last_date {
            facts.last_date = self.last_date(ledger, batch, written)?;
        }
        Ok(slots)
    }

    fn account_metadata(&mut self, place: Place) -> Result<Metadata, ReadError> {
        self.load_document(place)?;
        Ok(match &self.accounts.get(place).document {
            DocumentState::Loaded(document) => document.metadata.clone(),
            DocumentState::Plain { .. } | DocumentState::Stored => Metadata::EMPTY,
        })
    }

    /// The effective date of the last transaction.
    fn last_date(
        &mut self,
        ledger: u32,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<Option<Timestamp>, ReadError> {
        let next = self.ledger(ledger).head.counters.next_transaction;
        let Some(last) = next.checked_sub(1) else { return Ok(None) };
        self.reading()?;
        let last = written.transaction(batch, ledger, TransactionId::new(last))?;
        Ok(last.map(|transaction| transaction.timestamp))
    }
}

/// Most bytes of an entry: a chunk, less its head and the entry's own.
const ENTRY_BYTES_MAX: usize = MAX_CHUNK_PAYLOAD_BYTES - 64 * 1_024;
/// More than every number of a posting or a holding takes, but for amounts.
const NUMBERS: usize = 64;

/// Whether a command's entry might not fit a chunk, by a bound from above.
pub(super) fn is_too_large(
    command: &Command,
    facts: &Facts,
    defaults: &[(AccountAddress, Metadata)],
) -> bool {
    if is_surely_small(command, facts) && defaults.is_empty() {
        return false;
    }
    let held =
        facts.volumes.iter().map(|held| amount_bytes(&held.input) + amount_bytes(&held.output) + NUMBERS);
    let posted = |posting: &Posting| {
        let names = posting.source.as_str().len() + posting.destination.as_str().len();
        // An amount stands in the posting and can make each of its ends' totals as long.
        names + posting.asset.as_str().len() + 3 * amount_bytes(&posting.amount) + NUMBERS
    };
    let of_account = |(account, metadata): (&AccountAddress, &Metadata)| {
        account.as_str().len() + metadata.text_bytes() + metadata.len() * NUMBERS + NUMBERS
    };
    let defaults = defaults.iter().map(|(account, metadata)| of_account((account, metadata)));
    let bytes = match command {
        Command::CreateTransaction(create) => {
            let postings: usize = match &create.movement {
                Movement::Postings(postings) => postings.iter().map(posted).sum(),
                Movement::Script(_) | Movement::Template { .. } => 0,
            };
            let metadata = create.account_metadata.iter().map(of_account);
            postings
                + metadata.sum::<usize>()
                + create.metadata.text_bytes()
                + create.metadata.len() * NUMBERS
        }
        Command::RevertTransaction(_) => {
            facts.transaction.iter().flat_map(|original| &original.postings).map(posted).sum()
        }
        // Their sizes have limits of their own.
        Command::SetMetadata { .. } | Command::DeleteMetadata { .. } | Command::InsertSchema(_) => 0,
    };
    bytes + held.sum::<usize>() + defaults.sum::<usize>() > ENTRY_BYTES_MAX
}

/// Whether a command is like nearly all, which need no look at how long each name is.
fn is_surely_small(command: &Command, facts: &Facts) -> bool {
    let Command::CreateTransaction(create) = command else { return false };
    let Movement::Postings(postings) = &create.movement else { return false };
    let is_short = |volumes: &Volumes| volumes.input.to_u64().is_some() && volumes.output.to_u64().is_some();
    postings.len() <= 8
        && create.account_metadata.is_empty()
        && create.metadata.len() <= 64
        && create.metadata.text_bytes() <= METADATA_BYTES_MAX
        && postings.iter().all(|posting| posting.amount.to_u64().is_some())
        && facts.volumes.iter().all(is_short)
}

/// Checks that surely small entries are small: with names as long as they may be.
const _: () = assert!(
    8 * (3 * ADDRESS_BYTES_MAX + 16 * NUMBERS) + METADATA_BYTES_MAX + 64 * NUMBERS <= ENTRY_BYTES_MAX
);

fn amount_bytes(amount: &Amount) -> usize {
    // 19 digits take 10 bytes; larger ones are rare enough to be measured.
    if amount.to_u64().is_some() { 10 } else { amount.to_le_bytes().len() * 8 / 7 + 1 }
}
