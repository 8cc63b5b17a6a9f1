//! Errors keep their causes: the sources of an error lead to the error of the disk, or to the refused value.

use std::error::Error;
use std::io;
use std::iter::successors;
use std::path::Path;
use std::sync::Arc;

use ledger_core::script::ScriptError;
use ledger_core::{FilterSyntaxError, JsonError, LogId, NameError};
use ledger_index::IndexError;
use ledger_journal::JournalError;
use ledger_store::{
    BackupError, Cause, DocumentRejection, ImportError, ImportRefusal, LedgerError, OpenError, Options,
    ReadError, Store, TransferError, VerifyError, WriteError,
};
use ledger_testkit::{Disk, Faults, SimDisk};

/// Returns the first error of this type in the chain of an error.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
}

fn has<E: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    find::<E>(error).is_some()
}

fn full_disk() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

fn of_journal() -> JournalError {
    JournalError::Storage { path: "/data/journal".into(), action: "write", cause: full_disk() }
}

fn of_index() -> IndexError {
    IndexError::Storage(Box::new(redb::Error::Io(full_disk())))
}

#[test]
fn error_of_disk_is_in_every_chain() {
    let cause = || Cause::new("cannot write", Some(full_disk()));
    let read = || ReadError::from(of_index());
    let write = || WriteError::from(read());
    let errors: Vec<Box<dyn Error>> = vec![
        Box::new(of_journal()),
        Box::new(of_index()),
        Box::new(OpenError::from(of_journal())),
        Box::new(OpenError::from(of_index())),
        Box::new(ReadError::from(of_journal())),
        Box::new(read()),
        Box::new(WriteError::Storage(cause())),
        Box::new(WriteError::OutcomeUnknown(cause())),
        Box::new(write()),
        Box::new(LedgerError::from(read())),
        Box::new(LedgerError::from(write())),
        Box::new(ImportError::from(write())),
        Box::new(BackupError::Source(of_journal().into())),
        Box::new(BackupError::Destination(of_journal().into())),
        Box::new(VerifyError::from(of_index())),
        Box::new(TransferError::from(full_disk())),
        Box::new(TransferError::from(ImportError::from(write()))),
        Box::new(TransferError::from(LedgerError::from(read()))),
    ];
    let is_full = |error: &io::Error| error.kind() == io::ErrorKind::StorageFull;
    let cut: Vec<_> =
        errors.into_iter().filter(|error| !find::<io::Error>(&**error).is_some_and(is_full)).collect();
    assert!(cut.is_empty(), "{cut:#?}");
    let ReadError::Io(cause) = read() else { panic!("a full disk is no damage") };
    assert_eq!(cause.io_kind(), Some(io::ErrorKind::StorageFull));
}

#[test]
fn refusals_keep_their_causes() {
    let ledger = Store::in_memory().ledger("main").expect("a name");
    let refused = ImportError::Refused { log: LogId::new(1), refusal: ImportRefusal::InUse };
    assert!(has::<ImportRefusal>(&refused));
    assert!(has::<ImportRefusal>(&TransferError::from(refused)));
    let document = WriteError::Document(DocumentRejection::Repeated { change: 1 });
    assert!(has::<DocumentRejection>(&LedgerError::from(document)));
    let script = ledger.script("nonsense").commit().expect_err("no script");
    assert!(has::<ScriptError>(&script), "{script:?}");
    let name = ledger.transaction().posting("not a name", "shop", 1, "EUR").commit().expect_err("no name");
    assert!(has::<NameError>(&name), "{name:?}");
    let filter = ledger.accounts().filter_json("{").expect_err("no filter");
    assert!(has::<FilterSyntaxError>(&filter) && has::<JsonError>(&filter), "{filter:?}");
    let text = ledger.import(&mut &b"{\"id\":}\n"[..]).expect_err("no log");
    assert!(matches!(text, TransferError::Text(_)) && has::<JsonError>(&text), "{text:?}");
}

#[test]
fn refused_verification_keeps_error_of_disk() {
    let disk = SimDisk::new();
    let on: Arc<dyn Disk> = Arc::new(disk.clone());
    let store = Store::open_on_disk(on, Path::new("data"), &Options::default()).expect("the store opens");
    assert!(store.verify().expect("the verification runs").is_clean());
    disk.set_faults(Faults { fail_open: Some(disk.opens() + 1), ..Faults::default() });
    let refused = store.verify().expect_err("the second index cannot be created");
    assert!(has::<io::Error>(&refused), "{refused:?}");
}
