//! The layers of every crate, from the bottom up: a file imports only from its own layer and from lower ones, and no
//! files import each other in a circle. The crates have layers as well.

mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use imports::{Imports, Module};
use serde_json::Value;

/// The crates of this repository, the lowest layer first. A crate depends only on crates of lower layers, except for its
/// tests.
const CRATES: [&[&str]; 7] = [
    &["ledger-values", "ledger-codec"],
    &["ledger-numscript", "ledger-index"],
    &["ledger-core"],
    &["ledger-journal"],
    &["ledger-store"],
    &["ledger-testkit", "stack-server"],
    &["examples", "benches", "fuzz"],
];

/// The layers of one crate.
struct Layers {
    /// The folder of its sources.
    sources: &'static str,
    /// Top-level modules, the lowest layer first; modules of one row share a layer.
    from_the_bottom: &'static [&'static [&'static str]],
}

const LAYERS: &[Layers] = &[
    Layers {
        sources: "ledger-core/values/src",
        from_the_bottom: &[
            &["limits", "json_text", "json_reader", "decimal", "value_type", "short_text"],
            &["typed_text"],
            &["amount", "names", "timestamp", "metadata"],
            &["volumes"],
            &["transaction"],
            &["convert", "system_time", "json_writer", "serde_values", "units"],
            &["monetary"],
        ],
    },
    Layers {
        sources: "ledger-core/numscript/src",
        from_the_bottom: &[
            &["limits", "span", "names", "types", "options", "switches"],
            &["error"],
            &["fault", "portion", "tree"],
            &["token"],
            &["parser"],
            &["diagnostic", "check"],
            &["program", "trace", "outcome"],
            &["value"],
            &["compile"],
            &["run"],
            &["compiled", "format"],
            &["cli"],
        ],
    },
    Layers {
        sources: "ledger-core/src",
        from_the_bottom: &[
            &[
                "limits",
                "expression",
                "json",
                "json_path",
                "address",
                "property",
                "ledger",
                "revert_mark",
                "prior_request",
            ],
            &["condition", "error_wording", "overdraft"],
            &["filter", "schema", "rejection"],
            &["facts"],
            &["filter_json", "filter_of", "rules"],
            &["command"],
            &["log", "needs", "settle", "preconditions"],
            &["decide"],
            &["enforcement"],
            &["admission"],
            &["wire", "subjects"],
            &["model"],
        ],
    },
    Layers { sources: "ledger-store/codec/src", from_the_bottom: &[] },
    Layers {
        sources: "ledger-store/index/src",
        from_the_bottom: &[
            &["error", "order", "row", "loser_tree", "filter_cache"],
            &["gate", "merged", "merged_sources", "rows", "sort", "run_list"],
            &["health", "stored", "tables"],
            &["open_file", "range", "block"],
            &["snapshot", "write"],
            &["block_cursor", "stream", "file"],
            &["run_cursor"],
            &["filter"],
            &["cursor", "merged_runs", "runs"],
            &["dropped", "table"],
            &["merge"],
            &["purge", "resident"],
        ],
    },
    Layers {
        sources: "ledger-store/journal/src",
        from_the_bottom: &[
            &["disk", "hashed", "identity"],
            &["position"],
            &["error"],
            &["chunk", "frame", "offsets", "record"],
            &["journal", "tail", "frame_reader"],
            &["memory", "options", "recent", "segment"],
            &["head_file", "prepared"],
            &["recover", "removal"],
            &["opening", "segments"],
            &["entry"],
        ],
    },
    Layers {
        sources: "ledger-store/src",
        from_the_bottom: &[
            &[
                "cause",
                "feature",
                "names",
                "options",
                "commit_watch",
                "address_cache",
                "quantity",
                "readers",
                "violation",
                "imported_log",
                "progress",
            ],
            &["disk_backend", "free_space", "fingerprint"],
            &["directory"],
            &["query"],
            &["error", "documents", "sections", "query_params"],
            &["lookup", "projection"],
            &["submission", "scripts"],
            &["atomic", "hashes"],
            &["view", "tombstones"],
            &["read"],
            &["writer"],
            &["flush"],
            &["recovery"],
            &["opening"],
            &["engine"],
            &["store"],
            &["json", "ledger", "testing"],
            &["transfer"],
        ],
    },
    Layers {
        sources: "ledger-store/testkit/src",
        from_the_bottom: &[
            &["clock", "rng", "failure", "sectors", "counters"],
            &["fixtures", "journal_rate"],
            &["ledger_model", "document_model"],
            &["filters", "workload"],
            &["oracle"],
            &["questions"],
            &["harness"],
            &["writers"],
            &["campaign"],
            &["flips", "model_run"],
        ],
    },
    Layers {
        sources: "stack-server/src",
        from_the_bottom: &[
            &["limits", "log", "descriptors", "duration", "schedule", "uuid", "collections", "background"],
            &["http", "documents"],
            &["blocking", "shapes", "outbound", "sealing"],
            &["auth"],
            &["settings"],
            &["payments"],
            &["connectors"],
            &["integrations"],
            &["api"],
            &["server"],
            &["cli", "testing"],
        ],
    },
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above").to_owned()
}

/// Each crate, and the crates of this repository that it needs to be built.
type Dependencies = BTreeMap<String, BTreeSet<String>>;

/// Reads the dependencies of the crates of one workspace from its manifests.
fn dependencies_of(manifest: &str) -> Dependencies {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--manifest-path"])
        .arg(root().join(manifest))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let name = |package: &Value| package["name"].as_str().expect("a name").to_owned();
    let needed = |package: &Value| {
        let all = package["dependencies"].as_array().expect("a list").iter();
        let ours = all.filter(|dependency| !dependency["path"].is_null() && dependency["kind"] != "dev");
        ours.map(name).collect()
    };
    let packages = metadata["packages"].as_array().expect("a list");
    packages.iter().map(|package| (name(package), needed(package))).collect()
}

/// Returns the dependencies that do not lead to a lower layer.
fn upward(layers: &[Vec<&str>], dependencies: &Dependencies) -> Vec<String> {
    let layer = |name: &str| layers.iter().position(|layer| layer.contains(&name));
    let all = dependencies.iter().flat_map(|(from, targets)| targets.iter().map(move |to| (from, to)));
    all.filter(|(from, to)| layer(to) >= layer(from)).map(|(from, to)| format!("{from} -> {to}")).collect()
}

/// Returns the crates in each row of the table in ARCHITECTURE.md.
fn rows_of_crates<'a>(text: &'a str, dependencies: &Dependencies) -> Vec<Vec<&'a str>> {
    let section = text.split("\n## Crates\n").nth(1).expect("a section");
    let section = section.split("\n## ").next().expect("a split has a first part");
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
    let names = |cell: &'a str| cell.split('`').filter(|name| dependencies.contains_key(*name)).collect();
    cells.map(|(cell, _)| names(cell)).collect()
}

#[test]
fn no_crate_depends_on_a_higher_layer() {
    let mut dependencies = dependencies_of("Cargo.toml");
    dependencies.extend(dependencies_of("fuzz/Cargo.toml"));
    let architecture = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it is readable");
    let rows = rows_of_crates(&architecture, &dependencies);
    for (place, layers) in [("CRATES", CRATES.map(<[_]>::to_vec).to_vec()), ("ARCHITECTURE.md", rows)] {
        let mut listed: Vec<&str> = layers.concat();
        listed.sort_unstable();
        assert!(dependencies.keys().eq(&listed), "{place} lists {listed:?}, not {:?}", dependencies.keys());
        assert_eq!(upward(&layers, &dependencies), [""; 0], "in the order of {place}");
    }
}

#[test]
fn an_upward_dependency_is_found() {
    let needs =
        |targets: &[&str]| -> BTreeSet<String> { targets.iter().map(|&name| name.to_owned()).collect() };
    let crates =
        [("low", needs(&["high"])), ("beside", needs(&["low"])), ("high", needs(&["low", "beside"]))];
    let crates = Dependencies::from(crates.map(|(name, needed)| (name.to_owned(), needed)));
    let found = upward(&[vec!["low", "beside"], vec!["high"]], &crates);
    assert_eq!(found, ["beside -> low", "low -> high"]);
}

fn imports_of(layers: &Layers) -> Imports {
    Imports::of(&root().join(layers.sources))
}

fn layer_of(layers: &Layers, module: &Module) -> usize {
    let name = module[0].as_str();
    let layer = layers.from_the_bottom.iter().position(|layer| layer.contains(&name));
    layer.unwrap_or_else(|| panic!("{}: {name} has no layer; give it one in this file", layers.sources))
}

#[test]
fn no_import_leads_to_a_higher_layer() {
    let mut upward = Vec::new();
    for layers in LAYERS {
        let imports = imports_of(layers);
        for (from, targets) in imports.edges.iter().filter(|(from, _)| !from.is_empty()) {
            let higher = targets.iter().filter(|to| layer_of(layers, to) > layer_of(layers, from));
            upward.extend(
                higher.map(|to| format!("{}: {} -> {}", layers.sources, from.join("::"), to.join("::"))),
            );
        }
    }
    assert!(upward.is_empty(), "{upward:#?}");
}

#[test]
fn no_files_import_each_other() {
    let mut circles = Vec::new();
    for layers in LAYERS {
        for circle in imports_of(layers).circles() {
            let files: Vec<_> = circle.iter().map(|module| module.join("::")).collect();
            circles.push(format!("{}: {}", layers.sources, files.join(" ")));
        }
    }
    assert!(circles.is_empty(), "{circles:#?}");
}

/// Modules of the server's `api` that translate for one API each.
const APIS: [&str; 3] = ["ledger_v1", "ledger_v2", "auth"];

#[test]
fn apis_do_not_import_each_other() {
    let server = LAYERS.iter().find(|layers| layers.sources == "stack-server/src").expect("the server");
    let edges = imports_of(server).edges;
    let api = |module: &Module| match module.as_slice() {
        [top, name, ..] if top == "api" => APIS.into_iter().find(|api| *api == name),
        _ => None,
    };
    assert_eq!(edges.keys().filter_map(api).collect::<BTreeSet<_>>(), BTreeSet::from(APIS));
    for (from, targets) in &edges {
        let Some(of) = api(from) else { continue };
        let other = targets.iter().find(|to| api(to).is_some_and(|api| api != of));
        assert_eq!(other, None, "{} imports it", from.join("::"));
    }
}

#[test]
fn a_circle_and_its_direction_are_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports/sample");
    let imports = Imports::of(&folder);
    let module = |path: &str| -> Module { path.split("::").map(str::to_owned).collect() };
    assert_eq!(imports.edges[&module("low")], BTreeSet::from([module("high::part")]));
    assert_eq!(imports.edges[&module("high::part")], BTreeSet::from([module("low")]));
    assert_eq!(imports.circles(), BTreeSet::from([BTreeSet::from([module("high::part"), module("low")])]));
}
