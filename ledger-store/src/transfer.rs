//! Export and import of the whole log of a ledger as text with one log per line.

use std::fmt;
use std::io::{self, Read, Write};

use ledger_core::{FilterOf, JsonWriter, LedgerName, LogId};

use crate::error::WriteError;
use crate::imported_log::ImportedLog;
use crate::json::{
    LogBuffer, LogShape, LogTextError, read_description, read_log, write_description, write_log,
};
use crate::ledger::{Ledger, LedgerError, LedgerSnapshot};
use crate::query::{Direction, LogHashes, LogQuery, PageRequest, Start};
use crate::readers::ReadFuture;
use crate::store::{ImportError, ImportReport, Store};

/// Number of logs per read of an export.
const PAGE_LOGS: usize = 500;

/// Maximum number of logs per commit of an import. Keeps the wait of other writers short.
const COMMIT_LOGS: usize = 256;

/// Number of bytes that an import reads at once.
const READ_BYTES: usize = 256 * 1_024;

/// The reason why an export or an import failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransferError {
    /// The reader or the writer failed.
    Io(io::Error),
    /// The text does not parse as a log. The logs before it are imported.
    Text(LogTextError),
    /// The ledger refused a log, or the store refused a write. The logs before it are imported.
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

impl TransferError {
    /// Returns whether the same export or import may succeed later, from the beginning of its text. An import skips the
    /// logs that the ledger has by then.
    ///
    /// ```
    /// use ledger_store::Store;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let no_log = ledger.import(&mut &b"{}"[..]).unwrap_err();
    /// assert!(!no_log.is_retryable() && !no_log.is_outcome_unknown());
    /// # Ok::<(), ledger_store::LedgerError>(())
    /// ```
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Io(_) => true,
            Self::Text(_) => false,
            Self::Import(error) => error.is_retryable(),
            Self::Ledger(error) => error.is_retryable(),
        }
    }

    /// Returns whether the last commit of an import may have taken effect. The next opening of the store shows it.
    pub const fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Io(_) | Self::Text(_) => false,
            Self::Import(error) => error.is_outcome_unknown(),
            Self::Ledger(error) => error.is_outcome_unknown(),
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
    /// [`Ledger::import`] reads it. Other programs that implement the ledger API read the output of
    /// [`LedgerSnapshot::export_logs`], which has no description.
    ///
    /// # Errors
    ///
    /// [`TransferError::Io`] if the writer fails, [`TransferError::Ledger`] if the ledger does not exist or cannot be
    /// read.
    pub fn export(&self, mut to: impl Write) -> Result<u64, TransferError> {
        let mut json = JsonWriter::default();
        write_description(&mut json, self.existing()?.info());
        json.raw("\n");
        to.write_all(json.as_bytes())?;
        self.export_logs(to)
    }

    /// Writes all logs, oldest first, one per line, in the form of v2 of the ledger API. Returns their number.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ledger = ledger_store::Store::in_memory().ledger("main")?;
    /// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// let mut text = Vec::new();
    /// assert_eq!(ledger.snapshot().export_logs(&mut text)?, 1);
    /// assert_eq!(ledger.export_logs(std::io::sink())?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerSnapshot::export`].
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
    /// Exports the current state of the ledger. See [`LedgerSnapshot::export`]. Blocks the thread;
    /// [`export_async`](Self::export_async) does not.
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
    /// The errors of [`LedgerSnapshot::export`].
    pub fn export(&self, to: impl Write) -> Result<u64, TransferError> {
        self.snapshot().export(to)
    }

    /// Exports the logs of the ledger as of now. See [`LedgerSnapshot::export_logs`]. Blocks the thread;
    /// [`export_logs_async`](Self::export_logs_async) does not.
    ///
    /// # Errors
    ///
    /// The errors of [`LedgerSnapshot::export`].
    pub fn export_logs(&self, to: impl Write) -> Result<u64, TransferError> {
        self.snapshot().export_logs(to)
    }

    /// As [`Ledger::export`], without blocking. Returns the writer, too.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::export`].
    pub fn export_async<W: Write + Send + 'static>(
        &self,
        mut to: W,
    ) -> ReadFuture<Result<(u64, W), TransferError>> {
        let snapshot = self.snapshot();
        self.store().run_async(move |_| Ok((snapshot.export(&mut to)?, to)))
    }

    /// As [`Ledger::export_logs`], without blocking. Returns the writer, too.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::export`].
    pub fn export_logs_async<W: Write + Send + 'static>(
        &self,
        mut to: W,
    ) -> ReadFuture<Result<(u64, W), TransferError>> {
        let snapshot = self.snapshot();
        self.store().run_async(move |_| Ok((snapshot.export_logs(&mut to)?, to)))
    }

    /// Imports the text of an export by this library or by a server of the ledger API. Blocks the thread;
    /// [`import_async`](Self::import_async) does not.
    ///
    /// The ledger accepts logs as long as nothing else was written to it. If it does not exist, the import creates it:
    /// with the bucket, features and metadata of the description that may begin the text, or else with
    /// [`LedgerOptions::default`](ledger_core::LedgerOptions). An existing ledger gets the metadata of the
    /// description.
    ///
    /// The import skips logs that the ledger already has and that are equal, so an interrupted import can be repeated.
    /// It keeps ids, dates and idempotency keys, and computes and compares the hashes again.
    ///
    /// # Errors
    ///
    /// [`TransferError`]. The logs before the failure are imported.
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

    /// As [`Ledger::import`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::import`].
    pub fn import_async(
        &self,
        from: impl Read + Send + 'static,
    ) -> ReadFuture<Result<ImportReport, TransferError>> {
        let ledger = self.clone();
        self.store().run_async(move |_| ledger.import(from))
    }
}

