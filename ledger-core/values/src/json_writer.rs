//! JSON text under construction, with the values of the ledger in the form of its API.

use std::ops::Range;

use crate::decimal::write_u64;
use crate::json_text::{put_plain, write_json_text};
use crate::{Amount, Balance, Metadata, MetadataValue, Timestamp};

/// JSON text under construction. Every method appends to it.
///
/// ```
/// use ledger_values::{Amount, JsonWriter};
///
/// let mut json = JsonWriter::default();
/// json.raw("{\"note\":").string("a < b").raw(",\"amount\":").amount(&Amount::from(100_u64)).raw("}");
/// assert_eq!(json.as_bytes(), br#"{"note":"a \u003c b","amount":100}"#);
/// ```
///
/// For clients that read numbers as floating point, amounts are written as strings:
///
/// ```
/// use ledger_values::{Amount, JsonWriter, Metadata};
///
/// let mut json = JsonWriter::default().quoting_amounts();
/// json.raw("[").list([1_u64, 2], |json, number| {
///     json.raw("{\"id\":").integer(number).raw(",\"amount\":").amount(&Amount::from(number)).raw("}");
/// });
/// json.raw(",").plain_string("end").raw(",").write(|out| out.extend(b"null")).raw("]");
/// assert_eq!(json.as_bytes(), br#"[{"id":1,"amount":"1"},{"id":2,"amount":"2"},"end",null]"#);
/// json.clear();
/// json.any_metadata(&Metadata::from([("kind", "topup")]));
/// assert_eq!(json.as_bytes(), br#"{"kind":"topup"}"#);
/// ```
#[derive(Clone, Debug, Default)]
pub struct JsonWriter {
    out: Vec<u8>,
    quotes_amounts: bool,
    /// The date written last, and where.
    last_time: Option<(Timestamp, Range<usize>)>,
}

impl JsonWriter {
    /// Makes an empty text with room for this many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// Writes amounts and balances as JSON strings, for readers whose numbers are floats.
    #[must_use]
    pub fn quoting_amounts(mut self) -> Self {
        self.quotes_amounts = true;
        self
    }

    /// Returns the length of the text in bytes.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Tells whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Returns the text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    /// Returns the text.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Removes the text, and keeps its memory for the next one.
    pub fn clear(&mut self) {
        self.out.clear();
        self.last_time = None;
    }

    /// Appends a part of the text once more. Cheaper than writing it again.
    pub fn repeat(&mut self, bytes: Range<usize>) -> &mut Self {
        self.out.extend_from_within(bytes);
        self
    }

    /// Appends punctuation and literals without a change.
    // Inlined so that the length of a literal is known.
    #[inline]
    pub fn raw(&mut self, text: &str) -> &mut Self {
        self.out.extend_from_slice(text.as_bytes());
        self
    }

    /// Appends the output of a function.
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        write(&mut self.out);
        self
    }

    /// Appends a string with its quotes and escapes.
    pub fn string(&mut self, text: &str) -> &mut Self {
        write_json_text(text, &mut self.out);
        self
    }

    /// Appends a string that is known to need no escape: a date, base64, a checked name.
    pub fn plain_string(&mut self, text: &str) -> &mut Self {
        put_plain(text, &mut self.out);
        self
    }

    /// Appends a number that is never quoted: an id or a count.
    pub fn integer(&mut self, value: u64) -> &mut Self {
        write_u64(value, &mut self.out);
        self
    }

    /// Appends `true` or `false`.
    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.raw(if value { "true" } else { "false" })
    }

    /// Appends an amount.
    pub fn amount(&mut self, value: &Amount) -> &mut Self {
        self.number(|out| value.write_to(out))
    }

    /// Appends a balance.
    pub fn balance(&mut self, value: &Balance) -> &mut Self {
        self.number(|out| value.write_to(out))
    }

    fn number(&mut self, write: impl Fn(&mut Vec<u8>)) -> &mut Self {
        if self.quotes_amounts {
            self.raw("\"");
            write(&mut self.out);
            return self.raw("\"");
        }
        write(&mut self.out);
        self
    }

    /// Appends a date.
    pub fn time(&mut self, value: Timestamp) -> &mut Self {
        // A transaction has three dates, which are often equal, and so have the transactions of a bulk.
        if let Some((last, text)) = &self.last_time
            && *last == value
        {
            let text = text.clone();
            return self.repeat(text);
        }
        let start = self.out.len();
        self.out.push(b'"');
        value.write_to(&mut self.out);
        self.out.push(b'"');
        self.last_time = Some((value, start..self.out.len()));
        self
    }

    /// Appends metadata as v2 shows it: every value is text.
    pub fn metadata(&mut self, metadata: &Metadata) -> &mut Self {
        self.raw("{");
        for (at, (key, value)) in metadata.iter().enumerate() {
            self.raw(if at == 0 { "" } else { "," }).string(key).raw(":");
            self.string(&value.as_shown());
        }
        self.raw("}")
    }

    /// Appends metadata as v1 shows it: values of any JSON type.
    pub fn any_metadata(&mut self, metadata: &Metadata) -> &mut Self {
        self.raw("{");
        for (at, (key, value)) in metadata.iter().enumerate() {
            self.raw(if at == 0 { "" } else { "," }).string(key).raw(":");
            match value {
                MetadataValue::Text(text) => self.string(text),
                MetadataValue::Json(text) => self.raw(text),
            };
        }
        self.raw("}")
    }

    /// Appends items divided by commas, without brackets.
    pub fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.raw(",");
            }
            write(self, item);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_dates_whether_they_repeat_or_not() {
        let mut json = JsonWriter::default();
        for micros in [1, 1, 2, 1, 1] {
            json.raw(" ").time(Timestamp::from_micros(micros));
        }
        let expected = [1, 1, 2, 1, 1].map(|micros| format!(" \"{}\"", Timestamp::from_micros(micros)));
        assert_eq!(json.into_bytes(), expected.concat().into_bytes());
    }

    #[test]
    fn forgets_a_date_with_the_text() {
        let mut json = JsonWriter::default();
        json.time(Timestamp::from_micros(1));
        json.clear();
        json.raw("[").time(Timestamp::from_micros(1));
        assert_eq!(json.as_bytes(), format!("[\"{}\"", Timestamp::from_micros(1)).as_bytes());
    }

    #[test]
    fn writes_exact_amounts_and_quotes_on_request() {
        let huge: Amount = "9".repeat(87).parse().expect("digits");
        for (mut json, expected) in [
            (JsonWriter::default(), format!("7,{huge}")),
            (JsonWriter::default().quoting_amounts(), format!("\"7\",\"{huge}\"")),
        ] {
            json.amount(&Amount::from(7_u64)).raw(",").amount(&huge);
            assert_eq!(json.into_bytes(), expected.into_bytes());
        }
    }
}
