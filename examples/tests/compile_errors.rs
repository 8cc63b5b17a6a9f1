//! Lines that must not compile, and what the compiler says about them. One run of `cargo check` checks all of them, in a
//! package beside the build output.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The lines of each program, and words that explain the error.
const WRONG: &[(&str, &str, &[&str])] = &[
    (
        "floating_point_amount",
        r#"let _ = ledger.transaction().posting("world", "users:1", 1.5, "USD/2");"#,
        &[
            "is no amount",
            "an integer in the smallest unit of the asset",
            "floating-point numbers are not exact",
        ],
    ),
    (
        "filter_of_other_list",
        "let _ = ledger.transactions().filter(FilterOf::<Accounts>::all());",
        &["expected `FilterOf<Transactions>`, found `FilterOf<Accounts>`"],
    ),
    (
        "script_with_posting",
        r#"let _ = ledger.script("send [USD 5] (source = @world destination = @a)").posting("world", "a", 5, "USD");"#,
        &["no method named `posting`", "TransactionBuilder<'_, ByScript>"],
    ),
    (
        "write_to_snapshot",
        "let _ = ledger.snapshot().transaction();",
        &["no method named `transaction`", "LedgerSnapshot"],
    ),
    (
        "forgotten_commit",
        r#"#[deny(unused_must_use)] { ledger.transaction().posting("world", "users:1", 5, "USD"); }"#,
        &["unused `TransactionBuilder`", "nothing happens before it is committed"],
    ),
    (
        "forgotten_list",
        "#[deny(unused_must_use)] { ledger.accounts(); }",
        &["unused `List`", "nothing is read before it is iterated"],
    ),
];

/// Writes a package with one program for each error, and one that is right.
fn write_package(home: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above");
    let manifest = format!(
        "[package]\nname = \"wrong\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
         ledger-store = {{ path = '{}' }}\n",
        root.join("ledger-store").display()
    );
    fs::create_dir_all(home.join("src/bin")).expect("a new directory");
    fs::write(home.join("Cargo.toml"), manifest).expect("a new file");
    fs::copy(root.join("Cargo.lock"), home.join("Cargo.lock")).expect("the workspace has one");
    let right = (
        "right",
        "let _ = ledger.transaction().posting(\"world\", \"users:1\", 5, \"USD\").commit();",
        &[][..],
    );
    for (name, line, _) in WRONG.iter().copied().chain([right]) {
        let source = format!(
            "#![allow(unused_imports)]\nuse ledger_store::prelude::*;\nfn main() {{\n    \
             let ledger = Store::in_memory().ledger(\"main\").unwrap();\n    {line}\n}}\n"
        );
        fs::write(home.join(format!("src/bin/{name}.rs")), source).expect("a new file");
    }
}

#[test]
fn errors_explain_themselves() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile-errors");
    write_package(&home);
    let check = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--keep-going", "--color=never", "--target-dir"])
        .arg(home.join("target"))
        .current_dir(&home)
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&check.stderr);
    assert!(!check.status.success(), "{said}");
    assert!(!said.contains("src/bin/right.rs"), "what is right compiles: {said}");
    for (name, _, words) in WRONG {
        let file = format!("src/bin/{name}.rs");
        let errors: Vec<&str> =
            said.split("\nerror").filter(|error| error.contains(&file) && error.contains("-->")).collect();
        let error = errors.join("\n");
        for word in *words {
            assert!(error.contains(word), "{name}: the error does not say \"{word}\": {error}\nof {said}");
        }
    }
}
