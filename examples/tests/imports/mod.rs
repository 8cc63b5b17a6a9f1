//! Finds the imports between the files of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

/// The path of a module below the root of its crate. The path of the root is empty.
pub(crate) type Module = Vec<String>;

/// The imports between the files of one crate. Tests, binaries and re-exports do not count.
#[derive(Default)]
pub(crate) struct Imports {
    /// Every file, and the files that it imports from.
    pub(crate) edges: BTreeMap<Module, BTreeSet<Module>>,
}

/// A parsed source file.
#[derive(Default)]
struct Source {
    /// Each path in the code, with the module that contains it.
    paths: Vec<(Module, Vec<String>)>,
    /// Names that the module re-exports, with their original paths.
    exports: BTreeMap<String, Vec<String>>,
}

impl Imports {
    /// Reads the sources below a folder.
    pub(crate) fn of(folder: &Path) -> Self {
        let mut sources = BTreeMap::new();
        read_folder(folder, &Module::new(), &mut sources);
        let mut edges = BTreeMap::new();
        for (module, source) in &sources {
            let targets = source.paths.iter().filter_map(|(within, path)| resolve(&sources, within, path, 0));
            let others = targets.filter(|target| target != module && !target.is_empty());
            edges.insert(module.clone(), others.collect());
        }
        Self { edges }
    }

    /// Groups of files that import each other, directly or through others.
    pub(crate) fn circles(&self) -> BTreeSet<BTreeSet<Module>> {
        let circle_of = |start: &Module| -> BTreeSet<Module> {
            let reached = self.reached(start);
            reached.iter().filter(|other| self.reached(other).contains(start)).cloned().collect()
        };
        self.edges.keys().map(circle_of).filter(|circle| circle.len() > 1).collect()
    }

    /// Returns all files that a file imports, directly or through others.
    fn reached(&self, start: &Module) -> BTreeSet<Module> {
        let mut reached = BTreeSet::new();
        let mut open = vec![start];
        while let Some(module) = open.pop() {
            for next in self.edges.get(module).into_iter().flatten() {
                if reached.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        reached
    }
}

fn read_folder(folder: &Path, module: &Module, sources: &mut BTreeMap<Module, Source>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("the folder can be listed").path();
        let stem = path.file_stem().expect("entries have names").to_string_lossy().into_owned();
        if path.is_dir() {
            if !["bin", "tests"].contains(&stem.as_str()) {
                read_folder(&path, &joined(module, &stem), sources);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let module = match stem.as_str() {
                "main" | "tests" => continue,
                "lib" | "mod" => module.clone(),
                name => joined(module, name),
            };
            let source = read_file(&path, &module);
            sources.insert(module, source);
        }
    }
}

fn read_file(path: &Path, module: &Module) -> Source {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = Reader { within: module.clone(), source: Source::default() };
    reader.visit_file(&file);
    reader.source
}

fn joined(module: &Module, name: &str) -> Module {
    let mut joined = module.clone();
    joined.push(name.to_owned());
    joined
}

/// Collects the paths of one file.
struct Reader {
    within: Module,
    source: Source,
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Mod(inline) if is_for_tests(&inline.attrs) => {}
            Item::Mod(inline) => {
                self.within.push(inline.ident.to_string());
                visit::visit_item_mod(self, inline);
                self.within.pop();
            }
            Item::Use(import) => {
                let mut names = Vec::new();
                flatten(&import.tree, &mut Vec::new(), &mut names);
                for (name, path) in names {
                    if matches!(import.vis, Visibility::Inherited) {
                        self.source.paths.push((self.within.clone(), path));
                    } else {
                        self.source.exports.insert(name, path);
                    }
                }
            }
            item => visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        // A single name is in scope through an import, which already counts.
        if names.len() > 1 {
            self.source.paths.push((self.within.clone(), names));
        }
        visit::visit_path(self, path);
    }
}

/// Collects the names that a `use` declares, with their paths.
fn flatten(tree: &UseTree, prefix: &mut Vec<String>, names: &mut Vec<(String, Vec<String>)>) {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, names);
            prefix.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, prefix, names)),
        UseTree::Name(name) if name.ident == "self" => {
            names.push((prefix.last().cloned().unwrap_or_default(), prefix.clone()));
        }
        UseTree::Name(name) => names.push((name.ident.to_string(), joined(prefix, &name.ident.to_string()))),
        UseTree::Rename(rename) => {
            names.push((rename.rename.to_string(), joined(prefix, &rename.ident.to_string())));
        }
        UseTree::Glob(_) => names.push(("*".to_owned(), prefix.clone())),
    }
}

/// Maximum length of a chain of re-exports to follow. Longer than the chains of any crate. Ends circular chains.
const REEXPORTS_MAX: usize = 8;

/// Returns the file that contains the item of a path. Returns `None` if the item is in another crate or in the same
/// file.
fn resolve(
    sources: &BTreeMap<Module, Source>,
    within: &Module,
    path: &[String],
    followed: usize,
) -> Option<Module> {
    let (mut at, mut rest) = (within.clone(), path);
    match path.first()?.as_str() {
        "crate" => (at, rest) = (Module::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|name| name == "super") {
                at.pop();
                rest = &rest[1..];
            }
        }
        child if sources.contains_key(&joined(&at, child)) => {}
        _ => return None,
    }
    for (index, name) in rest.iter().enumerate() {
        let child = joined(&at, name);
        if sources.contains_key(&child) {
            at = child;
            continue;
        }
        if let Some(behind) = sources.get(&at).and_then(|source| source.exports.get(name))
            && followed < REEXPORTS_MAX
        {
            let whole = [behind.as_slice(), &rest[index + 1..]].concat();
            return resolve(sources, &at, &whole, followed + 1).or(Some(at));
        }
        break;
    }
    // The path may end in a module inside a file.
    while !sources.contains_key(&at) {
        at.pop()?;
    }
    Some(at)
}
