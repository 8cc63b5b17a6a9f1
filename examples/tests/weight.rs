//! The weight of the library as a dependency.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Maximum number of crates that a program compiles for `ledger-store`, including `ledger-store` itself. Users of the
/// library need time to build and review each crate.
const CRATES_MAX: usize = 39;

/// Maximum size of [`QUICK_START`] with its symbols, in bytes.
const PROGRAM_BYTES_MAX: u64 = 6_000_000;

/// A program that opens a store, pays and reads a balance.
const QUICK_START: &str = r#"
use ledger_store::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open(std::env::args().nth(1).unwrap_or_else(|| "data".into()))?;
    let ledger = store.ledger("main")?;
    let deposit = ledger.transaction().posting("world", "users:1", 100_00, "USD/2").reference("deposit-1").commit()?;
    println!("{} {}", deposit.id, ledger.balance("users:1", "USD/2")?);
    Ok(())
}
"#;

/// Lists the crates that a program on Linux compiles for the library with its default features.
fn crates() -> BTreeSet<String> {
    let arguments =
        ["tree", "--locked", "--offline", "--package=ledger-store", "--edges=normal", "--prefix=none"];
    let tree = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--format={p}", "--target=x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let lines = String::from_utf8(tree.stdout).expect("UTF-8");
    let name = |line: &str| line.split(" (").next().unwrap_or_default().to_owned();
    lines.lines().filter(|line| !line.is_empty()).map(name).collect()
}

#[test]
fn library_brings_few_crates() {
    let crates = crates();
    assert!(crates.iter().any(|name| name.starts_with("redb ")), "the list is wrong: {crates:?}");
    assert!(crates.len() <= CRATES_MAX, "{} crates: {crates:#?}", crates.len());
}

#[test]
fn library_brings_nothing_of_the_server() {
    let names: BTreeSet<_> =
        crates().iter().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect();
    for unwanted in ["aws-lc-rs", "hyper", "regex", "rust_decimal", "serde", "serde_json", "tokio"] {
        assert!(!names.contains(unwanted), "{unwanted}");
    }
}

/// Takes a minute or two: `cargo test -p examples --test weight -- --ignored`.
#[test]
#[ignore = "builds the library in its own package, with the default release profile"]
fn quick_start_program_is_small() {
    let home = tempfile::tempdir().expect("a directory");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let library = workspace.join("ledger-store").canonicalize().expect("the library is there");
    let manifest = format!(
        "[package]\nname = \"quick-start\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nledger-store = {{ path = {library:?} }}\n\n[workspace]\n"
    );
    fs::create_dir(home.path().join("src")).expect("a folder");
    fs::write(home.path().join("Cargo.toml"), manifest).expect("written");
    fs::write(home.path().join("src/main.rs"), QUICK_START).expect("written");
    fs::copy(workspace.join("Cargo.lock"), home.path().join("Cargo.lock")).expect("copied");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--offline", "--quiet"])
        .current_dir(home.path())
        .env("CARGO_TARGET_DIR", home.path().join("target"))
        .output()
        .expect("cargo runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let program = fs::metadata(home.path().join("target/release/quick-start")).expect("it was built");
    println!("{} bytes", program.len());
    assert!(program.len() <= PROGRAM_BYTES_MAX, "{} bytes", program.len());
}
