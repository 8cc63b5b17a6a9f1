//! Import of the logs of another store.
//!
//! A ledger accepts imported logs as long as nothing else was written to it. They keep their ids, dates and idempotency
//! keys. The import computes their hashes again and compares them, so it notices any change on the way. It can be
//! repeated: it skips logs that the ledger already has, if they are equal.

use std::fmt;

use ledger_core::schema::Schema;
use ledger_core::{
    FilterOf, HashLogs, LedgerName, LogEntry, LogId, LogPayload, Memento, Posting, Transaction, WireHash,
};

use super::Store;
use crate::engine::{NextLogs, WorkItem};
use crate::error::{ReadError, WriteError};
use crate::imported_log::{ImportRefusal, Imported, ImportedLog};
use crate::query::{Direction, LogHashes, LogQuery, LogView, PageRequest, Start};
use crate::read::LedgerView;
use crate::readers::ReadFuture;

/// The result of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ImportReport {
    /// Number of logs that were added.
    pub imported: u64,
    /// Number of logs that the ledger already had.
    pub skipped: u64,
}

/// The reason why some or all logs were not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportError {
    /// This log was refused. Those before it are imported, those after it are not.
    Refused {
        /// The id of the log.
        log: LogId,
        /// The reason.
        refusal: ImportRefusal,
    },
    /// The write failed for a reason that any write can have.
    Write(WriteError),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { log, refusal } => write!(f, "log {}: {refusal}", log.get()),
            Self::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            Self::Write(error) => Some(error),
        }
    }
}

impl ImportError {
    /// Returns whether the same import may succeed later. Logs that the ledger has by then are skipped.
    ///
    /// ```
    /// use ledger_store::{ImportError, WriteError};
    /// assert!(ImportError::from(WriteError::Busy).is_retryable());
    /// assert!(!ImportError::from(WriteError::LedgerExists).is_retryable());
    /// ```
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Refused { .. } => false,
            Self::Write(error) => error.is_retryable(),
        }
    }

    /// Returns whether logs may be imported although the import failed. The next opening of the store shows it.
    ///
    /// ```
    /// use ledger_store::{ImportError, WriteError};
    /// let failed = ImportError::from(WriteError::OutcomeUnknown("input/output error".into()));
    /// assert!(failed.is_outcome_unknown() && !failed.is_retryable());
    /// ```
    pub const fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Refused { .. } => false,
            Self::Write(error) => error.is_outcome_unknown(),
        }
    }
}

impl From<WriteError> for ImportError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<ReadError> for ImportError {
    fn from(error: ReadError) -> Self {
        Self::Write(error.into())
    }
}

impl Store {
    /// Imports logs, in order, in one commit. They are on disk when this returns. Import a long log some hundreds at
    /// a time. Blocks the thread; [`import_async`](Self::import_async) does not.
    ///
    /// Logs at the beginning that the ledger has, and that are equal, are skipped. So an import that broke off can be
    /// repeated from its first log. A log with the id of another one is refused.
    ///
    /// # Errors
    ///
    /// [`ImportError::Refused`] with the first log that cannot be imported. Those before it are imported. And the
    /// errors of any write.
    pub fn import(&self, ledger: &LedgerName, logs: &[ImportedLog]) -> Result<ImportReport, ImportError> {
        let skipped = self.count_known(ledger, logs)?;
        let new = &logs[skipped..];
        if !new.is_empty() || logs.is_empty() {
            self.import_new(ledger, new)?;
        }
        Ok(ImportReport { imported: new.len() as u64, skipped: skipped as u64 })
    }

    /// As [`Store::import`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::import`].
    pub fn import_async(
        &self,
        ledger: LedgerName,
        logs: Vec<ImportedLog>,
    ) -> ReadFuture<Result<ImportReport, ImportError>> {
        self.run_async(move |store| store.import(&ledger, &logs))
    }

    /// Counts the first logs whose ids the ledger already has. Refuses one that differs from the stored log.
    fn count_known(&self, ledger: &LedgerName, logs: &[ImportedLog]) -> Result<usize, ImportError> {
        let view = self.live(ledger)?;
        let counters = view.counters();
        let is_known = |log: &&ImportedLog| !counters.is_new() && log.entry.id.get() < counters.next_log;
        let known = logs.iter().take_while(is_known).count();
        let Some(first) = logs[..known].first() else { return Ok(0) };
        let before = first.entry.id.get().checked_sub(1).map(LogId::new);
        let page = PageRequest {
            size: known,
            direction: Direction::Ascending,
            start: before.map_or(Start::First, Start::After),
        };
        let query = LogQuery { filter: FilterOf::all(), hashes: LogHashes::Wire, page };
        let stored = view.logs(&query).map_err(WriteError::from)?.items;
        for (at, log) in logs[..known].iter().enumerate() {
            if !stored.get(at).is_some_and(|stored| is_same(log, stored)) {
                let refusal = if counters.in_use { ImportRefusal::InUse } else { ImportRefusal::LogExists };
                return Err(ImportError::Refused { log: log.entry.id, refusal });
            }
        }
        Ok(known)
    }

    /// Returns a view of a ledger that exists.
    fn live(&self, ledger: &LedgerName) -> Result<LedgerView, WriteError> {
        let not_found = || WriteError::LedgerNotFound { ledger: ledger.clone() };
        self.snapshot().ledger(ledger).ok_or_else(not_found)
    }

