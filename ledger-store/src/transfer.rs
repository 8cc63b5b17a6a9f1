//! Export and import of the whole log of a ledger as a text, one log per line.

use std::fmt;
use std::io::{self, Read, Write};

use ledger_core::{FilterOf, JsonWriter, LedgerName, LogId};

use crate::error::WriteError;
use crate::import::{ImportError, ImportReport};
use crate::imported::ImportedLog;
use crate::json::{
    LogBuffer, LogShape, LogTextError, read_description, read_log, write_description, write_log,
};
use crate::ledger::{Ledger, LedgerError, LedgerSnapshot};
use crate::query::{Direction, LogHashes, LogQuery, PageRequest, Start};
use crate::store::Store;

/// Number of logs per read of an export.
const PAGE_LOGS: usize = 500;

/// Maximum number of logs per commit of an import. Keeps the wait of other writers short.
const COMMIT_LOGS: usize = 256;

/// Number of bytes that an import reads at once.
const READ_BYTES: usize = 256 * 1_024;

/// Why an export or an import failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransferError {
    /// The reader or the writer failed.
    Io(io::Error),
    /// The text is not a log. The logs before it are imported.
    Text(LogTextError),
    /// The ledger refused a log, or the store a write. The logs before it are imported.
    Import(ImportError),
    /// The ledger could not be read or created.
    Ledger(LedgerError),
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Text(error) => error.fmt(f),
            Self::Import(error) => error.fmt(f),
            Self::Ledger(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TransferError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Text(error) => Some(error),
            Self::Import(error) => Some(error),
            Self::Ledger(error) => Some(error),
        }
    }
}

impl From<io::Error> for TransferError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<LogTextError> for TransferError {
    fn from(error: LogTextError) -> Self {
        Self::Text(error)
    }
}

impl From<ImportError> for TransferError {
    fn from(error: ImportError) -> Self {
        Self::Import(error)
    }
}

impl From<LedgerError> for TransferError {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

impl From<WriteError> for TransferError {
    fn from(error: WriteError) -> Self {
        Self::Ledger(error.into())
    }
}

/// Export.
impl LedgerSnapshot {
    /// Writes a line that describes the ledger, and then all its logs. Returns the number of logs.
    ///
    /// [`Ledger::import`] reads it. Other programs that speak the ledger API read the text of
    /// [`LedgerSnapshot::export_logs`], which has no description.
    ///
    /// # Errors
    ///
    /// [`TransferError::Io`] of the writer, [`TransferError::Ledger`] if the ledger is not there or cannot be read.
    pub fn export(&self, mut to: impl Write) -> Result<u64, TransferError> {
        let mut json = JsonWriter::default();
        write_description(&mut json, self.existing()?.info());
        json.raw("\n");
        to.write_all(json.as_bytes())?;
        self.export_logs(to)
    }

    /// Writes all logs, oldest first, one per line, in the form of v2 of the ledger API. Returns their number.
    ///
    /// # Errors
    ///
    /// As [`LedgerSnapshot::export`].
    pub fn export_logs(&self, mut to: impl Write) -> Result<u64, TransferError> {
        let view = self.existing()?;
        let shape = LogShape::of_export(view.info().features);
        let mut json = JsonWriter::default();
        let mut start: Start<LogId> = Start::First;
        let mut exported = 0;
        loop {
            let page = PageRequest { size: PAGE_LOGS, direction: Direction::Ascending, start };
            let query = LogQuery { filter: FilterOf::all(), hashes: LogHashes::Wire, page };
            let page = view.logs(&query).map_err(LedgerError::from)?;
            json.clear();
            for log in &page.items {
                write_log(&mut json, log, shape);
                json.raw("\n");
            }
            to.write_all(json.as_bytes())?;
            exported += page.items.len() as u64;
            match page.items.last().filter(|_| page.has_next) {
                Some(last) => start = Start::After(last.entry.id),
                None => break,
            }
        }
        to.flush()?;
        Ok(exported)
    }
}

/// Export and import.
impl Ledger {
    /// Exports the ledger as of now. See [`LedgerSnapshot::export`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = ledger_store::Store::in_memory();
    /// let main = store.ledger("main")?;
    /// main.transaction().posting("world", "users:1", 100, "USD/2").commit()?;
    /// let mut text = Vec::new(); // or a file
    /// main.export(&mut text)?;
    ///
    /// let copy = store.ledger("copy")?;
    /// assert_eq!(copy.import(text.as_slice())?.imported, 1);
    /// assert_eq!(copy.balance("users:1", "USD/2")?, 100);
    /// assert_eq!(copy.import(text.as_slice())?.skipped, 1); // it can be repeated
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`LedgerSnapshot::export`].
    pub fn export(&self, to: impl Write) -> Result<u64, TransferError> {
        self.snapshot().export(to)
    }

