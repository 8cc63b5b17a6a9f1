//! Every name of code in `ARCHITECTURE.md` exists in the sources, and the glossary is in order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above").to_owned()
}

fn architecture() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("a text")
}

/// The names that a source file defines, and those of the types that it defines or implements.
#[derive(Default)]
struct Names {
    defined: BTreeSet<String>,
    types: BTreeSet<String>,
}

impl<'a> Visit<'a> for Names {
    fn visit_ident(&mut self, ident: &'a syn::Ident) {
        self.defined.insert(ident.to_string());
    }

    fn visit_item(&mut self, item: &'a syn::Item) {
        match item {
            syn::Item::Enum(item) => self.types.extend([item.ident.to_string()]),
            syn::Item::Struct(item) => self.types.extend([item.ident.to_string()]),
            syn::Item::Trait(item) => self.types.extend([item.ident.to_string()]),
            syn::Item::Impl(item) => {
                if let syn::Type::Path(of) = &*item.self_ty {
                    self.types.extend(of.path.segments.last().map(|last| last.ident.to_string()));
                }
            }
            _ => (),
        }
        visit::visit_item(self, item);
    }

    // The names in these places are uses, not definitions.
    fn visit_block(&mut self, _: &'a syn::Block) {}
    fn visit_path(&mut self, _: &'a syn::Path) {}
    fn visit_item_use(&mut self, _: &'a syn::ItemUse) {}
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
}

/// Adds all files below a folder by their path from the root. Skips build output and hidden folders.
fn collect(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("names are UTF-8").to_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(&path, found);
            }
        } else {
            let path = path.strip_prefix(root()).expect("it is below the root");
            found.push(path.to_str().expect("names are UTF-8").replace('\\', "/"));
        }
    }
}

/// The sources of the workspace.
struct Sources {
    files: Vec<String>,
    crates: BTreeSet<String>,
    /// The names in each file.
    names: BTreeMap<String, Names>,
}

impl Sources {
    fn read() -> Self {
        let mut sources = Self { files: Vec::new(), crates: BTreeSet::new(), names: BTreeMap::new() };
        collect(&root(), &mut sources.files);
        for path in &sources.files {
            let read = || std::fs::read_to_string(root().join(path)).expect("sources are UTF-8");
            if has_extension(path, "rs") {
                let mut names = Names::default();
                names.visit_file(&syn::parse_file(&read()).expect("the compiler accepts the sources"));
                sources.names.insert(path.clone(), names);
            } else if path.ends_with("Cargo.toml") {
                let name = read().lines().find_map(|line| Some(line.strip_prefix("name = ")?.to_owned()));
                sources.crates.extend(name.map(|name| name.trim_matches('"').to_owned()));
            }
        }
        sources
    }

    /// Returns whether this is a crate, or the end of the path of a file or folder.
    fn has_file(&self, path: &str) -> bool {
        let inner = format!("/{}/", path.trim_end_matches('/'));
        let is_path = path.contains(['/', '.']);
        let mut files = self.files.iter().map(|file| format!("/{file}/"));
        self.crates.contains(path) || is_path && files.any(|file| file.contains(&inner))
    }

    /// Returns whether the last segment is defined inside the one before it: a type, a module or a crate.
    fn defines(&self, path: &str) -> bool {
        let segments: Vec<_> = path.split("::").collect();
        let (last, outer) = segments.split_last().expect("a split has a part");
        self.names.iter().any(|(file, names)| {
            let is_in = |outer: &&str| names.types.contains(*outer) || is_module(file, outer);
            (names.defined.contains(*last) || is_module(file, last)) && outer.iter().all(is_in)
        })
    }
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// Returns whether a file is part of a module or a crate: a part of its path has that name.
fn is_module(file: &str, name: &str) -> bool {
    let parts = file.trim_end_matches(".rs").split('/').map(|part| part.replace('-', "_"));
    parts.into_iter().any(|part| part == name || name.strip_prefix("ledger_") == Some(&*part))
}

/// Returns the texts in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.split("```").step_by(2);
    blocks.flat_map(|prose| prose.split('`').skip(1).step_by(2))
}

/// Texts that name no code of this repository: other crates, commands, files and log lines.
const OTHER_TEXTS: [&str; 8] = [
    "--workspace",
    "Arc",
    "cargo build -p stack-server",
    "event=recovery",
    "event=torn_tail",
    "index.redb.damaged",
    "regex",
    "store::{removal, verify, backup}",
];

#[test]
fn architecture_names_code_that_exists() {
    let (text, sources) = (architecture(), Sources::read());
    let names: BTreeSet<_> = quoted(&text).collect();
    for other in OTHER_TEXTS {
        assert!(names.contains(other), "ARCHITECTURE.md no longer contains `{other}`");
    }
    let exists = |name: &str| sources.has_file(name) || sources.defines(name.trim_end_matches("()"));
    let missing: Vec<_> = names.iter().filter(|name| !OTHER_TEXTS.contains(name) && !exists(name)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names code that does not exist: {missing:#?}");
    assert!(names.len() > 200, "only {} names were found", names.len());
}

#[test]
fn glossary_is_sorted_and_has_no_duplicates() {
    let text = architecture();
    let (_, glossary) = text.split_once("\n## Glossary\n").expect("a glossary");
    let rows = glossary.lines().filter(|line| line.starts_with("| ")).skip(1);
    let term = |row: &str| row.split('|').nth(1).expect("a cell").trim().replace('`', "");
    let terms: Vec<_> = rows.map(term).map(|term| (term.to_lowercase(), term)).collect();
    assert!(terms.len() > 100, "only {} terms were found", terms.len());
    for (one, next) in terms.iter().zip(&terms[1..]) {
        assert!(one < next, "`{}` precedes `{}`", one.1, next.1);
    }
}
