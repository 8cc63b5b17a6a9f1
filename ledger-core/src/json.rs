//! JSON values that keep numbers and the order of members as written. Schemas consist of them.

use std::fmt;

use smol_str::{SmolStr, SmolStrBuilder, ToSmolStr};

use crate::limits::JSON_DEPTH_MAX;
use ledger_values::Timestamp;
use ledger_values::json_text::write_json_text;

/// A JSON value. Numbers keep their digits, and objects keep the order of their members. Of several members
/// with one name, the last one counts.
///
/// ```
/// use ledger_core::Json;
/// let json = Json::parse(r#"{"kind": "topup", "amount": 5.10}"#)?;
/// assert_eq!(json.get("kind").and_then(Json::as_text), Some("topup"));
/// assert_eq!(json.members().map(<[_]>::len), Some(2));
/// assert_eq!(json.sorted().to_string(), r#"{"amount":5.10,"kind":"topup"}"#);
/// # Ok::<(), ledger_core::JsonError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number, with the digits of the text.
    Number(SmolStr),
    /// A string.
    Text(SmolStr),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(Vec<(SmolStr, Json)>),
}

/// Refusal of a text that is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// Byte offset of the fault.
    pub at: usize,
    what: &'static str,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for JsonError {}

impl Json {
    /// Parses a text that is one JSON value.
    ///
    /// # Errors
    ///
    /// [`JsonError`] for any other text, and for one with too deep nesting.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        reader.skip_space();
        if reader.at < text.len() {
            return Err(reader.error("more than one value"));
        }
        Ok(value)
    }

    /// Returns the members of an object, or `None` for any other value.
    pub fn members(&self) -> Option<&[(SmolStr, Json)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Returns the member with a name. If there is none, returns the last member whose name differs only in
    /// case.
    pub fn get(&self, name: &str) -> Option<&Json> {
        let members = self.members()?;
        let exact = members.iter().find(|(have, _)| have == name);
        let like = || members.iter().rev().find(|(have, _)| have.eq_ignore_ascii_case(name));
        exact.or_else(like).map(|(_, value)| value)
    }

    /// Returns the text of a string, or `None` for any other value.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Sorts the members of all objects bytewise by name.
    #[must_use]
    pub fn sorted(self) -> Self {
        match self {
            Self::Array(items) => Self::Array(items.into_iter().map(Self::sorted).collect()),
            Self::Object(members) => {
                let mut members: Vec<_> =
                    members.into_iter().map(|(name, value)| (name, value.sorted())).collect();
                members.sort_unstable_by(|(one, _), (two, _)| one.cmp(two));
                Self::Object(members)
            }
            other => other,
        }
    }

    /// Appends the value as compact JSON, with strings escaped as everywhere on the wire.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Boolean(true) => out.extend_from_slice(b"true"),
            Self::Boolean(false) => out.extend_from_slice(b"false"),
            Self::Number(text) => out.extend_from_slice(text.as_bytes()),
            Self::Text(text) => write_json_text(text, out),
            Self::Array(items) => {
                out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    item.write_to(out);
                }
                out.push(b']');
            }
            Self::Object(members) => {
                out.push(b'{');
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_json_text(name, out);
                    out.push(b':');
                    value.write_to(out);
                }
                out.push(b'}');
            }
        }
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Self::Number(value.to_smolstr())
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Self::Text(value.into())
    }
}

