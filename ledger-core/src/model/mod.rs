//! A reference model of ledgers, against which tests compare a store.
//!
//! The model stores only the logs and answers every question by walking them from the start. It is slow and
//! plain, and shares no code with the rules that it checks ([`crate::needs`], [`crate::decide`],
//! [`crate::apply`]). It does share the value types, the evaluation of filters, the script engine, and the
//! charts of accounts.

mod schemas;
mod subjects;

use std::collections::{BTreeMap, BTreeSet};

use self::subjects::{BookReads, Row, selects};
use crate::command::{
    Command, CreateTransaction, Movement, Operation, Overdraft, RevertDate, RevertTransaction, Target,
};
use crate::filter::Filter;
use crate::ledger::{LedgerOptions, Switch};
use crate::limits::{METADATA_BYTES_MAX, POSTINGS_MAX};
use crate::log::{Idempotency, LogEntry, LogId, LogPayload};
use crate::rejection::Rejection;
use crate::schema::{Enforcement, version_of};
use crate::settle::settle;
use ledger_numscript::{Profile, Program, Scratch};
use ledger_values::{
    AccountAddress, Asset, Balance, HoldingVolumes, LedgerName, Metadata, Posting, Postings, SchemaVersion,
    Timestamp, Transaction, TransactionId, Volumes,
};

/// Several ledgers, each stored as its log.
#[derive(Clone, Debug, Default)]
pub struct Model {
    ledgers: BTreeMap<LedgerName, Book>,
    enforcement: Enforcement,
}

/// A state of a [`Model`] to return to: the length of each log.
#[derive(Clone, Debug)]
pub struct ModelMoment(BTreeMap<LedgerName, usize>);

/// A command with the options of its request.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// The command to execute.
    pub command: &'a Command,
    /// The caller's idempotency key.
    pub idempotency: Option<&'a Idempotency>,
    /// The version of the ledger's schema that checks the command.
    pub schema_version: Option<&'a SchemaVersion>,
    /// Whether this is the first of several commands with one key. Then the requests are the same only if
    /// their hashes are equal. Otherwise the key alone identifies a request whose hash is unknown or comes
    /// from another server.
    pub several: bool,
}

#[derive(Clone, Debug, Default)]
struct Book {
    options: LedgerOptions,
    log: Vec<LogEntry>,
    /// Number of imported entries at the beginning of the log.
    imported: usize,
}

/// The result of an accepted command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The log entry. For a dry run, the entry that would have been recorded.
    pub entry: LogEntry,
    /// Whether the idempotency key was used before, so that this repeats the first answer.
    pub replayed: bool,
    /// The refusal that strict enforcement of the schema would have returned.
    pub violation: Option<Rejection>,
}

/// Time axis of a move: the date that decides whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveDate {
    /// The effective date of the transaction, which the caller chose.
    Effective,
    /// The insertion date of the transaction.
    Insertion,
}

/// An interval of dates that selects moves. Both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The earliest date, or `None` without a limit.
    pub start: Option<Timestamp>,
    /// The latest date, or `None` without a limit.
    pub end: Option<Timestamp>,
    /// The date of a move that must be in the interval.
    pub by: MoveDate,
}

impl Window {
    /// The window that selects every move.
    pub const ALL: Self = Self { start: None, end: None, by: MoveDate::Effective };

    /// Makes the window of moves up to a date, or of all moves.
    pub const fn until(end: Option<Timestamp>, by: MoveDate) -> Self {
        Self { start: None, end, by }
    }

    fn holds(&self, effective: Timestamp, insertion: Timestamp) -> bool {
        let date = match self.by {
            MoveDate::Effective => effective,
            MoveDate::Insertion => insertion,
        };
        self.start.is_none_or(|start| start <= date) && self.end.is_none_or(|end| date <= end)
    }
}

/// An account now or at a date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAccount {
    /// The address of the account.
    pub address: AccountAddress,
    /// The metadata at the date.
    pub metadata: Metadata,
    /// The earliest effective date of the account's transactions, or date of a metadata write. It is the same
    /// for every date of the question.
    pub first_usage: Timestamp,
    /// The insertion date of the account.
    pub insertion_date: Timestamp,
    /// Date of the last metadata write, or of the last move of the first usage. Initially the insertion date.
    pub updated_at: Timestamp,
    /// Volumes of the moves recorded up to the date.
    pub volumes: BTreeMap<Asset, Volumes>,
    /// Volumes of the moves with an effective date up to the date.
    pub effective_volumes: BTreeMap<Asset, Volumes>,
}

