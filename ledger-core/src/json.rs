//! JSON values that keep numbers and the order of members as written. Schemas consist of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use smol_str::{SmolStr, ToSmolStr};

use crate::limits::JSON_DEPTH_MAX;
use ledger_values::json_text::write_json_text;
use ledger_values::{JsonError, JsonKind, JsonReader, Timestamp};

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

impl Json {
    /// Parses a text that is one JSON value.
    ///
    /// # Errors
    ///
    /// [`JsonError`] for any other text, and for one with too deep nesting.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let mut reader = JsonReader::new(text, JSON_DEPTH_MAX);
        let value = read_value(&mut reader)?;
        reader.end()?;
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
    ///
    /// ```
    /// use ledger_core::Json;
    /// let mut line = b"data: ".to_vec();
    /// Json::Array(vec![Json::from(5), Json::from("<b>")]).write_to(&mut line);
    /// assert_eq!(line, br#"data: [5,"\u003cb\u003e"]"#);
    /// ```
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

fn read_value(reader: &mut JsonReader<'_>) -> Result<Json, JsonError> {
    Ok(match reader.kind()? {
        JsonKind::Null => reader.skip().map(|()| Json::Null)?,
        JsonKind::Boolean => Json::Boolean(reader.boolean()?),
        JsonKind::Number => Json::Number(reader.number()?.into()),
        JsonKind::Text => Json::Text(reader.text()?.into()),
        JsonKind::Array => {
            let mut items = Vec::new();
            reader.array(|reader| read_value(reader).map(|item| items.push(item)))?;
            Json::Array(items)
        }
        JsonKind::Object => read_object(reader)?,
    })
}

fn read_object(reader: &mut JsonReader<'_>) -> Result<Json, JsonError> {
    let mut members: Vec<(SmolStr, Json)> = Vec::new();
    let mut places: BTreeMap<SmolStr, usize> = BTreeMap::new();
    reader.object(|reader, name| {
        let value = read_value(reader)?;
        match places.entry(SmolStr::new(name)) {
            Entry::Occupied(place) => members[*place.get()].1 = value,
            Entry::Vacant(place) => {
                members.push((place.key().clone(), value));
                place.insert(members.len() - 1);
            }
        }
        Ok::<_, JsonError>(())
    })?;
    Ok(Json::Object(members))
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
    fn refuses_other_texts_and_deep_nesting() {
        for text in ["", "[1,]", r#"{"a":}"#, "1 2", "{}x"] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(Json::parse(&nested(JSON_DEPTH_MAX)).is_ok());
        assert!(Json::parse(&nested(JSON_DEPTH_MAX + 1)).is_err());
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }
}