/// An import of text that arrives in parts.
#[derive(Debug)]
pub struct LogImporter {
    store: Store,
    ledger: LedgerName,
    buffer: LogBuffer,
    report: ImportReport,
    /// Refuse logs that the ledger already has, and descriptions of ledgers.
    is_strict: bool,
    /// True if a description may follow, because no log was read yet.
    is_at_start: bool,
}

impl LogImporter {
    /// Begins an import like [`Ledger::import`].
    pub fn new(store: &Store, ledger: LedgerName) -> Self {
        let (buffer, report) = (LogBuffer::default(), ImportReport::default());
        Self { store: store.clone(), ledger, buffer, report, is_strict: false, is_at_start: true }
    }

    /// Begins an import with the rules of a server of the ledger API: the ledger must exist, and a log that it already
    /// has is refused.
    ///
    /// ```
    /// use ledger_store::{LogImporter, Store, ledger_core::LedgerName};
    /// let store = Store::in_memory();
    /// let ledger = store.ledger("main")?;
    /// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// let mut logs = Vec::new();
    /// ledger.export_logs(&mut logs)?;
    ///
    /// store.ledger("copy")?.create(Default::default())?;
    /// let copy = LedgerName::parse("copy")?;
    /// let mut importer = LogImporter::strict(&store, copy.clone());
    /// for part in logs.chunks(100) {
    ///     importer.push(part)?;
    ///     assert!(importer.memory_bytes() < 10_000); // a program may stop reading before it is too much
    /// }
    /// assert_eq!(importer.finish()?.imported, 1);
    /// let again = LogImporter::strict(&store, copy).push(&logs);
    /// assert!(again.is_err()); // `LogImporter::new` skips logs that the ledger has
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn strict(store: &Store, ledger: LedgerName) -> Self {
        Self { is_strict: true, ..Self::new(store, ledger) }
    }

    /// Imports the logs that this part of the text completes. They are on disk when this returns. Parts of some
    /// hundred kilobytes keep the number of commits low.
    ///
    /// # Errors
    ///
    /// [`TransferError`]. The logs before the failure are imported, and nothing more can be pushed.
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

    /// Returns the number of bytes that are buffered for an incomplete log.
    pub fn memory_bytes(&self) -> usize {
        self.buffer.memory_bytes()
    }

    /// Returns the number of logs that were imported or skipped so far.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ledger_store::{LogImporter, Store};
    /// # let store = Store::in_memory();
    /// # let ledger = store.ledger("main")?;
    /// # ledger.transaction().posting("world", "users:1", 100, "USD/2").commit()?;
    /// let mut text = Vec::new();
    /// ledger.export(&mut text)?;
    /// let copy = Store::in_memory();
    /// let mut importer = LogImporter::new(&copy, ledger.name().clone());
    /// importer.push(&text[..text.len() / 2])?;
    /// importer.push(&text[text.len() / 2..])?;
    /// assert_eq!(importer.report().imported, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn report(&self) -> ImportReport {
        self.report
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

    /// Returns the next complete log, if there is one.
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