type Totals = BTreeMap<(AccountAddress, Asset), Volumes>;

impl Model {
    /// Makes a model without ledgers that treats violations of a schema in this way.
    pub fn enforcing(enforcement: Enforcement) -> Self {
        Self { ledgers: BTreeMap::new(), enforcement }
    }

    /// Returns the current state, to return to it later.
    pub fn moment(&self) -> ModelMoment {
        ModelMoment(self.ledgers.iter().map(|(name, book)| (name.clone(), book.log.len())).collect())
    }

    /// Returns to a state and drops everything since.
    pub fn go_back(&mut self, to: &ModelMoment) {
        self.ledgers.retain(|name, _| to.0.contains_key(name));
        for (name, book) in &mut self.ledgers {
            book.log.truncate(to.0[name]);
            book.imported = book.imported.min(book.log.len());
        }
    }

    /// Creates a ledger. Returns `false` if the name is in use.
    pub fn create(&mut self, name: &LedgerName, options: LedgerOptions) -> bool {
        let fresh = !self.ledgers.contains_key(name);
        if fresh {
            self.ledgers.insert(name.clone(), Book { options, log: Vec::new(), imported: 0 });
        }
        fresh
    }

    /// Removes a ledger with everything in it. Its name becomes free.
    pub fn remove(&mut self, name: &LedgerName) {
        self.ledgers.remove(name);
    }

    /// Lists the names of the ledgers in ascending order.
    pub fn ledgers(&self) -> impl Iterator<Item = &LedgerName> {
        self.ledgers.keys()
    }

    /// Appends an entry that another server recorded, without checks. All earlier entries of the log must be
    /// imported too. Effective volumes are computed anew.
    pub fn import(&mut self, ledger: &LedgerName, mut entry: LogEntry) {
        if let LogPayload::NewTransaction { transaction, effective_volumes, .. }
        | LogPayload::RevertedTransaction { transaction, effective_volumes, .. } = &mut entry.payload
        {
            let book = self.ledgers.get(ledger);
            *effective_volumes = book.and_then(|book| book.effective_at_commit(transaction));
        }
        self.record(ledger, entry);
        let book = self.ledgers.get_mut(ledger).expect("an entry was recorded in it");
        book.imported = book.log.len();
    }

    /// Appends an entry as it is, without checks.
    pub fn record(&mut self, ledger: &LedgerName, entry: LogEntry) {
        self.ledgers.entry(ledger.clone()).or_default().log.push(entry);
    }

    /// Executes a command at the time `now`. The first entry of an unknown ledger creates it with default
    /// options.
    ///
    /// # Errors
    ///
    /// The first [`Rejection`] in the order of its variants. A refused command changes nothing.
    pub fn execute(
        &mut self,
        ledger: &LedgerName,
        command: &Command,
        idempotency: Option<&Idempotency>,
        dry_run: bool,
        now: Timestamp,
    ) -> Result<ModelAnswer, Rejection> {
        let request = ModelRequest { command, idempotency, schema_version: None, several: false };
        self.execute_request(ledger, request, dry_run, now)
    }