    /// Imports logs like [`Store::import`], but refuses logs that the ledger already has. Blocks the thread;
    /// [`import_new_async`](Self::import_new_async) does not.
    ///
    /// ```
    /// use ledger_store::{Store, json::read_log, ledger_core::LedgerName};
    /// let store = Store::in_memory();
    /// let ledger = store.ledger("main")?;
    /// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// let mut text = Vec::new();
    /// ledger.export_logs(&mut text)?;
    /// let log = read_log(std::str::from_utf8(&text)?.trim_end())?;
    /// store.ledger("copy")?.create(Default::default())?;
    /// let copy = LedgerName::parse("copy")?;
    /// store.import_new(&copy, std::slice::from_ref(&log))?;
    /// assert!(store.import_new(&copy, &[log]).is_err()); // `import` would skip it
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Store::import`], and [`ImportRefusal::LogExists`] for a log that is there.
    pub fn import_new(&self, ledger: &LedgerName, logs: &[ImportedLog]) -> Result<(), ImportError> {
        loop {
            match self.try_import(ledger, logs)? {
                (Imported::All, refused) => return refused.map_or(Ok(()), Err),
                (Imported::Refused(log, refusal), _) => return Err(ImportError::Refused { log, refusal }),
                (Imported::Overtaken, _) => {}
            }
        }
    }

    /// As [`Store::import_new`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::import_new`].
    pub fn import_new_async(
        &self,
        ledger: LedgerName,
        logs: Vec<ImportedLog>,
    ) -> ReadFuture<Result<(), ImportError>> {
        self.run_async(move |store| store.import_new(&ledger, &logs))
    }

    /// Compares the hashes, reads new schemas, and imports the logs before the first one with a fault. Returns the writer's
    /// result, and the error for the log with the fault, if there is one. The caller returns that error only if the
    /// writer imported all logs before it.
    fn try_import(
        &self,
        ledger: &LedgerName,
        logs: &[ImportedLog],
    ) -> Result<(Imported, Option<ImportError>), ImportError> {
        let view = self.live(ledger)?;
        let counters = view.counters();
        let mut refused = None;
        let mut entries = Vec::with_capacity(logs.len());
        let hashed = view.info().features.hash_logs == HashLogs::Sync;
        let mut chain = if hashed { Some(view.chain()?) } else { None };
        for log in logs {
            let computed = chain.as_mut().map(|chain| chain.append(&log.entry));
            if let Some(refusal) = fault(log, computed) {
                refused = Some(ImportError::Refused { log: log.entry.id, refusal });
                break;
            }
            entries.push(log.clone());
        }
        // A log that the ledger already has also fails the hash check above, because the chain here starts after the
        // ledger's last log. Report the more useful reason: the log exists.
        if let Some(first) = logs.first()
            && (counters.in_use || (!counters.is_new() && first.entry.id.get() < counters.next_log))
        {
            let refusal = if counters.in_use { ImportRefusal::InUse } else { ImportRefusal::LogExists };
            return Ok((Imported::Refused(first.entry.id, refusal), None));
        }
        let bytes = entries.iter().map(|log| entry_bytes(&log.entry)).sum();
        let new = NextLogs { next: counters.next_log, logs: entries };
        let imported = self.run(bytes, |done| WorkItem::Import(ledger.clone(), new, done))?;
        Ok((imported, refused))
    }
}

/// Returns the reason to refuse a log without a look at the ledger: its hash is not the computed one, or it adds a schema
/// that is not valid.
fn fault(log: &ImportedLog, computed: Option<WireHash>) -> Option<ImportRefusal> {
    if let Some(computed) = computed
        && log.hash != Some(computed)
    {
        return Some(ImportRefusal::WrongHash { computed, given: log.hash });
    }
    let LogPayload::InsertedSchema { schema } = &log.entry.payload else { return None };
    let error = Schema::parse(schema).err()?;
    Some(ImportRefusal::Inconsistent { reason: format!("invalid schema: {error}") })
}

/// Tells whether an imported log equals the stored one. Does not compare volumes: the store computes its own.
fn is_same(log: &ImportedLog, stored: &LogView) -> bool {
    let memento = |entry: &LogEntry| {
        let mut text = Vec::new();
        Memento::from(entry).write_to(&mut text);
        text
    };
    // Parts of a transaction that the memento lacks.
    let recorded = |entry: &LogEntry| match &entry.payload {
        LogPayload::NewTransaction { transaction, .. }
        | LogPayload::RevertedTransaction { transaction, .. } => {
            Some((transaction.inserted_at, transaction.template.clone()))
        }
        LogPayload::SetMetadata { .. }
        | LogPayload::DeleteMetadata { .. }
        | LogPayload::InsertedSchema { .. } => None,
    };
    let (new, old) = (&log.entry, &stored.entry);
    (new.id, &new.idempotency, &new.request_hash) == (old.id, &old.idempotency, &old.request_hash)
        && stored.hash.is_none_or(|hash| log.hash == Some(WireHash::from_bytes(hash)))
        && recorded(new) == recorded(old)
        && memento(new) == memento(old)
}

/// Returns about how many bytes of memory an entry takes. The engine's queue limits the total for all waiting jobs.
fn entry_bytes(entry: &LogEntry) -> usize {
    let payload = match &entry.payload {
        LogPayload::NewTransaction { transaction, account_metadata, .. } => {
            let accounts = account_metadata.iter().map(|(_, metadata)| 64 + metadata.text_bytes());
            transaction_bytes(transaction) + accounts.sum::<usize>()
        }
        LogPayload::RevertedTransaction { transaction, .. } => transaction_bytes(transaction),
        LogPayload::SetMetadata { metadata, .. } => metadata.text_bytes(),
        LogPayload::DeleteMetadata { key, .. } => key.len(),
        LogPayload::InsertedSchema { schema } => schema.len(),
    };
    size_of::<LogEntry>() + payload
}

fn transaction_bytes(transaction: &Transaction) -> usize {
    size_of::<Transaction>()
        + transaction.postings.len() * size_of::<Posting>()
        + transaction.metadata.text_bytes()
}
