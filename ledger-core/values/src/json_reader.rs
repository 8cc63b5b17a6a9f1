//! Reads JSON without a tree of values.

use std::borrow::Cow;
use std::fmt;

/// Refusal of a text that is not the expected JSON.
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

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number,
    /// A string.
    Text,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// Reads the values of a text one after the other, without a tree of values.
///
/// The grammar is strict. Numbers keep their digits. Where a string, a whole number, an array or an object is
/// expected, `null` counts as an absent value, as servers of the ledger API read it. The reader passes every member of
/// an object to the caller, also if a name occurs several times.
///
/// ```
/// use ledger_values::{JsonError, JsonKind, JsonReader};
///
/// fn flatten(reader: &mut JsonReader<'_>, out: &mut Vec<String>) -> Result<(), JsonError> {
///     match reader.kind()? {
///         JsonKind::Object => reader.object(|reader, name| match name {
///             "ignored" => reader.skip(),
///             _ => flatten(reader, out),
///         })?,
///         JsonKind::Array => reader.array(|reader| flatten(reader, out))?,
///         JsonKind::Number => out.push(reader.number()?.to_owned()),
///         JsonKind::Text => out.push(reader.text()?.into_owned()),
///         JsonKind::Boolean => out.push(reader.boolean()?.to_string()),
///         JsonKind::Null => reader.skip()?,
///     }
///     Ok(())
/// }
///
/// let mut reader = JsonReader::new(r#"{"amount": 5.10, "notes": ["a", true, null], "ignored": {}}"#, 2);
/// let mut values = Vec::new();
/// flatten(&mut reader, &mut values)?;
/// reader.end()?;
/// assert_eq!(values, ["5.10", "a", "true"]);
/// assert_eq!(JsonReader::new("null", 1).optional_text()?, None);
/// assert_eq!(JsonReader::new("0042", 1).digits().unwrap_err().to_string(), "no JSON value at byte 0");
/// # Ok::<(), JsonError>(())
/// ```
#[derive(Debug)]
pub struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    depth_max: usize,
}

impl<'a> JsonReader<'a> {
    /// Creates a reader of a text. `depth_max` is the maximum nesting of its arrays and objects, and bounds the recursion
    /// of the callers.
    pub const fn new(text: &'a str, depth_max: usize) -> Self {
        Self { text, at: 0, depth: 0, depth_max }
    }

    /// Returns the kind of the next value by its first byte. The value itself may still be malformed.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if no value begins here.
    pub fn kind(&mut self) -> Result<JsonKind, JsonError> {
        match self.peek() {
            None => Err(self.fault("the text ends")),
            Some(b'n') => Ok(JsonKind::Null),
            Some(b't' | b'f') => Ok(JsonKind::Boolean),
            Some(b'"') => Ok(JsonKind::Text),
            Some(b'[') => Ok(JsonKind::Array),
            Some(b'{') => Ok(JsonKind::Object),
            Some(b'-' | b'0'..=b'9') => Ok(JsonKind::Number),
            Some(_) => Err(self.fault("no JSON value")),
        }
    }

    /// Reads `true` or `false`.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if the next value is another one.
    pub fn boolean(&mut self) -> Result<bool, JsonError> {
        let value = self.peek() == Some(b't');
        self.word(if value { "true" } else { "false" }).map(|()| value)
    }