    /// Executes a request. See [`Model::execute`].
    ///
    /// # Errors
    ///
    /// The same errors as [`Model::execute`].
    pub fn execute_request(
        &mut self,
        ledger: &LedgerName,
        request: ModelRequest<'_>,
        dry_run: bool,
        now: Timestamp,
    ) -> Result<ModelAnswer, Rejection> {
        let unwritten = Book::default();
        let book = self.ledgers.get(ledger).unwrap_or(&unwritten);
        if let Some(given) = request.idempotency
            && let Some((at, first)) = book.entry_of_key(given)
        {
            let stored = &first.idempotency.as_ref().expect("it was found by its key").hash;
            let operation = match &first.payload {
                LogPayload::NewTransaction { .. } => Operation::Create,
                LogPayload::RevertedTransaction { reverted, .. } => Operation::Revert(reverted.get()),
                LogPayload::SetMetadata { target, .. } => Operation::SetMetadata(target.transaction()),
                LogPayload::DeleteMetadata { target, .. } => Operation::DeleteMetadata(target.transaction()),
                LogPayload::InsertedSchema { .. } => Operation::InsertSchema,
            };
            // Another server computes other hashes, so that a difference means nothing.
            let unknown = at < book.imported || stored.is_empty() || given.hash.is_empty();
            let same = if request.several {
                *stored == given.hash && !stored.is_empty()
            } else {
                *stored == given.hash || unknown
            };
            if operation != Operation::of(request.command) || !same {
                return Err(Rejection::IdempotencyMismatch {
                    key: given.key.as_str().into(),
                    computed: given.hash.clone(),
                    stored: stored.clone(),
                });
            }
            return Ok(ModelAnswer { entry: first.clone(), replayed: true, violation: None });
        }
        let date = book.log.last().map_or(now, |last| now.max(last.date));
        let named = book.named(request.schema_version)?;
        let (command, unnamed) = book.under(request.command, named.as_ref(), self.enforcement)?;
        let payload = book.payload(&command, date)?;
        let outside = schemas::outside(&payload, named.as_ref(), self.enforcement)?;
        let entry = LogEntry {
            id: LogId::new(book.log.last().map_or(book.options.first_id.get(), |last| last.id.get() + 1)),
            date,
            idempotency: request.idempotency.cloned(),
            request_hash: None,
            schema_version: request.schema_version.map(|version| version.as_str().into()),
            defaults: book.defaults(&payload, named.as_ref()),
            payload,
        };
        if !dry_run {
            self.record(ledger, entry.clone());
        }
        Ok(ModelAnswer { entry, replayed: false, violation: unnamed.or(outside) })
    }

    /// Returns the log, oldest entry first. Empty if there is no such ledger.
    pub fn log(&self, ledger: &LedgerName) -> &[LogEntry] {
        self.ledgers.get(ledger).map_or(&[], |book| &book.log)
    }

    /// Lists the log entries that a filter selects, newest first.
    pub fn logs(&self, ledger: &LedgerName, filter: &Filter) -> Vec<LogEntry> {
        self.log(ledger).iter().rev().filter(|entry| selects(filter, *entry)).cloned().collect()
    }

    /// Returns the number of transactions and the number of accounts.
    pub fn stats(&self, ledger: &LedgerName) -> (usize, usize) {
        self.ledgers.get(ledger).map_or((0, 0), |book| (book.movements().count(), book.addresses().len()))
    }

    /// Returns an account at a date, or `None` if it was not in use at that date.
    pub fn account(
        &self,
        ledger: &LedgerName,
        address: &AccountAddress,
        pit: Option<Timestamp>,
    ) -> Option<ModelAccount> {
        let account = self.ledgers.get(ledger)?.account(address, pit)?;
        pit.is_none_or(|pit| account.first_usage <= pit).then_some(account)
    }

    /// Accounts that a filter selects as of a date, ascending by address. A condition on a balance is about
    /// the moves dated by then, whenever they were recorded.
    pub fn accounts(
        &self,
        ledger: &LedgerName,
        filter: &Filter,
        pit: Option<Timestamp>,
    ) -> Vec<ModelAccount> {
        let Some(book) = self.ledgers.get(ledger) else { return Vec::new() };
        let all = book.addresses();
        all.iter()
            .filter_map(|address| self.account(ledger, address, pit))
            .filter(|account| selects(filter, account))
            .collect()
    }

    /// Returns a transaction at a date, or `None` if it has a later date or does not exist.
    pub fn transaction(
        &self,
        ledger: &LedgerName,
        id: TransactionId,
        pit: Option<Timestamp>,
    ) -> Option<Transaction> {
        let transaction = self.ledgers.get(ledger)?.transaction(id, pit)?;
        pit.is_none_or(|pit| transaction.timestamp <= pit).then_some(transaction)
    }

    /// Lists the transactions that a filter selects at a date, by descending id.
    pub fn transactions(
        &self,
        ledger: &LedgerName,
        filter: &Filter,
        pit: Option<Timestamp>,
    ) -> Vec<Transaction> {
        let Some(book) = self.ledgers.get(ledger) else { return Vec::new() };
        let mut found: Vec<_> = book
            .movements()
            .filter_map(|(_, recorded)| self.transaction(ledger, recorded.id, pit))
            .filter(|transaction| selects(filter, transaction))
            .collect();
        found.sort_by_key(|transaction| std::cmp::Reverse(transaction.id));
        found
    }

