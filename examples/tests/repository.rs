//! The workspace as a whole: the README shows what exists, crates can be published, and dependencies are allowed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above").to_owned()
}

#[test]
fn readme_links_and_examples_exist() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("a readme");
    for (at, _) in readme.match_indices("](") {
        let target = readme[at + 2..].split(')').next().expect("a link ends");
        if !target.starts_with("http") {
            assert!(root().join(target).exists(), "the readme links to {target}");
        }
    }
    let example = std::fs::read_to_string(root().join("examples/src/bin/embed.rs")).expect("an example");
    for line in [
        "let ledger = store.ledger(\"main\")?; // created on first write",
        ".posting(\"world\", \"users:001\", 100_00, \"USD/2\")",
        ".reference(\"deposit-1\")",
        ".commit()?; // on disk when this returns",
    ] {
        assert!(readme.contains(line) && example.contains(line), "both say: {line}");
    }
}

#[test]
fn every_v2_operation_has_a_library_method() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("it is readable");
    let operations = read("stack-server/src/api/operations.rs");
    let operations = operations.split("pub(crate) enum V2 {\n").nth(1).expect("the operations of v2");
    let variants = operations.lines().take_while(|line| *line != "}");
    let variants = variants.map(|line| line.trim().trim_end_matches(','));
    let is_of_server = |name: &str| name.contains("Exporter") || name.contains("Pipeline");
    let expected: BTreeSet<&str> = variants.filter(|name| !is_of_server(name)).collect();
    let table = read("docs/library-and-http.md");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let found: BTreeSet<&str> = rows.map(|(name, _)| name).collect();
    assert!(expected.len() > 30, "the routes were not found: {expected:?}");
    let different: Vec<_> = found.symmetric_difference(&expected).collect();
    assert!(different.is_empty(), "only in routes or only in docs/library-and-http.md: {different:?}");
}

/// Returns the public functions of a type, as `docs/api.txt` lists them.
fn functions_of(of: &str) -> BTreeSet<String> {
    let api = std::fs::read_to_string(root().join("docs/api.txt")).expect("the interface is listed");
    let head = format!("impl {of}");
    let (mut is_inside, mut found) = (false, BTreeSet::new());
    for line in api.lines() {
        if !line.starts_with(' ') {
            is_inside = line == head;
        } else if let Some((_, rest)) = line.split_once(" fn ").filter(|_| is_inside) {
            found.extend(rest.split(['(', '<']).next().map(str::to_owned));
        }
    }
    assert!(!found.is_empty(), "docs/api.txt lists no functions of {of}");
    found
}

#[test]
fn methods_in_table_of_operations_exist() {
    let table = std::fs::read_to_string(root().join("docs/library-and-http.md")).expect("a table");
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let (ledger, store) = (functions_of("Ledger"), functions_of("Store"));
    let mut checked = 0;
    for (row, (object, methods)) in
        rows.flat_map(|row| [("ledger.", &ledger), ("store.", &store)].map(|methods| (row, methods)))
    {
        for call in row.split(&format!("`{object}")).skip(1) {
            let name = call.split('(').next().expect("a split has a first part");
            assert!(methods.contains(name), "the library has no method {object}{name}: {row}");
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked} methods were found");
}

#[test]
fn ledgers_have_the_reads_of_snapshots() {
    let reads = functions_of("LedgerSnapshot");
    let missing: Vec<_> = reads.difference(&functions_of("Ledger")).cloned().collect();
    assert!(missing.is_empty(), "`Ledger` lacks {missing:?} of `LedgerSnapshot`");
}

/// Methods of `Ledger` that block and that a snapshot cannot have: they write, or begin a write.
const WRITES: [&str; 18] = [
    "apply",
    "batch",
    "create",
    "create_if_absent",
    "delete_account_metadata",
    "delete_metadata",
    "delete_transaction_metadata",
    "import",
    "insert_schema",
    "revert",
    "script",
    "set_account_metadata",
    "set_metadata",
    "set_transaction_metadata",
    "template",
    "transaction",
    "update_account",
    "update_transaction",
];

#[test]
fn snapshots_have_the_reads_of_ledgers() {
    let methods: BTreeSet<_> =
        functions_of("Ledger").into_iter().filter(|name| !name.ends_with("_async")).collect();
    for name in WRITES {
        assert!(methods.contains(name), "`Ledger` has no method {name}");
    }
    // `snapshot` itself is what turns one into the other.
    let is_read = |name: &String| name != "snapshot" && !WRITES.contains(&name.as_str());
    let snapshot = functions_of("LedgerSnapshot");
    let missing: Vec<_> =
        methods.into_iter().filter(is_read).filter(|name| !snapshot.contains(name)).collect();
    assert!(missing.is_empty(), "`LedgerSnapshot` lacks {missing:?} of `Ledger`");
}

#[test]
fn campaigns_ask_every_read_of_ledgers() {
    // Other tests compare these: plans of lists, and the feed of logs.
    let is_compared_elsewhere = |name: &str| name.starts_with("explain_") || name == "logs_after";
    // Neither can fail: the state of the ledger holds them.
    let is_of_state = |name: &str| ["info", "mapping", "last_log"].contains(&name);
    let folder = root().join("ledger-store/testkit/src/questions");
    let sources = std::fs::read_dir(folder).expect("the questions are there");
    let questions: String = sources
        .map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("its text"))
        .collect();
    for name in functions_of("LedgerView") {
        let is_asked = questions.contains(&format!("view.{name}("));
        assert!(
            is_asked || is_compared_elsewhere(&name) || is_of_state(&name),
            "ledger-store/testkit/src/questions never asks `LedgerView::{name}`"
        );
    }
}

