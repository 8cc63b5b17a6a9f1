//! Access to the members of providers' JSON records. Numbers keep their digits. A member with an unexpected type counts
//! as absent, so that one bad member does not hide the others.

use std::fmt;

use ledger_core::{Balance, Timestamp};
use serde_json::value::RawValue;

use crate::connectors::currency;
use crate::http::json::{self, Array, Entries, Text};
use crate::payments::codec::Metadata;

/// Maximum number of characters of an id in a warning.
const SHOWN_CHARS_MAX: usize = 64;

/// A JSON object of a provider.
pub(super) struct JsonObject<'a> {
    raw: &'a RawValue,
    members: Vec<(Text<'a>, &'a RawValue)>,
}

impl<'a> JsonObject<'a> {
    /// Returns the object in a JSON text, or `None` for other values.
    pub(super) fn of(raw: &'a RawValue) -> Option<Self> {
        if !raw.get().starts_with('{') {
            return None;
        }
        let Entries(members) = json::first(raw.get().as_bytes()).ok()?;
        Some(Self { raw, members })
    }

    /// Returns the text of the object, as the provider sent it.
    pub(super) fn raw(&self) -> String {
        self.raw.get().to_owned()
    }

    fn member(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.members.iter().rev().find(|(Text(have), _)| have == name)?.1;
        (found.get() != "null").then_some(found)
    }

    /// Returns a text or the digits of a number. Other values result in an empty text.
    pub(super) fn text(&self, name: &str) -> String {
        self.member(name).map(text_of).unwrap_or_default()
    }

    /// Returns an object, or `None` if there is none.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        self.member(name).and_then(Self::of)
    }

    /// Returns an object, or an object without members if there is none.
    pub(super) fn object_or_empty(&self, name: &str) -> Self {
        self.object(name).unwrap_or(Self { raw: RawValue::NULL, members: vec![] })
    }

    /// Returns the members whose values are texts.
    pub(super) fn texts(&self) -> Metadata {
        let texts = self.members.iter().filter(|(_, value)| value.get().starts_with('"'));
        texts.map(|(Text(name), value)| (name.clone().into_owned(), text_of(value))).collect()
    }

    /// Returns the elements of a list, or `None` if there is no list.
    pub(super) fn list(&self, name: &str) -> Option<Vec<&'a RawValue>> {
        self.member(name).and_then(elements)
    }

    /// Returns a date. A date without an offset is in UTC.
    pub(super) fn date(&self, name: &str) -> Option<Timestamp> {
        parse_date(&self.text(name))
    }

    /// Returns a whole number, or `None` for other values.
    pub(super) fn integer(&self, name: &str) -> Option<Balance> {
        Balance::parse(&self.text(name)).ok()
    }

    /// Returns a boolean, or `false` if there is none.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.member(name).is_some_and(|value| value.get() == "true")
    }

    /// Returns an amount in the smallest unit of a currency.
    ///
    /// # Errors
    ///
    /// Fails if the member is not a decimal number that the currency can express.
    pub(super) fn amount(&self, name: &str, code: &str) -> Result<Balance, InvalidRecord> {
        let text = self.text(name);
        currency::minor_units(&text, code).map_err(|error| self.invalid(&error))
    }

    /// Returns the reason why this record is skipped, with the beginning of its id.
    pub(super) fn invalid(&self, reason: &dyn fmt::Display) -> InvalidRecord {
        let names = ["id", "paymentId", "accountId"];
        let id = names.iter().map(|name| self.text(name)).find(|id| !id.is_empty()).unwrap_or_default();
        let id: String = id.chars().take(SHOWN_CHARS_MAX).collect();
        InvalidRecord(format!("record {id:?} was passed over: {reason}"))
    }

    /// Returns a required text.
    ///
    /// # Errors
    ///
    /// Fails if the member is absent or empty.
    pub(super) fn required(&self, name: &str) -> Result<String, InvalidRecord> {
        let text = self.text(name);
        if text.is_empty() { Err(self.invalid(&format_args!("it has no {name}"))) } else { Ok(text) }
    }

    /// Returns a required date.
    ///
    /// # Errors
    ///
    /// Fails if the member is absent or not a date.
    pub(super) fn required_date(&self, name: &str) -> Result<Timestamp, InvalidRecord> {
        self.date(name).ok_or_else(|| self.invalid(&format_args!("{name} is no date")))
    }
}

