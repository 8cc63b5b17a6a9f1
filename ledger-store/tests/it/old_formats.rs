//! Opens a store of every earlier format. They are in `tests/data`. The test kit's program `format_store` creates a
//! store in the current format.

use std::fs;
use std::path::{Path, PathBuf};

use ledger_core::LedgerOptions;
use ledger_store::{OpenError, Store};
use ledger_testkit::{from_sectors, logs};

/// Returns a copy of a stored store, because opening may change it.
fn copy(format: &str) -> (tempfile::TempDir, PathBuf, String) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(format);
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join("data");
    for dir in ["", "journal", "index"] {
        fs::create_dir(data.join(dir)).expect("a new directory");
        for entry in fs::read_dir(kept.join("store").join(dir)).expect("a stored file") {
            let entry = entry.expect("an entry");
            let (from, to) = (entry.path(), data.join(dir).join(entry.file_name()));
            if from.extension().is_some_and(|extension| extension == "sectors") {
                let file = from_sectors(&fs::read(from).expect("a stored file")).expect("sectors");
                fs::write(to.with_extension(""), file).expect("a new file");
            } else if from.is_file() {
                fs::copy(from, to).expect("a copy");
            }
        }
    }
    let expected = fs::read_to_string(kept.join("expected.txt")).expect("a stored file");
    (home, data, expected)
}

/// Returns the number of entries, the chain and the length of each log, in the form of `expected.txt`.
fn summary(store: &Store) -> String {
    let status = store.status();
    let mut text = format!("entries {}\nchain {}\n", status.entries, status.chain);
    for (ledger, log) in logs(store).expect("the logs are readable") {
        text.push_str(&format!("{ledger} {}\n", log.len()));
    }
    text
}

#[track_caller]
fn check(format: &str) {
    let (_home, data, expected) = copy(format);
    for round in 0..2 {
        let store = Store::open(&data).expect("the store opens");
        assert_eq!(summary(&store), expected);
        let report = store.verify().expect("the verification runs");
        assert!(report.is_clean(), "{}", report.to_json_lines());
        drop(store);
        if round == 0 {
            // The store also opens without its index, from the journal alone.
            fs::remove_file(data.join("index/index.redb")).expect("there is an index");
        }
    }
    let store = Store::open(&data).expect("the store opens");
    store
        .create_ledger("later".parse().expect("a name"), LedgerOptions::default())
        .expect("the write succeeds");
}

#[test]
fn store_of_format_1_opens_and_verifies() {
    check("format-1");
}

#[test]
fn refuses_store_without_its_journal() {
    let (_home, data, _) = copy("format-1");
    fs::remove_dir_all(data.join("journal")).expect("there is a journal");
    assert!(matches!(Store::open(&data), Err(OpenError::Damaged { .. })));
}
