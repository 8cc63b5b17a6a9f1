//! The public interface of the library as a text, `docs/api.txt`, so that reviewers see every change of it.
//!
//! `UPDATE_API=1 cargo test -p examples --test api` rewrites the file.
//!
//! The lint `unreachable_pub` forbids `pub` for items that other crates cannot reach. So the interface is everything
//! that is `pub` in the sources, and the lines as `rustfmt` breaks them tell where an item ends. Types have their derived
//! traits and `#[non_exhaustive]` below them. The names that the macro `name` makes are listed one by one; of other macros,
//! what they make, and their calls.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The crates that an application sees.
const SOURCES: [&str; 4] =
    ["ledger-core/values/src", "ledger-core/numscript/src", "ledger-core/src", "ledger-store/src"];

/// Modules that only tests and fuzz targets use, and the command line of scripts.
const HIDDEN: [&str; 4] = [
    "ledger-store/src/testing.rs",
    "ledger-core/src/model",
    "ledger-core/numscript/src/bin",
    "ledger-core/numscript/src/cli",
];

/// Macros that make nothing public.
const PRIVATE_MACROS: [&str; 4] = ["compare_rows", "compared", "tables", "thread_local"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above").to_owned()
}

/// Collects the source files below a folder, without those of tests.
fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the sources are readable") {
        let path = entry.expect("the sources are readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "tests" {
            files_below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs" {
            files.push(path);
        }
    }
}

/// The item that encloses a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Enclosing {
    /// The module.
    Module,
    /// A public struct, or an inherent implementation: its `pub` lines count.
    PublicLines,
    /// A public enum or trait: all its lines count.
    AllLines,
    /// A macro: the items that it makes count.
    Macro,
    /// Something that is not public.
    Hidden,
}

/// Replaces the calls of the macro `name` in a file by what it makes.
fn with_names(source: &str) -> String {
    let Some((before, rest)) = source.split_once("macro_rules! name {") else { return source.to_owned() };
    let (definition, after) = rest.split_once("\n}\n").expect("the macro ends");
    let (_, body) = definition.split_once("=> {\n").expect("the macro has a rule");
    let body = body.rsplit_once("    };").map_or(body, |(body, _)| body);
    let body: String = body
        .lines()
        .fold(String::new(), |body, line| body + line.strip_prefix("        ").unwrap_or(line) + "\n");
    let mut text = before.to_owned();
    let mut parts = after.split("\nname!(\n");
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (call, rest) = part.split_once("\n);\n").expect("the call ends");
        let mut words = call.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        let name = words.next().expect("the call has a name").trim_end_matches(',');
        text.push('\n');
        text.push_str(&body.replace("$name", name).replace("$(#[$doc])*\n", ""));
        text.push_str(rest);
    }
    text
}

/// Returns the items of one file, in their order.
fn items_of(source: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut attributes = Vec::new();
    let mut enclosing = Enclosing::Module;
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text.is_empty() || text.starts_with("//") {
            continue;
        }
        if text.starts_with("#[") {
            if line.starts_with("#[cfg(test)]") {
                // A module of tests ends a file, unless its code is in a separate file.
                if lines.next().is_none_or(|item| item.ends_with('{')) {
                    break;
                }
                continue;
            }
            attributes.extend(attribute(text, &mut lines));
            continue;
        }
        let attributes = std::mem::take(&mut attributes);
        if indent == 0 {
            enclosing = Enclosing::Module;
            let named = text.strip_prefix("macro_rules! ").unwrap_or(text);
            let name = named.split([' ', '!']).next().unwrap_or_default();
            if PRIVATE_MACROS.contains(&name) {
                enclosing = Enclosing::Hidden;
                continue;
            }
        }
        if !begins(text, indent, enclosing) {
            if indent == 0 && !text.starts_with(['}', ')']) {
                enclosing = Enclosing::Hidden;
            }
            continue;
        }
        let mut item = text.to_owned();
        while !is_complete(&item, indent) {
            let Some(next) = lines.next() else { break };
            if next.trim_start().starts_with("//") || next.trim_start().starts_with("#[") {
                continue;
            }
            item.push(' ');
            item.push_str(next.trim());
        }
        if indent == 0 {
            enclosing = enclosed_by(&item);
        }
        items.push(format!("{}{}", " ".repeat(indent), tidied(&item)));
        items.extend(attributes.iter().map(|attribute| format!("{}{attribute}", " ".repeat(indent + 4))));
    }
    items
}

/// Returns whether a line begins an item of the interface.
fn begins(text: &str, indent: usize, enclosing: Enclosing) -> bool {
    let is_public = text.starts_with("pub ");
    let is_impl = text.starts_with("impl") && !text.contains("pub(");
    match (enclosing, indent) {
        (Enclosing::Module, 0) => is_public || is_impl || is_macro(text),
        (Enclosing::PublicLines, 4) => is_public,
        (Enclosing::Macro, 8) => is_public || is_impl,
        (Enclosing::AllLines, 4) => text.starts_with(|first: char| first.is_ascii_alphabetic()),
        (Enclosing::AllLines, 8) => !text.starts_with("return") && text.ends_with(',') && text.contains(": "),
        _ => false,
    }
}

