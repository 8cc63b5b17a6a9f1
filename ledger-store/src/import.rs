//! Logs of another store, taken over as they are.
//!
//! A ledger takes logs as long as nothing else was written to it. Their ids, dates and idempotency keys are
//! kept, and their hashes are computed again and compared, so what was changed on the way is found.

use std::fmt;

use ledger_core::{
    HashLogs, LedgerName, LogEntry, LogId, LogPayload, Posting, Timestamp, Transaction, WireHash,
};

use crate::engine::{Answer, Work};
use crate::error::{ReadError, WriteError};
use crate::store::Store;

/// A log and the hash that it came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedLog {
    /// The log. Volumes in it are not looked at: they are computed again.
    pub entry: LogEntry,
    /// Its hash. Looked at in ledgers that hash as they write.
    pub hash: Option<WireHash>,
    /// Of a revert, when the original had last changed by what the log says; it is shown with the log. `None`
    /// is when it was reverted.
    pub original_updated_at: Option<Timestamp>,
    /// Whether the log told the volumes after its transaction. Those of a release that did not are shown without.
    pub tells_volumes: bool,
}

/// What is wrong with a log that was to be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportRefusal {
    /// Something was written to the ledger: it takes no logs any more.
    InUse,
    /// Its id is not greater than that of the log before it.
    LogExists,
    /// It is not what was hashed.
    WrongHash {
        /// What its hash is.
        computed: WireHash,
        /// The hash that it came with.
        given: Option<WireHash>,
    },
    /// It does not follow from the logs before it.
    Inconsistent {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for ImportRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("ledger is not in initializing state"),
            Self::LogExists => f.write_str("log already exists"),
            Self::WrongHash { computed, given } => {
                let given = given.map(|given| given.to_base64()).unwrap_or_default();
                write!(f, "invalid hash, expected {computed} got {given}")
            }
            Self::Inconsistent { reason } => f.write_str(reason),
        }
    }
}

/// Why logs were not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportError {
    /// This log was refused. Those before it are imported, those after it are not.
    Refused {
        /// Its id.
        log: LogId,
        /// What is wrong with it.
        refusal: ImportRefusal,
    },
    /// As with any write.
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

impl std::error::Error for ImportError {}

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

/// How far the writer got with some logs.
pub(crate) enum Imported {
    /// All are in.
    All,
    /// Another import came in between, nothing was done.
    Overtaken,
    /// This one was refused, those before it are in.
    Refused(LogId, ImportRefusal),
}

impl Store {
    /// Takes over logs, in order, in one commit. They are on disk when this returns; of a long log some hundreds
    /// at a time.
    ///
    /// # Errors
    ///
    /// [`ImportError::Refused`] with the first log that cannot be taken; and what any write may meet.
    pub fn import(&self, ledger: &LedgerName, logs: &[ImportedLog]) -> Result<(), ImportError> {
        loop {
            match self.try_import(ledger, logs)? {
                (Imported::All, refused) => return refused.map_or(Ok(()), Err),
                (Imported::Refused(log, refusal), _) => return Err(ImportError::Refused { log, refusal }),
                (Imported::Overtaken, _) => {}
            }
        }
    }

    /// Compares the hashes and hands over what is before the first that is wrong, which it returns beside.
    fn try_import(
        &self,
        ledger: &LedgerName,
        logs: &[ImportedLog],
    ) -> Result<(Imported, Option<ImportError>), ImportError> {
        let view = self.snapshot().ledger(ledger).ok_or(WriteError::LedgerNotFound)?;
        let counters = view.counters();
        let mut refused = None;
        let mut entries = Vec::with_capacity(logs.len());
        let hashed = view.info().features.hash_logs == HashLogs::Sync;
        let mut chain = if hashed { Some(view.chain()?) } else { None };
        for log in logs {
            let computed = chain.as_mut().map(|chain| chain.append(&log.entry));
            if let Some(computed) = computed
                && log.hash != Some(computed)
            {
                let refusal = ImportRefusal::WrongHash { computed, given: log.hash };
                refused = Some(ImportError::Refused { log: log.entry.id, refusal });
                break;
            }
            entries.push(log.clone());
        }
        // A log that stands there already has another hash in its new place: that it exists says more.
        if let Some(first) = logs.first()
            && (counters.in_use || (!counters.is_new() && first.entry.id.get() < counters.next_log))
        {
            let refusal = if counters.in_use { ImportRefusal::InUse } else { ImportRefusal::LogExists };
            return Ok((Imported::Refused(first.entry.id, refusal), None));
        }
        let bytes = entries.iter().map(|log| entry_bytes(&log.entry)).sum();
        match self.run(Work::Import(ledger.clone(), counters.next_log, entries), bytes)? {
            Answer::Imported(imported) => Ok((imported, refused)),
            Answer::Outcomes(_)
            | Answer::Ledger(_)
            | Answer::Documents(_)
            | Answer::Marked(_)
            | Answer::Removed(_) => {
                unreachable!("how far it got is the answer to an import")
            }
        }
    }
}

/// About how many bytes an entry holds, for the bound of the queue.
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
