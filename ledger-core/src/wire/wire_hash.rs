//! The hash chain of a ledger's log, bit for bit as other servers of this API compute it.
//!
//! `H(n) = SHA-256(P(n) + J(n) + LF)`. `J(n)` is a canonical JSON text of the entry without its id. `P(n)` is
//! the previous hash in base64 between quotes with a line feed, or nothing. So the hash covers the content
//! and the position of an entry, and anybody can check an export.

use std::fmt;

use sha2::{Digest, Sha256};

use super::base64;
use super::memento::Memento;
use crate::log::LogEntry;
use ledger_values::json_text::HEX;

/// The hash of a log entry and of all entries before it.
///
/// ```
/// use ledger_core::WireHash;
/// let hash = WireHash::from_bytes([255; 32]);
/// let text = hash.to_base64();
/// assert_eq!(WireHash::from_base64(&text), Some(hash));
/// let mut line = b"hash ".to_vec();
/// hash.write_base64(&mut line);
/// assert_eq!(line, format!("hash {text}").into_bytes());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct WireHash([u8; 32]);

impl WireHash {
    /// Makes a hash from the bytes of a digest.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Parses standard base64 with padding. Returns `None` if the text does not encode 32 bytes.
    pub fn from_base64(text: &str) -> Option<Self> {
        base64::decode(text).map(Self)
    }

    /// Returns standard base64 with padding, 44 characters, as logs show it.
    pub fn to_base64(&self) -> String {
        base64::encode(&self.0).into_iter().map(char::from).collect()
    }

    /// Appends standard base64 with padding. See [`WireHash::to_base64`].
    pub fn write_base64(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&base64::encode(&self.0));
    }

    /// Returns 64 lower-case hexadecimal digits, as API v1 shows a hash.
    pub fn to_hex(&self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            text.push(char::from(HEX[usize::from(byte >> 4)]));
            text.push(char::from(HEX[usize::from(byte & 15)]));
        }
        text
    }
}

impl fmt::Debug for WireHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_base64())
    }
}

impl fmt::Display for WireHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_base64())
    }
}

/// Base64, as logs show it.
#[cfg(feature = "serde")]
impl serde::Serialize for WireHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for WireHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_base64(&text).ok_or_else(|| serde::de::Error::custom("a hash is 44 characters of base64"))
    }
}

/// Returns the hash of `entry`, which follows the entry with hash `previous` or is the first.
///
/// To hash many entries, use a [`HashChain`], which reuses its buffer.
pub fn wire_hash(previous: Option<&WireHash>, entry: &LogEntry) -> WireHash {
    HashChain::after(previous.copied()).append(entry)
}

/// A hash chain that grows by one entry at a time.
///
/// ```
/// use ledger_core::{
///     AccountAddress, HashChain, LogEntry, LogId, LogPayload, Memento, Target, Timestamp, wire_hash,
/// };
/// let entry = |id, key: &str| LogEntry {
///     id: LogId::new(id),
///     date: Timestamp::MIN,
///     idempotency: None,
///     request_hash: None,
///     schema_version: None,
///     payload: LogPayload::DeleteMetadata { target: Target::Account(AccountAddress::world()), key: key.into() },
///     defaults: Vec::new(),
/// };
/// let (first, second) = (entry(1, "tier"), entry(2, "note"));
/// let mut chain = HashChain::default();
/// let hash = chain.append(&first);
/// assert_eq!(hash, wire_hash(None, &first));
/// let mut text = Vec::new();
/// Memento::from(&second).write_to(&mut text);
/// assert_eq!(chain.append_text(&text), wire_hash(Some(&hash), &second));
/// ```
#[derive(Clone, Debug, Default)]
pub struct HashChain {
    last: Option<WireHash>,
    /// Buffer for the next text, reused for every entry.
    text: Vec<u8>,
}

impl HashChain {
    /// Continues the chain after `last`, or starts a new one.
    pub const fn after(last: Option<WireHash>) -> Self {
        Self { last, text: Vec::new() }
    }

    /// Returns the hash of the last entry.
    pub const fn last(&self) -> Option<WireHash> {
        self.last
    }

    /// Appends an entry and returns its hash.
    pub fn append(&mut self, entry: &LogEntry) -> WireHash {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        Memento::from(entry).write_to(&mut text);
        let hash = self.append_text(&text);
        self.text = text;
        hash
    }

