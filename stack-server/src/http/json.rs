//! Parses JSON as leniently as the clients of this API expect. Stored documents and the answers of payment providers
//! are read with the same types.
//!
//! Only the first value of a text is read. Field names match in any case, and unknown fields are ignored. The last
//! of several equal fields counts. A field that is `null` has the value of an absent field. Numbers keep their digits:
//! an integer of any size is exact. A number with a fraction or an exponent is refused where an integer is expected
//! ([`Digits`]), and kept as it is in a value of any type ([`AnyMap`]).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use ledger_core::{Metadata, MetadataValue, Timestamp, write_json_text};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

/// Parses the first JSON value of a text and ignores the rest.
///
/// # Errors
///
/// Fails if there is no value, or if `T` does not accept it. The error names the field.
pub(crate) fn first<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, JsonError> {
    let read = T::deserialize(&mut serde_json::Deserializer::from_slice(text));
    read.map_err(|error| JsonError::of::<T>(error, text))
}

/// A JSON value that cannot be read.
#[derive(Debug)]
pub(crate) struct JsonError {
    /// The path of the field in the value, as `postings[0].amount`.
    field: Option<String>,
    error: serde_json::Error,
}

impl JsonError {
    /// Adds the path of the refused field to `error`, which reading a `T` from `text` returned.
    pub(crate) fn of<'a, T: Deserialize<'a>>(error: serde_json::Error, text: &'a [u8]) -> Self {
        Self { field: field_at_fault::<T>(text), error }
    }

    /// Returns the error for the surrounding object, whose field `name` contains the refused value.
    pub(crate) fn within(self, name: &str) -> Self {
        let field = match self.field {
            None => name.to_owned(),
            Some(inner) if inner.starts_with('[') => format!("{name}{inner}"),
            Some(inner) => format!("{name}.{inner}"),
        };
        Self { field: Some(field), ..self }
    }
}

impl std::error::Error for JsonError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        self.error.fmt(f)
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self { field: None, error }
    }
}

/// Returns the path of the field that makes reading a `T` fail. Reads the text a second time, because tracking the path
/// during the first time would slow down valid texts.
fn field_at_fault<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Option<String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let error = serde_path_to_error::deserialize::<_, T>(&mut deserializer).err()?;
    let path = error.path();
    let is_named = path.iter().all(|segment| !matches!(segment, Segment::Unknown));
    (is_named && path.iter().next().is_some()).then(|| path.to_string())
}

/// A type that is read from the fields of a JSON object. `null` and the empty object give its default.
pub(crate) trait Fields<'de>: Default {
    /// Reads the value of the field `name`. Returns `false`, and reads nothing, if the type has no such field.
    ///
    /// # Errors
    ///
    /// Fails if the field does not accept the value.
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error>;
}

/// Finds the field with this name in any case.
pub(crate) fn field(name: &str, fields: &[&'static str]) -> Option<&'static str> {
    // Compare exactly first: nearly every client spells the names as documented.
    fields
        .iter()
        .find(|field| **field == name)
        .or_else(|| fields.iter().find(|field| field.eq_ignore_ascii_case(name)))
        .copied()
}

/// A JSON object that is read through [`Fields`].
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Fields<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Fields<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Object(T::default()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = T::default();
                while let Some(Text(name)) = map.next_key()? {
                    if !fields.field(&name, &mut map)? {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

/// A JSON array. `null` is an empty array.
pub(crate) struct Array<T>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Array<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ArrayVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ArrayVisitor<T> {
            type Value = Array<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Array(Vec::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = sequence.next_element()? {
                    items.push(item);
                }
                Ok(Array(items))
            }
        }

        deserializer.deserialize_any(ArrayVisitor(PhantomData))
    }
}

/// A JSON string, borrowed if it has no escapes. `null` is the empty string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Text::default())
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_any(TextVisitor)
    }
}

/// A JSON boolean. `null` is `false`.
pub(crate) struct Flag(pub(crate) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Option::<bool>::deserialize(deserializer)?.unwrap_or_default()))
    }
}

/// The digits and the sign of a JSON integer. `None` stands for `null`.
pub(crate) struct Digits<'a>(pub(crate) Option<&'a str>);

