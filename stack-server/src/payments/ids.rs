//! The ids of the payments API: base64url of a small JSON object that contains the installation of a connector and the
//! provider's reference. Keys of documents contain the same in fewer bytes. They begin with the installation, so that
//! all documents of an installation are adjacent.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::payments::enumerations::PaymentType;
use crate::uuid::Uuid;

/// Maximum length of a provider's reference in bytes. Keys of documents must be able to contain it.
pub(crate) const REFERENCE_BYTES_MAX: usize = 512;

/// Maximum length of an id that is decoded, in bytes.
const TEXT_BYTES_MAX: usize = 8 * 1_024;

/// An installation of a connector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectorId {
    /// The name of the connector, in upper case.
    pub(crate) provider: Arc<str>,
    pub(crate) installation: Uuid,
}

/// An account at a provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AccountId {
    pub(crate) connector: ConnectorId,
    pub(crate) reference: String,
}

/// A payment at a provider. If its type changes, it becomes another payment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PaymentId {
    pub(crate) connector: ConnectorId,
    pub(crate) kind: PaymentType,
    pub(crate) reference: String,
}

/// A transfer initiation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InitiationId {
    pub(crate) connector: ConnectorId,
    pub(crate) reference: String,
}

impl ConnectorId {
    fn json(&self) -> String {
        format!("{{\"Provider\":{},\"Reference\":\"{}\"}}", quoted(&self.provider), self.installation)
    }

    fn of_json(value: &Value) -> Option<Self> {
        let provider = value.get("Provider")?.as_str().filter(|name| !name.is_empty())?;
        let installation = Uuid::parse(value.get("Reference")?.as_str()?)?;
        Some(Self { provider: provider.into(), installation })
    }

    /// Returns the id in its public form.
    pub(crate) fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.json())
    }

    /// Parses a public id. Returns `None` if the text is not an id.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::of_json(&decoded(text)?)
    }
}

impl AccountId {
    /// Returns the id in its public form.
    pub(crate) fn text(&self) -> String {
        text_of(&self.connector, &self.reference)
    }

    /// Parses a public id. Returns `None` if the text is not an id.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (connector, reference) = parts_of(&decoded(text)?)?;
        Some(Self { connector, reference })
    }

    /// Returns the key of the account's document.
    pub(crate) fn key(&self) -> Vec<u8> {
        [self.connector.installation.bytes(), self.reference.as_bytes()].concat()
    }
}

impl PaymentId {
    /// Returns the id in its public form.
    pub(crate) fn text(&self) -> String {
        let (connector, reference) = (self.connector.json(), quoted(&self.reference));
        let kind = self.kind.name();
        URL_SAFE_NO_PAD
            .encode(format!("{{\"ConnectorID\":{connector},\"Reference\":{reference},\"Type\":\"{kind}\"}}"))
    }

    /// Parses a public id. Returns `None` if the text is not an id.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let value = decoded(text)?;
        let (connector, reference) = parts_of(&value)?;
        let kind = PaymentType::parse(value.get("Type")?.as_str()?)?;
        Some(Self { connector, kind, reference })
    }

    /// Returns the key of the payment's document.
    pub(crate) fn key(&self) -> Vec<u8> {
        let installation = self.connector.installation.bytes();
        [&installation[..], &[self.kind.number()], self.reference.as_bytes()].concat()
    }

    /// Reads a key that [`PaymentId::key`] returned. The key does not contain the provider.
    pub(crate) fn of_key(key: &[u8], provider: Arc<str>) -> Option<Self> {
        let (installation, rest) = key.split_first_chunk::<16>()?;
        let (kind, reference) = rest.split_first()?;
        Some(Self {
            connector: ConnectorId { provider, installation: Uuid::from_bytes(*installation) },
            kind: PaymentType::of_number(*kind)?,
            reference: std::str::from_utf8(reference).ok()?.to_owned(),
        })
    }
}

impl InitiationId {
    /// Returns the id in its public form.
    pub(crate) fn text(&self) -> String {
        text_of(&self.connector, &self.reference)
    }

    /// Parses a public id. Returns `None` if the text is not an id.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (connector, reference) = parts_of(&decoded(text)?)?;
        Some(Self { connector, reference })
    }

    /// Returns the key of the initiation's document.
    pub(crate) fn key(&self) -> Vec<u8> {
        [self.connector.installation.bytes(), self.reference.as_bytes()].concat()
    }
}

