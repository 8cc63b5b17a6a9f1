//! The rules: each takes a file and returns the places that break it.

use crate::lists::incomplete_lists;
use crate::source::{Source, is_word};

/// Maximum number of lines in a file. Longer files are hard to survey.
const FILE_LINES_MAX: usize = 500;

/// Maximum number of lines in a function, from its signature to its closing brace. That much fits on a screen.
const FUNCTION_LINES_MAX: usize = 70;

/// Maximum number of characters in the name of a test, so that a list of tests stays readable.
const TEST_NAME_MAX: usize = 50;

/// Words with which no doc comment may begin. They start with a clause instead of a subject.
const OPENINGS: [&str; 10] =
    ["What", "Who", "Whoever", "Whether", "Where", "Which", "Why", "That which", "So much", "So many"];

/// The rules, by the names that the list of exceptions uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// A file has at most 500 lines.
    FileLength,
    /// A function has at most 70 lines.
    FunctionLength,
    /// The name of a test has at most 50 characters.
    TestName,
    /// No signature returns or takes a `Result<_, String>`.
    StringError,
    /// No doc comment begins with one of the words of `OPENINGS`.
    DocOpening,
    /// Every `allow` and `expect` states its reason.
    AllowReason,
    /// A constant `ALL` of an enum lists all of its variants.
    WholeList,
}

impl Rule {
    pub(crate) const ALL: [Self; 7] = [
        Self::FileLength,
        Self::FunctionLength,
        Self::TestName,
        Self::StringError,
        Self::DocOpening,
        Self::AllowReason,
        Self::WholeList,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::FileLength => "file-length",
            Self::FunctionLength => "function-length",
            Self::TestName => "test-name",
            Self::StringError => "string-error",
            Self::DocOpening => "doc-opening",
            Self::AllowReason => "allow-reason",
            Self::WholeList => "whole-list",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }
}

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    /// The name of the function that breaks the rule, or empty if the file breaks it.
    pub(crate) name: String,
    pub(crate) line: usize,
    /// The text or the number that breaks the rule.
    pub(crate) found: String,
}

/// Returns all violations in a Rust source file.
pub(crate) fn check_source(text: &str) -> Vec<Violation> {
    let source = Source::new(text);
    let mut found = Vec::new();
    file_length(&source, &mut found);
    function_lengths(&source, &mut found);
    test_names(&source, &mut found);
    string_errors(&source, &mut found);
    doc_openings(&source, &mut found);
    attribute_reasons(&source, &mut found);
    whole_lists(&source, &mut found);
    found
}

fn file_length(source: &Source, found: &mut Vec<Violation>) {
    let lines = source.text.lines().count();
    if lines > FILE_LINES_MAX {
        found.push(Violation {
            rule: Rule::FileLength,
            name: String::new(),
            line: lines,
            found: format!("{lines} lines, at most {FILE_LINES_MAX}"),
        });
    }
}

fn function_lengths(source: &Source, found: &mut Vec<Violation>) {
    for function in source.functions() {
        let line = source.line(function.whole.start);
        let lines = source.line(function.whole.end) - line + 1;
        if lines > FUNCTION_LINES_MAX {
            let text = format!("{lines} lines, at most {FUNCTION_LINES_MAX}");
            found.push(Violation { rule: Rule::FunctionLength, name: function.name, line, found: text });
        }
    }
}

fn test_names(source: &Source, found: &mut Vec<Violation>) {
    let functions = source.functions();
    for attribute in source.attributes() {
        if !is_test(&source.text[attribute.clone()]) {
            continue;
        }
        let Some(test) = functions.iter().find(|function| function.whole.start > attribute.end) else {
            continue;
        };
        let length = test.name.chars().count();
        if length > TEST_NAME_MAX {
            found.push(Violation {
                rule: Rule::TestName,
                name: test.name.clone(),
                line: source.line(test.whole.start),
                found: format!("{length} characters, at most {TEST_NAME_MAX}"),
            });
        }
    }
}

/// Returns whether an attribute makes a test: `#[test]`, `#[tokio::test(…)]`.
fn is_test(attribute: &str) -> bool {
    let path = attribute.trim_start_matches(['#', '[']);
    let path = path.split(['(', ']', ' ']).next().unwrap_or_default();
    path == "test" || path.ends_with("::test")
}