impl<'de> Deserialize<'de> for Digits<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        if text == "null" {
            return Ok(Self(None));
        }
        if is_integer(text) { Ok(Self(Some(text))) } else { Err(Error::custom("expected a whole number")) }
    }
}

/// Tells whether the text of a JSON value is an integer.
pub(crate) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// An RFC 3339 date in a JSON string. `None` stands for `null`.
pub(crate) struct Date(pub(crate) Option<Timestamp>);

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `Option` distinguishes null from the empty string, which is not a date.
        match Option::<Text<'de>>::deserialize(deserializer)? {
            None => Ok(Self(None)),
            Some(Text(text)) => Timestamp::parse(&text)
                .map(|at| Self(Some(at)))
                .map_err(|error| Error::custom(format!("parsing time \"{text}\": {error}"))),
        }
    }
}

impl Date {
    /// Returns the date that the client chose for a transaction. Clients in some languages cannot leave a date out
    /// and send the first instant of the year 1, which means that they chose none.
    pub(crate) fn given(self) -> Option<Timestamp> {
        const ZERO_MICROS: i64 = -62_135_596_800_000_000;
        self.0.filter(|at| at.as_micros() != ZERO_MICROS)
    }
}

/// A JSON object of strings. `null` is an empty object, and a `null` value is the empty string.
#[derive(Debug, Default)]
pub(crate) struct TextMap(pub(crate) Metadata);

impl<'de> Deserialize<'de> for TextMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Entries(entries) = Entries::<Text<'de>>::deserialize(deserializer)?;
        let mut metadata = Metadata::with_capacity(entries.len());
        for (Text(key), Text(value)) in entries {
            metadata.insert(&*key, MetadataValue::Text(value.into()));
        }
        Ok(Self(metadata))
    }
}

/// A JSON object with values of any type. `null` is an empty object.
///
/// Values other than strings are kept as compact JSON with sorted, unique members, so that the order of members, spaces
/// and escapes make no difference. Numbers keep their digits: `1` and `1.0` differ.
#[derive(Debug, Default)]
pub(crate) struct AnyMap(pub(crate) Metadata);

impl<'de> Deserialize<'de> for AnyMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Entries(entries) = Entries::<&RawValue>::deserialize(deserializer)?;
        let mut metadata = Metadata::with_capacity(entries.len());
        for (Text(key), value) in entries {
            let value = if value.get().starts_with('"') {
                let Text(text) = first::<Text<'_>>(value.get().as_bytes()).map_err(Error::custom)?;
                MetadataValue::Text(text.into())
            } else {
                let json = canonical(value).map_err(|error| Error::custom(error.within(&key)))?;
                MetadataValue::Json(json.into())
            };
            metadata.insert(&*key, value);
        }
        Ok(Self(metadata))
    }
}

/// Maximum nesting depth of a stored value. Bounds the recursion over it.
const DEPTH_MAX: usize = 64;

/// Returns a value as compact JSON with sorted, unique members.
///
/// # Errors
///
/// Fails if the value is nested too deeply.
pub(crate) fn canonical(value: &RawValue) -> Result<String, JsonError> {
    let mut out = Vec::with_capacity(value.get().len());
    write_canonical(value, 1, &mut out)?;
    // The bytes come from a valid text that was cut at ASCII characters.
    String::from_utf8(out).map_err(|error| serde_json::Error::custom(error).into())
}

fn write_canonical(value: &RawValue, depth: usize, out: &mut Vec<u8>) -> Result<(), JsonError> {
    let text = value.get();
    if depth > DEPTH_MAX {
        return Err(serde_json::Error::custom(format!("a value is at most {DEPTH_MAX} deep")).into());
    }
    match text.as_bytes().first() {
        Some(b'{') => {
            let Entries(entries) = first::<Entries<'_, &RawValue>>(text.as_bytes())?;
            let members: BTreeMap<_, _> =
                entries.into_iter().map(|(Text(name), value)| (name, value)).collect();
            out.push(b'{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_json_text(&name, out);
                out.push(b':');
                write_canonical(value, depth + 1, out)?;
            }
            out.push(b'}');
        }
        Some(b'[') => {
            let Array(items) = first::<Array<&RawValue>>(text.as_bytes())?;
            out.push(b'[');
            for (at, item) in items.into_iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_canonical(item, depth + 1, out)?;
            }
            out.push(b']');
        }
        Some(b'"') => write_json_text(&first::<Text<'_>>(text.as_bytes())?.0, out),
        _ => out.extend_from_slice(text.as_bytes()),
    }
    Ok(())
}

