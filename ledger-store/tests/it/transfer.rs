//! Export and import of ledgers as text: an optional line that describes the ledger, and its logs, one per line.

use std::error::Error;
use std::io::{self, Read, Write};

use ledger_core::{Features, HashLogs, LedgerName, LedgerOptions, Metadata, Switch};
use ledger_store::json::LogFault;
use ledger_store::prelude::*;
use ledger_store::{ImportError, ImportRefusal, LogImporter, TransferError};

fn name(text: &str) -> LedgerName {
    LedgerName::parse(text).expect("a name")
}

/// Creates a ledger with 606 logs. They have every type except schemas, and are more than an export reads at once.
fn filled(store: &Store, ledger: &str) -> Result<Ledger, LedgerError> {
    let ledger = store.ledger(ledger)?;
    let mut batch = ledger.batch();
    for number in 0..600_u64 {
        let to = format!("users:{}", number % 90);
        let transaction = ledger.transaction().posting("world", to, number + 1, "USD/2");
        let transaction =
            transaction.reference(format!("<{number}>")).metadata("note", "a \"b\" \u{2028} \\");
        batch = batch.push(transaction.idempotency_key(format!("key-{number}")));
    }
    assert!(batch.commit()?.iter().all(Result::is_ok));
    let huge: Amount = "9".repeat(60).parse().expect("an amount");
    ledger
        .transaction()
        .posting("world", "bank", huge, "EUR")
        .account_metadata("bank", "tier", "<1>")
        .commit()?;
    ledger.revert(5).at_effective_date().force().commit()?;
    ledger.set_account_metadata("users:1", Metadata::from_iter([("tier", "gold")]))?;
    ledger.delete_account_metadata("users:1", "tier")?;
    ledger.set_transaction_metadata(7, Metadata::from_iter([("k", "v")]))?;
    ledger.delete_transaction_metadata(7, "k")?;
    Ok(ledger)
}

/// Returns the logs of a ledger as text, without the line that describes the ledger.
fn exported(ledger: &Ledger) -> Result<String, Box<dyn Error>> {
    let mut text = Vec::new();
    ledger.export_logs(&mut text)?;
    Ok(String::from_utf8(text)?)
}

#[test]
fn import_of_export_makes_equal_ledger() -> Result<(), Box<dyn Error>> {
    let store = Store::in_memory();
    let features = Features {
        account_metadata_history: Switch::Off,
        effective_volumes: Switch::Off,
        legacy_hashes: Switch::On,
        ..Features::default()
    };
    let metadata = Metadata::from_iter([("owner", "a \"b\"")]);
    let options = LedgerOptions { features, metadata: metadata.clone(), ..LedgerOptions::default() };
    store.create_ledger(name("main"), options)?;
    let main = filled(&store, "main")?;
    let mut text = Vec::new();
    assert_eq!(main.export(&mut text)?, 606);
    let copy = Store::in_memory().ledger("copy")?;
    let report = copy.import(text.as_slice())?;
    assert_eq!((report.imported, report.skipped), (606, 0));
    assert_eq!(exported(&copy)?, exported(&main)?);
    let info = copy.view().expect("the ledger exists").info().clone();
    assert_eq!((info.features, info.metadata), (features, metadata));
    assert_eq!(copy.balances().now()?, main.balances().now()?);
    assert_eq!(copy.get_account("bank")?.metadata, main.get_account("bank")?.metadata);
    // Repeating an import changes nothing, even if the text does not describe the ledger.
    let report = copy.import(text.as_slice())?;
    assert_eq!((report.imported, report.skipped), (0, 606));
    assert_eq!(copy.import(exported(&main)?.as_bytes())?.skipped, 606);
    Ok(())
}

#[test]
fn imports_sums_longer_than_any_request() -> Result<(), Box<dyn Error>> {
    let store = Store::in_memory();
    let main = store.ledger("main")?;
    let largest: Amount = "9".repeat(1_000).parse()?;
    for _ in 0..2 {
        main.transaction().posting("world", "a", largest.clone(), "USD").commit()?;
    }
    main.script("send [USD *] (source = @a destination = @b)").commit()?;
    let text = exported(&main)?;
    assert!(text.contains(&format!("1{}8", "9".repeat(999))));
    let copy = store.ledger("copy")?;
    copy.import(text.as_bytes())?;
    assert_eq!(exported(&copy)?, text);
    Ok(())
}

/// A reader that returns single bytes, and an error at the end.
struct BreaksOff<'a>(&'a [u8]);

impl Read for BreaksOff<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (first, rest) = self.0.split_first().ok_or_else(|| io::Error::other("it breaks off"))?;
        (buffer[0], self.0) = (*first, rest);
        Ok(1)
    }
}