#[test]
fn minimum_rust_version_is_stated_alike() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("it is readable");
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = version.expect("the workspace has one").trim_matches('"');
    for (path, text) in [
        ("README.md", format!("[Rust](https://rustup.rs) {version} or later")),
        ("ledger-store/src/guide.md", format!("Rust {version} or later")),
    ] {
        assert!(read(path).contains(&text), "{path} does not say: {text}");
    }
    // Cargo itself refuses an older compiler, in every crate that inherits the version.
    let metadata = metadata();
    for package in metadata["packages"].as_array().expect("packages") {
        let is_ours = package["source"].is_null();
        assert!(!is_ours || package["rust_version"] == version, "{}", package["name"]);
    }
}

/// Reads a list of `deny.toml`. `cargo deny` checks the same list where it is installed.
fn denied(section: &str, key: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let text = text.split(&format!("[{section}]")).nth(1).expect("the section is there");
    let text = text.split(&format!("\n{key} = [")).nth(1).expect("the key is there");
    let text = text.split(']').next().expect("the list ends");
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the output of `cargo metadata` for the workspace and its dependencies.
fn metadata() -> Value {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    serde_json::from_slice(&metadata.stdout).expect("JSON")
}

#[test]
fn published_crates_carry_readme_and_licences() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let published =
        packages.iter().filter(|package| package["source"].is_null() && package["publish"].is_null());
    let mut checked = 0;
    for package in published {
        let name = package["name"].as_str().expect("a name");
        let folder =
            Path::new(package["manifest_path"].as_str().expect("a path")).parent().expect("a folder");
        let readme = std::fs::read_to_string(folder.join("README.md")).expect(name);
        assert!(readme.starts_with(&format!("# {name}\n")), "the readme of {name} names another crate");
        assert_eq!(package["readme"], "README.md", "{name}");
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let text = std::fs::read_to_string(folder.join(licence)).expect(name);
            assert_eq!(text, std::fs::read_to_string(root().join(licence)).expect("a licence"), "{name}");
        }
        assert!(package["description"].as_str().is_some_and(|text| text.len() > 20), "{name} says nothing");
        assert!(!package["keywords"].as_array().expect("a list").is_empty(), "{name} has no keywords");
        checked += 1;
    }
    assert!(checked >= 5, "only {checked} crates are published");
}

/// Features that only tests need.
const TEST_FEATURES: [&str; 2] = ["model", "testing"];

#[test]
fn docs_rs_shows_every_feature_but_those_of_tests() {
    let metadata = metadata();
    let mut hidden = BTreeSet::new();
    for package in metadata["packages"].as_array().expect("packages") {
        if !package["source"].is_null() || !package["publish"].is_null() {
            continue;
        }
        let features = package["features"].as_object().expect("a table");
        let features: BTreeSet<&str> = features.keys().map(String::as_str).collect();
        let settings = &package["metadata"]["docs"]["rs"];
        let listed = settings["features"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let shown =
            if settings["all-features"] == true { features.clone() } else { listed.collect::<BTreeSet<_>>() };
        let (of_tests, expected): (BTreeSet<&str>, BTreeSet<&str>) =
            features.iter().partition(|feature| TEST_FEATURES.contains(feature));
        assert_eq!(shown, expected, "docs.rs shows other features of {}", package["name"]);
        hidden.extend(of_tests);
    }
    assert_eq!(hidden, BTreeSet::from(TEST_FEATURES));
}

#[test]
fn dependencies_have_allowed_licences_and_sources() {
    let metadata = metadata();
    let licences = denied("licenses", "allow");
    let banned = denied("bans", "deny");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 20 && licences.len() > 5 && banned.len() > 1);
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        assert!(!banned.iter().any(|have| have == name), "{name} is banned");
        let source = package["source"].as_str().unwrap_or("path");
        assert!(
            source == "path" || source.starts_with("registry+") || source.starts_with("sparse+"),
            "{name}: {source}"
        );
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{name} states no licence"));
        assert!(is_allowed(licence, &licences), "{name}: {licence}");
    }
}

/// Returns whether any alternative of an `OR` consists of allowed licences.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain
        .split(" OR ")
        .any(|branch| branch.split(" AND ").all(|licence| allowed.iter().any(|have| have == licence.trim())))
}