    /// Checks that nothing but white space is left.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if there is more.
    pub fn end(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault("more than one value")),
        }
    }

    /// Reads an object. Calls `member` with each name; it must read the value.
    ///
    /// # Errors
    ///
    /// [`JsonError`] for another or malformed value, and the errors of `member`.
    pub fn object<E: From<JsonError>>(
        &mut self,
        mut member: impl FnMut(&mut Self, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.take_null()? {
            return Ok(());
        }
        self.open(b'{', "expected an object")?;
        if self.take_end(b'}') {
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.fault("a member has no name").into());
            }
            let name = self.string()?;
            self.expect(b':', "a member has no value")?;
            member(self, &name)?;
            if !self.take_comma_or_end(b'}')? {
                return Ok(());
            }
        }
    }

    /// Reads an array. Calls `element` for each value, which it must read.
    ///
    /// # Errors
    ///
    /// [`JsonError`] for another or malformed value, and the errors of `element`.
    pub fn array<E: From<JsonError>>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.take_null()? {
            return Ok(());
        }
        self.open(b'[', "expected an array")?;
        if self.take_end(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if !self.take_comma_or_end(b']')? {
                return Ok(());
            }
        }
    }

    /// Reads a string. `null` is the empty string.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if the next value is another one, or malformed.
    pub fn text(&mut self) -> Result<Cow<'a, str>, JsonError> {
        if self.take_null()? { Ok(Cow::Borrowed("")) } else { self.string() }
    }

    /// Reads a string, or `None` for `null`.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if the next value is another one, or malformed.
    pub fn optional_text(&mut self) -> Result<Option<Cow<'a, str>>, JsonError> {
        if self.take_null()? { Ok(None) } else { self.string().map(Some) }
    }

    /// Reads the digits and the sign of an integer, or `None` for `null`.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if the next value is another one, or malformed.
    pub fn digits(&mut self) -> Result<Option<&'a str>, JsonError> {
        if self.take_null()? {
            return Ok(None);
        }
        let from = self.at;
        let number = self.number()?;
        let is_integer = number.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
        if is_integer {
            Ok(Some(number))
        } else {
            Err(JsonError { at: from, what: "expected a whole number" })
        }
    }

    /// Reads any value, and returns its text.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if the next value is another one, or malformed.
    pub fn raw(&mut self) -> Result<&'a str, JsonError> {
        self.peek();
        let from = self.at;
        self.skip()?;
        Ok(&self.text[from..self.at])
    }

    /// Reads any value.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if the next value is another one, or malformed.
    pub fn skip(&mut self) -> Result<(), JsonError> {
        match self.kind()? {
            JsonKind::Object => self.object(|reader, _| reader.skip()),
            JsonKind::Array => self.array(Self::skip),
            JsonKind::Text => self.string().map(drop),
            JsonKind::Null => self.word("null"),
            JsonKind::Boolean => self.boolean().map(drop),
            JsonKind::Number => self.number().map(drop),
        }
    }

    fn fault(&self, what: &'static str) -> JsonError {
        JsonError { at: self.at, what }
    }

    /// Skips white space and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), JsonError> {
        if self.peek() != Some(byte) {
            return Err(self.fault(what));
        }
        self.at += 1;
        Ok(())
    }

    fn open(&mut self, byte: u8, what: &'static str) -> Result<(), JsonError> {
        self.expect(byte, what)?;
        self.depth += 1;
        if self.depth > self.depth_max { Err(self.fault("nested too deep")) } else { Ok(()) }
    }

    /// Reads the closing bracket `end` if it is next. Returns whether it was.
    fn take_end(&mut self, end: u8) -> bool {
        let is_end = self.peek() == Some(end);
        if is_end {
            self.at += 1;
            self.depth -= 1;
        }
        is_end
    }

    /// Reads the comma before the next element, or the closing bracket `end`. Returns whether another element follows.
    fn take_comma_or_end(&mut self, end: u8) -> Result<bool, JsonError> {
        if self.take_end(end) {
            return Ok(false);
        }
        self.expect(b',', "neither a comma nor an end").map(|()| true)
    }

    /// Reads `null` if it is next. Returns whether it was.
    fn take_null(&mut self) -> Result<bool, JsonError> {
        if self.peek() != Some(b'n') {
            return Ok(false);
        }
        self.word("null").map(|()| true)
    }

    fn word(&mut self, word: &str) -> Result<(), JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.fault("no JSON value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// Reads a number of any form, and returns its text.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if the next value is another one, or malformed.
    pub fn number(&mut self) -> Result<&'a str, JsonError> {
        self.peek();
        let from = self.at;
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        let whole = self.run_of_digits();
        if whole == 0 || (whole > 1 && bytes[self.at - whole] == b'0') {
            self.at = from;
            return Err(self.fault("no JSON value"));
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            if self.run_of_digits() == 0 {
                return Err(self.fault("no digit behind the point"));
            }
        }
        if matches!(bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.run_of_digits() == 0 {
                return Err(self.fault("no exponent"));
            }
        }
        Ok(&self.text[from..self.at])
    }

    fn run_of_digits(&mut self) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        digits
    }

    /// Reads a string, which is borrowed unless it has escapes.
    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("expected a string"));
        }
        self.at += 1;
        let mut out = Cow::Borrowed("");
        loop {
            let rest = &self.text[self.at..];
            let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
            let plain = rest.as_bytes().iter().position(is_special);
            let plain = plain.ok_or_else(|| self.fault("a string has no end"))?;
            let (head, special) = (&rest[..plain], rest.as_bytes()[plain]);
            self.at += plain;
            if out.is_empty() {
                out = Cow::Borrowed(head);
            } else {
                out.to_mut().push_str(head);
            }
            match special {
                b'"' => {
                    self.at += 1;
                    return Ok(out);
                }
                b'\\' => {
                    self.at += 1;
                    let escaped = self.escaped()?;
                    out.to_mut().push(escaped);
                }
                _ => return Err(self.fault("a control character in a string")),
            }
        }
    }

    /// Reads the rest of an escape after its backslash. Half of a surrogate pair becomes U+FFFD.
    fn escaped(&mut self) -> Result<char, JsonError> {
        let letter = self.text.as_bytes().get(self.at).copied();
        self.at += 1;
        Ok(match letter {
            Some(letter @ (b'"' | b'\\' | b'/')) => char::from(letter),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.code()?;
                if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
                    let after_first = self.at;
                    self.at += 2;
                    let second = self.code()?;
                    if (0xdc00..0xe000).contains(&second) {
                        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                        return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    self.at = after_first;
                }
                char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => {
                self.at -= 1;
                return Err(self.fault("an unknown escape"));
            }
        })
    }

    /// Reads the four digits of a `\u` escape.
    fn code(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.fault("an unknown escape"))?;
        self.at += 4;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPTH_MAX: usize = 64;

    fn is_json(text: &str) -> bool {
        let mut reader = JsonReader::new(text, DEPTH_MAX);
        reader.skip().and_then(|()| reader.end()).is_ok()
    }

    #[test]
    fn tells_json_from_other_texts() {
        for text in [
            " null ",
            "[ ]",
            "{ }",
            "[1, -0, 12.50, 1e+3 ,true,\tfalse]",
            r#"{"b":1, "a":{"d" : [] , "c":null}}"#,
            r#""\u0041\n\/<\ud83e\uddfe\ud800x""#,
        ] {
            assert!(is_json(text), "{text}");
        }
        let refused = [
            "", " ", "nul", "tru", "01", "-", "1.", "1e", "+1", ".5", "[", "[1", "[1,]", "[1 2]", "{",
            "{a:1}",
        ];
        let refused_members = [r#"{"a"}"#, r#"{"a":}"#, r#"{"a":1,}"#, "{}x", "1 2"];
        let refused_strings = ["\"", "\"a", r#""\x""#, r#""\"#, r#""\u12""#, "\"\u{1}\""];
        for text in refused.iter().chain(&refused_members).chain(&refused_strings) {
            assert!(!is_json(text), "{text}");
        }
        assert!(is_json(&("[".repeat(DEPTH_MAX) + &"]".repeat(DEPTH_MAX))));
        assert!(!is_json(&("[".repeat(DEPTH_MAX + 1) + &"]".repeat(DEPTH_MAX + 1))));
        assert!(!is_json(&"[".repeat(100_000)));
    }

    #[test]
    fn reads_strings_with_their_escapes() {
        for (text, read) in [
            (r#""plain""#, "plain"),
            (r#""\u0041\n\/<\ud83e\uddfe\ud800x""#, "A\n/<🧾\u{fffd}x"),
            (r#""\"\"""#, "\"\""),
            (r#""a\\""#, "a\\"),
            ("null", ""),
            ("\"\"", ""),
        ] {
            assert_eq!(JsonReader::new(text, DEPTH_MAX).text().expect(text), read);
        }
        assert!(matches!(JsonReader::new("\"borrowed\"", DEPTH_MAX).text(), Ok(Cow::Borrowed("borrowed"))));
    }

    #[test]
    fn reads_whole_numbers_of_any_size() {
        let huge = "9".repeat(200);
        assert_eq!(JsonReader::new(&huge, DEPTH_MAX).digits(), Ok(Some(huge.as_str())));
        assert_eq!(JsonReader::new(" -7,", DEPTH_MAX).digits(), Ok(Some("-7")));
        assert_eq!(JsonReader::new("null", DEPTH_MAX).digits(), Ok(None));
        for text in ["1.0", "1e2", "\"1\"", "true", "[1]"] {
            assert!(JsonReader::new(text, DEPTH_MAX).digits().is_err(), "{text}");
        }
    }
}
