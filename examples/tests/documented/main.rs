//! Every public item of the library stands in an example: of its own documentation, of its type, of the guide, or in a
//! program of `examples/src/bin`. `exceptions.txt` lists the items that lack one; the list only shrinks.
//!
//! - A method or a function stands in an example that calls it. If more than two types share the name, the example is one
//!   of the guide, names the type, or stands in a file that defines the method.
//! - A method whose name ends with `_async` needs no example beside that of the method that blocks.
//! - A type stands in an example that names it. So does the type of a field, an argument or an answer of an item that
//!   stands in one.
//!
//! `docs/api.txt` is the list of public items, which the test `api` compares with the sources.
//!
//! The script language is a crate of its own, and a page explains it. Its items need no example here.
//!
//! A method that blocks and has an async form says so.

mod blocking;
mod code;
mod items;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use self::blocking::{Methods, says_that_it_blocks};
use self::code::{Example, Sources, collect};
use self::items::{Item, Kind};

/// The heading of the crate of the script language in the list.
const SCRIPTS: &str = "ledger-core/numscript";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above").to_owned()
}

/// The examples, and the number of types that have a method of each name.
struct Coverage {
    sources: Sources,
    owners: BTreeMap<String, usize>,
}

impl Coverage {
    fn new(sources: Sources, items: &[Item]) -> Self {
        let methods = items.iter().filter_map(|item| Some((item.name.clone(), item.owner.clone()?)));
        let distinct: BTreeSet<(String, String)> = methods.collect();
        let mut owners = BTreeMap::new();
        for (name, _) in distinct {
            *owners.entry(name).or_insert(0) += 1;
        }
        Self { sources, owners }
    }

    /// Returns whether an example shows the item itself.
    fn shows(&self, item: &Item) -> bool {
        let Some(owner) = &item.owner else {
            return self.sources.examples().any(|example| example.names.contains(&item.name));
        };
        let name = item.name.strip_suffix("_async").unwrap_or(&item.name);
        let calls = |example: &&Example| example.calls.contains(name) || example.calls.contains(&item.name);
        let is_rare = self.owners.get(name).is_none_or(|owners| *owners <= 2);
        self.sources.guides.iter().any(|example| calls(&example))
            || self.sources.examples().filter(calls).any(|example| is_rare || example.names.contains(owner))
            || self.sources.beside(owner, name).any(|example| calls(&example))
    }

    /// Returns the items that no example shows, as the list of exceptions names them.
    fn lacking(&self, items: &[Item]) -> BTreeSet<String> {
        let shown: Vec<&Item> =
            items.iter().filter(|item| item.kind != Kind::Part && self.shows(item)).collect();
        let mut types: BTreeSet<&str> = shown.iter().flat_map(|item| item.types()).collect();
        loop {
            let reached = items.iter().filter(|item| item.kind != Kind::Method && item.is_of(&types));
            let more: BTreeSet<&str> = reached.flat_map(Item::types).collect();
            let before = types.len();
            types.extend(more);
            if types.len() == before {
                break;
            }
        }
        let lacks = |item: &&Item| match item.kind {
            Kind::Type => !types.contains(item.name.as_str()),
            Kind::Method | Kind::Value => !self.shows(item),
            Kind::Part => false,
        };
        items.iter().filter(lacks).map(Item::path).collect()
    }
}

#[test]
fn every_public_item_stands_in_an_example() {
    let api = std::fs::read_to_string(root().join("docs/api.txt")).expect("the interface is listed");
    // The first line explains the list. Headings of crates and their items follow.
    let crates: Vec<&str> = api.split("\n\n").skip(1).collect();
    let others: Vec<&str> = crates.chunks(2).filter(|part| part[0] != SCRIPTS).map(|part| part[1]).collect();
    assert_eq!(others.len(), crates.len() / 2 - 1, "the interface of {SCRIPTS} is not where it was");
    let items = items::read(&others.join("\n"));
    assert!(items.len() > 1_000, "only {} items were found", items.len());
    let lacking = Coverage::new(Sources::read(&root()), &items).lacking(&items);
    let list = std::fs::read_to_string(root().join("examples/tests/documented/exceptions.txt"));
    let list = list.expect("the list of exceptions");
    let exceptions: BTreeSet<String> =
        list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect();
    let new: Vec<_> = lacking.difference(&exceptions).collect();
    let unneeded: Vec<_> = exceptions.difference(&lacking).collect();
    assert!(new.is_empty(), "in no example: {new:#?}");
    assert!(unneeded.is_empty(), "exceptions that are no longer needed: {unneeded:#?}");
}

#[test]
fn finds_items_that_no_example_shows() {
    let api = "impl Thing\n    pub fn new() -> Self\n    pub fn act(&self) -> Answer\n    pub fn idle(&self)\n\
               pub const MAX: usize\npub enum Mood\n    Good\npub struct Answer\n    pub mood: Mood\n\
               pub struct Other\npub struct Thing\n";
    let items = items::read(api);
    let example = |code: &str| Sources { guides: vec![Example::of(code)], files: Vec::new() };
    let lacking = |code: &str| {
        let lacking = Coverage::new(example(code), &items).lacking(&items);
        lacking.into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(lacking("let thing = Thing::new(); thing.act();"), "MAX Other Thing::idle");
    assert_eq!(lacking("idle(MAX)"), "Answer Mood Other Thing Thing::act Thing::idle Thing::new");
}

#[test]
fn blocking_methods_name_their_async_forms() {
    let mut methods = Methods::default();
    collect(&root().join("ledger-store/src"), &mut |path| {
        methods.read(&std::fs::read_to_string(path).expect("the source is readable"));
    });
    let blocking: Vec<_> = methods.blocking().collect();
    assert!(blocking.len() > 60, "only {} methods with an async form were found", blocking.len());
    let silent: Vec<_> = blocking.iter().filter(|(_, name, text)| !says_that_it_blocks(name, text)).collect();
    assert!(silent.is_empty(), "these do not say that they block: {silent:#?}");
}

#[test]
fn finds_blocking_methods_that_do_not_say_so() {
    let mut methods = Methods::default();
    methods.read(
        "impl<T: Copy> List<T> {
            /// Reads a page. Blocks the thread;
            /// [`page_async`](Self::page_async) does not.
            pub fn page(&self) {}
            pub fn page_async(&self) {}
            /// Counts.
            pub fn count(&self) {}
            pub fn count_async(&self) {}
            pub fn size(&self) {}
            fn read(&self) {}
            fn read_async(&self) {}
        }
        #[cfg(test)]
        mod tests { impl X { pub fn x() {} pub fn x_async() {} } }",
    );
    let found: Vec<_> = methods
        .blocking()
        .map(|(owner, name, text)| (owner, name, says_that_it_blocks(name, text)))
        .collect();
    assert_eq!(found, [("List", "count", false), ("List", "page", true)]);
}
