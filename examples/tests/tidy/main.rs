//! Rules for the text of all Rust sources and manifests of this repository. `exceptions.txt` lists the places that
//! may still break one.

mod exceptions;
mod lists;
mod rules;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use exceptions::Place;
use rules::{Rule, check_manifest, check_source};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above").to_owned()
}

/// Adds all sources and manifests below `folder`. Skips build output and hidden folders.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("names are UTF-8");
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(&path, files);
            }
        } else if name == "Cargo.toml" || path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns all violations of the repository by their places. The place of a long function contains its name, and other
/// places are files.
fn violations() -> BTreeMap<Place, Vec<String>> {
    let root = root();
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    assert!(files.len() > 100, "sources were found in {}", root.display());
    let mut found = BTreeMap::<Place, Vec<String>>::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("sources are UTF-8");
        let is_manifest = file.file_name().is_some_and(|name| name == "Cargo.toml");
        let checked = if is_manifest { check_manifest(&text) } else { check_source(&text) };
        let path = file.strip_prefix(&root).expect("it is below the root");
        let path = path.to_str().expect("names are UTF-8").replace('\\', "/");
        for violation in checked {
            let message =
                format!("{path}:{}: {}{}", violation.line, spaced(&violation.name), violation.found);
            let name = if violation.rule == Rule::FunctionLength { violation.name } else { String::new() };
            found.entry((violation.rule, path.clone(), name)).or_default().push(message);
        }
    }
    found
}

/// Returns a name with a colon and a space after it, or nothing for an empty name.
fn spaced(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("`{name}`: ") }
}

#[test]
fn sources_keep_the_rules() {
    let list = std::fs::read_to_string(root().join("examples/tests/tidy/exceptions.txt")).expect("a list");
    let exceptions = exceptions::parse(&list).unwrap_or_else(|bad| panic!("exceptions.txt: {}", bad.0));
    let complaints = exceptions::compare(&violations(), &exceptions);
    assert!(complaints.is_empty(), "{}\nCONTRIBUTING.md says how to change this.", complaints.join("\n"));
}
