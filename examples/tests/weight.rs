//! The weight of the library as a dependency.

use std::collections::BTreeSet;
use std::process::Command;

/// Maximum number of crates that a program compiles for `ledger-store`, including `ledger-store` itself. Users of the
/// library need time to build and review each crate.
const CRATES_MAX: usize = 39;

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
    for unwanted in ["hyper", "regex", "ring", "rust_decimal", "serde", "serde_json", "tokio"] {
        assert!(!names.contains(unwanted), "{unwanted}");
    }
}
