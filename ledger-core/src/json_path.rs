//! Looks up texts in metadata values by path.

use std::borrow::Cow;

use ledger_values::MetadataValue;

/// Tells whether the value at `path` is a string, number or boolean with this text. A path consists of member
/// names separated by dots; an empty path is the value itself.
pub(crate) fn is_text_at(value: &MetadataValue, path: &str, text: &str) -> bool {
    match value {
        MetadataValue::Text(have) => path.is_empty() && have == text,
        MetadataValue::Json(json) => {
            let mut rest = json.as_str();
            if !path.is_empty() {
                for name in path.split('.') {
                    match member(rest, name) {
                        Some(found) => rest = found,
                        None => return false,
                    }
                }
            }
            scalar(rest).is_some_and(|have| have == text)
        }
    }
}

/// Returns the text of a string, number or boolean.
fn scalar(json: &str) -> Option<Cow<'_, str>> {
    match json.as_bytes().first()? {
        b'"' => Some(unescaped(&json[1..json.len() - 1])),
        b'{' | b'[' | b'n' => None,
        _ => Some(Cow::Borrowed(json)),
    }
}

/// Returns the value of a member of an object. Of several members with the name, the last one counts.
fn member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = json.strip_prefix('{')?;
    let mut found = None;
    while rest.starts_with('"') {
        let (key, behind) = rest.split_at(value_bytes(rest));
        let behind = behind.strip_prefix(':')?;
        let (value, behind) = behind.split_at(value_bytes(behind));
        if unescaped(&key[1..key.len() - 1]) == name {
            found = Some(value);
        }
        rest = behind.strip_prefix(',').unwrap_or("");
    }
    found
}

/// Returns the length of the first JSON value in a text.
fn value_bytes(text: &str) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    in_string = false;
                    if depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Replaces the escapes in the content of a JSON string. The stored text has characters beyond the Basic
/// Multilingual Plane unescaped.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                out.push(code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_texts_by_path() {
        let json = MetadataValue::Json(
            r#"{"a":{"b":[1,{"x":"}"}],"c":"d\u003c\"e","n":-12.50},"t":true,"z":null,"":{"":7}}"#.into(),
        );
        for (path, text) in [("a.c", "d<\"e"), ("a.n", "-12.50"), ("t", "true"), (".", "7")] {
            assert!(is_text_at(&json, path, text), "{path}");
            assert!(!is_text_at(&json, path, "other"), "{path}");
        }
        for path in ["", "a", "a.b", "z", "a.c.d", "nosuch", "t.x", "a.b.0"] {
            for text in ["", "null", "{}", "1"] {
                assert!(!is_text_at(&json, path, text), "{path} {text}");
            }
        }
        assert!(is_text_at(&MetadataValue::Text("v".into()), "", "v"));
        assert!(!is_text_at(&MetadataValue::Text("v".into()), "k", "v"));
        assert!(is_text_at(&MetadataValue::Json("3".into()), "", "3"));
    }
}
