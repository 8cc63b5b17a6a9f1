//! Accounts at providers.

use std::sync::Arc;

use ledger_core::Timestamp;
use ledger_store::{Collection, DocumentKey};

use crate::collections::PAYMENT_ACCOUNTS;
use crate::payments::codec::{Decoder, Encoder, Metadata, date_key, text_key};
use crate::payments::enumerations::AccountType;
use crate::payments::filter::{KeyKind, Keys, Row, Value};
use crate::payments::ids::{self, AccountId, ConnectorId};
use crate::payments::record::{Record, ordered};
use crate::uuid::Uuid;

/// Indexes of accounts, by the field that each sorts by.
pub(crate) const BY_DATE: u32 = 1;
pub(crate) const BY_REFERENCE: u32 = 2;
pub(crate) const BY_TYPE: u32 = 3;
pub(crate) const BY_NAME: u32 = 4;

/// An account at a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) id: AccountId,
    pub(crate) created_at: Timestamp,
    pub(crate) default_asset: String,
    pub(crate) name: String,
    pub(crate) kind: AccountType,
    pub(crate) metadata: Metadata,
    /// The original record of the provider, a JSON object.
    pub(crate) raw: Option<String>,
}

impl Account {
    /// The filter keys of accounts.
    pub(crate) const FILTER: Keys = Keys { keys: &[("reference", KeyKind::OrderedText)], has_metadata: true };
}

impl Row for Account {
    fn value(&self, key: &str) -> Option<Value> {
        (key == "reference").then(|| Value::Text(self.id.reference.clone()))
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }
}

impl Record for Account {
    const COLLECTION: Collection = PAYMENT_ACCOUNTS;
    const NAME: &'static str = "an account";

    fn key(&self) -> Vec<u8> {
        self.id.key()
    }

    fn keys(&self) -> Vec<DocumentKey> {
        vec![
            ordered(BY_DATE, date_key(self.created_at)),
            ordered(BY_REFERENCE, text_key(&self.id.reference)),
            ordered(BY_TYPE, [self.kind.number()]),
            ordered(BY_NAME, text_key(&self.name)),
        ]
    }

    fn encode(&self, out: &mut Encoder) {
        out.text(&self.id.connector.provider).time(self.created_at).text(&self.default_asset);
        out.text(&self.name).byte(self.kind.number()).metadata(&self.metadata);
        out.optional_text(self.raw.as_deref());
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        let provider: Arc<str> = input.text()?.into();
        let (connector, reference) = ids::of_key(key, provider)?;
        Some(Self {
            id: AccountId { connector, reference },
            created_at: input.time()?,
            default_asset: input.string()?,
            name: input.string()?,
            kind: AccountType::of_number(input.byte()?)?,
            metadata: input.metadata()?,
            raw: input.optional_text()?.map(str::to_owned),
        })
    }
}

/// An account to record, from a connector or a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewAccount {
    pub(crate) reference: String,
    pub(crate) created_at: Timestamp,
    pub(crate) default_asset: String,
    pub(crate) name: String,
    pub(crate) kind: AccountType,
    pub(crate) metadata: Metadata,
    pub(crate) raw: Option<String>,
}

impl NewAccount {
    /// Merges this account into the stored one. Returns `None` if nothing changes. The type, the date of creation and
    /// the raw record keep their first values.
    pub(crate) fn merge_into(self, connector: &ConnectorId, stored: Option<Account>) -> Option<Account> {
        let Some(stored) = stored else { return Some(self.into_new_record(connector)) };
        let mut merged = stored.clone();
        merged.name = self.name;
        merged.metadata = self.metadata;
        if !self.default_asset.is_empty() {
            merged.default_asset = self.default_asset;
        }
        (merged != stored).then_some(merged)
    }

    /// Replaces the stored account with that of a request. The raw record is the last request.
    pub(crate) fn replace(self, connector: &ConnectorId, stored: Option<Account>) -> Account {
        let first = self.into_new_record(connector);
        match stored {
            None => first,
            Some(stored) => Account { kind: stored.kind, created_at: stored.created_at, ..first },
        }
    }

    fn into_new_record(self, connector: &ConnectorId) -> Account {
        Account {
            id: AccountId { connector: connector.clone(), reference: self.reference },
            created_at: self.created_at,
            default_asset: self.default_asset,
            name: self.name,
            kind: self.kind,
            metadata: self.metadata,
            raw: self.raw,
        }
    }
}

/// Writes the account of a payment or a transfer. The form is shorter if the account belongs to the installation
/// `home`, as nearly all do.
pub(crate) fn encode_link(out: &mut Encoder, account: Option<&AccountId>, home: &ConnectorId) {
    match account {
        None => out.byte(0),
        Some(account) if account.connector == *home => out.byte(1).text(&account.reference),
        Some(AccountId { connector, reference }) => {
            out.byte(2).text(&connector.provider).raw(connector.installation.bytes()).text(reference)
        }
    };
}

/// Reads a link that [`encode_link`] wrote. The outer `None` means that the bytes are not a link.
#[expect(clippy::option_option, reason = "the outer is for invalid bytes, the inner for an absent field")]
pub(crate) fn decode_link(input: &mut Decoder<'_>, home: &ConnectorId) -> Option<Option<AccountId>> {
    let connector = match input.byte()? {
        0 => return Some(None),
        1 => home.clone(),
        2 => {
            let provider = input.text()?.into();
            ConnectorId { provider, installation: Uuid::from_bytes(input.raw()?.try_into().ok()?) }
        }
        _ => return None,
    };
    Some(Some(AccountId { connector, reference: input.string()? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connector() -> ConnectorId {
        ConnectorId { provider: "GENERIC".into(), installation: Uuid::from_bytes([7; 16]) }
    }

    fn fetched(name: &str, kind: AccountType) -> NewAccount {
        NewAccount {
            reference: "a".to_owned(),
            created_at: Timestamp::from_micros(5),
            default_asset: String::new(),
            name: name.to_owned(),
            kind,
            metadata: Metadata::new(),
            raw: Some("{}".to_owned()),
        }
    }

    #[test]
    fn a_known_account_keeps_its_type_and_raw_record() {
        let first =
            fetched("one", AccountType::Internal).merge_into(&connector(), None).expect("a new account");
        assert_eq!(fetched("one", AccountType::External).merge_into(&connector(), Some(first.clone())), None);
        let renamed =
            NewAccount { raw: Some("{\"x\":1}".to_owned()), ..fetched("two", AccountType::External) };
        let merged =
            renamed.clone().merge_into(&connector(), Some(first.clone())).expect("a changed account");
        assert_eq!((merged.kind, merged.raw.as_deref()), (AccountType::Internal, Some("{}")));
        let replaced = renamed.replace(&connector(), Some(first));
        assert_eq!((replaced.kind, replaced.raw.as_deref()), (AccountType::Internal, Some("{\"x\":1}")));
        let mut out = Encoder::default();
        merged.encode(&mut out);
        let bytes = out.into_bytes();
        assert_eq!(Account::decode(&merged.key(), &mut Decoder::new(&bytes)), Some(merged));
    }
}
