//! `stack-server backup`, `restore`, `export` and `import`: copies of a stopped store and of its ledgers.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use ledger_numscript::cli::suggestion;

use crate::cli::directory::{self, SharedDirectory};
use crate::cli::exit::{self, Exit};
use crate::cli::progress::SharedMeter;
use ledger_store::{
    BackupError, BackupReport, LedgerError, OpenError, RestorePoint, RestorePointError, Store, TransferError,
    WriteError,
};

/// The text of `--help`.
const HELP: &str = "\
stack-server backup, restore, export, import: copies of a data directory that no server has open

Usage: stack-server backup DIR BACKUP                 copy a data directory into an empty one, or add what is new
       stack-server backup --verify BACKUP            check every entry of a backup
       stack-server restore BACKUP DIR [--at POINT]   make a data directory of a backup; POINT is a number of entries or
                                                      a date such as 2024-05-01T10:00:00Z
       stack-server export DIR LEDGER [FILE]          write a ledger as JSON lines, with its features and metadata
       stack-server export --logs DIR LEDGER [FILE]   write its logs only, as POST /v2/LEDGER/logs/export does
       stack-server import DIR LEDGER [FILE]          read what an export wrote; it can be repeated, and creates a store
                                                      where DIR is absent or empty

A directory that is written to must not be writable by others, unless --allow-shared-directory is passed.
Without FILE, standard input or output is used.

";

/// A command of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Copy a data directory.
    Backup,
    /// Create a data directory from a backup.
    Restore,
    /// Write a ledger as text.
    Export,
    /// Read a ledger from text.
    Import,
}

impl Verb {
    /// Returns the command with this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "backup" => Self::Backup,
            "restore" => Self::Restore,
            "export" => Self::Export,
            "import" => Self::Import,
            _ => return None,
        })
    }

    /// Returns the options of the command, for suggestions.
    const fn options(self) -> &'static [&'static str] {
        match self {
            Self::Backup => &["--verify", "--allow-shared-directory", "--help"],
            Self::Restore => &["--at", "--allow-shared-directory", "--help"],
            Self::Export => &["--logs", "--allow-shared-directory", "--help"],
            Self::Import => &["--allow-shared-directory", "--help"],
        }
    }
}

/// The reason why a command failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum CopyError {
    /// The command line is not valid.
    Usage(String),
    /// The directory does not contain a store. Opening it would create one.
    NoStore(PathBuf),
    /// Other users may write into the directory.
    Shared(SharedDirectory),
    /// The store cannot be opened.
    Open(OpenError),
    /// The backup or the restore failed.
    Backup(BackupError),
    /// The export or the import failed.
    Transfer(TransferError),
    /// A file cannot be opened or written.
    Io(io::Error),
    /// The store cannot be closed.
    Close(WriteError),
}

impl CopyError {
    /// Returns how the command ends with this error.
    pub const fn exit(&self) -> Exit {
        if matches!(self, Self::Usage(_)) { Exit::InvalidCommandLine } else { Exit::Failed }
    }
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(reason) => f.write_str(reason),
            Self::NoStore(path) => f.write_str(&directory::no_store(path)),
            Self::Shared(error) => error.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::Backup(error) => error.fmt(f),
            Self::Transfer(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Close(error) => write!(f, "closing the store: {error}"),
        }
    }
}

impl std::error::Error for CopyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Usage(_) | Self::NoStore(_) => None,
            Self::Shared(error) => Some(error),
            Self::Open(error) => Some(error),
            Self::Backup(error) => Some(error),
            Self::Transfer(error) => Some(error),
            Self::Io(error) => Some(error),
            Self::Close(error) => Some(error),
        }
    }
}

