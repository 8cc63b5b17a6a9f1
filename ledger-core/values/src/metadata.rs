//! Metadata: keys with values that callers choose freely, on ledgers, accounts and transactions.

use std::borrow::Cow;
use std::fmt;

use smol_str::SmolStr;

use crate::short_text::short_text;
use crate::typed_text;

/// A value of metadata.
///
/// API v2 writes only text; API v1 writes any JSON.
///
/// ```
/// use ledger_values::MetadataValue;
/// let json = r#"{"type":"monetary","value":{"asset":"USD/2","amount":100}}"#;
/// assert_eq!(MetadataValue::json_as_shown(json), "USD/2 100");
/// let value = MetadataValue::Json(json.into());
/// assert_eq!((value.text(), value.as_shown().as_ref()), (json, "USD/2 100"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MetadataValue {
    /// A text.
    Text(SmolStr),
    /// Any JSON value except a string, as compact JSON. Numbers keep the digits that the caller wrote.
    Json(SmolStr),
}

impl MetadataValue {
    /// Returns the value as it is stored: a text as it is, any other value as its JSON.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Json(text) => text,
        }
    }

    /// Returns the text, or `None` for any other JSON value.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Json(_) => None,
        }
    }

    /// Returns the value as API v2 shows it, which only has texts: a text unchanged, a typed value of a script as its
    /// text (`{"type":"monetary",…}` as `USD/2 100`), any other value as its compact JSON (`true`, `100`, `["a"]`).
    /// Filters, the index and the wire hash compare this form.
    pub fn as_shown(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json(json) => Self::json_as_shown(json),
        }
    }

    /// Like [`MetadataValue::as_shown`], for the JSON text of a value that is not a string.
    pub fn json_as_shown(json: &str) -> Cow<'_, str> {
        match typed_text::shown(json) {
            Some(text) => Cow::Owned(text.into()),
            None => Cow::Borrowed(json),
        }
    }
}

/// Writes the value as API v2 shows it. See [`MetadataValue::as_shown`].
impl fmt::Display for MetadataValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.as_shown())
    }
}

/// Keys with values, sorted bytewise by key. Each key occurs once.
///
/// ```
/// use ledger_values::{Metadata, MetadataValue};
/// let mut metadata = Metadata::EMPTY;
/// metadata.insert_text("tier", "silver");
/// let replaced = metadata.insert("tier", MetadataValue::Text("gold".into()));
/// assert_eq!(replaced.as_ref().and_then(MetadataValue::as_text), Some("silver"));
/// metadata.merge(&Metadata::from([("since", "2024")]));
/// let shown: Vec<_> = metadata.iter().map(|(key, value)| format!("{key}={}", value.as_shown())).collect();
/// assert_eq!(shown, ["since=2024", "tier=gold"]);
/// assert_eq!((metadata.len(), metadata.text_bytes()), (2, 17));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Metadata(Vec<(SmolStr, MetadataValue)>);

impl Metadata {
    /// Metadata without entries.
    pub const EMPTY: Self = Self(Vec::new());

    /// Creates metadata without entries and reserves memory for `capacity` of them.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// Tells whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&MetadataValue> {
        self.position(key).ok().map(|at| &self.0[at].1)
    }

    /// Sets a key and returns its previous value, if any.
    pub fn insert(&mut self, key: impl Into<SmolStr>, value: MetadataValue) -> Option<MetadataValue> {
        let key = key.into();
        // Decoders and most callers insert in ascending order.
        if self.0.last().is_none_or(|(last, _)| last.as_str() < key.as_str()) {
            self.0.push((key, value));
            return None;
        }
        match self.position(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// Sets a key to a text and returns its previous value, if any.
    pub fn insert_text(&mut self, key: &str, text: &str) -> Option<MetadataValue> {
        self.insert(short_text(key), MetadataValue::Text(short_text(text)))
    }

    /// Removes a key and returns its value, if any.
    pub fn remove(&mut self, key: &str) -> Option<MetadataValue> {
        self.position(key).ok().map(|at| self.0.remove(at).1)
    }

    /// Sets every key of `other`. Keys that `other` lacks keep their values.
    pub fn merge(&mut self, other: &Self) {
        for (key, value) in &other.0 {
            self.insert(key.clone(), value.clone());
        }
    }

    /// Iterates over keys and values in ascending order of keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &MetadataValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the total length of all keys and values in bytes.
    pub fn text_bytes(&self) -> usize {
        self.0
            .iter()
            .map(|(key, value)| {
                key.len()
                    + match value {
                        MetadataValue::Text(text) | MetadataValue::Json(text) => text.len(),
                    }
            })
            .sum()
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(have, _)| have.as_str().cmp(key))
    }
}

impl<K: Into<SmolStr>, V: Into<SmolStr>> FromIterator<(K, V)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut metadata = Self::EMPTY;
        for (key, text) in pairs {
            metadata.insert(key, MetadataValue::Text(text.into()));
        }
        metadata
    }
}

/// A later pair replaces an earlier one with the same key.
///
/// ```
/// use ledger_values::Metadata;
/// let metadata = Metadata::from([("kind", "topup"), ("order", "17")]);
/// assert_eq!(metadata.get("order").map(ToString::to_string), Some("17".to_owned()));
/// ```
impl<K: Into<SmolStr>, V: Into<SmolStr>, const N: usize> From<[(K, V); N]> for Metadata {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_keeps_keys_that_it_does_not_name() {
        let mut metadata: Metadata = [("b", "1"), ("a", "2")].into_iter().collect();
        metadata.merge(&[("b", "3"), ("c", "4")].into_iter().collect());
        let pairs: Vec<_> = metadata.iter().map(|(k, _)| k).collect();
        assert_eq!(pairs, ["a", "b", "c"]);
        assert_eq!(metadata.get("b"), Some(&MetadataValue::Text("3".into())));
        assert_eq!(metadata.remove("b"), Some(MetadataValue::Text("3".into())));
        assert_eq!(metadata.len(), 2);
    }
}
