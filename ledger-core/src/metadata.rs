//! Metadata: free keys with values, on ledgers, accounts and transactions.

use compact_str::CompactString;

/// A value of metadata.
///
/// The second generation of the API writes only text; the first writes any JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MetadataValue {
    /// A string.
    Text(CompactString),
    /// Any other JSON value, as compact JSON text (numbers as they were written). Never a JSON string.
    Json(CompactString),
}

impl MetadataValue {
    /// The value as the second generation of the API shows it: a string as it is, anything else as its JSON.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Json(text) => text,
        }
    }

    /// The text, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Json(_) => None,
        }
    }

    /// The value as the second generation of the API shows it, which knows only text: a string as it is, any
    /// other value as its compact JSON (`true`, `100`, `["a"]`). Filters and the wire hash compare this.
    pub fn as_shown(&self) -> &str {
        match self {
            Self::Text(text) | Self::Json(text) => text,
        }
    }
}

/// Keys with values, ordered bytewise by key, each key once.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Metadata(Vec<(CompactString, MetadataValue)>);

impl Metadata {
    /// No entries.
    pub const EMPTY: Self = Self(Vec::new());

    /// No entries, with room for `capacity` of them.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&MetadataValue> {
        self.position(key).ok().map(|at| &self.0[at].1)
    }

    /// Sets a key; the previous value, if any, is returned.
    pub fn insert(&mut self, key: impl Into<CompactString>, value: MetadataValue) -> Option<MetadataValue> {
        let key = key.into();
        // Ascending insertion is how decoders and most callers fill it.
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

    /// Sets a key to a text.
    pub fn insert_text(&mut self, key: &str, text: &str) -> Option<MetadataValue> {
        self.insert(key, MetadataValue::Text(CompactString::new(text)))
    }

    /// Removes a key; its value, if it had one, is returned.
    pub fn remove(&mut self, key: &str) -> Option<MetadataValue> {
        self.position(key).ok().map(|at| self.0.remove(at).1)
    }

    /// Sets every key of `other`; the others stay.
    pub fn merge(&mut self, other: &Self) {
        for (key, value) in &other.0 {
            self.insert(key.clone(), value.clone());
        }
    }

    /// Keys and values, ascending by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &MetadataValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Bytes of all keys and values.
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

impl<K: Into<CompactString>, V: Into<CompactString>> FromIterator<(K, V)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut metadata = Self::EMPTY;
        for (key, text) in pairs {
            metadata.insert(key, MetadataValue::Text(text.into()));
        }
        metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_replaces_named_keys_and_keeps_the_others() {
        let mut metadata: Metadata = [("b", "1"), ("a", "2")].into_iter().collect();
        metadata.merge(&[("b", "3"), ("c", "4")].into_iter().collect());
        let pairs: Vec<_> = metadata.iter().map(|(k, _)| k).collect();
        assert_eq!(pairs, ["a", "b", "c"]);
        assert_eq!(metadata.get("b"), Some(&MetadataValue::Text("3".into())));
        assert_eq!(metadata.remove("b"), Some(MetadataValue::Text("3".into())));
        assert_eq!(metadata.len(), 2);
    }
}
