//! Values in the data formats of `serde` (feature `serde`).
//!
//! Names and dates are text, ids are numbers. Amounts and balances are written as text, because many formats limit
//! numbers to 64 bits; they are read from text and from integers. Floating-point numbers are refused. Metadata is a
//! map of texts: other JSON values are converted to text, as in API v2.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::{
    AccountAddress, Amount, Asset, Balance, BucketName, IdempotencyKey, LedgerName, Metadata, Reference,
    SchemaVersion, Timestamp, TransactionId,
};

/// Reads a value from its text.
struct FromText<T>(&'static str, PhantomData<T>);

impl<T> Visitor<'_> for FromText<T>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! as_text {
    ($($value:ty: $expecting:literal,)*) => {$(
        impl Serialize for $value {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(FromText($expecting, PhantomData))
            }
        }
    )*};
}

as_text! {
    AccountAddress: "an account address",
    Asset: "an asset",
    BucketName: "a name of a bucket",
    IdempotencyKey: "an idempotency key",
    LedgerName: "a name of a ledger",
    Reference: "a reference",
    SchemaVersion: "a version of a schema",
    Timestamp: "a date",
}

/// Reads a whole number from its text or from an integer.
struct WholeNumber<T>(PhantomData<T>);

impl<T> Visitor<'_> for WholeNumber<T>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, as text or as an integer")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

macro_rules! as_number_text {
    ($($value:ty,)*) => {$(
        impl Serialize for $value {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(WholeNumber(PhantomData))
            }
        }
    )*};
}

as_number_text! {
    Amount,
    Balance,
}

impl Serialize for TransactionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.get())
    }
}

impl<'de> Deserialize<'de> for TransactionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::new)
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.iter().count()))?;
        for (key, value) in self.iter() {
            map.serialize_entry(key, &*value.as_shown())?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;

        impl<'de> Visitor<'de> for Texts {
            type Value = Metadata;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata, A::Error> {
                let mut metadata = Metadata::EMPTY;
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    metadata.insert_text(&key, &value);
                }
                Ok(metadata)
            }
        }

        deserializer.deserialize_map(Texts)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;

    use super::*;
    use crate::{HoldingVolumes, Monetary, Posting, Transaction, Volumes};

    fn posting(amount: &str) -> Posting {
        Posting {
            source: AccountAddress::world(),
            destination: AccountAddress::parse("users:1").expect("an address"),
            amount: amount.parse().expect("an amount"),
            asset: Asset::parse("USD/2").expect("an asset"),
        }
    }

    /// Checks the text of a value, and that it reads back.
    fn is_text<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, text: &str) {
        assert_eq!(serde_json::to_string(value).expect("it is written"), text);
        assert_eq!(&serde_json::from_str::<T>(text).expect(text), value);
    }

    #[test]
    fn values_are_written_and_read_back() {
        let huge = "9".repeat(60);
        is_text(&TransactionId::new(7), "7");
        is_text(&huge.parse::<Amount>().expect("an amount"), &format!("\"{huge}\""));
        is_text(&Balance::from(-5), "\"-5\"");
        is_text(&Timestamp::parse("2024-05-01T10:00:00.5Z").expect("a date"), "\"2024-05-01T10:00:00.5Z\"");
        is_text(&LedgerName::parse("main").expect("a name"), "\"main\"");
        is_text(&Metadata::from_iter([("b", "2"), ("a", "1")]), r#"{"a":"1","b":"2"}"#);
        is_text(
            &posting("100"),
            r#"{"source":"world","destination":"users:1","amount":"100","asset":"USD/2"}"#,
        );
        is_text(
            &Monetary::new(Asset::parse("USD/2").expect("an asset"), 5),
            r#"{"asset":"USD/2","amount":"5"}"#,
        );
    }

    #[test]
    fn transaction_reads_back_with_camel_case_members() {
        let date = Timestamp::parse("2024-05-01T10:00:00Z").expect("a date");
        let volumes = Volumes { input: Amount::from(5_u64), output: Amount::ZERO };
        let holding = HoldingVolumes {
            account: AccountAddress::world(),
            asset: Asset::parse("USD/2").expect("an asset"),
            volumes,
        };
        let transaction = Transaction {
            id: TransactionId::new(1),
            postings: [posting("5"), posting("6")].into_iter().collect(),
            metadata: Metadata::from_iter([("k", "v")]),
            timestamp: date,
            reference: Some(Reference::parse("r").expect("a reference")),
            template: Some("t".into()),
            inserted_at: date,
            updated_at: date,
            reverted_at: None,
            post_commit_volumes: vec![holding],
        };
        let text = serde_json::to_string(&transaction).expect("it is written");
        assert!(text.contains(r#""insertedAt":"2024-05-01T10:00:00Z""#), "{text}");
        assert_eq!(serde_json::from_str::<Transaction>(&text).expect("as written"), transaction);
    }

    #[test]
    fn amounts_are_read_from_integers_not_from_floats() {
        for text in ["5", "\"5\""] {
            assert_eq!(serde_json::from_str::<Amount>(text).expect(text), Amount::from(5_u64));
        }
        for text in ["5.0", "-5", "\"5.0\"", "null", "true", "\"\""] {
            assert!(serde_json::from_str::<Amount>(text).is_err(), "{text}");
        }
        for text in ["\"users:\"", "\"\"", "5"] {
            assert!(serde_json::from_str::<AccountAddress>(text).is_err(), "{text}");
        }
    }
}