/// Finds `Result<_, String>` outside the bodies of functions: in signatures, fields, types and traits.
fn string_errors(source: &Source, found: &mut Vec<Violation>) {
    let masked = source.masked();
    let functions = source.functions();
    for (at, _) in masked.match_indices("Result<") {
        if masked[..at].ends_with(is_word) || !has_string_error(&masked[at + "Result".len()..]) {
            continue;
        }
        let within = |range: &std::ops::Range<usize>| range.contains(&at);
        if functions.iter().any(|function| within(&(function.header.end..function.whole.end))) {
            continue;
        }
        let function = functions.iter().find(|function| within(&function.header));
        found.push(Violation {
            rule: Rule::StringError,
            name: function.map(|function| function.name.clone()).unwrap_or_default(),
            line: source.line(at),
            found: "Result<_, String>".to_owned(),
        });
    }
}

/// Returns whether the second of the type arguments is `String`. `arguments` starts with their `<`.
fn has_string_error(arguments: &str) -> bool {
    let mut depth = 0_i32;
    let mut second = None;
    let mut last = ' ';
    for (at, c) in arguments.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' if last != '-' => depth -= 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 1 && second.is_none() => second = Some(at + 1),
            _ => {}
        }
        if depth == 0 {
            return second.is_some_and(|from| arguments[from..at].trim_matches([',', ' ', '\n']) == "String");
        }
        last = c;
    }
    false
}

fn doc_openings(source: &Source, found: &mut Vec<Violation>) {
    let mut continues = false;
    let mut offset = 0;
    for (index, line) in source.text.split('\n').enumerate() {
        let trimmed = line.trim_start();
        let at = offset + line.len() - trimmed.len();
        offset += line.len() + 1;
        // A line of a literal may look like a comment, but only a comment is masked by spaces.
        let is_comment = source.masked()[at..].starts_with(' ');
        let doc = trimmed.strip_prefix("///").or_else(|| trimmed.strip_prefix("//!")).filter(|_| is_comment);
        let opening = doc.filter(|_| !continues).map(str::trim_start).and_then(forbidden_opening);
        continues = doc.is_some();
        if let Some(opening) = opening {
            found.push(Violation {
                rule: Rule::DocOpening,
                name: String::new(),
                line: index + 1,
                found: format!("a doc comment that begins with `{opening}`"),
            });
        }
    }
}

fn forbidden_opening(text: &str) -> Option<&'static str> {
    OPENINGS
        .into_iter()
        .find(|opening| text.strip_prefix(opening).is_some_and(|rest| !rest.starts_with(is_word)))
}

fn attribute_reasons(source: &Source, found: &mut Vec<Violation>) {
    for attribute in source.attributes() {
        let text = &source.text[attribute.clone()];
        let code = &source.masked()[attribute.clone()];
        let lenient = ["allow(", "expect("]
            .iter()
            .any(|verb| code.match_indices(verb).any(|(at, _)| !code[..at].ends_with(is_word)));
        if lenient && !code.contains("reason =") {
            found.push(Violation {
                rule: Rule::AllowReason,
                name: String::new(),
                line: source.line(attribute.start),
                found: text.to_owned(),
            });
        }
    }
}

/// Finds constants `ALL` that lack a variant of their enum, which the compiler does not see.
fn whole_lists(source: &Source, found: &mut Vec<Violation>) {
    if !source.masked().contains("const ALL: [Self;") {
        return;
    }
    for (name, missing) in incomplete_lists(&source.text) {
        let at = source.text.find(&format!("enum {name}")).unwrap_or_default();
        let line = source.line(at);
        found.push(Violation {
            rule: Rule::WholeList,
            found: format!("`ALL` lacks {missing:?}"),
            name,
            line,
        });
    }
}