    /// Returns the current totals of each holding that a transaction touches, over all transactions up to and
    /// including it in effective order. Sorted by account and asset.
    pub fn post_commit_effective_volumes(
        &self,
        ledger: &LedgerName,
        id: TransactionId,
    ) -> Option<Vec<HoldingVolumes>> {
        let book = self.ledgers.get(ledger)?;
        let (_, transaction) = book.movements().find(|(_, transaction)| transaction.id == id)?;
        Some(book.effective_after(transaction))
    }

    /// Returns the balance of each asset, summed over the accounts that a filter selects at a date.
    pub fn aggregated_balances(
        &self,
        ledger: &LedgerName,
        filter: &Filter,
        pit: Option<Timestamp>,
        by: MoveDate,
    ) -> BTreeMap<Asset, Balance> {
        let mut sums = BTreeMap::new();
        for row in self.volumes(ledger, filter, Window::until(pit, by), None) {
            *sums.entry(row.asset).or_insert(Balance::ZERO) += &row.volumes.balance();
        }
        sums
    }

    /// Sums the moves in a window: one row for each account and asset with at least one move. A filter
    /// selects rows, and then rows with equal first `group_by` segments of the address are joined. Sorted;
    /// metadata is that of the end of the window.
    pub fn volumes(
        &self,
        ledger: &LedgerName,
        filter: &Filter,
        window: Window,
        group_by: Option<usize>,
    ) -> Vec<HoldingVolumes> {
        let Some(book) = self.ledgers.get(ledger) else { return Vec::new() };
        let mut grouped = Totals::new();
        for ((address, asset), volumes) in
            book.totals(|transaction, date| window.holds(transaction.timestamp, date))
        {
            let account = book.described(&address, window.end).expect("an account with moves exists");
            let row = HoldingVolumes { account: address.clone(), asset: asset.clone(), volumes };
            if !selects(filter, &Row { row: &row, account: &account }) {
                continue;
            }
            let key = match group_by {
                None | Some(0) => address,
                Some(segments) => {
                    let first: Vec<_> = address.segments().take(segments).collect();
                    AccountAddress::parse(&first.join(":")).expect("whole segments are an address")
                }
            };
            let sum = grouped.entry((key, asset)).or_default();
            sum.input += &row.volumes.input;
            sum.output += &row.volumes.output;
        }
        rows(grouped)
    }
}

impl Book {
    fn entry_of_key(&self, given: &Idempotency) -> Option<(usize, &LogEntry)> {
        let has_key = |entry: &LogEntry| entry.idempotency.as_ref().is_some_and(|have| have.key == given.key);
        self.log.iter().enumerate().find(|(_, entry)| has_key(entry))
    }

    /// Iterates over all transactions with their insertion dates, oldest first.
    fn movements(&self) -> impl Iterator<Item = (Timestamp, &Transaction)> {
        self.log.iter().filter_map(|entry| match &entry.payload {
            LogPayload::NewTransaction { transaction, .. }
            | LogPayload::RevertedTransaction { transaction, .. } => Some((entry.date, &**transaction)),
            _ => None,
        })
    }

    /// Sums the postings of the transactions for which `counts` returns true. Its arguments are a transaction
    /// and the insertion date.
    fn totals(&self, counts: impl Fn(&Transaction, Timestamp) -> bool) -> Totals {
        let mut totals = Totals::new();
        for (date, transaction) in self.movements() {
            if counts(transaction, date) {
                add_up(&mut totals, &transaction.postings);
            }
        }
        totals
    }

    fn addresses(&self) -> BTreeSet<AccountAddress> {
        let mut all = BTreeSet::new();
        for entry in &self.log {
            match &entry.payload {
                LogPayload::NewTransaction { account_metadata, .. } => {
                    all.extend(account_metadata.iter().map(|(address, _)| address.clone()));
                }
                LogPayload::SetMetadata { target: Target::Account(address), .. } => {
                    all.insert(address.clone());
                }
                _ => {}
            }
        }
        for (_, transaction) in self.movements() {
            for posting in &transaction.postings {
                all.insert(posting.source.clone());
                all.insert(posting.destination.clone());
            }
        }
        all
    }

    fn account(&self, address: &AccountAddress, pit: Option<Timestamp>) -> Option<ModelAccount> {
        let mut account = self.described(address, pit)?;
        let held = |by| {
            let window = Window::until(pit, by);
            let counts = |transaction: &Transaction, date| {
                touches(transaction, address) && window.holds(transaction.timestamp, date)
            };
            self.totals(counts)
                .into_iter()
                .filter(|((have, _), _)| have == address)
                .map(|((_, asset), volumes)| (asset, volumes))
                .collect()
        };
        account.volumes = held(MoveDate::Insertion);
        account.effective_volumes = held(MoveDate::Effective);
        Some(account)
    }

