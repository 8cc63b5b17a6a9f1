//! A reference model of ledgers, by which a store is judged.
//!
//! It keeps nothing but the logs and answers every question by walking them from the start: slow, plain, and
//! without a line in common with the rules it judges ([`crate::needs`], [`crate::decide`], [`crate::apply`]).
//! It does share the value types, the one evaluator of filters, the engine of scripts, and what a chart says of an
//! address.

mod schemas;
mod subjects;

use std::collections::{BTreeMap, BTreeSet};

use self::subjects::{BookReads, Row, selects};
use crate::amount::Balance;
use crate::command::{
    Command, CreateTransaction, Movement, Operation, Overdraft, RevertDate, RevertTransaction, Target,
};
use crate::filter::Filter;
use crate::ledger::{LedgerOptions, Switch};
use crate::limits::{METADATA_BYTES_MAX, POSTINGS_MAX};
use crate::log::{Idempotency, LogEntry, LogId, LogPayload};
use crate::metadata::Metadata;
use crate::names::{AccountAddress, Asset, LedgerName, SchemaVersion};
use crate::rejection::Rejection;
use crate::schema::{Enforcement, version_of};
use crate::script::{Profile, Program, Scratch, settle};
use crate::timestamp::Timestamp;
use crate::transaction::{Posting, Postings, Transaction, TransactionId};
use crate::volumes::{HoldingVolumes, Volumes};

/// Several ledgers, each nothing but its log.
#[derive(Clone, Debug, Default)]
pub struct Model {
    ledgers: BTreeMap<LedgerName, Book>,
    enforcement: Enforcement,
}

/// A moment of a [`Model`]: how long each log was.
#[derive(Clone, Debug)]
pub struct ModelMoment(BTreeMap<LedgerName, usize>);

/// A command with what it came with.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// What to do.
    pub command: &'a Command,
    /// The caller's key.
    pub idempotency: Option<&'a Idempotency>,
    /// The version of the ledger's schema by which it is judged.
    pub schema_version: Option<&'a SchemaVersion>,
    /// Whether it is the first of several that share its key. Then only an equal hash tells that they are the same
    /// again; otherwise a hash that is not known, or another server's, is no reason to doubt.
    pub several: bool,
}

#[derive(Clone, Debug, Default)]
struct Book {
    options: LedgerOptions,
    log: Vec<LogEntry>,
    /// So many of its first entries were imported.
    imported: usize,
}

/// What an accepted command yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The entry of the log; of a dry run the one that would have been.
    pub entry: LogEntry,
    /// Whether the idempotency key was used before, so that this is the first answer again.
    pub replayed: bool,
    /// What a stricter enforcement of the ledger's schema would have refused it for.
    pub violation: Option<Rejection>,
}

/// Which date of a move counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveDate {
    /// The date of its transaction, which the caller chose.
    Effective,
    /// When it was recorded.
    Insertion,
}

/// Which moves count: those in an interval, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The earliest; `None` is without bound.
    pub start: Option<Timestamp>,
    /// The latest; `None` is without bound.
    pub end: Option<Timestamp>,
    /// By which date.
    pub by: MoveDate,
}

impl Window {
    /// Every move.
    pub const ALL: Self = Self { start: None, end: None, by: MoveDate::Effective };

    /// Moves up to a date, or all.
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

/// An account as of a date, or now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAccount {
    /// Its address.
    pub address: AccountAddress,
    /// Its metadata then.
    pub metadata: Metadata,
    /// The earliest effective date of its transactions, or date of a metadata write. Does not depend on
    /// the date that is asked about.
    pub first_usage: Timestamp,
    /// When it was first recorded.
    pub insertion_date: Timestamp,
    /// When its metadata was last written or its first usage last moved; at first the insertion date.
    pub updated_at: Timestamp,
    /// Totals of the moves recorded by then.
    pub volumes: BTreeMap<Asset, Volumes>,
    /// Totals of the moves dated by then.
    pub effective_volumes: BTreeMap<Asset, Volumes>,
}

type Totals = BTreeMap<(AccountAddress, Asset), Volumes>;

impl Model {
    /// Without ledgers, and with this to do about commands that break the rules of a schema.
    pub fn enforcing(enforcement: Enforcement) -> Self {
        Self { ledgers: BTreeMap::new(), enforcement }
    }

    /// This moment, to go back to.
    pub fn moment(&self) -> ModelMoment {
        ModelMoment(self.ledgers.iter().map(|(name, book)| (name.clone(), book.log.len())).collect())
    }

    /// Takes back what happened since a moment.
    pub fn go_back(&mut self, to: &ModelMoment) {
        self.ledgers.retain(|name, _| to.0.contains_key(name));
        for (name, book) in &mut self.ledgers {
            book.log.truncate(to.0[name]);
            book.imported = book.imported.min(book.log.len());
        }
    }

    /// Creates a ledger; `false` if there is one of this name.
    pub fn create(&mut self, name: &LedgerName, options: LedgerOptions) -> bool {
        let fresh = !self.ledgers.contains_key(name);
        if fresh {
            self.ledgers.insert(name.clone(), Book { options, log: Vec::new(), imported: 0 });
        }
        fresh
    }

    /// Removes a ledger: its name is free, and nothing of it is left.
    pub fn remove(&mut self, name: &LedgerName) {
        self.ledgers.remove(name);
    }

    /// Names of the ledgers, ascending.
    pub fn ledgers(&self) -> impl Iterator<Item = &LedgerName> {
        self.ledgers.keys()
    }