    /// Appends an entry and returns its hash. `memento` is the output of [`Memento::write_to`] for the entry.
    pub fn append_text(&mut self, memento: &[u8]) -> WireHash {
        let mut hasher = Sha256::new();
        if let Some(last) = &self.last {
            let mut quoted = *b"\"____________________________________________\"\n";
            quoted[1..45].copy_from_slice(&base64::encode(&last.0));
            hasher.update(quoted);
        }
        hasher.update(memento);
        hasher.update(b"\n");
        let hash = WireHash(hasher.finalize().into());
        self.last = Some(hash);
        hash
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::BTreeMap;

    use smol_str::SmolStr;

    use super::*;
    use crate::command::Target;
    use crate::decide::{Decision, NewTransaction};
    use crate::log::{Idempotency, LogId, LogPayload};
    use ledger_values::Timestamp;
    use ledger_values::{AccountAddress, Asset, IdempotencyKey, Reference};
    use ledger_values::{Metadata, MetadataValue};
    use ledger_values::{Posting, Transaction, TransactionId};

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn transaction(id: u64, source: &str, destination: &str, timestamp: &str) -> Transaction {
        Transaction {
            id: TransactionId::new(id),
            postings: [Posting {
                source: AccountAddress::parse(source).unwrap(),
                destination: AccountAddress::parse(destination).unwrap(),
                amount: "2500".parse().unwrap(),
                asset: Asset::parse("EUR/2").unwrap(),
            }]
            .into_iter()
            .collect(),
            metadata: Metadata::EMPTY,
            timestamp: at(timestamp),
            reference: None,
            template: None,
            inserted_at: at(timestamp),
            updated_at: at(timestamp),
            reverted_at: None,
            post_commit_volumes: Vec::new(),
        }
    }

    fn entry(id: u64, date: &str, payload: LogPayload) -> LogEntry {
        LogEntry {
            id: LogId::new(id),
            date: at(date),
            idempotency: None,
            schema_version: None,
            payload,
            request_hash: None,
            defaults: Vec::new(),
        }
    }

    fn memento(entry: &LogEntry) -> String {
        let mut text = Vec::new();
        Memento::from(entry).write_to(&mut text);
        String::from_utf8(text).unwrap()
    }

    fn chain() -> [LogEntry; 4] {
        let mut first = transaction(1, "world", "orders:1", "2024-05-01T09:30:00Z");
        first.metadata = [("note", "a<b & \"c\""), ("city", "Zürich")].into_iter().collect();
        first.reference = Some(Reference::parse("ref-1").unwrap());
        let first = LogPayload::NewTransaction {
            transaction: Box::new(first),
            account_metadata: Vec::new(),
            effective_volumes: None,
        };
        let mut first = entry(1, "2024-05-01T09:30:00.12Z", first);
        first.idempotency =
            Some(Idempotency { key: IdempotencyKey::parse("key-1").unwrap(), hash: SmolStr::new_static("") });
        let set = LogPayload::SetMetadata {
            target: Target::Account(AccountAddress::parse("orders:1").unwrap()),
            metadata: [("tier", "gold")].into_iter().collect(),
        };
        let delete = LogPayload::DeleteMetadata {
            target: Target::Transaction(TransactionId::new(1)),
            key: "note".into(),
        };
        let mut revert = transaction(2, "orders:1", "world", "2024-05-01T09:33:00Z");
        revert.metadata.insert_text(crate::REVERTS_KEY, "1");
        let revert = LogPayload::RevertedTransaction {
            reverted: TransactionId::new(1),
            transaction: Box::new(revert),
            effective_volumes: None,
        };
        [
            first,
            entry(2, "2024-05-01T09:31:00.000001Z", set),
            entry(3, "2024-05-01T09:32:00Z", delete),
            entry(4, "2024-05-01T09:33:00Z", revert),
        ]
    }

    #[test]
    fn equals_mementos_and_hashes_of_the_specification() {
        let vectors = [
            (
                r#"{"type":"NEW_TRANSACTION","data":{"transaction":{"postings":[{"source":"world","destination":"orders:1","amount":2500,"asset":"EUR/2"}],"metadata":{"city":"Zürich","note":"a\u003cb \u0026 \"c\""},"timestamp":"2024-05-01T09:30:00Z","reference":"ref-1","id":1,"reverted":false},"accountMetadata":{}},"date":"2024-05-01T09:30:00.12Z","idempotencyKey":"key-1","id":0,"hash":null}"#,
                "T65uQ5P1lFyYPumRPBkfFVZjWqPkqRL4V2H0vX6tiOo=",
            ),
            (
                r#"{"type":"SET_METADATA","data":{"targetType":"ACCOUNT","targetId":"orders:1","metadata":{"tier":"gold"}},"date":"2024-05-01T09:31:00.000001Z","idempotencyKey":"","id":0,"hash":null}"#,
                "YOU0Ne0SpvBgJFnf1bnfjvw5zeA2qY9HSKzSU8gjv0U=",
            ),
            (
                r#"{"type":"DELETE_METADATA","data":{"targetType":"TRANSACTION","targetId":1,"key":"note"},"date":"2024-05-01T09:32:00Z","idempotencyKey":"","id":0,"hash":null}"#,
                "v8mmeWED3ziGlE63Jyy+wOzj4WVTKpSXt0pGH+8Bovk=",
            ),
            (
                r#"{"type":"REVERTED_TRANSACTION","data":{"revertedTransactionID":1,"transaction":{"postings":[{"source":"orders:1","destination":"world","amount":2500,"asset":"EUR/2"}],"metadata":{"com.formance.spec/state/reverts":"1"},"timestamp":"2024-05-01T09:33:00Z","id":2,"reverted":false}},"date":"2024-05-01T09:33:00Z","idempotencyKey":"","id":0,"hash":null}"#,
                "J5ZSTFp+a31m2jZqll1SaEyQKzc1JshyGmHDsa4i1Jw=",
            ),
        ];
        let mut previous = None;
        for (entry, (memento, hash)) in chain().iter().zip(vectors) {
            assert_eq!(self::memento(entry), memento);
            let computed = wire_hash(previous.as_ref(), entry);
            assert_eq!(computed.to_base64(), hash);
            assert_eq!(WireHash::from_base64(hash), Some(computed));
            previous = Some(computed);
        }
        let hash = previous.unwrap();
        assert_eq!(hash.to_hex(), "2796524c5a7e6b7d66da366a965d52684c902b373526c8721a61c3b1ae22d49c");
        assert_eq!(WireHash::from_base64("J5ZS"), None);
    }

    #[test]
    fn decision_and_entry_have_equal_texts() {
        for entry in chain() {
            let of_accounts: BTreeMap<_, _> = match &entry.payload {
                LogPayload::NewTransaction { account_metadata, .. } => {
                    account_metadata.iter().cloned().collect()
                }
                _ => BTreeMap::new(),
            };
            let (id, decision) = match &entry.payload {
                LogPayload::NewTransaction { transaction, .. } => {
                    (transaction.id, decided(transaction, &of_accounts, None))
                }
                LogPayload::RevertedTransaction { reverted, transaction, .. } => {
                    (transaction.id, decided(transaction, &of_accounts, Some(*reverted)))
                }
                LogPayload::SetMetadata { target, metadata } => {
                    (TransactionId::new(0), Decision::SetMetadata { target, metadata })
                }
                LogPayload::DeleteMetadata { target, key } => {
                    (TransactionId::new(0), Decision::DeleteMetadata { target, key })
                }
                LogPayload::InsertedSchema { .. } => unreachable!("the chain has none"),
            };
            let key = entry.idempotency.as_ref().map(|idempotency| &idempotency.key);
            let mut text = Vec::new();
            Memento::of_decision(&decision, id, entry.date, key, None).write_to(&mut text);
            assert_eq!(String::from_utf8(text).unwrap(), memento(&entry));
        }
    }

    fn decided<'a>(
        transaction: &'a Transaction,
        account_metadata: &'a BTreeMap<AccountAddress, Metadata>,
        reverts: Option<TransactionId>,
    ) -> Decision<'a> {
        Decision::Transaction(NewTransaction {
            postings: Cow::Borrowed(&transaction.postings),
            slots: &[],
            metadata: Cow::Borrowed(&transaction.metadata),
            account_metadata,
            timestamp: transaction.timestamp,
            reference: transaction.reference.as_ref().map(Cow::Borrowed),
            reverts,
            template: None,
        })
    }

    #[test]
    fn continues_a_chain_after_its_last_hash() {
        let entries = chain();
        let mut whole = HashChain::default();
        let hashes: Vec<_> = entries.iter().map(|entry| whole.append(entry)).collect();
        assert_eq!(HashChain::after(Some(hashes[1])).append(&entries[2]), hashes[2]);
        assert_eq!(whole.last(), Some(hashes[3]));
    }

    #[test]
    fn escapes_all_texts_but_idempotency_keys() {
        let mut metadata = Metadata::EMPTY;
        metadata.insert_text("a\"<", "x");
        metadata.insert("n", MetadataValue::Json("[1,\"é\"]".into()));
        metadata.insert("t", MetadataValue::Json("true".into()));
        let target = Target::Account(AccountAddress::world());
        let mut entry = entry(1, "2024-05-01T09:30:00Z", LogPayload::SetMetadata { target, metadata });
        entry.schema_version = Some("v<1".into());
        entry.idempotency =
            Some(Idempotency { key: IdempotencyKey::parse("k\"<\\").unwrap(), hash: "".into() });
        assert_eq!(
            memento(&entry),
            r#"{"type":"SET_METADATA","data":{"targetType":"ACCOUNT","targetId":"world","metadata":{"a\"\u003c":"x","n":"[1,\"é\"]","t":"true"}},"date":"2024-05-01T09:30:00Z","idempotencyKey":"k"<\","id":0,"hash":null,"schemaVersion":"v\u003c1"}"#
        );
    }

    #[test]
    fn hashes_account_metadata_and_large_amounts() {
        let mut large = transaction(7, "world", "a", "2024-05-01T09:33:00Z");
        large.postings[0].amount = "47695699000000000000000".parse().unwrap();
        let address = |text| AccountAddress::parse(text).unwrap();
        let payload = LogPayload::NewTransaction {
            transaction: Box::new(large),
            account_metadata: vec![
                (address("a"), [("k", "v")].into_iter().collect()),
                (address("b"), Metadata::EMPTY),
            ],
            effective_volumes: None,
        };
        let text = memento(&entry(1, "2024-05-01T09:33:00Z", payload));
        assert!(text.contains(r#""amount":47695699000000000000000,"#), "{text}");
        assert!(text.contains(r#""accountMetadata":{"a":{"k":"v"},"b":{}}}"#), "{text}");
    }
}