    /// Returns an account without its volumes. A ledger without metadata history shows the current metadata
    /// and the date of its last write.
    fn described(&self, address: &AccountAddress, pit: Option<Timestamp>) -> Option<ModelAccount> {
        let known_until = pit.filter(|_| self.options.features.account_metadata_history == Switch::On);
        let mut found: Option<ModelAccount> = None;
        for entry in &self.log {
            let visible = known_until.is_none_or(|until| entry.date <= until);
            let (used, written) = match &entry.payload {
                LogPayload::NewTransaction { transaction, account_metadata, .. } => {
                    let written = account_metadata.iter().find(|(have, _)| have == address);
                    let moved = touches(transaction, address);
                    ((moved || written.is_some()).then_some(transaction.timestamp), written.map(|(_, m)| m))
                }
                LogPayload::RevertedTransaction { transaction, .. } => {
                    (touches(transaction, address).then_some(transaction.timestamp), None)
                }
                LogPayload::SetMetadata { target: Target::Account(have), metadata } if have == address => {
                    (Some(entry.date), Some(metadata))
                }
                LogPayload::DeleteMetadata { target: Target::Account(have), key } if have == address => {
                    // A removal does not bring an account into existence.
                    if visible
                        && let Some(account) = &mut found
                        && account.metadata.remove(key).is_some()
                    {
                        account.updated_at = entry.date;
                    }
                    continue;
                }
                _ => continue,
            };
            let Some(used) = used else { continue };
            let account = found.get_or_insert_with(|| ModelAccount {
                address: address.clone(),
                metadata: Metadata::EMPTY,
                first_usage: used,
                insertion_date: entry.date,
                updated_at: entry.date,
                volumes: BTreeMap::new(),
                effective_volumes: BTreeMap::new(),
            });
            if used < account.first_usage {
                account.first_usage = used;
                if visible {
                    account.updated_at = entry.date;
                }
            }
            if visible && let Some((_, given)) = entry.defaults.iter().find(|(have, _)| have == address) {
                account.metadata.merge(given);
            }
            if visible && let Some(metadata) = written {
                // To write what is there already is no update.
                if metadata.iter().any(|(key, value)| account.metadata.get(key) != Some(value)) {
                    account.updated_at = entry.date;
                }
                account.metadata.merge(metadata);
            }
        }
        found
    }

    /// Returns a transaction. A ledger without metadata history shows the current metadata.
    fn transaction(&self, id: TransactionId, pit: Option<Timestamp>) -> Option<Transaction> {
        let known_until = pit.filter(|_| self.options.features.transaction_metadata_history == Switch::On);
        let (_, recorded) = self.movements().find(|(_, transaction)| transaction.id == id)?;
        let mut transaction = recorded.clone();
        let mut present = recorded.metadata.clone();
        for entry in &self.log {
            let counts = pit.is_none_or(|pit| entry.date <= pit);
            let shows = known_until.is_none_or(|until| entry.date <= until);
            match &entry.payload {
                LogPayload::RevertedTransaction { reverted, .. } if *reverted == id => {
                    if counts {
                        transaction.reverted_at = Some(entry.date);
                    }
                }
                LogPayload::SetMetadata { target: Target::Transaction(have), metadata } if *have == id => {
                    if shows {
                        transaction.metadata.merge(metadata);
                    }
                    let is_there = |(key, value)| present.get(key) == Some(value);
                    if metadata.iter().all(is_there) {
                        continue;
                    }
                    present.merge(metadata);
                }
                LogPayload::DeleteMetadata { target: Target::Transaction(have), key } if *have == id => {
                    if shows {
                        transaction.metadata.remove(key);
                    }
                    if present.remove(key).is_none() {
                        continue;
                    }
                }
                _ => continue,
            }
            // Of now also at a point in time, as other servers of this API were seen to show it.
            transaction.updated_at = entry.date;
        }
        Some(transaction)
    }

    fn effective_after(&self, last: &Transaction) -> Vec<HoldingVolumes> {
        let mut totals = self
            .totals(|transaction, _| (transaction.timestamp, transaction.id) <= (last.timestamp, last.id));
        totals.retain(|(account, asset), _| holds(last, account, asset));
        rows(totals)
    }

