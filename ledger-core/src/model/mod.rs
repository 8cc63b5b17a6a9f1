//! A reference model of ledgers, against which tests compare a store.
//!
//! The model stores only the logs and answers every question by walking them from the start. It is slow and
//! plain, and shares no code with the rules that it checks ([`crate::needs`], [`crate::decide`]). It does share the value types, the evaluation of filters, the script engine, and the
//! charts of accounts.
//!
//! A question may name a point in time, `pit`. Transactions exist from their effective date, and accounts from their
//! first transaction or metadata. Metadata and reverts are those that were recorded up to `pit`, unless the ledger keeps
//! no history of metadata.

mod book;
mod payload;
mod question;
mod schemas;
mod subjects;

use std::collections::BTreeMap;

use self::book::{Book, Totals, rows};
pub use self::question::{ModelAccount, MoveDate, Window};
use self::subjects::{Row, selects};
use crate::admission::RequestOptions;
use crate::command::Command;
use crate::filter::Filter;
use crate::ledger::LedgerOptions;
use crate::log::{Idempotency, LogEntry, LogId, LogPayload};
use crate::prior_request::Operation;
use crate::rejection::Rejection;
use crate::schema::Enforcement;
use ledger_values::{
    AccountAddress, Asset, Balance, HoldingVolumes, LedgerName, Timestamp, Transaction, TransactionId,
};

/// Several ledgers, each stored as its log.
#[derive(Clone, Debug, Default)]
pub struct Model {
    ledgers: BTreeMap<LedgerName, Book>,
    enforcement: Enforcement,
}

/// A state of a [`Model`] to return to: the length of each log.
#[derive(Clone, Debug)]
pub struct ModelSavepoint(BTreeMap<LedgerName, usize>);

/// The result of an accepted command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The log entry. For a dry run, the entry that would have been recorded.
    pub entry: LogEntry,
    /// True if the idempotency key was used before, so that this answer repeats the first one.
    pub replayed: bool,
    /// The refusal that strict enforcement of the schema would have returned.
    pub violation: Option<Rejection>,
}

impl Model {
    /// Makes a model without ledgers that treats violations of a schema in this way.
    pub fn enforcing(enforcement: Enforcement) -> Self {
        Self { ledgers: BTreeMap::new(), enforcement }
    }

    /// Returns a savepoint of the current state.
    pub fn savepoint(&self) -> ModelSavepoint {
        ModelSavepoint(self.ledgers.iter().map(|(name, book)| (name.clone(), book.log.len())).collect())
    }

    /// Returns to a savepoint. Drops all entries and ledgers that were added since.
    pub fn return_to(&mut self, savepoint: &ModelSavepoint) {
        self.ledgers.retain(|name, _| savepoint.0.contains_key(name));
        for (name, book) in &mut self.ledgers {
            book.log.truncate(savepoint.0[name]);
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

    /// Removes a ledger with everything in it. Its name can be used again.
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
        let book = self.ledgers.get_mut(ledger).expect("importing an entry creates the ledger");
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
    /// If several rejections apply, the one whose variant [`Rejection`] lists first. A refused command changes
    /// nothing.
    pub fn execute(
        &mut self,
        ledger: &LedgerName,
        command: &Command,
        idempotency: Option<&Idempotency>,
        dry_run: bool,
        now: Timestamp,
    ) -> Result<ModelAnswer, Rejection> {
        let options = RequestOptions { idempotency, ..RequestOptions::default() };
        self.execute_request(ledger, command, options, dry_run, now)
    }

    /// Executes a command with the options of its request. See [`Model::execute`].
    ///
    /// # Errors
    ///
    /// The same errors as [`Model::execute`].
    pub fn execute_request(
        &mut self,
        ledger: &LedgerName,
        command: &Command,
        options: RequestOptions<'_>,
        dry_run: bool,
        now: Timestamp,
    ) -> Result<ModelAnswer, Rejection> {
        let empty = Book::default();
        let book = self.ledgers.get(ledger).unwrap_or(&empty);
        payload::check_counts(command, options.preconditions)?;
        if let Some(given) = options.idempotency
            && let Some((at, first)) = book.entry_of_key(given)
        {
            let stored =
                &first.idempotency.as_ref().expect("the entry was found by its idempotency key").hash;
            let operation = match &first.payload {
                LogPayload::NewTransaction { .. } => Operation::Create,
                LogPayload::RevertedTransaction { reverted, .. } => Operation::Revert(reverted.get()),
                LogPayload::SetMetadata { target, .. } => Operation::SetMetadata(target.transaction()),
                LogPayload::DeleteMetadata { target, .. } => Operation::DeleteMetadata(target.transaction()),
                LogPayload::InsertedSchema { .. } => Operation::InsertSchema,
            };
            // Other servers compute other hashes, so a difference proves nothing.
            let unknown = at < book.imported || stored.is_empty() || given.hash.is_empty();
            let same = if options.several {
                *stored == given.hash && !stored.is_empty()
            } else {
                *stored == given.hash || unknown
            };
            if operation != Operation::of(command) || !same {
                return Err(Rejection::IdempotencyMismatch {
                    key: given.key.as_str().into(),
                    computed: given.hash.clone(),
                    stored: stored.clone(),
                });
            }
            return Ok(ModelAnswer { entry: first.clone(), replayed: true, violation: None });
        }
        let date = book.log.last().map_or(now, |last| now.max(last.date));
        book.check(options.preconditions)?;
        let schema = book.requested_schema(options.schema_version)?;
        let (command, schema_not_specified) =
            book.resolve_template(command, schema.as_ref(), self.enforcement)?;
        let payload = book.payload(&command, date)?;
        let account_outside_chart = schemas::check_chart(&payload, schema.as_ref(), self.enforcement)?;
        let entry = LogEntry {
            id: LogId::new(book.log.last().map_or(book.options.first_id.get(), |last| last.id.get() + 1)),
            date,
            idempotency: options.idempotency.cloned(),
            request_hash: None,
            schema_version: options.schema_version.map(|version| version.as_str().into()),
            defaults: book.defaults(&payload, schema.as_ref()),
            payload,
        };
        if !dry_run {
            self.record(ledger, entry.clone());
        }
        Ok(ModelAnswer { entry, replayed: false, violation: schema_not_specified.or(account_outside_chart) })
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
        self.ledgers.get(ledger).map_or((0, 0), |book| (book.transactions().count(), book.addresses().len()))
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

    /// Lists the accounts that a filter selects at a date, in ascending order of address. A condition on a balance
    /// counts the moves dated up to then, whenever they were recorded.
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

    /// Returns a transaction as it was at `pit`, or `None` if its effective date is later or it does not exist.
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
            .transactions()
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
        let (_, transaction) = book.transactions().find(|(_, transaction)| transaction.id == id)?;
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
    /// selects rows, and sees the metadata at the end of the window. Then the rows whose addresses begin with
    /// the same `group_by` segments are added up. Sorted by account and asset.
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
            let account =
                book.account_without_volumes(&address, window.end).expect("an account with moves exists");
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