#[test]
fn import_that_broke_off_can_be_repeated() -> Result<(), Box<dyn Error>> {
    let store = Store::in_memory();
    let text = exported(&filled(&store, "main")?)?;
    let copy = store.ledger("copy")?;
    let half = &text.as_bytes()[..text.len() / 2];
    assert!(matches!(copy.import(BreaksOff(half)), Err(TransferError::Io(_))));
    let logs = copy.logs().count()?;
    assert!((200..400).contains(&logs), "{logs}");
    let cut = copy.import(half).expect_err("the last log is not whole");
    assert!(matches!(&cut, TransferError::Text(error) if error.fault == LogFault::CutOff), "{cut}");
    let report = copy.import(text.as_bytes())?;
    assert_eq!((report.imported, report.skipped), (606 - logs, logs));
    assert_eq!(exported(&copy)?, text);
    Ok(())
}

#[test]
fn import_stops_at_first_defect() -> Result<(), Box<dyn Error>> {
    let store = Store::in_memory();
    let text = exported(&filled(&store, "main")?)?;
    let lines: Vec<&str> = text.lines().collect();
    let changed = lines[40].replacen("\"amount\":41", "\"amount\":40", 1);
    assert_ne!(changed, lines[40]);
    for (ledger, line, expected) in [
        ("hash", changed.as_str(), "log 41: invalid hash"),
        ("json", "{\"id\":41,}", "log 41: a member has no name at byte 9"),
        (
            "type",
            r#"{"id":41,"type":"OTHER","date":"2024-05-01T00:00:00Z","data":{}}"#,
            "log 41: unknown type 'OTHER'",
        ),
        ("date", r#"{"id":41,"type":"SET_METADATA"}"#, "log 41: no date"),
        ("id", r#"{"type":"SET_METADATA"}"#, "a log has no valid id"),
        ("array", "[]", "expected an object at byte 0"),
    ] {
        let copy = store.ledger(ledger)?;
        let text = text.replace(lines[40], line);
        let error = copy.import(text.as_bytes()).expect_err(expected);
        assert!(error.to_string().starts_with(expected), "{error}");
        assert_eq!(copy.logs().count()?, 40, "those before it stay");
    }
    Ok(())
}

#[test]
fn ledger_in_use_takes_no_logs() -> Result<(), Box<dyn Error>> {
    let store = Store::in_memory();
    let text = exported(&filled(&store, "main")?)?;
    let used = store.ledger("used")?;
    used.transaction().posting("world", "a", 1, "USD").commit()?;
    let refused = used.import(text.as_bytes()).expect_err("the ledger is in use");
    let is_in_use = |error: &TransferError| {
        matches!(error, TransferError::Import(ImportError::Refused { refusal: ImportRefusal::InUse, .. }))
    };
    assert!(is_in_use(&refused), "{refused}");
    // A strict import requires the ledger, and refuses logs that it already has.
    let mut strict = LogImporter::strict(&store, name("absent"));
    let refused = strict.push(text.as_bytes()).expect_err("the ledger does not exist");
    assert!(matches!(refused, TransferError::Import(ImportError::Write(_))), "{refused}");
    let copy = store.ledger("copy")?;
    copy.import(text.as_bytes())?;
    let mut strict = LogImporter::strict(&store, name("copy"));
    let refused = strict.push(text.as_bytes()).expect_err("its logs are there");
    assert!(refused.to_string().ends_with("log already exists"), "{refused}");
    Ok(())
}

/// A writer that accepts this many bytes, and then fails like a full disk.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn export_reports_failed_writer_and_absent_ledger() -> Result<(), Box<dyn Error>> {
    let store = Store::in_memory();
    let main = filled(&store, "main")?;
    assert!(matches!(main.export(Full(1_000)), Err(TransferError::Io(_))));
    let absent = store.ledger("absent")?;
    let error = absent.export(Vec::new()).expect_err("the ledger does not exist");
    assert!(matches!(error, TransferError::Ledger(LedgerError::LedgerNotFound { .. })), "{error}");
    let hashless = Features { hash_logs: HashLogs::Disabled, ..Features::default() };
    store.create_ledger(name("empty"), LedgerOptions { features: hashless, ..LedgerOptions::default() })?;
    let mut text = Vec::new();
    assert_eq!(store.ledger("empty")?.export(&mut text)?, 0);
    let copy = store.ledger("copy-of-empty")?;
    copy.import(text.as_slice())?;
    assert_eq!(copy.view().expect("the ledger exists").info().features, hashless);
    Ok(())
}
