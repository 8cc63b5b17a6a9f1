//! Reads Rust source text without parsing it: masks comments and literals, then finds functions and attributes.

use std::ops::Range;

/// A source file: its text, and a copy of equal length without the contents of comments and literals.
pub(crate) struct Source {
    pub(crate) text: String,
    masked: String,
}

/// A function with its position in the masked text.
pub(crate) struct Function {
    pub(crate) name: String,
    /// From `fn` to the body or the semicolon.
    pub(crate) header: Range<usize>,
    /// From `fn` to the end of the body or the semicolon.
    pub(crate) whole: Range<usize>,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), masked: mask(text) }
    }

    /// Returns the masked text, which has the same offsets as the text.
    pub(crate) fn masked(&self) -> &str {
        &self.masked
    }

    /// Returns the line of an offset, counted from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        1 + self.text[..offset].matches('\n').count()
    }

    /// Returns all functions with a name, including functions within functions.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let masked = &self.masked;
        let mut found = Vec::new();
        for start in words(masked, "fn") {
            let after = &masked[start + 2..];
            let name: String = after.trim_start().chars().take_while(|c| is_word(*c)).collect();
            if name.is_empty() {
                continue;
            }
            let Some(body) = header_end(masked, start) else { continue };
            let end = if masked.as_bytes()[body] == b'{' { closing(masked, body) + 1 } else { body + 1 };
            found.push(Function { name, header: start..body, whole: start..end });
        }
        found
    }

    /// Returns all attributes, each from its `#` to its closing bracket.
    pub(crate) fn attributes(&self) -> Vec<Range<usize>> {
        let masked = &self.masked;
        let mut found = Vec::new();
        for (start, _) in masked.match_indices('#') {
            let rest = &masked[start + 1..];
            let open = start + 1 + usize::from(rest.starts_with('!'));
            if masked[open..].starts_with('[') {
                found.push(start..closing(masked, open) + 1);
            }
        }
        found
    }
}

/// Returns the positions at which `word` is a whole word.
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !text[..*at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the position of the `{` or `;` that ends the header of the function at `start`.
fn header_end(masked: &str, start: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, byte) in masked.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' | b';' if depth == 0 => return Some(at),
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    None
}

/// Returns the position of the bracket that closes the one at `open`, or the end of the text.
fn closing(masked: &str, open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in masked.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    masked.len() - 1
}

/// Replaces each byte of a comment by a space and each byte of a literal by a quote. Keeps line ends.
fn mask(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut masked = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = opaque_end(text, at);
        if end > at {
            let filler = if bytes[at] == b'/' { b' ' } else { b'"' };
            masked.extend(bytes[at..end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { filler }));
            at = end;
        } else {
            masked.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(masked).expect("whole comments and literals were replaced")
}

/// Returns the end of the comment or literal that starts at `at`, or `at` itself if none starts there.
fn opaque_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let rest = &bytes[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
        b'/' if rest.starts_with(b"/*") => at + block_comment_length(rest),
        b'"' => at + string_length(rest),
        b'r' if at == 0 || !is_word(char::from(bytes[at - 1])) || bytes[at - 1] == b'b' => {
            at + raw_string_length(rest)
        }
        b'\'' => at + character_length(&text[at..]),
        _ => at,
    }
}

/// Returns the length of a block comment, including the comments inside it.
fn block_comment_length(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Returns the length of a string literal with escapes.
fn string_length(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns the length of a raw string literal, or 0 if none starts here.
fn raw_string_length(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let content = 2 + hashes;
    let found = rest[content..].windows(end.len()).position(|window| window == end.as_bytes());
    found.map_or(rest.len(), |length| content + length + end.len())
}

/// Returns the length of a character literal, or 0 if the quote starts a lifetime.
fn character_length(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars.find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1)
        }
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        Source::new(text).functions().into_iter().map(|function| function.name).collect()
    }

    #[test]
    fn masks_comments_and_literals() {
        let text = r##"a("fn x() {", 'f', '\'', "\"") /* fn /* y */ z */ b(r#"fn " q"#); // fn w"##;
        let masked = mask(text);
        assert_eq!(masked.len(), text.len());
        let code: String = masked.chars().filter(|c| !" \"".contains(*c)).collect();
        assert_eq!(code, "a(,,,)b();");
    }

    #[test]
    fn keeps_lifetimes_and_lines() {
        let masked = mask("fn a<'a>(x: &'a str) {\n// é\n}\n");
        assert_eq!(masked, "fn a<'a>(x: &'a str) {\n     \n}\n");
    }

    #[test]
    fn finds_functions_with_their_bodies() {
        let text = "trait T { fn a(&self) -> [u8; 4]; }\nfn b(f: fn(u8)) where u8: Copy {\n fn c() {}\n}\n";
        assert_eq!(names(text), ["a", "b", "c"]);
        let source = Source::new(text);
        let functions = source.functions();
        assert!(text[functions[0].whole.clone()].ends_with("-> [u8; 4];"));
        assert!(text[functions[1].header.clone()].ends_with("Copy "));
        assert_eq!(source.line(functions[1].whole.start), 2);
        assert_eq!(source.line(functions[1].whole.end), 4);
    }

    #[test]
    fn finds_attributes() {
        let text = "#![allow(a)]\n#[cfg(x = \"]\")]\nfn f() { let s = \"#[no]\"; }\n";
        let source = Source::new(text);
        let found: Vec<&str> = source.attributes().into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, ["#![allow(a)]", "#[cfg(x = \"]\")]"]);
    }
}