impl From<lexopt::Error> for CopyError {
    fn from(error: lexopt::Error) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<RestorePointError> for CopyError {
    fn from(error: RestorePointError) -> Self {
        Self::Usage(format!("--at: {error}"))
    }
}

impl From<SharedDirectory> for CopyError {
    fn from(error: SharedDirectory) -> Self {
        Self::Shared(error)
    }
}

impl From<BackupError> for CopyError {
    fn from(error: BackupError) -> Self {
        Self::Backup(error)
    }
}

impl From<TransferError> for CopyError {
    fn from(error: TransferError) -> Self {
        Self::Transfer(error)
    }
}

impl From<LedgerError> for CopyError {
    fn from(error: LedgerError) -> Self {
        Self::Transfer(error.into())
    }
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The parsed command line.
#[derive(Default)]
struct Line {
    words: Vec<PathBuf>,
    point: RestorePoint,
    verify: bool,
    logs: bool,
    allow_shared_directory: bool,
}

impl Line {
    /// Parses the arguments after the verb. Returns `None` if they ask for help.
    fn read(
        verb: Verb,
        arguments: Vec<OsString>,
        sharing_is_allowed: bool,
    ) -> Result<Option<Self>, CopyError> {
        use lexopt::Arg;
        let mut line = Self { allow_shared_directory: sharing_is_allowed, ..Self::default() };
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long("verify") if verb == Verb::Backup => line.verify = true,
                Arg::Long("logs") if verb == Verb::Export => line.logs = true,
                Arg::Long("allow-shared-directory") => line.allow_shared_directory = true,
                Arg::Long("at") if verb == Verb::Restore => {
                    line.point = parser.value()?.to_string_lossy().parse()?;
                }
                Arg::Value(word) => line.words.push(PathBuf::from(word)),
                Arg::Long(name) => {
                    let meant = suggestion(name, verb.options().iter().copied());
                    return Err(CopyError::Usage(format!(
                        "unknown option --{name}{meant}; see stack-server help backup"
                    )));
                }
                other @ Arg::Short(_) => return Err(other.unexpected().into()),
            }
        }
        Ok(Some(line))
    }
}

/// Runs a command. Writes reports, and exports without a file, to `out`. Reads imports without a file from `input`.
///
/// # Errors
///
/// Returns the reason why the command failed.
pub fn main(
    verb: Verb,
    arguments: Vec<OsString>,
    variable: impl Fn(&str) -> Option<String>,
    input: impl Read,
    mut out: impl Write,
) -> Result<(), CopyError> {
    let sharing =
        variable("STACK_ALLOW_SHARED_DIRECTORY").is_some_and(|value| directory::is_allowed_by(&value));
    let Some(line) = Line::read(verb, arguments, sharing)? else {
        write!(out, "{HELP}{}", exit::help(&Exit::OF_COMMANDS))?;
        return Ok(());
    };
    let meter = SharedMeter::on_stderr();
    let done = run(verb, &line, &meter, input, out);
    meter.clear();
    done
}

fn run(
    verb: Verb,
    line: &Line,
    meter: &SharedMeter,
    input: impl Read,
    mut out: impl Write,
) -> Result<(), CopyError> {
    let words: Vec<&Path> = line.words.iter().map(PathBuf::as_path).collect();
    match (verb, words.as_slice()) {
        (Verb::Backup, [backup]) if line.verify => {
            report(&mut out, &Store::verify_backup_with(backup, &meter.watcher())?)
        }
        (Verb::Backup, [data, backup]) if !line.verify => {
            directory::check(backup, line.allow_shared_directory)?;
            let store = open(line, data, meter)?;
            report(&mut out, &store.backup(backup)?)?;
            close(&store)
        }
        (Verb::Restore, [backup, data]) => {
            directory::check(data, line.allow_shared_directory)?;
            report(&mut out, &Store::restore_with(backup, data, line.point, &meter.watcher())?)
        }
        (Verb::Export, [data, ledger, file @ ..]) if file.len() <= 1 => {
            let store = open(line, data, meter)?;
            let ledger = store.ledger(ledger.to_string_lossy())?;
            let to: Box<dyn Write> = match file.first() {
                Some(file) => Box::new(File::create_new(file)?),
                None => Box::new(out),
            };
            let newest = ledger.logs().newest_first().page(1)?.items;
            let logs = newest.first().map_or(0, |log| log.entry.id.get());
            let mut to = BufWriter::new(meter.writing_logs("exporting", to, logs));
            if line.logs {
                ledger.export_logs(&mut to)?
            } else {
                ledger.export(&mut to)?
            };
            to.flush()?;
            close(&store)
        }
        (Verb::Import, [data, ledger, file @ ..]) if file.len() <= 1 => {
            let (text, bytes): (Box<dyn Read>, _) = match file.first() {
                Some(file) => {
                    let file = File::open(file)?;
                    let bytes = file.metadata()?.len();
                    (Box::new(file), Some(bytes))
                }
                None => (Box::new(input), None),
            };
            let store = open_or_create(line, data, meter)?;
            let ledger = store.ledger(ledger.to_string_lossy())?;
            let imported = ledger.import(meter.reading("importing", text, bytes))?;
            let (imported, skipped) = (imported.imported, imported.skipped);
            writeln!(out, "{{\"imported\":{imported},\"skipped\":{skipped}}}")?;
            close(&store)
        }
        _ => Err(CopyError::Usage("wrong number of arguments; see stack-server help backup".to_owned())),
    }
}