    /// Adds an entry that another server recorded to a log whose entries so far were imported too; nothing is tested.
    /// Effective volumes are this ledger's own.
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

    /// Adds an entry to a log as it is; nothing is tested.
    pub fn record(&mut self, ledger: &LedgerName, entry: LogEntry) {
        self.ledgers.entry(ledger.clone()).or_default().log.push(entry);
    }

    /// Executes a command at the time `now`. A ledger that does not exist is created with defaults by its
    /// first entry.
    ///
    /// # Errors
    ///
    /// The first [`Rejection`] in the order of its variants; then nothing has happened.
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

    /// Executes a request as [`Model::execute`] does a command.
    ///
    /// # Errors
    ///
    /// As [`Model::execute`].
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
            // Another server hashes otherwise: that two differ says nothing then.
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
            schema_version: request.schema_version.map(|version| version.as_str().into()),
            defaults: book.defaults(&payload, named.as_ref()),
            payload,
        };
        if !dry_run {
            self.record(ledger, entry.clone());
        }
        Ok(ModelAnswer { entry, replayed: false, violation: unnamed.or(outside) })
    }

    /// The log, oldest first; empty if there is no such ledger.
    pub fn log(&self, ledger: &LedgerName) -> &[LogEntry] {
        self.ledgers.get(ledger).map_or(&[], |book| &book.log)
    }

    /// Entries of the log that a filter selects, newest first.
    pub fn logs(&self, ledger: &LedgerName, filter: &Filter) -> Vec<LogEntry> {
        self.log(ledger).iter().rev().filter(|entry| selects(filter, *entry)).cloned().collect()
    }

    /// How many transactions and how many accounts there are.
    pub fn stats(&self, ledger: &LedgerName) -> (usize, usize) {
        self.ledgers.get(ledger).map_or((0, 0), |book| (book.movements().count(), book.addresses().len()))
    }

    /// An account as of a date; `None` if it was not yet used by then.
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
    /// the moves recorded by then.
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

    /// A transaction as of a date; `None` if it is dated later or does not exist.
    pub fn transaction(
        &self,
        ledger: &LedgerName,
        id: TransactionId,
        pit: Option<Timestamp>,
    ) -> Option<Transaction> {
        let transaction = self.ledgers.get(ledger)?.transaction(id, pit)?;
        pit.is_none_or(|pit| transaction.timestamp <= pit).then_some(transaction)
    }

    /// Transactions that a filter selects as of a date, descending by id.
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

    /// The totals of each holding that a transaction touches over all transactions before or at it in
    /// effective order, as they are now; ascending by account and asset.
    pub fn post_commit_effective_volumes(
        &self,
        ledger: &LedgerName,
        id: TransactionId,
    ) -> Option<Vec<HoldingVolumes>> {
        let book = self.ledgers.get(ledger)?;
        let (_, transaction) = book.movements().find(|(_, transaction)| transaction.id == id)?;
        Some(book.effective_after(transaction))
    }

    /// Balances per asset, summed over the accounts that a filter selects as of a date.
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

    /// What the moves in a window amount to: one row for each account and asset with at least one of them,
    /// selected by a filter, then joined by the first `group_by` segments of the address; ascending.
    /// Metadata is that of the window's end.
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

    /// Every transaction with the date of its entry, oldest first.
    fn movements(&self) -> impl Iterator<Item = (Timestamp, &Transaction)> {
        self.log.iter().filter_map(|entry| match &entry.payload {
            LogPayload::NewTransaction { transaction, .. }
            | LogPayload::RevertedTransaction { transaction, .. } => Some((entry.date, &**transaction)),
            _ => None,
        })
    }

    /// Sums the postings of the transactions that count, given with their insertion dates.
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

    /// An account without its volumes. A ledger that keeps no history of its metadata shows the present one, and when
    /// that was written.
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
                    if visible && let Some(account) = &mut found {
                        account.metadata.remove(key);
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
                account.metadata.merge(metadata);
                account.updated_at = entry.date;
            }
        }
        found
    }

    /// A transaction. A ledger that keeps no history of its metadata shows the present one.
    fn transaction(&self, id: TransactionId, pit: Option<Timestamp>) -> Option<Transaction> {
        let known_until = pit.filter(|_| self.options.features.transaction_metadata_history == Switch::On);
        let (_, recorded) = self.movements().find(|(_, transaction)| transaction.id == id)?;
        let mut transaction = recorded.clone();
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
                }
                LogPayload::DeleteMetadata { target: Target::Transaction(have), key } if *have == id => {
                    if shows {
                        transaction.metadata.remove(key);
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

    /// What the command is recorded as.
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

    /// Runs a script, and records what it says like postings. The script's engine is shared with the rules.
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
        let before = self.totals(|_, _| true);
        let mut after = before.clone();
        add_up(&mut after, &postings);
        for posting in &postings {
            let key = (posting.source.clone(), posting.asset.clone());
            let (was, is) = (before[&key].balance(), after[&key].balance());
            let lower = is.is_negative() && is < was;
            if revert.overdraft == Overdraft::Refuse && posting.source.as_str() != "world" && lower {
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

    /// The next transaction, after which the ledger's totals are `totals`.
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

    /// Effective volumes right after `transaction`, which is not in the log yet, if they tell anything new.
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
    let bytes = metadata.iter().map(|(key, value)| key.len() + value.as_shown().len()).sum();
    if bytes > METADATA_BYTES_MAX { Err(Rejection::MetadataTooLarge { bytes }) } else { Ok(()) }
}