impl From<Timestamp> for Json {
    fn from(value: Timestamp) -> Self {
        Self::Text(value.to_smolstr())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        self.write_to(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn error(&self, what: &'static str) -> JsonError {
        JsonError { at: self.at, what }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("no JSON value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        if depth >= JSON_DEPTH_MAX {
            return Err(self.error("nested too deep"));
        }
        self.skip_space();
        match self.peek() {
            None => Err(self.error("the text ends")),
            Some(b'n') => self.word("null", Json::Null),
            Some(b't') => self.word("true", Json::Boolean(true)),
            Some(b'f') => self.word("false", Json::Boolean(false)),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'[') => self.array(depth),
            Some(b'{') => self.object(depth),
            Some(_) => self.number(),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json, JsonError> {
        let mut items = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.ends(b']')? {
                return Ok(Json::Array(items));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, JsonError> {
        let mut members: Vec<(SmolStr, Json)> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.error("a member has no name"));
            }
            let name = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.error("a member has no value"));
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            if let Some(at) = places.get(&name) {
                let at: usize = *at;
                members[at].1 = value;
            } else {
                places.insert(name.clone(), members.len());
                members.push((name, value));
            }
            if self.ends(b'}')? {
                return Ok(Json::Object(members));
            }
        }
    }

    /// Tells whether the array or object ends here; otherwise reads the comma before the next element.
    fn ends(&mut self, end: u8) -> Result<bool, JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(true)
            }
            _ => Err(self.error("neither a comma nor an end")),
        }
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let from = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let whole = self.digits();
        let leading_zero = whole > 1 && self.text.as_bytes()[self.at - whole] == b'0';
        if whole == 0 || leading_zero {
            self.at = from;
            return Err(self.error("no JSON value"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.error("no digit behind the point"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.error("no exponent"));
            }
        }
        Ok(Json::Number(self.text[from..self.at].into()))
    }

    fn digits(&mut self) -> usize {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - from
    }

    fn string(&mut self) -> Result<SmolStr, JsonError> {
        self.at += 1;
        let mut out = SmolStrBuilder::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ');
            let plain = plain.ok_or_else(|| self.error("a string has no end"))?;
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out.finish());
                }
                Some(b'\\') => {
                    self.at += 1;
                    let escaped = self.escaped()?;
                    out.push(escaped);
                }
                _ => return Err(self.error("a control character in a string")),
            }
        }
    }

    /// Reads the rest of an escape after its backslash. Replaces half of a surrogate pair by U+FFFD.
    fn escaped(&mut self) -> Result<char, JsonError> {
        let letter = self.peek().ok_or_else(|| self.error("a string has no end"))?;
        self.at += 1;
        Ok(match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.code()?;
                if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
                    let behind = self.at;
                    self.at += 2;
                    let second = self.code()?;
                    if (0xdc00..0xe000).contains(&second) {
                        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                        return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    self.at = behind;
                }
                char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return Err(self.error("an unknown escape")),
        })
    }

    fn code(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.error("an unknown escape"))?;
        self.at += 4;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_values_as_read_without_white_space() {
        for (text, written) in [
            (" null ", "null"),
            ("[ ]", "[]"),
            ("{ }", "{}"),
            ("[1, -0, 12.50, 1e+3 ,true,\tfalse]", "[1,-0,12.50,1e+3,true,false]"),
            (r#"{"b":1, "a":{"d" : [] , "c":null}}"#, r#"{"b":1,"a":{"d":[],"c":null}}"#),
            (r#""\u0041\n\/<\ud83e\uddfe\ud800x""#, "\"A\\n/\\u003c🧾\u{fffd}x\""),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
        ] {
            assert_eq!(Json::parse(text).expect(text).to_string(), written);
        }
        let sorted = Json::parse(r#"{"b":1,"a":[{"y":1,"$x":2,".z":3}]}"#).expect("JSON").sorted();
        assert_eq!(sorted.to_string(), r#"{"a":[{"$x":2,".z":3,"y":1}],"b":1}"#);
    }

    #[test]
    fn refuses_texts_that_are_no_json() {
        for text in [
            "",
            " ",
            "nul",
            "tru",
            "01",
            "-",
            "1.",
            "1e",
            "+1",
            ".5",
            "[",
            "[1",
            "[1,]",
            "[1 2]",
            "{",
            "{a:1}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            "\"",
            "\"a",
            r#""\x""#,
            r#""\u12""#,
            "\"\u{1}\"",
            "1 2",
            "{}x",
        ] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }
}