    /// Exports the logs of the ledger as of now. See [`LedgerSnapshot::export_logs`].
    ///
    /// # Errors
    ///
    /// As [`LedgerSnapshot::export`].
    pub fn export_logs(&self, to: impl Write) -> Result<u64, TransferError> {
        self.snapshot().export_logs(to)
    }

    /// Imports the text of an export, of this library or of a server of the ledger API.
    ///
    /// The ledger takes logs as long as nothing else was written to it. If it is not there, it is created: with the bucket,
    /// the features and the metadata of the description if the text begins with one, else with
    /// [`LedgerOptions::default`](ledger_core::LedgerOptions). A ledger that is there gets the metadata of the
    /// description.
    ///
    /// Logs that are there and equal are skipped, so an import that broke off can be repeated. Ids, dates and
    /// idempotency keys are kept. Hashes are computed again and compared.
    ///
    /// # Errors
    ///
    /// [`TransferError`]. The logs before the defect are imported.
    pub fn import(&self, mut from: impl Read) -> Result<ImportReport, TransferError> {
        let mut importer = LogImporter::new(self.store(), self.name().clone());
        let mut part = vec![0; READ_BYTES];
        loop {
            let len = match from.read(&mut part) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if len == 0 {
                return importer.finish();
            }
            importer.push(&part[..len])?;
        }
    }
}

/// An import of a text that arrives in parts.
#[derive(Debug)]
pub struct LogImporter {
    store: Store,
    ledger: LedgerName,
    buffer: LogBuffer,
    report: ImportReport,
    /// Refuse logs that are there, and descriptions of ledgers.
    is_strict: bool,
    /// A description may follow: no log was read yet.
    is_at_start: bool,
}

impl LogImporter {
    /// Begins an import as [`Ledger::import`].
    pub fn new(store: &Store, ledger: LedgerName) -> Self {
        let (buffer, report) = (LogBuffer::default(), ImportReport::default());
        Self { store: store.clone(), ledger, buffer, report, is_strict: false, is_at_start: true }
    }

    /// Begins an import as servers of the ledger API have it: the ledger must be there, and a log that it has already is
    /// refused.
    pub fn strict(store: &Store, ledger: LedgerName) -> Self {
        Self { is_strict: true, ..Self::new(store, ledger) }
    }

    /// Imports the logs that are complete with this part of the text. They are on disk when this returns. Parts of some
    /// hundred kilobytes make few commits.
    ///
    /// # Errors
    ///
    /// [`TransferError`]. The logs before the defect are imported, and nothing more can be pushed.
    pub fn push(&mut self, part: &[u8]) -> Result<(), TransferError> {
        self.buffer.push(part);
        let mut logs = Vec::new();
        loop {
            match self.next() {
                Ok(Some(log)) => logs.push(log),
                Ok(None) => return self.commit(&logs),
                Err(defect) => {
                    self.commit(&logs)?;
                    return Err(defect);
                }
            }
            if logs.len() >= COMMIT_LOGS {
                self.commit(&logs)?;
                logs.clear();
            }
        }
    }

    /// Returns the number of bytes of memory that it holds, for a log whose end has not arrived.
    pub fn memory_bytes(&self) -> usize {
        self.buffer.memory_bytes()
    }

    /// Ends the import, and reports what was imported.
    ///
    /// # Errors
    ///
    /// [`TransferError::Text`] if the text ends in the middle of a log.
    pub fn finish(self) -> Result<ImportReport, TransferError> {
        self.buffer.finish()?;
        Ok(self.report)
    }

    /// The next log, if it is complete.
    fn next(&mut self) -> Result<Option<ImportedLog>, TransferError> {
        loop {
            let Some(text) = self.buffer.next_log()? else { return Ok(None) };
            if !std::mem::take(&mut self.is_at_start) || self.is_strict {
                return Ok(Some(read_log(text)?));
            }
            let description = read_description(text)?;
            let log = if description.is_none() { Some(read_log(text)?) } else { None };
            let is_there = self.store.snapshot().ledger(&self.ledger).is_some();
            match (is_there, description) {
                (false, options) => {
                    let created = self.store.create_ledger(self.ledger.clone(), options.unwrap_or_default());
                    match created {
                        Ok(_) | Err(WriteError::LedgerExists) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                (true, Some(options)) if options.metadata.is_empty() => {}
                (true, Some(options)) => self.store.set_ledger_metadata(&self.ledger, options.metadata)?,
                (true, None) => {}
            }
            if log.is_some() {
                return Ok(log);
            }
        }
    }

    fn commit(&mut self, logs: &[ImportedLog]) -> Result<(), TransferError> {
        if logs.is_empty() {
            return Ok(());
        }
        if self.is_strict {
            self.store.import_new(&self.ledger, logs)?;
            self.report.imported += logs.len() as u64;
        } else {
            let report = self.store.import(&self.ledger, logs)?;
            self.report.imported += report.imported;
            self.report.skipped += report.skipped;
        }
        Ok(())
    }
}
