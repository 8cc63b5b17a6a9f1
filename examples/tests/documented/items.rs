//! The public items that `docs/api.txt` lists.

use std::collections::BTreeSet;

use crate::code::names;

/// The kinds of lines in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A struct, an enum, a trait or an alias.
    Type,
    /// A function or constant of a type, or a method of a trait.
    Method,
    /// A function or constant of a module.
    Value,
    /// A field or a variant. It stands where its type stands.
    Part,
}

/// A line of the list.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// The type that has the item.
    pub(crate) owner: Option<String>,
    pub(crate) name: String,
    /// The types that its line mentions.
    mentioned: BTreeSet<String>,
}

impl Item {
    fn new(kind: Kind, owner: Option<&str>, name: &str, line: &str) -> Self {
        let is_type = |name: &String| name.starts_with(|first: char| first.is_ascii_uppercase());
        let mentioned = names(line).map(str::to_owned).filter(is_type).collect();
        Self { kind, owner: owner.map(str::to_owned), name: name.to_owned(), mentioned }
    }

    /// Returns the types that stand in an example if this item does.
    pub(crate) fn types(&self) -> impl Iterator<Item = &str> {
        self.mentioned.iter().chain(&self.owner).map(String::as_str)
    }

    /// Returns whether this is one of the types, or a part of one.
    pub(crate) fn is_of(&self, types: &BTreeSet<&str>) -> bool {
        types.contains(self.owner.as_ref().unwrap_or(&self.name).as_str())
    }

    /// Returns the name of the item with that of its type.
    pub(crate) fn path(&self) -> String {
        match &self.owner {
            Some(owner) => format!("{owner}::{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Reads the list.
pub(crate) fn read(api: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut owner: Option<String> = None;
    for line in api.lines() {
        let text = line.trim_start();
        if text.len() == line.len() {
            owner = None;
            if let Some(head) = line.strip_prefix("impl") {
                owner = implemented(head);
            } else if let Some((kind, name)) = defined(line) {
                items.push(Item::new(kind, None, name, line));
                owner = Some(name.to_owned());
            }
            continue;
        }
        // Attributes of a type stand below it.
        let Some(of) = owner.as_deref().filter(|_| !text.starts_with("#[")) else { continue };
        items.push(match method(text) {
            Some(name) => Item::new(Kind::Method, Some(of), name, line),
            None => Item::new(Kind::Part, Some(of), "", line),
        });
    }
    items
}

/// Returns the type of an inherent implementation.
fn implemented(head: &str) -> Option<String> {
    if head.contains(" for ") {
        return None;
    }
    let mut depth = 0;
    let mut before = ' ';
    let start = head.find(|character| {
        match character {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        before = character;
        depth == 0 && character == ' '
    })?;
    names(&head[start..]).next().map(str::to_owned)
}

/// Returns the kind and the name of a definition.
fn defined(line: &str) -> Option<(Kind, &str)> {
    let rest = line.strip_prefix("pub ")?;
    let (word, rest) = rest.split_once(' ')?;
    let kind = match word {
        "struct" | "enum" | "trait" | "type" => Kind::Type,
        "const" | "fn" => Kind::Value,
        _ => return None,
    };
    let name = names(rest).find(|name| *name != "fn")?;
    Some((kind, name))
}

/// Returns the name of a function or constant of a type.
fn method(text: &str) -> Option<&str> {
    let text = text.strip_prefix("pub ").unwrap_or(text);
    if !text.starts_with("fn ") && !text.starts_with("const ") {
        return None;
    }
    names(text).find(|name| !matches!(*name, "fn" | "const"))
}