/// Returns whether a line defines or calls a macro.
fn is_macro(text: &str) -> bool {
    let name = text.split('!').next().unwrap_or_default();
    name.len() < text.len() && name.chars().all(|part| part.is_ascii_lowercase() || part == '_')
}

/// Reads the rest of an attribute. Returns it if it derives traits, or lets a type grow without a break.
fn attribute<'a>(first: &str, lines: &mut impl Iterator<Item = &'a str>) -> Option<String> {
    let mut attribute = first.to_owned();
    while !attribute.ends_with(']') {
        attribute.push(' ');
        attribute.push_str(lines.next()?.trim());
    }
    (attribute.contains("derive(") || attribute == "#[non_exhaustive]").then(|| tidied(&attribute))
}

/// Returns whether the head of an item is whole.
fn is_complete(item: &str, indent: usize) -> bool {
    if ["pub use", "pub const ", "pub static"].iter().any(|start| item.starts_with(start))
        && !item.contains("fn ")
    {
        return item.ends_with(';');
    }
    if is_macro(item) {
        let is_closed = |open, close| item.matches(open).count() == item.matches(close).count();
        return item.starts_with("macro_rules!") || (is_closed('(', ')') && is_closed('{', '}'));
    }
    let is_field = indent > 0 && !item.contains("fn ");
    let is_balanced = item.matches('(').count() == item.matches(')').count();
    is_balanced && (item.ends_with(['{', ';', '}']) || (is_field && item.ends_with(',')))
}

/// Classifies the lines below the head of an item.
fn enclosed_by(head: &str) -> Enclosing {
    if head.starts_with("macro_rules!") {
        return Enclosing::Macro;
    }
    if !head.ends_with('{') {
        return Enclosing::Module;
    }
    let is_of_trait = head.starts_with("impl") && head.contains(" for ");
    if is_of_trait || head.starts_with("pub fn") || head.starts_with("pub const fn") {
        Enclosing::Hidden
    } else if head.starts_with("pub enum") || head.starts_with("pub trait") {
        Enclosing::AllLines
    } else {
        Enclosing::PublicLines
    }
}

/// Returns the head of an item without its body.
fn tidied(item: &str) -> String {
    let value = if item.contains("const ") && !item.contains("fn ") { item.find(" = ") } else { None };
    let item = value.map_or(item, |at| &item[..at]);
    let item = item.trim_end_matches('{').trim_end().trim_end_matches([';', ',']);
    item.replace("( ", "(").replace(", )", ")").replace(",)", ")").replace(" )", ")")
}

/// Returns the name of the type that an item defines, or for which it implements something.
fn type_of(item: &str) -> Option<&str> {
    let after = |word: &str| item.split_once(word).map(|(_, rest)| rest);
    let rest = match item.strip_prefix("impl") {
        Some(rest) => after(" for ").unwrap_or_else(|| rest.split_once("> ").map_or(rest, |(_, rest)| rest)),
        None => ["pub struct ", "pub enum ", "pub trait ", "pub type "]
            .iter()
            .find_map(|word| item.strip_prefix(word))?,
    };
    let rest = rest.trim_start_matches(['&', ' ']);
    let name = rest.split(|part: char| !part.is_alphanumeric() && part != '_' && part != ':').next()?;
    name.rsplit("::").next()
}

/// Joins the head of each item with the lines below it.
fn blocks_of(items: &[String]) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    for item in items {
        match blocks.last_mut() {
            Some(block) if item.starts_with(' ') => {
                block.push('\n');
                block.push_str(item);
            }
            _ => blocks.push(item.clone()),
        }
    }
    blocks
}

/// Returns the interface of all crates. It is sorted, so that it does not change when an item moves to another file.
fn interface() -> String {
    let root = root();
    let mut text = String::from(
        "The public interface of the library. `UPDATE_API=1 cargo test -p examples --test api` writes this file.\n",
    );
    let crates = SOURCES.map(|sources| {
        let mut files = Vec::new();
        files_below(&root.join(sources), &mut files);
        files.retain(|file| !HIDDEN.iter().any(|hidden| file.starts_with(root.join(hidden))));
        let blocks = files.iter().flat_map(|file| {
            let source = std::fs::read_to_string(file).expect("the source is readable");
            blocks_of(&items_of(&with_names(&source)))
        });
        blocks.collect::<BTreeSet<String>>()
    });
    let blocks = crates.iter().flatten();
    let public: BTreeSet<&str> =
        blocks.filter(|block| block.starts_with("pub")).filter_map(|block| type_of(block)).collect();
    for (sources, blocks) in SOURCES.iter().zip(&crates) {
        let _ = writeln!(text, "\n{}\n", sources.trim_end_matches("/src"));
        for block in blocks {
            let head = block.lines().next().unwrap_or_default();
            let is_empty = !head.contains(" for ") && head == block;
            let is_public = type_of(head).is_some_and(|name| public.contains(name));
            if !head.starts_with("impl") || (is_public && !is_empty) {
                let _ = writeln!(text, "{block}");
            }
        }
    }
    text
}