/// Prints the result of a backup or a restore, with the head in the form that `verify --expect-head` accepts.
fn report(out: &mut impl Write, report: &BackupReport) -> Result<(), CopyError> {
    let BackupReport { entries, copied, chain, .. } = report;
    writeln!(out, "{{\"entries\":{entries},\"copied\":{copied},\"head\":\"{entries}:{chain}\"}}")?;
    Ok(())
}

fn open(line: &Line, data: &Path, meter: &SharedMeter) -> Result<Store, CopyError> {
    if !Store::exists(data) {
        return Err(CopyError::NoStore(data.to_owned()));
    }
    open_or_create(line, data, meter)
}

/// Opens a data directory. If it is absent or empty, creates a store in it, as `serve` does.
fn open_or_create(line: &Line, data: &Path, meter: &SharedMeter) -> Result<Store, CopyError> {
    directory::check(data, line.allow_shared_directory)?;
    Store::open_with(data, &meter.options()).map_err(CopyError::Open)
}

fn close(store: &Store) -> Result<(), CopyError> {
    store.close().map_err(CopyError::Close)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::progress::Screen;

    /// Runs a command, and returns the work for which it draws bars.
    fn bars(verb: Verb, arguments: &[&Path]) -> Vec<String> {
        let arguments = arguments.iter().map(|argument| argument.as_os_str().to_owned()).collect();
        let line = Line::read(verb, arguments, false).expect("valid arguments").expect("no help");
        let screen = Screen::default();
        run(verb, &line, &screen.meter(), io::empty(), io::sink()).expect("it succeeds");
        screen.labels()
    }

    #[test]
    fn every_command_draws_its_progress() {
        let home = tempfile::tempdir().expect("a directory");
        let path = |name: &str| home.path().join(name);
        let store = Store::open(path("data")).expect("it opens");
        let ledger = store.ledger("main").expect("a name");
        ledger.transaction().posting("world", "users:1", 1, "USD").commit().expect("recorded");
        store.close().expect("it closes");
        drop((ledger, store));
        let (data, backup, text, main) = (&path("data"), &path("backup"), &path("text"), Path::new("main"));
        // Every opening of a store may take long.
        assert_eq!(bars(Verb::Export, &[data, main, text]), ["recovering", "exporting"]);
        assert_eq!(bars(Verb::Import, &[data, Path::new("copy"), text]), ["recovering", "importing"]);
        let backing_up = ["recovering", "copying the journal", "verifying the copy"];
        assert_eq!(bars(Verb::Backup, &[data, backup]), backing_up);
        assert_eq!(bars(Verb::Backup, &[Path::new("--verify"), backup]), ["reading the backup"]);
        let restoring = ["reading the backup", "copying the journal", "verifying the copy"];
        assert_eq!(bars(Verb::Restore, &[backup, &path("restored")]), restoring);
    }
}
