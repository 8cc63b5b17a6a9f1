//! The commands that copy a data directory and its ledgers.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ledger_store::Store;
use serde_json::Value;

fn run(arguments: &[&str], home: &Path, input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stack-server"))
        .args(arguments)
        .current_dir(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A refused command does not read its input, so writing may fail.
    let _ = command.stdin.take().expect("piped").write_all(input);
    command.wait_with_output().expect("the process ends")
}

fn done(arguments: &[&str], home: &Path, input: &[u8]) -> Vec<u8> {
    let output = run(arguments, home, input);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    output.stdout
}

fn report(arguments: &[&str], home: &Path) -> Value {
    serde_json::from_slice(&done(arguments, home, b"")).expect("a line of JSON")
}

fn pay(home: &Path, amount: u64) {
    let store = Store::open(home.join("data")).expect("the store opens");
    let ledger = store.ledger("main").expect("a name");
    ledger.transaction().posting("world", "users:1", amount, "USD").commit().expect("recorded");
    store.close().expect("nothing has failed");
}

fn balance(home: &Path, data: &str, ledger: &str) -> String {
    let store = Store::open(home.join(data)).expect("the store opens");
    let ledger = store.ledger(ledger).expect("a name");
    ledger.balance("users:1", "USD").expect("a balance").to_string()
}

#[test]
fn backup_grows_and_is_restored_at_a_point() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    pay(home, 5);
    let first = report(&["backup", "data", "copy"], home);
    assert_eq!((&first["entries"], &first["copied"]), (&2.into(), &2.into()));
    pay(home, 7);
    pay(home, 8);
    let second = report(&["backup", "data", "copy"], home);
    assert_eq!((&second["entries"], &second["copied"]), (&4.into(), &2.into()));
    assert_eq!(report(&["backup", "--verify", "copy"], home)["head"], second["head"]);
    report(&["restore", "copy", "all"], home);
    assert_eq!(balance(home, "all", "main"), "20");
    let restored = report(&["restore", "copy", "some", "--at", "3"], home);
    assert_eq!(restored["entries"], 3);
    assert_eq!(balance(home, "some", "main"), "12");
    report(&["restore", "copy", "none", "--at", "2001-01-01T00:00:00Z"], home);
    // `verify` accepts the head of the backup.
    let head = second["head"].as_str().expect("a text");
    done(&["verify", "all", "--expect-head", head], home, b"");
    // The commands refuse a backup of another history, and never overwrite a store.
    for (arguments, reason) in [
        (["backup", "some", "copy"].as_slice(), "are not the first entries"),
        (&["restore", "copy", "all"], "is a store already"),
        (&["backup", "absent", "copy"], "absent is not a store: give the data directory"),
        (&["export", "absent", "main"], "absent is not a store: give the data directory"),
        (&["restore", "absent", "new"], "is missing"),
    ] {
        let output = run(arguments, home, b"");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains(reason), "{arguments:?}: {error}");
    }
    assert!(!home.join("absent").exists());
}

#[test]
fn ledger_is_exported_and_imported() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    pay(home, 5);
    let text = done(&["export", "data", "main"], home, b"");
    assert!(text.starts_with(b"{\"ledger\":{\"name\":\"main\","));
    let logs = done(&["export", "--logs", "data", "main"], home, b"");
    assert!(text.ends_with(&logs) && logs.starts_with(b"{\"type\":\"NEW_TRANSACTION\""));
    done(&["export", "data", "main", "main.jsonl"], home, b"");
    assert_eq!(std::fs::read(home.join("main.jsonl")).expect("the file exists"), text);
    for expected in ["{\"imported\":1,\"skipped\":0}\n", "{\"imported\":0,\"skipped\":1}\n"] {
        assert_eq!(done(&["import", "data", "copy"], home, &text), expected.as_bytes());
    }
    done(&["import", "data", "other", "main.jsonl"], home, b"");
    assert_eq!((balance(home, "data", "copy"), balance(home, "data", "other")), ("5".into(), "5".into()));
    let failed = run(&["import", "data", "third"], home, b"{\"id\":1}");
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&failed.stderr), "stack-server: log 1: no date\n");
    for usage in [
        ["export", "data"].as_slice(),
        &["import", "data", "a", "b", "c"],
        &["backup", "--at", "1", "data", "copy"],
        &["restore", "copy", "new", "--at", "noon"],
    ] {
        assert_eq!(run(usage, home, b"").status.code(), Some(2), "{usage:?}");
    }
    assert!(done(&["backup", "--help"], home, b"").starts_with(b"stack-server backup"));
}

#[test]
fn import_creates_the_store() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    pay(home, 5);
    done(&["export", "data", "main", "main.jsonl"], home, b"");
    assert_eq!(run(&["import", "new", "main", "absent.jsonl"], home, b"").status.code(), Some(1));
    assert!(!home.join("new").exists(), "a store without an import");
    done(&["import", "new", "main", "main.jsonl"], home, b"");
    assert_eq!(balance(home, "new", "main"), "5");
    // A directory with other files stays as it is.
    std::fs::create_dir(home.join("photos")).expect("created");
    std::fs::write(home.join("photos/1.jpg"), b"x").expect("written");
    let refused = run(&["import", "photos", "main", "main.jsonl"], home, b"");
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("photos is not a store: it has 1.jpg"), "{error}");
    assert!(!home.join("photos/MANIFEST").exists());
}

#[test]
fn refuses_shared_directories_unless_allowed() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    pay(home, 5);
    let text = done(&["export", "data", "main"], home, b"");
    report(&["backup", "data", "copy"], home);
    std::fs::create_dir(home.join("new")).expect("created");
    for (shared, arguments) in [
        ("data", ["export", "data", "main"].as_slice()),
        ("data", &["import", "data", "other"]),
        ("data", &["backup", "data", "copy"]),
        ("copy", &["backup", "data", "copy"]),
        ("new", &["restore", "copy", "new"]),
    ] {
        let mode = |mode| std::fs::set_permissions(home.join(shared), std::fs::Permissions::from_mode(mode));
        mode(0o775).expect("its mode");
        let output = run(arguments, home, &text);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains("--allow-shared-directory"), "{arguments:?}: {error}");
        done(&[arguments, &["--allow-shared-directory"]].concat(), home, &text);
        mode(0o755).expect("its mode");
    }
}

#[test]
fn unknown_options_come_with_suggestions() {
    let home = tempfile::tempdir().expect("a directory");
    for (arguments, meant) in [
        (["backup", "--verfiy", "x"].as_slice(), "\"--verify\""),
        (&["restore", "a", "b", "--att", "1"], "\"--at\""),
        (&["export", "--lgos", "a", "b"], "\"--logs\""),
        (&["script", "chekc"], "\"check\""),
        (&["script", "fmt", "x", "--wriet"], "\"--write\""),
        (&["exprot", "d", "main"], "\"export\""),
    ] {
        let output = run(arguments, home.path(), b"");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(&format!("did you mean {meant}?")), "{arguments:?}: {error}");
    }
}