/// The reason why a record is skipped. The other records of its page are ingested.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidRecord(pub(super) String);

/// Returns the elements of a JSON list, or `None` for other values.
pub(super) fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    if !raw.get().starts_with('[') {
        return None;
    }
    json::first::<Array<&RawValue>>(raw.get().as_bytes()).ok().map(|Array(elements)| elements)
}

fn text_of(raw: &RawValue) -> String {
    match raw.get().as_bytes().first() {
        Some(b'"') => json::first::<Text<'_>>(raw.get().as_bytes()).map(|text| text.0.into_owned()),
        Some(b'-' | b'0'..=b'9') => Ok(raw.get().to_owned()),
        _ => Ok(String::new()),
    }
    .unwrap_or_default()
}

/// Parses the date formats of the providers, for example with a space instead of `T`, with an offset without a colon,
/// without an offset, or without a time.
fn parse_date(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if !text.is_ascii() {
        return None;
    }
    if text.len() == "2020-01-01".len() {
        return Timestamp::parse(&format!("{text}T00:00:00Z")).ok();
    }
    let (date, time) = text.split_at_checked(10)?;
    let time = time.strip_prefix(['T', 't', ' '])?;
    let time = match time.rfind(['+', '-']) {
        Some(at) if !time[at..].contains(':') && time.len() - at == 5 => {
            format!("{}:{}", &time[..at + 3], &time[at + 3..])
        }
        None if !time.ends_with(['Z', 'z']) => format!("{time}Z"),
        _ => time.to_owned(),
    };
    Timestamp::parse(&format!("{date}T{time}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("JSON")
    }

    #[test]
    fn reads_members_and_keeps_digits() {
        let text =
            r#"{"id":7,"a":12345678901234567890.10,"t":"x","o":{"b":"1"},"l":[1,{}],"n":null,"f":true}"#;
        let raw = raw(text);
        let row = JsonObject::of(&raw).expect("an object");
        assert_eq!(
            (&*row.text("id"), &*row.text("a"), &*row.text("t")),
            ("7", "12345678901234567890.10", "x")
        );
        assert_eq!(
            (&*row.object_or_empty("o").text("b"), row.list("l").is_some_and(|list| list.len() == 2)),
            ("1", true)
        );
        for absent in ["n", "f", "o", "l", "nosuch"] {
            assert_eq!(row.text(absent), "", "{absent}");
            assert!(absent == "l" || row.list(absent).is_none());
        }
        assert_eq!(row.raw(), text);
        assert!(row.required("n").is_err() && row.object_or_empty("t").text("x").is_empty());
        assert_eq!((row.integer("id"), row.integer("a")), (Some(Balance::from(7)), None));
        assert_eq!(row.texts().into_iter().collect::<Vec<_>>(), [("t".to_owned(), "x".to_owned())]);
        assert!(row.object("o").is_some() && row.object("l").is_none());
        assert_eq!(row.amount("a", "EUR").expect("an amount").to_string(), "1234567890123456789010");
        assert!(row.amount("t", "EUR").is_err() && row.amount("a", "XYZ").is_err());
    }

    #[test]
    fn reads_dates_of_every_provider() {
        let expected = Timestamp::parse("2018-08-28T07:43:55Z").ok();
        for text in [
            "2018-08-28 07:43:55",
            "2018-08-28T07:43:55",
            "2018-08-28T07:43:55Z",
            "2018-08-28T09:43:55+0200",
            "2018-08-28T09:43:55+02:00",
            "2018-08-28T07:43:55.0000000+00:00",
            "2018-08-28T07:43:55.000+0000",
        ] {
            assert_eq!(parse_date(text), expected, "{text}");
        }
        assert_eq!(parse_date("2018-08-28"), Timestamp::parse("2018-08-28T00:00:00Z").ok());
        for text in ["", "soon", "2018-08-28T", "2018-13-01", "éééééééééé", "2018-08-28+07:43:55"] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }
}
