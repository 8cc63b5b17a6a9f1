//! The library without its optional features: a store whose schema has a regular expression, which only a build with the
//! feature `expressions` can read.
//!
//! `tests/data/expressions` is a backup of the store that a build with the feature writes:
//! `WRITE_STORE=1 cargo test -p examples --features expressions --test plain_build`. A run with the feature checks that
//! the schema is in force, and a run without it that the schema is refused and all else works. The two are separate runs
//! of cargo.

use std::fs;
use std::path::{Path, PathBuf};

use ledger_store::ledger_core::Rejection;
use ledger_store::ledger_core::schema::{Enforcement, Schema};
use ledger_store::{RestorePoint, prelude::*};

const SCHEMA: &str = r#"{"chart": {"shops": {"$shop": {".pattern": "^s[0-9]+$"}}}}"#;

fn backup_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/expressions")
}

fn pay(ledger: &Ledger, to: &str, version: Option<&str>) -> Result<Committed, LedgerError> {
    let payment = ledger.transaction().posting("world", to, 5, "EUR/2");
    match version {
        Some(version) => payment.schema_version(version).commit(),
        None => payment.commit(),
    }
}

fn write_store() {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    ledger.insert_schema("v1", SCHEMA).expect("it is accepted");
    pay(&ledger, "shops:s1", Some("v1")).expect("it is accepted");
    let _ = fs::remove_dir_all(backup_dir());
    fs::create_dir_all(backup_dir()).expect("a new directory");
    store.backup(backup_dir()).expect("a new backup");
    fs::remove_file(backup_dir().join("LOCK")).expect("a backup leaves one");
}

/// Restores the kept backup. Opening a backup writes to it, so this works with a copy.
fn restore(home: &Path) -> PathBuf {
    for dir in ["", "journal"] {
        fs::create_dir_all(home.join("backup").join(dir)).expect("a new directory");
        for entry in fs::read_dir(backup_dir().join(dir)).expect("it is kept") {
            let entry = entry.expect("an entry");
            if entry.path().is_file() {
                fs::copy(entry.path(), home.join("backup").join(dir).join(entry.file_name()))
                    .expect("a copy");
            }
        }
    }
    Store::restore(home.join("backup"), home.join("data"), RestorePoint::End).expect("it is sound");
    home.join("data")
}

/// Checks the place of the unreadable schema among the defects of a command: after those of preconditions, before those
/// of templates and funds. `ledger-store/tests/it/rejection_order.rs` checks all others, in a build that reads the
/// schema.
fn check_order(ledger: &Ledger) {
    let poor = || ledger.transaction().posting("empty", "shops:s2", 5, "EUR/2");
    let by_template = ledger.template("none").schema_version("v1");
    for later in [poor().schema_version("v1").commit(), by_template.commit()] {
        let refused = later.expect_err("the schema cannot be read");
        assert!(matches!(refused, LedgerError::Refused(Rejection::SchemaUnreadable { .. })), "{refused:?}");
    }
    let refused = poor().schema_version("v1").require_account("none").commit().expect_err("no such account");
    assert!(matches!(refused, LedgerError::AccountNotFound { .. }), "{refused:?}");
}

#[test]
fn schema_with_expression_needs_the_feature() {
    if std::env::var_os("WRITE_STORE").is_some() {
        write_store();
    }
    let has_expressions = Schema::parse(SCHEMA).is_ok();
    let home = tempfile::tempdir().expect("a directory");
    let data = restore(home.path());
    for _ in 0..2 {
        let options = Options::new().schema_enforcement(Enforcement::Strict);
        let store = Store::open_with(&data, &options).expect("it opens");
        let ledger = store.ledger("main").expect("a name");
        let under_schema = pay(&ledger, "shops:s2", Some("v1"));
        if has_expressions {
            under_schema.expect("it matches");
            let refused = pay(&ledger, "shops:x", Some("v1")).expect_err("it does not match");
            assert!(
                matches!(refused, LedgerError::Refused(Rejection::AccountOutsideChart { .. })),
                "{refused:?}"
            );
        } else {
            let refused = under_schema.expect_err("it is refused");
            assert!(
                matches!(&refused, LedgerError::Refused(Rejection::SchemaUnreadable { reason, .. })
                    if reason.contains("`expressions`")),
                "{refused:?}"
            );
            check_order(&ledger);
            let refused = ledger.insert_schema("v2", SCHEMA).expect_err("it is refused");
            assert!(matches!(refused, LedgerError::Schema(_)), "{refused:?}");
        }
        assert_eq!(ledger.balance("shops:s1", "EUR/2").expect("it reads"), 5);
        let schema = ledger.schema("v1").expect("it reads").expect("it is there");
        assert!(schema.text.contains("^s[0-9]+$"), "{}", schema.text);
        let lenient = store.ledger("other").expect("a name");
        pay(&lenient, "shops:x", None).expect("a ledger without a schema takes it");
        assert!(store.verify().expect("it reads").is_clean());
    }
}