/// Returns all lints that a manifest allows without a comment above them.
pub(crate) fn check_manifest(text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut in_lints = false;
    let mut last = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            in_lints = line.contains("lints");
        }
        if in_lints && line.contains("\"allow\"") && !last.starts_with('#') {
            let name = line.split(['=', ' ']).next().unwrap_or_default().to_owned();
            let text = format!("`{line}` without a comment above it");
            found.push(Violation { rule: Rule::AllowReason, name, line: index + 1, found: text });
        }
        last = line;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rules that a text breaks, with the names of the functions.
    fn broken(text: &str) -> Vec<(Rule, String)> {
        check_source(text).into_iter().map(|violation| (violation.rule, violation.name)).collect()
    }

    #[test]
    fn refuses_long_files() {
        assert_eq!(broken(&"\n".repeat(500)), []);
        assert_eq!(broken(&"\n".repeat(501)), [(Rule::FileLength, String::new())]);
    }

    #[test]
    fn refuses_long_functions() {
        let function = |lines: usize| format!("fn short() {{}}\nfn long() {{{}}}\n", "\n".repeat(lines - 1));
        assert_eq!(broken(&function(70)), []);
        assert_eq!(broken(&function(71)), [(Rule::FunctionLength, "long".to_owned())]);
    }

    #[test]
    fn refuses_long_test_names() {
        let (fits, long) = ("a".repeat(50), "a".repeat(51));
        let text =
            |attribute: &str, name: &str| format!("{attribute}\n#[cfg(unix)]\nasync fn {name}() {{}}\n");
        assert_eq!(broken(&text("#[test]", &fits)), []);
        assert_eq!(broken(&text("#[inline]", &long)), []);
        assert_eq!(broken(&text("#[test]", &long)), [(Rule::TestName, long.clone())]);
        assert_eq!(broken(&text("#[tokio::test(flavor = \"x\")]", &long)), [(Rule::TestName, long)]);
    }

    #[test]
    fn refuses_strings_as_errors() {
        let bad = "fn f(x: u8) -> Result<Vec<(u8, u8)>, String> { x }";
        assert_eq!(broken(bad), [(Rule::StringError, "f".to_owned())]);
        let wrapped = "fn f(\n) -> Result<\n    u8,\n    String,\n> { x }";
        assert_eq!(broken(wrapped), [(Rule::StringError, "f".to_owned())]);
        let field = "struct S { f: Box<dyn Fn() -> Result<u8, String>> }";
        assert_eq!(broken(field), [(Rule::StringError, String::new())]);
        for good in [
            "fn f() -> Result<String, E> { x }",
            "fn f() -> Result<(u8, String), Error<u8, String>> { x }",
            "fn f() { let x: Result<u8, String> = y; }",
            "/// A `Result<u8, String>`.\nfn f() -> MyResult<u8, String> {}",
        ] {
            assert_eq!(broken(good), [], "{good}");
        }
    }

    #[test]
    fn refuses_doc_comments_without_subject() {
        for opening in OPENINGS {
            let bad = format!("/// {opening} does it.\nstruct S;\n");
            assert_eq!(broken(&bad), [(Rule::DocOpening, String::new())], "{bad}");
        }
        assert_eq!(broken("//! Who it is.\n"), [(Rule::DocOpening, String::new())]);
        assert_eq!(broken("/// Says\n/// What it is.\n/// Whole numbers.\nstruct S;\n// What\n"), []);
        assert_eq!(broken("/// Whole numbers.\nstruct S;\n"), []);
        assert_eq!(broken("const TEXT: &str = r\"\n/// What\n\";\n"), []);
    }

    #[test]
    fn refuses_allows_without_reason() {
        for bad in ["#[allow(dead_code)]", "#![expect(x)]", "#[cfg_attr(not(unix), allow(x))]"] {
            assert_eq!(broken(bad), [(Rule::AllowReason, String::new())], "{bad}");
        }
        for good in
            ["#[allow(x, reason = \"y\")]", "#[should_panic(expected = \"allow()\")]", "#[disallow(x)]"]
        {
            assert_eq!(broken(good), [], "{good}");
        }
    }

    #[test]
    fn refuses_lists_that_lack_a_variant() {
        let text = |listed: &str| {
            format!("enum E {{ A, B {{ c: u8 }}, Bc(u8) }} impl E {{ const ALL: [Self; 3] = [{listed}]; }}")
        };
        assert_eq!(broken(&text("Self::A, Self::B { c: 1 }, Self::Bc(1)")), []);
        let lacks = [(Rule::WholeList, "E".to_owned())];
        assert_eq!(broken(&text("Self::A, Self::Bc(1), Self::Bc(2)")), lacks);
        assert_eq!(broken(&text("Self::A, Self::B { c: 1 } /* Self::Bc */")), lacks);
    }

    #[test]
    fn refuses_lints_without_reason() {
        let text = "[dependencies]\nx = \"allow\"\n[lints.clippy]\n# Why.\na = \"allow\"\nb = { level = \"allow\" }\n";
        let found: Vec<String> = check_manifest(text).into_iter().map(|violation| violation.name).collect();
        assert_eq!(found, ["b"]);
    }
}
