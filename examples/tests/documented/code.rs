//! Collects the examples: Rust code in the documentation of items and in pages, and the example programs.

use std::collections::BTreeSet;
use std::path::Path;

/// The sources of the crates whose documentation contains examples.
const SOURCES: [&str; 3] = ["ledger-core/values/src", "ledger-core/src", "ledger-store/src"];

/// Pages that are part of the documentation.
const PAGES: [&str; 4] =
    ["README.md", "ledger-core/README.md", "ledger-store/README.md", "ledger-store/src/guide.md"];

/// Languages of code blocks that are not Rust.
const OTHER_LANGUAGES: [&str; 7] = ["text", "ebnf", "numscript", "console", "json", "toml", "sh"];

/// The names in an example.
pub(crate) struct Example {
    /// All names.
    pub(crate) names: BTreeSet<String>,
    /// The names that follow a dot or `::`: called methods and functions, but also fields, variants and modules.
    pub(crate) calls: BTreeSet<String>,
}

/// A source file and the examples in its doc comments.
pub(crate) struct File {
    text: String,
    examples: Vec<Example>,
}

/// All examples.
pub(crate) struct Sources {
    /// The examples of pages, and the example programs.
    pub(crate) guides: Vec<Example>,
    /// The source files, with the examples in the documentation of their items.
    pub(crate) files: Vec<File>,
}

/// Splits a text into identifiers.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
}

impl Example {
    pub(crate) fn of(code: &str) -> Self {
        let after = |separator| code.split(separator).skip(1);
        let calls = after(".").chain(after("::")).filter_map(|rest| {
            let is_name = rest.starts_with(|first: char| first.is_alphabetic() || first == '_');
            names(rest).next().filter(|_| is_name)
        });
        Self { names: names(code).map(str::to_owned).collect(), calls: calls.map(str::to_owned).collect() }
    }
}

impl File {
    fn of(text: String) -> Self {
        let mut examples = Vec::new();
        let mut comment = String::new();
        for line in text.lines().map(str::trim_start).chain([""]) {
            if let Some(line) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) {
                comment.push_str(line.strip_prefix(' ').unwrap_or(line));
                comment.push('\n');
            } else {
                examples.extend(blocks(&comment));
                comment.clear();
            }
        }
        Self { text, examples }
    }

    /// Returns whether the file defines a method of a type.
    fn defines(&self, owner: &str, name: &str) -> bool {
        let is_head = |line: &&str| {
            line.starts_with("impl") && !line.contains(" for ") && names(line).any(|word| word == owner)
        };
        self.text.contains(&format!("fn {name}")) && self.text.lines().any(|line| is_head(&line))
    }
}

impl Sources {
    /// Reads the sources, the pages and the programs of the repository.
    pub(crate) fn read(root: &Path) -> Self {
        let read = |path: &Path| std::fs::read_to_string(path).expect("the file is readable");
        let mut guides: Vec<Example> =
            PAGES.iter().flat_map(|page| blocks(&read(&root.join(page)))).collect();
        let mut programs = Vec::new();
        collect(&root.join("examples/src/bin"), &mut |path| programs.push(Example::of(&read(path))));
        assert!(programs.len() >= 10, "only {} programs were found", programs.len());
        guides.extend(programs);
        let mut files = Vec::new();
        for sources in SOURCES {
            collect(&root.join(sources), &mut |path| files.push(File::of(read(path))));
        }
        Self { guides, files }
    }

    /// Iterates over all examples.
    pub(crate) fn examples(&self) -> impl Iterator<Item = &Example> {
        self.guides.iter().chain(self.files.iter().flat_map(|file| &file.examples))
    }

    /// Iterates over the examples in files that define a method.
    pub(crate) fn beside(&self, owner: &str, name: &str) -> impl Iterator<Item = &Example> {
        self.files.iter().filter(move |file| file.defines(owner, name)).flat_map(|file| &file.examples)
    }
}

/// Visits the Rust sources below a folder.
pub(crate) fn collect(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() {
            collect(&path, visit);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            visit(&path);
        }
    }
}

/// Returns the examples in a text of Markdown.
fn blocks(text: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut code: Option<(bool, String)> = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut code) {
            (Some(_), Some((is_rust, found))) => {
                examples.extend(is_rust.then(|| Example::of(found)));
                code = None;
            }
            (Some(language), None) => {
                let is_rust =
                    !OTHER_LANGUAGES.contains(&language.trim()) && !language.starts_with("compile_fail");
                code = Some((is_rust, String::new()));
            }
            (None, Some((_, found))) => {
                found.push_str(line);
                found.push('\n');
            }
            (None, None) => {}
        }
    }
    examples
}