/// Returns the lines of the list, each behind the head of its block.
fn lines_with_heads(text: &str) -> BTreeSet<String> {
    let mut head = "";
    let lines = text.lines().map(|line| {
        if !line.starts_with(' ') {
            head = line;
            return line.to_owned();
        }
        format!("{head}: {}", line.trim_start())
    });
    lines.collect()
}

#[test]
fn interface_is_the_one_written_down() {
    let file = root().join("docs/api.txt");
    let now = interface();
    if std::env::var_os("UPDATE_API").is_some() {
        std::fs::write(&file, now).expect("the file is writable");
        return;
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let (before, after) = (lines_with_heads(&written), lines_with_heads(&now));
    let gone: Vec<_> = before.difference(&after).collect();
    let new: Vec<_> = after.difference(&before).collect();
    assert!(
        written == now,
        "the interface has changed; if that is intended: UPDATE_API=1 cargo test -p examples --test api\n\
         gone: {gone:#?}\nnew: {new:#?}"
    );
}

/// Types whose methods async programs call directly.
const ASYNC_TYPES: [&str; 9] = [
    "AtomicBatch",
    "BalanceSums",
    "Batch",
    "Ledger",
    "List",
    "MetadataBuilder",
    "RevertBuilder",
    "Store",
    "TransactionBuilder",
];

/// Methods of them that return a `Result` and do not block, because they only check or read memory.
const INSTANT: [&str; 4] = ["BalanceSums::filter_json", "Ledger::info", "List::filter_json", "Store::ledger"];

/// Methods of them that block without returning a `Result`.
const BLOCKING: [&str; 2] = ["Store::flush", "Store::wait_until_stopped"];

/// Methods for tests only.
const TESTING: [&str; 1] = ["Store::open_on_disk"];

#[test]
fn blocking_methods_have_async_forms() {
    let interface = interface();
    let mut of = None;
    let mut methods = BTreeSet::new();
    let mut results = BTreeSet::new();
    for line in interface.lines() {
        if line.starts_with("impl") && !line.contains(" for ") {
            of = type_of(line).filter(|name| ASYNC_TYPES.contains(name));
        } else if !line.starts_with(' ') {
            of = None;
        }
        let Some((of, (_, method))) = of.zip(line.split_once("pub fn ")) else { continue };
        let name = method.split(['(', '<']).next().unwrap_or_default();
        let name = format!("{of}::{name}");
        if method.contains(") -> Result<") {
            results.insert(name.clone());
        }
        methods.insert(name);
    }
    let exempt = |name: &&String| !INSTANT.contains(&name.as_str()) && !TESTING.contains(&name.as_str());
    let blocking = results.iter().filter(exempt).map(String::as_str).chain(BLOCKING);
    let lacking: Vec<&str> = blocking.filter(|name| !methods.contains(&format!("{name}_async"))).collect();
    assert!(lacking.is_empty(), "without an async form: {lacking:?}");
    assert!(results.len() > 40, "the list is wrong: {results:?}");
    let unknown = |name: &&&str| !methods.contains(**name);
    assert_eq!(INSTANT.iter().chain(&BLOCKING).filter(unknown).count(), 0);
}

const SAMPLE: &str = r"
//! A module.
use std::fmt;

/// A thing.
#[derive(
    Clone,
    Debug,
)]
#[non_exhaustive]
#[must_use]
pub struct Thing {
    /// A field.
    pub field: u64,
    hidden: u64,
}

#[derive(Clone)]
pub(crate) struct Inner {
    pub(crate) field: u64,
}

impl Thing {
    /// Does something.
    pub fn act<A>(
        &self,
        what: A,
    ) -> Result<(), Error>
    where
        A: Into<String>,
    {
        let pub_name = 1;
    }

    fn private(&self) {}
}

impl fmt::Display for Thing {
    fn fmt(&self) {}
}

pub enum Kind {
    One,
    Two {
        name: String,
    },
}

fn private() {
    pub struct Local;
}

macro_rules! of_numbers {
    ($($number:ty),+) => {$(
        impl From<$number> for Thing {
            fn from(number: $number) -> Self {}
        }
    )+};
}

of_numbers!(u8, u16);
thread_local! {
    static CACHE: u8 = 0;
}

pub const MAX: usize = 10;
pub trait Does {
    fn it(&self) -> u64;
}

#[cfg(test)]
mod tests {
    pub fn helper() {}
}
";

#[test]
fn finds_public_items_with_their_heads() {
    let expected = [
        "pub struct Thing",
        "    #[derive(Clone, Debug)]",
        "    #[non_exhaustive]",
        "    pub field: u64",
        "impl Thing",
        "    pub fn act<A>(&self, what: A) -> Result<(), Error> where A: Into<String>",
        "impl fmt::Display for Thing",
        "pub enum Kind",
        "    One",
        "    Two",
        "        name: String",
        "macro_rules! of_numbers",
        "        impl From<$number> for Thing",
        "of_numbers!(u8, u16)",
        "pub const MAX: usize",
        "pub trait Does",
        "    fn it(&self) -> u64",
    ];
    assert_eq!(items_of(SAMPLE), expected);
}
