//! The classes of errors: the calls that may be repeated, and those that may have had an effect although they failed.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use ledger_core::{FilterError, LedgerName, LogId};
use ledger_store::json::{LogFault, LogTextError};
use ledger_store::{
    BackupError, DocumentRejection, ImportError, ImportRefusal, LedgerError, OpenError, Options, ReadError,
    Store, TransferError, VerifyError, WriteError,
};
use ledger_testkit::{Disk, Faults, SimDisk};

/// Every refusal of an opening, and whether the opening may be repeated.
fn of_openings() -> Vec<(OpenError, bool)> {
    let path = || "data".into();
    vec![
        (OpenError::Locked { path: path(), holder: "process 7".to_owned() }, true),
        (OpenError::Io("input/output error".into()), true),
        (OpenError::NotAStore { path: path(), reason: "it has notes.txt".to_owned() }, false),
        (OpenError::Exists { path: path() }, false),
        (OpenError::NewerFormat { found: 9, supported: 3 }, false),
        (OpenError::Damaged("block 7".into()), false),
    ]
}

/// Every failure of a read, and whether the read may be repeated.
fn of_reads() -> Vec<(ReadError, bool)> {
    vec![
        (ReadError::Io("input/output error".into()), true),
        (ReadError::Damaged("block 7".into()), false),
        (ReadError::TooExpensive { reason: "a million rows".to_owned() }, false),
        (ReadError::MissingFeature { feature: "MOVES_HISTORY" }, false),
        (ReadError::LedgerRemoved, false),
    ]
}

/// Every failure of a write, whether the write may be repeated, and whether it may have had an effect.
fn of_writes() -> Vec<(WriteError, bool, bool)> {
    let ledger = LedgerName::parse("main").expect("a name");
    let own = vec![
        (WriteError::Busy, true, false),
        (WriteError::DiskNearlyFull, true, false),
        (WriteError::Storage("input/output error".into()), true, false),
        (WriteError::OutcomeUnknown("input/output error".into()), false, true),
        (WriteError::Stopped { reason: "input/output error".to_owned() }, false, false),
        (WriteError::LedgerNotFound { ledger }, false, false),
        (WriteError::LedgerExists, false, false),
        (WriteError::BucketRemoved, false, false),
        (WriteError::Document(DocumentRejection::Repeated { change: 1 }), false, false),
    ];
    let of_reads = of_reads().into_iter().map(|(read, again)| (WriteError::Read(read), again, false));
    own.into_iter().chain(of_reads).collect()
}

#[test]
fn failed_writes_have_a_class() {
    for (error, again, unknown) in of_writes() {
        assert_eq!((error.is_retryable(), error.is_outcome_unknown()), (again, unknown), "{error}");
        let of_ledger = LedgerError::from(error.clone());
        assert_eq!((of_ledger.is_retryable(), of_ledger.is_outcome_unknown()), (again, unknown), "{error}");
        let import = ImportError::from(error.clone());
        assert_eq!((import.is_retryable(), import.is_outcome_unknown()), (again, unknown), "{error}");
        for transfer in [TransferError::from(import), TransferError::from(of_ledger)] {
            assert_eq!((transfer.is_retryable(), transfer.is_outcome_unknown()), (again, unknown), "{error}");
        }
    }
}

#[test]
fn failed_reads_and_openings_have_a_class() {
    for (error, again) in of_reads() {
        assert_eq!((error.is_retryable(), LedgerError::from(error.clone()).is_retryable()), (again, again));
    }
    for (error, again) in of_openings() {
        assert_eq!(error.is_retryable(), again, "{error}");
    }
    // The same errors again: they cannot be cloned.
    for (source, destination) in of_openings().into_iter().zip(of_openings()) {
        let again = source.1;
        let (source, destination) = (BackupError::Source(source.0), BackupError::Destination(destination.0));
        assert_eq!((source.is_retryable(), destination.is_retryable()), (again, again), "{source}");
    }
}

#[test]
fn refusals_need_another_call() {
    let refused = || ImportError::Refused { log: LogId::new(1), refusal: ImportRefusal::InUse };
    assert!(!refused().is_retryable() && !refused().is_outcome_unknown());
    let text = LogTextError { log: None, fault: LogFault::NotText };
    let filter = FilterError::PartialAddress;
    for error in [TransferError::from(refused()), TransferError::from(text), LedgerError::from(filter).into()]
    {
        assert!(!error.is_retryable() && !error.is_outcome_unknown(), "{error}");
    }
    assert!(
        !BackupError::OtherStore.is_retryable() && !BackupError::OtherHistory { entries: 3 }.is_retryable()
    );
}

/// A reader that fails after its text.
struct BreaksOff<'a>(&'a [u8]);

impl Read for BreaksOff<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self.0.read(to)? {
            0 => Err(io::ErrorKind::ConnectionReset.into()),
            read => Ok(read),
        }
    }
}

#[test]
fn retryable_calls_succeed_when_repeated() -> Result<(), Box<dyn std::error::Error>> {
    let disk = SimDisk::new();
    let open = || {
        let on: Arc<dyn Disk> = Arc::new(disk.clone());
        Store::open_on_disk(on, Path::new("data"), &Options::default())
    };
    let store = open()?;
    let locked = open().expect_err("the store is open");
    assert!(locked.is_retryable(), "{locked}");
    drop(store);
    let store = open()?;

    disk.set_faults(Faults { fail_open: Some(disk.opens() + 1), ..Faults::default() });
    let refused: VerifyError = store.verify().expect_err("the second index cannot be created");
    assert!(refused.is_retryable(), "{refused}");
    disk.set_faults(Faults::default());
    assert!(store.verify()?.is_clean());

    let main = store.ledger("main")?;
    main.transaction().posting("world", "a", 1, "USD").commit()?;
    let mut text = Vec::new();
    main.export(&mut text)?;
    let copy = store.ledger("copy")?;
    let broken = copy.import(BreaksOff(&text)).expect_err("the reader fails");
    assert!(broken.is_retryable(), "{broken}");
    copy.import(&text[..])?;
    assert_eq!(copy.balance("a", "USD")?.to_string(), "1");
    Ok(())
}