/// The entries of a JSON object in order, with repetitions. `null` has none.
#[derive(Debug)]
pub(crate) struct Entries<'a, T>(pub(crate) Vec<(Text<'a>, T)>);

impl<T> Default for Entries<'_, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<'de, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
            type Value = Entries<'de, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Entries::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_any(EntriesVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Sample {
        name: String,
        digits: Option<String>,
    }

    impl<'de> Fields<'de> for Sample {
        fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
            if name.eq_ignore_ascii_case("name") {
                self.name = map.next_value::<Text<'de>>()?.0.into_owned();
            } else if name.eq_ignore_ascii_case("digits") {
                self.digits = map.next_value::<Digits<'de>>()?.0.map(str::to_owned);
            } else {
                return Ok(false);
            }
            Ok(true)
        }
    }

    fn sample(text: &str) -> Option<(String, Option<String>)> {
        first::<Object<Sample>>(text.as_bytes()).ok().map(|Object(s)| (s.name, s.digits))
    }

    #[test]
    fn bodies_are_read_leniently() {
        let huge = "9".repeat(200);
        for (text, name, digits) in [
            ("{}", "", None),
            ("null", "", None),
            (" {\"name\":\"a\"} trailing {", "a", None),
            ("{\"NAME\":\"a\",\"Name\":\"b\"}", "b", None),
            ("{\"other\":{\"name\":[1e999]},\"name\":null}", "", None),
            ("{\"\\u006eame\":\"\\u0061\"}", "a", None),
            ("{\"digits\":-0}", "", Some("-0")),
            (&format!("{{\"digits\":{huge}}}"), "", Some(huge.as_str())),
        ] {
            assert_eq!(sample(text), Some((name.to_owned(), digits.map(str::to_owned))), "{text}");
        }
        for text in [
            "",
            "{",
            "[]",
            "7",
            "\"x\"",
            "true",
            "{\"name\":1}",
            "{\"name\":[]}",
            "{\"digits\":\"1\"}",
            "{\"digits\":1.0}",
            "{\"digits\":1e2}",
            "{\"digits\":true}",
            "{\"name\":\"\u{1}\"}",
        ] {
            assert_eq!(sample(text), None, "{text}");
        }
    }

    #[test]
    fn metadata_is_text() {
        let TextMap(metadata) = first(br#"{"b":"1","a":null,"b":"2"}"#).expect("a map of text");
        let pairs: Vec<_> = metadata.iter().map(|(k, v)| (k, v.as_text())).collect();
        assert_eq!(pairs, [("a", Some("")), ("b", Some("2"))]);
        for text in ["{\"n\":1}", "{\"n\":{}}", "[]", "\"x\""] {
            assert!(first::<TextMap>(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn values_of_any_type_have_one_text() {
        let AnyMap(metadata) = first(
            br#"{"s":"a\u003c","n": 12345678901234567890.10 ,"o":{ "b" : [1, {"y":null,"x":"<"}],"a":true,"a":false}}"#,
        )
        .expect("an object");
        assert_eq!(metadata.get("s"), Some(&MetadataValue::Text("a<".into())));
        assert_eq!(metadata.get("n"), Some(&MetadataValue::Json("12345678901234567890.10".into())));
        let object = r#"{"a":false,"b":[1,{"x":"\u003c","y":null}]}"#;
        assert_eq!(metadata.get("o"), Some(&MetadataValue::Json(object.into())));
        let deep = format!("{{\"k\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(first::<AnyMap>(deep.as_bytes()).is_err());
    }

    #[test]
    fn a_date_is_null_or_valid() {
        assert!(first::<Date>(b"null").expect("null is absent").0.is_none());
        assert!(first::<Date>(br#""2024-05-01T10:00:00Z""#).expect("a date").0.is_some());
        for text in ["\"\"", "\"yesterday\"", "1700000000", "{}"] {
            assert!(first::<Date>(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn refuses_deep_nesting() {
        let deep = "[".repeat(100_000);
        assert_eq!(sample(&deep), None);
        assert_eq!(sample(&format!("{{\"other\":{deep}")), None);
    }
}
