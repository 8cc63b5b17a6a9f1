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
    /// Imports of a higher layer that are still to be turned, as `importing -> imported`.
    upward: &'static [&'static str],
    /// Circles that are still to be opened: their files in alphabetical order.
    circles: &'static [&'static str],
}

const LAYERS: &[Layers] = &[
    Layers {
        sources: "ledger-core/values/src",
        from_the_bottom: &[
            &["limits", "json_text", "decimal", "value_type"],
            &["typed_text"],
            &["amount", "names", "timestamp", "metadata"],
            &["volumes"],
            &["transaction"],
            &["convert", "system_time", "json_writer", "serde_values"],
            &["monetary"],
        ],
        upward: &[],
        circles: &[],
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
            &["format"],
            &["cli"],
        ],
        upward: &[],
        circles: &[],
    },
    Layers {
        sources: "ledger-core/src",
        from_the_bottom: &[
            &["limits", "expression", "json", "json_path", "address", "property", "ledger"],
            &["condition", "mapping", "runtime"],
            &["filter", "rules", "schema"],
            &["filter_json", "filter_of"],
            &["command"],
            &["rejection", "log"],
            &["needs", "settle"],
            &["legacy"],
            &["decide", "apply"],
            &["enforcement"],
            &["memento", "wire_hash", "legacy_hash", "request_hash", "subjects"],
            &["model"],
        ],
        upward: &[],
        circles: &[],
    },
    Layers { sources: "ledger-store/codec/src", from_the_bottom: &[], upward: &[], circles: &[] },
    Layers {
        sources: "ledger-store/index/src",
        from_the_bottom: &[
            &["error", "order", "row", "tournament", "filter_cache"],
            &["gate", "merged", "rows", "sort", "run_list"],
            &["health", "stored", "tables"],
            &["open_file", "range", "block"],
            &["snapshot", "write"],
            &["run_cursor", "stream", "file"],
            &["filter"],
            &["cursor", "runs"],
            &["dropped", "table"],
            &["merge"],
            &["purge", "resident"],
        ],
        upward: &[],
        circles: &[],
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
            &["mark", "prepared"],
            &["recover", "removal"],
            &["opening", "segments"],
            &["entry"],
        ],
        upward: &[],
        circles: &[],
    },
    Layers {
        sources: "ledger-store/src",
        from_the_bottom: &[
            &[
                "names",
                "options",
                "watch",
                "address_cache",
                "quantity",
                "readers",
                "violation",
                "imported",
                "progress",
            ],
            &["backend", "room", "manifest", "fingerprint"],
            &["directory"],
            &["query", "workspace"],
            &["error", "documents", "sections"],
            &["lookup", "projection"],
            &["submission", "scripts"],
            &["atomic", "hashes"],
            &["view", "removed"],
            &["read"],
            &["writer"],
            &["flush"],
            &["recovery"],
            &["opening"],
            &["engine"],
            &["store"],
            &["backup", "import", "json", "ledger", "removal", "testing", "verify"],
            &["transfer"],
        ],
        upward: &[],
        circles: &[],
    },
    Layers {
        sources: "ledger-store/testkit/src",
        from_the_bottom: &[
            &["clock", "dice", "failure", "sectors", "tally"],
            &["cast", "journal_rate"],
            &["roll", "shelf"],
            &["filters", "workload"],
            &["judge"],
            &["questions"],
            &["harness"],
            &["writers"],
            &["campaign"],
            &["flips", "trial"],
        ],
        upward: &[],
        circles: &[],
    },
    Layers {
        sources: "stack-server/src",
        from_the_bottom: &[
            &["limits", "log", "descriptors", "duration", "schedule", "uuid", "collections"],
            &["http", "documents"],
            &["shapes", "outbound", "sealing"],
            &["auth"],
            &["settings"],
            &["payments"],
            &["connectors"],
            &["integrations"],
            &["api"],
            &["server"],
            &["cli", "testing"],
        ],
        upward: &[],
        circles: &[
            "connectors::engine connectors::runner",
            "auth::authority auth::grants::provider auth::guard auth::guard::own auth::guard::verified",
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

/// Fails with every line that only one side has: new faults to mend, and known ones that are gone.
fn assert_same(found: &BTreeSet<String>, known: &BTreeSet<String>) {
    let new: Vec<_> = found.difference(known).collect();
    let gone: Vec<_> = known.difference(found).collect();
    assert!(new.is_empty() && gone.is_empty(), "mend: {new:#?}\nstrike off the list: {gone:#?}");
}

fn lines<'a>(layers: &Layers, faults: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    faults.into_iter().map(|fault| format!("{}: {fault}", layers.sources)).collect()
}

#[test]
fn no_import_leads_to_a_higher_layer() {
    let (mut found, mut known) = (BTreeSet::new(), BTreeSet::new());
    for layers in LAYERS {
        let imports = imports_of(layers);
        for (from, targets) in imports.edges.iter().filter(|(from, _)| !from.is_empty()) {
            let upward = targets.iter().filter(|to| layer_of(layers, to) > layer_of(layers, from));
            let arrows: Vec<_> =
                upward.map(|to| format!("{} -> {}", from.join("::"), to.join("::"))).collect();
            found.extend(lines(layers, arrows.iter().map(String::as_str)));
        }
        known.extend(lines(layers, layers.upward.iter().copied()));
    }
    assert_same(&found, &known);
}

#[test]
fn no_files_import_each_other() {
    let (mut found, mut known) = (BTreeSet::new(), BTreeSet::new());
    for layers in LAYERS {
        for circle in imports_of(layers).circles() {
            let circle: Vec<_> = circle.iter().map(|module| module.join("::")).collect();
            found.extend(lines(layers, [circle.join(" ").as_str()]));
        }
        known.extend(lines(layers, layers.circles.iter().copied()));
    }
    assert_same(&found, &known);
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
