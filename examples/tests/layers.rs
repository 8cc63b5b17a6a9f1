//! The layers of every crate, from the bottom up: a file imports only from its own layer and from lower ones, and no
//! files import each other in a circle.

mod imports;

use std::collections::BTreeSet;
use std::path::Path;

use imports::{Imports, Module};

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
            &["limits", "json_text", "json_reader", "decimal", "value_type"],
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
            &["base64", "limits", "expression", "json", "json_path", "address", "property", "ledger"],
            &["condition", "mapping", "runtime"],
            &["filter", "rules", "schema"],
            &["filter_json", "filter_of"],
            &["command"],
            &["rejection", "log"],
            &["needs", "settle", "preconditions"],
            &["legacy"],
            &["decide", "apply"],
            &["enforcement"],
            &["memento", "wire_hash", "legacy_hash", "request_hash", "subjects"],
            &["model"],
        ],
    },
    Layers { sources: "ledger-store/codec/src", from_the_bottom: &[] },
    Layers {
        sources: "ledger-store/index/src",
        from_the_bottom: &[
            &["error", "order", "row", "loser_tree", "filter_cache"],
            &["gate", "merged", "rows", "sort", "run_list"],
            &["health", "stored", "tables"],
            &["open_file", "range", "block"],
            &["snapshot", "write"],
            &["run_cursor", "stream", "file"],
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
            &["journal", "tail", "walk"],
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
            &["index_backend", "free_space", "fingerprint"],
            &["directory"],
            &["query", "comparison_index"],
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
            &["flips", "trial"],
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

fn imports_of(layers: &Layers) -> Imports {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above");
    Imports::of(&root.join(layers.sources))
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