    /// Makes the payload of a command's log entry, or refuses the command.
    fn payload(&self, command: &Command, date: Timestamp) -> Result<LogPayload, Rejection> {
        match command {
            Command::CreateTransaction(create) => self.create(create, date),
            Command::RevertTransaction(revert) => self.revert(revert, date),
            Command::SetMetadata { target, metadata } => {
                small_enough(metadata)?;
                if let Target::Transaction(id) = target {
                    self.transaction(*id, None).ok_or(Rejection::TransactionNotFound { id: *id })?;
                }
                Ok(LogPayload::SetMetadata { target: target.clone(), metadata: metadata.clone() })
            }
            Command::DeleteMetadata { target, key } => {
                if let Target::Transaction(id) = target {
                    let found = self.transaction(*id, None);
                    let found = found.ok_or(Rejection::TransactionNotFound { id: *id })?;
                    if found.metadata.get(key).is_none() {
                        return Err(Rejection::MetadataKeyNotFound { key: key.clone() });
                    }
                }
                Ok(LogPayload::DeleteMetadata { target: target.clone(), key: key.clone() })
            }
            Command::InsertSchema(insert) => {
                let exists = self.log.iter().any(|entry| match &entry.payload {
                    LogPayload::InsertedSchema { schema } => {
                        version_of(schema).as_ref() == Some(&insert.version)
                    }
                    _ => false,
                });
                if exists {
                    return Err(Rejection::SchemaExists { version: insert.version.clone() });
                }
                Ok(LogPayload::InsertedSchema { schema: insert.schema.text(&insert.version, date) })
            }
        }
    }

    /// Runs a script and records its result like postings. The script engine is shared with the rules.
    fn script(&self, create: &CreateTransaction, date: Timestamp) -> Result<LogPayload, Rejection> {
        let mut create = create.clone();
        let Movement::Script(script) = &create.movement else {
            unreachable!("only scripts come here");
        };
        let program = Program::compile(&script.plain, Profile::Default);
        match settle(&mut create, &program, &mut Scratch::default(), &mut BookReads(self)) {
            Ok(settled) => settled?,
            Err(impossible) => match impossible {},
        }
        self.create(&create, date)
    }

    fn create(&self, create: &CreateTransaction, date: Timestamp) -> Result<LogPayload, Rejection> {
        let postings = match &create.movement {
            Movement::Postings(postings) => postings,
            Movement::Script(_) => return self.script(create, date),
            Movement::Template { .. } => unreachable!("a template was put in its place"),
        };
        if postings.len() > POSTINGS_MAX {
            return Err(Rejection::TooManyPostings { postings: postings.len() });
        }
        small_enough(&create.metadata)?;
        for metadata in create.account_metadata.values() {
            small_enough(metadata)?;
        }
        let mut totals = self.totals(|_, _| true);
        for posting in postings {
            let key = (posting.source.clone(), posting.asset.clone());
            let held = totals.get(&key).cloned().unwrap_or_default();
            let left = Balance::of(&held.input, &(held.output + &posting.amount));
            let needs_funds = create.overdraft == Overdraft::Refuse
                && posting.source.as_str() != "world"
                && !posting.amount.is_zero();
            if needs_funds && left.is_negative() {
                return Err(lacking(posting));
            }
            add_up(&mut totals, std::slice::from_ref(posting));
        }
        if postings.is_empty() {
            return Err(Rejection::NoPostings);
        }
        if let Some(reference) = &create.reference
            && self.movements().any(|(_, transaction)| transaction.reference.as_ref() == Some(reference))
        {
            return Err(Rejection::ReferenceTaken { reference: reference.clone() });
        }
        let mut transaction = self.next(postings.clone(), totals, create.timestamp.unwrap_or(date), date);
        transaction.metadata = create.metadata.clone();
        transaction.reference.clone_from(&create.reference);
        transaction.template = create.template.as_deref().map(Into::into);
        Ok(LogPayload::NewTransaction {
            effective_volumes: self.effective_at_commit(&transaction),
            transaction: Box::new(transaction),
            account_metadata: create.account_metadata.clone().into_iter().collect(),
        })
    }