/// Splits a key that consists of an installation and a reference.
pub(crate) fn of_key(key: &[u8], provider: Arc<str>) -> Option<(ConnectorId, String)> {
    let (installation, reference) = key.split_first_chunk::<16>()?;
    let connector = ConnectorId { provider, installation: Uuid::from_bytes(*installation) };
    Some((connector, std::str::from_utf8(reference).ok()?.to_owned()))
}

fn text_of(connector: &ConnectorId, reference: &str) -> String {
    let (connector, reference) = (connector.json(), quoted(reference));
    URL_SAFE_NO_PAD.encode(format!("{{\"ConnectorID\":{connector},\"Reference\":{reference}}}"))
}

fn parts_of(value: &Value) -> Option<(ConnectorId, String)> {
    let connector = ConnectorId::of_json(value.get("ConnectorID")?)?;
    let reference = value.get("Reference")?.as_str()?;
    let fits = !reference.is_empty() && reference.len() <= REFERENCE_BYTES_MAX;
    fits.then(|| (connector, reference.to_owned()))
}

/// Returns a string in canonical JSON, which escapes only the characters that require it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Decodes the JSON object of an id, with or without padding.
fn decoded(text: &str) -> Option<Value> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    serde_json::from_slice::<Value>(&bytes).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connector() -> ConnectorId {
        let installation = Uuid::parse("7a1e2c3d-4b5f-4a6b-8c7d-9e0f1a2b3c4d").expect("a UUID");
        ConnectorId { provider: "DUMMY-PAY".into(), installation }
    }

    #[test]
    fn ids_have_the_form_that_other_servers_give_them() {
        assert_eq!(
            connector().text(),
            "eyJQcm92aWRlciI6IkRVTU1ZLVBBWSIsIlJlZmVyZW5jZSI6IjdhMWUyYzNkLTRiNWYtNGE2Yi04YzdkLTllMGYxYTJiM2M0ZCJ9"
        );
        let account = AccountId { connector: connector(), reference: "acc-1".to_owned() };
        assert_eq!(
            account.text(),
            "eyJDb25uZWN0b3JJRCI6eyJQcm92aWRlciI6IkRVTU1ZLVBBWSIsIlJlZmVyZW5jZSI6IjdhMWUyYzNkLTRiNWYtNGE2Yi04YzdkLTllMGYxYTJiM2M0ZCJ9LCJSZWZlcmVuY2UiOiJhY2MtMSJ9"
        );
        let payment =
            PaymentId { connector: connector(), kind: PaymentType::PayIn, reference: "pay-1".to_owned() };
        assert_eq!(
            payment.text(),
            "eyJDb25uZWN0b3JJRCI6eyJQcm92aWRlciI6IkRVTU1ZLVBBWSIsIlJlZmVyZW5jZSI6IjdhMWUyYzNkLTRiNWYtNGE2Yi04YzdkLTllMGYxYTJiM2M0ZCJ9LCJSZWZlcmVuY2UiOiJwYXktMSIsIlR5cGUiOiJQQVktSU4ifQ"
        );
    }

    #[test]
    fn ids_are_read_with_and_without_padding() {
        for reference in ["a", "ab", "é\"\\<&\u{1}", "x y"] {
            let account = AccountId { connector: connector(), reference: reference.to_owned() };
            for padding in ["", "=", "=="] {
                assert_eq!(AccountId::parse(&(account.text() + padding)).as_ref(), Some(&account));
            }
            let payment = PaymentId {
                connector: connector(),
                kind: PaymentType::Other,
                reference: reference.to_owned(),
            };
            assert_eq!(PaymentId::parse(&payment.text()).as_ref(), Some(&payment));
            assert_eq!(PaymentId::of_key(&payment.key(), "DUMMY-PAY".into()), Some(payment));
            let read = of_key(&account.key(), "DUMMY-PAY".into()).expect("a key");
            assert_eq!((read.0, read.1), (account.connector, account.reference));
        }
    }

    #[test]
    fn other_texts_are_no_ids() {
        let account = AccountId { connector: connector(), reference: "x".repeat(REFERENCE_BYTES_MAX + 1) };
        for text in ["", "abc", "!!", "e30", "bnVsbA", &connector().text(), &account.text()] {
            assert_eq!(AccountId::parse(text), None, "{text}");
            assert_eq!(PaymentId::parse(text), None, "{text}");
        }
        assert_eq!(ConnectorId::parse("abc"), None);
    }
}
