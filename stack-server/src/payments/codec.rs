//! The binary encoding of records, and keys that sort in the order of their values.

use std::collections::BTreeMap;

use ledger_core::{Balance, Timestamp};

/// Metadata of a record: text by key.
pub(crate) type Metadata = BTreeMap<String, String>;

/// Writes the fields of a record, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    /// Returns the written bytes.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(crate) fn count(&mut self, value: usize) -> &mut Self {
        let value = u32::try_from(value).expect("a record has fewer than 2^32 parts");
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.raw(text.as_bytes())
    }

    pub(crate) fn optional_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            None => self.byte(0),
            Some(text) => self.byte(1).text(text),
        }
    }

    pub(crate) fn time(&mut self, at: Timestamp) -> &mut Self {
        self.0.extend_from_slice(&at.as_micros().to_le_bytes());
        self
    }

    pub(crate) fn number(&mut self, number: &Balance) -> &mut Self {
        let mut digits = Vec::with_capacity(20);
        number.write_to(&mut digits);
        self.raw(&digits)
    }

    pub(crate) fn metadata(&mut self, metadata: &Metadata) -> &mut Self {
        self.count(metadata.len());
        for (key, value) in metadata {
            self.text(key).text(value);
        }
        self
    }
}

/// Reads the fields that an [`Encoder`] wrote. Every method returns `None` if the bytes do not have the expected form.
#[derive(Debug)]
pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn count(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.array()?) as usize)
    }

    pub(crate) fn raw(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.raw()?).ok()
    }

    pub(crate) fn string(&mut self) -> Option<String> {
        self.text().map(str::to_owned)
    }

    /// Reads an optional text. The outer `None` means that the bytes do not have the expected form.
    #[expect(clippy::option_option, reason = "the outer is for invalid bytes, the inner for an absent field")]
    pub(crate) fn optional_text(&mut self) -> Option<Option<&'a str>> {
        match self.byte()? {
            0 => Some(None),
            1 => self.text().map(Some),
            _ => None,
        }
    }

    pub(crate) fn time(&mut self) -> Option<Timestamp> {
        Some(Timestamp::from_micros(i64::from_le_bytes(self.array()?)))
    }

    pub(crate) fn number(&mut self) -> Option<Balance> {
        Balance::parse(self.text()?).ok()
    }

    pub(crate) fn metadata(&mut self) -> Option<Metadata> {
        (0..self.count()?).map(|_| Some((self.string()?, self.string()?))).collect()
    }
}

/// Size of the key of a date in bytes.
pub(crate) const DATE_KEY_BYTES: usize = 8;

/// Returns a key that sorts in the order of dates.
pub(crate) fn date_key(at: Timestamp) -> [u8; DATE_KEY_BYTES] {
    // Invert the sign bit, so that negative numbers come first.
    (at.as_micros().cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

/// Maximum number of bytes of a text in a key. Longer texts sort by this prefix, and then by their ids.
const TEXT_KEY_BYTES_MAX: usize = 256;

/// Returns a key that sorts in the order of the first bytes of texts.
pub(crate) fn text_key(text: &str) -> Vec<u8> {
    text.as_bytes()[..text.len().min(TEXT_KEY_BYTES_MAX)].to_vec()
}

/// Returns the key of a text with an end mark, so that a date can follow.
pub(crate) fn terminated_text_key(text: &str) -> Vec<u8> {
    let mut key = text_key(text);
    key.push(0);
    key
}

/// Maximum number of digits of a number in a key. Longer numbers sort by their length and their first digits.
const NUMBER_KEY_DIGITS_MAX: usize = 200;

/// Returns a key that sorts in the order of integers, including negative ones.
pub(crate) fn number_key(number: &Balance) -> Vec<u8> {
    let mut digits = Vec::with_capacity(24);
    number.write_to(&mut digits);
    let is_negative = digits.first() == Some(&b'-');
    if is_negative {
        digits.remove(0);
    }
    let mut key = Vec::with_capacity(digits.len() + 3);
    key.push(1);
    key.extend_from_slice(&u16::try_from(digits.len()).unwrap_or(u16::MAX).to_be_bytes());
    key.extend_from_slice(&digits[..digits.len().min(NUMBER_KEY_DIGITS_MAX)]);
    if is_negative {
        // A longer negative number is smaller, so invert all bytes.
        for byte in &mut key {
            *byte = !*byte;
        }
        key[0] = 0;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_values_do() {
        let huge = "9".repeat(60);
        let numbers =
            [&format!("-{huge}"), "-100", "-99", "-10", "-9", "-1", "0", "1", "9", "10", "100", &huge];
        let keys: Vec<_> =
            numbers.iter().map(|text| number_key(&Balance::parse(text).expect("a number"))).collect();
        assert!(keys.is_sorted() && keys.windows(2).all(|two| two[0] != two[1]));
        let dates = [i64::MIN, -1, 0, 1, i64::MAX].map(|micros| date_key(Timestamp::from_micros(micros)));
        assert!(dates.is_sorted());
    }

    #[test]
    fn fields_are_read_as_they_were_written() {
        let metadata = Metadata::from([("a".to_owned(), "é".to_owned()), ("b".to_owned(), String::new())]);
        let mut out = Encoder::default();
        out.byte(7).text("x").optional_text(None).optional_text(Some("y")).time(Timestamp::from_micros(-5));
        out.number(&Balance::from(-12)).metadata(&metadata);
        let bytes = out.into_bytes();
        let mut input = Decoder::new(&bytes);
        assert_eq!((input.byte(), input.text()), (Some(7), Some("x")));
        assert_eq!((input.optional_text(), input.optional_text()), (Some(None), Some(Some("y"))));
        assert_eq!(input.time(), Some(Timestamp::from_micros(-5)));
        assert_eq!((input.number(), input.metadata()), (Some(Balance::from(-12)), Some(metadata)));
        assert!(input.is_empty() && input.byte().is_none());
        for cut in 0..bytes.len() {
            let mut input = Decoder::new(&bytes[..cut]);
            let read = |input: &mut Decoder<'_>| {
                input.byte()?;
                input.text()?;
                input.optional_text()?;
                input.optional_text()?;
                input.time()?;
                input.number()?;
                input.metadata()
            };
            assert_eq!(read(&mut input), None, "cut at {cut}");
        }
    }
}