    fn revert(&self, revert: &RevertTransaction, date: Timestamp) -> Result<LogPayload, Rejection> {
        small_enough(&revert.metadata)?;
        let original = self.transaction(revert.id, None);
        let original = original.ok_or(Rejection::TransactionNotFound { id: revert.id })?;
        if original.reverted_at.is_some() {
            return Err(Rejection::AlreadyReverted { id: revert.id });
        }
        let mut postings = Postings::new();
        for posting in &original.postings {
            let Posting { source, destination, amount, asset } = posting.clone();
            postings.insert(0, Posting { source: destination, destination: source, amount, asset });
        }
        let mut after = self.totals(|_, _| true);
        add_up(&mut after, &postings);
        for posting in &postings {
            let left = after[&(posting.source.clone(), posting.asset.clone())].balance();
            let is_tested = revert.overdraft == Overdraft::Refuse && posting.source.as_str() != "world";
            if is_tested && left.is_negative() {
                return Err(lacking(posting));
            }
        }
        let timestamp = match revert.dated {
            RevertDate::Now => date,
            RevertDate::OfOriginal => original.timestamp,
        };
        let mut transaction = self.next(postings, after, timestamp, date);
        transaction.metadata = revert.metadata.clone();
        transaction.metadata.insert_text("com.formance.spec/state/reverts", &revert.id.get().to_string());
        Ok(LogPayload::RevertedTransaction {
            reverted: revert.id,
            effective_volumes: self.effective_at_commit(&transaction),
            transaction: Box::new(transaction),
        })
    }

    /// Makes the next transaction, after which the totals of the ledger are `totals`.
    fn next(&self, postings: Postings, totals: Totals, timestamp: Timestamp, date: Timestamp) -> Transaction {
        let last = self.movements().last().map(|(_, transaction)| transaction.id.get());
        let mut transaction = Transaction {
            id: TransactionId::new(last.map_or(self.options.first_id.get(), |last| last + 1)),
            postings,
            metadata: Metadata::EMPTY,
            timestamp,
            reference: None,
            template: None,
            inserted_at: date,
            updated_at: date,
            reverted_at: None,
            post_commit_volumes: Vec::new(),
        };
        let mut touched = totals;
        touched.retain(|(account, asset), _| holds(&transaction, account, asset));
        transaction.post_commit_volumes = rows(touched);
        transaction
    }

    /// Returns the effective volumes right after `transaction`, which is not in the log yet. Returns `None`
    /// if they equal the volumes in order of insertion.
    fn effective_at_commit(&self, transaction: &Transaction) -> Option<Vec<HoldingVolumes>> {
        let mut totals = self.totals(|before, _| before.timestamp <= transaction.timestamp);
        add_up(&mut totals, &transaction.postings);
        totals.retain(|(account, asset), _| holds(transaction, account, asset));
        let effective = rows(totals);
        let kept = self.options.features.effective_volumes == Switch::On;
        (kept && effective != transaction.post_commit_volumes).then_some(effective)
    }
}

fn add_up(totals: &mut Totals, postings: &[Posting]) {
    for posting in postings {
        let source = (posting.source.clone(), posting.asset.clone());
        totals.entry(source).or_default().output += &posting.amount;
        let destination = (posting.destination.clone(), posting.asset.clone());
        totals.entry(destination).or_default().input += &posting.amount;
    }
}

fn rows(totals: Totals) -> Vec<HoldingVolumes> {
    totals.into_iter().map(|((account, asset), volumes)| HoldingVolumes { account, asset, volumes }).collect()
}

fn touches(transaction: &Transaction, address: &AccountAddress) -> bool {
    transaction.postings.iter().any(|posting| posting.source == *address || posting.destination == *address)
}

fn holds(transaction: &Transaction, account: &AccountAddress, asset: &Asset) -> bool {
    let of_asset = |posting: &&Posting| posting.asset == *asset;
    transaction
        .postings
        .iter()
        .filter(of_asset)
        .any(|posting| posting.source == *account || posting.destination == *account)
}

fn lacking(posting: &Posting) -> Rejection {
    Rejection::InsufficientFunds { account: posting.source.clone(), asset: posting.asset.clone() }
}

fn small_enough(metadata: &Metadata) -> Result<(), Rejection> {
    let bytes = metadata.iter().map(|(key, value)| key.len() + value.text().len()).sum();
    if bytes > METADATA_BYTES_MAX { Err(Rejection::MetadataTooLarge { bytes }) } else { Ok(()) }
}
