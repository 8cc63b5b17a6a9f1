//! The hash chain of a log as API v1 computes it, bit for bit.
//!
//! `H(n) = SHA-256(J(n-1) + J(n))`, where `J` is the JSON text in which API v1 shows an entry. `J(n-1)`
//! contains the hash of the previous entry, or is `null` before the first; `J(n)` has an empty hash. There
//! are two types of entries: a revert appears as its new transaction, and a removal of metadata sets the key
//! to null.

use sha2::{Digest, Sha256};

use super::memento::put_metadata_with;
use super::wire_hash::WireHash;
use crate::command::Target;
use crate::decide::Decision;
use crate::log::{LogEntry, LogPayload};
use ledger_values::decimal::write_u64;
use ledger_values::json_text::write_json_text;
use ledger_values::{Metadata, MetadataValue, Posting, Reference, Timestamp, TransactionId};

/// A log entry as API v1 shows it, borrowed from an entry or from a decision.
///
/// ```
/// use ledger_core::{AccountAddress, Decision, LegacyLog, Target, Timestamp, TransactionId};
/// let target = Target::Account(AccountAddress::parse("users:001")?);
/// let decision = Decision::DeleteMetadata { target: &target, key: "note" };
/// let log = LegacyLog::of_decision(&decision, 7, TransactionId::new(0), Timestamp::from_micros(0));
/// let mut text = Vec::new();
/// log.write_to("", &mut text);
/// let shown = r#"{"id":7,"type":"SET_METADATA","data":{"targetType":"ACCOUNT","targetId":"users:001","#.to_owned()
///     + r#""metadata":{"note":null}},"hash":"","date":"1970-01-01T00:00:00Z"}"#;
/// assert_eq!(text, shown.into_bytes());
/// # Ok::<(), ledger_core::NameError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LegacyLog<'a> {
    id: u64,
    date: Timestamp,
    event: Event<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Event<'a> {
    Transaction {
        id: TransactionId,
        postings: &'a [Posting],
        reference: Option<&'a Reference>,
        metadata: &'a Metadata,
        timestamp: Timestamp,
    },
    Set {
        target: &'a Target,
        metadata: &'a Metadata,
    },
    Deleted {
        target: &'a Target,
        key: &'a str,
    },
    /// An entry of a type that API v1 does not know.
    Unknown,
}

impl<'a> From<&'a LogEntry> for LegacyLog<'a> {
    fn from(entry: &'a LogEntry) -> Self {
        let event = match &entry.payload {
            LogPayload::NewTransaction { transaction, .. }
            | LogPayload::RevertedTransaction { transaction, .. } => Event::Transaction {
                id: transaction.id,
                postings: &transaction.postings,
                reference: transaction.reference.as_ref(),
                metadata: &transaction.metadata,
                timestamp: transaction.timestamp,
            },
            LogPayload::SetMetadata { target, metadata } => Event::Set { target, metadata },
            LogPayload::DeleteMetadata { target, key } => Event::Deleted { target, key },
            LogPayload::InsertedSchema { .. } => Event::Unknown,
        };
        Self { id: entry.id.get(), date: entry.date, event }
    }
}

impl<'a> LegacyLog<'a> {
    /// Makes the log entry `id` of a decision that is recorded at `date`. `transaction` is the id of the
    /// transaction, if the decision is one.
    pub fn of_decision(
        decision: &'a Decision<'_>,
        id: u64,
        transaction: TransactionId,
        date: Timestamp,
    ) -> Self {
        let event = match decision {
            Decision::Transaction(new) => Event::Transaction {
                id: transaction,
                postings: &new.postings,
                reference: new.reference.as_deref(),
                metadata: &new.metadata,
                timestamp: new.timestamp,
            },
            Decision::SetMetadata { target, metadata } => Event::Set { target, metadata },
            Decision::DeleteMetadata { target, key } => Event::Deleted { target, key },
            Decision::InsertSchema { .. } => Event::Unknown,
        };
        Self { id, date, event }
    }

    /// Returns the date that API v1 shows: the date of a transaction, or the insertion date of any other
    /// entry in whole seconds.
    pub fn date(&self) -> Timestamp {
        const SECOND: i64 = 1_000_000;
        if let Event::Transaction { timestamp, .. } = self.event {
            return timestamp;
        }
        let micros = self.date.as_micros().saturating_add(SECOND / 2);
        Timestamp::from_micros(micros.div_euclid(SECOND).saturating_mul(SECOND))
    }

    /// Appends the JSON text with this hash, without a line feed.
    pub fn write_to(&self, hash: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":");
        write_u64(self.id, out);
        match self.event {
            Event::Transaction { id, postings, reference, metadata, timestamp } => {
                out.extend_from_slice(b",\"type\":\"NEW_TRANSACTION\",\"data\":{\"postings\":[");
                for (at, posting) in postings.iter().enumerate() {
                    out.extend_from_slice(if at == 0 {
                        b"{\"source\":\"".as_slice()
                    } else {
                        b",{\"source\":\""
                    });
                    out.extend_from_slice(posting.source.as_str().as_bytes());
                    out.extend_from_slice(b"\",\"destination\":\"");
                    out.extend_from_slice(posting.destination.as_str().as_bytes());
                    out.extend_from_slice(b"\",\"amount\":");
                    posting.amount.write_to(out);
                    out.extend_from_slice(b",\"asset\":\"");
                    out.extend_from_slice(posting.asset.as_str().as_bytes());
                    out.extend_from_slice(b"\"}");
                }
                out.extend_from_slice(b"],\"reference\":");
                write_json_text(reference.map_or("", |reference| reference.as_str()), out);
                out.extend_from_slice(b",\"metadata\":");
                write_metadata(metadata, out);
                out.extend_from_slice(b",\"timestamp\":\"");
                timestamp.write_to(out);
                out.extend_from_slice(b"\",\"txid\":");
                write_u64(id.get(), out);
            }
            Event::Set { target, metadata } => {
                write_target(target, out);
                write_metadata(metadata, out);
            }
            Event::Deleted { target, key } => {
                write_target(target, out);
                out.push(b'{');
                write_json_text(key, out);
                out.extend_from_slice(b":null}");
            }
            Event::Unknown => out.extend_from_slice(b",\"type\":\"SET_METADATA\",\"data\":{"),
        }
        out.extend_from_slice(b"}");
        out.extend_from_slice(HASH);
        out.extend_from_slice(hash.as_bytes());
        out.extend_from_slice(DATE);
        self.date().write_to(out);
        out.extend_from_slice(b"\"}");
    }
}

/// The text before the hash, and the text between the hash and the date.
const HASH: &[u8] = b",\"hash\":\"";
const DATE: &[u8] = b"\",\"date\":\"";

fn write_target(target: &Target, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"type\":\"SET_METADATA\",\"data\":{\"targetType\":");
    match target {
        Target::Account(address) => {
            out.extend_from_slice(b"\"ACCOUNT\",\"targetId\":\"");
            out.extend_from_slice(address.as_str().as_bytes());
            out.push(b'"');
        }
        Target::Transaction(id) => {
            out.extend_from_slice(b"\"TRANSACTION\",\"targetId\":");
            write_u64(id.get(), out);
        }
    }
    out.extend_from_slice(b",\"metadata\":");
}

fn write_metadata(metadata: &Metadata, out: &mut Vec<u8>) {
    put_metadata_with(metadata, out, |value, out| match value {
        MetadataValue::Text(text) => write_json_text(text, out),
        MetadataValue::Json(json) => out.extend_from_slice(json.as_bytes()),
    });
}

/// A hash chain that grows by one entry at a time.
///
/// ```
/// use ledger_core::{
///     AccountAddress, LegacyHashChain, LegacyLog, LogEntry, LogId, LogPayload, Target, Timestamp,
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
/// let (first, second) = (entry(0, "tier"), entry(1, "note"));
/// let mut chain = LegacyHashChain::default();
/// let hash = chain.append(&first);
/// let mut text = Vec::new();
/// LegacyLog::from(&second).write_to("", &mut text);
/// assert_eq!(chain.append_text(&text), LegacyHashChain::after(&first, &hash).append(&second));
/// ```
#[derive(Clone, Debug, Default)]
pub struct LegacyHashChain {
    /// The text of the last entry with its hash. Empty before the first entry.
    last: Vec<u8>,
    /// Buffer for the next text, reused for every entry.
    text: Vec<u8>,
}

impl LegacyHashChain {
    /// Continues the chain after `entry`, whose hash is `hash`.
    pub fn after(entry: &LogEntry, hash: &WireHash) -> Self {
        let mut last = Vec::new();
        LegacyLog::from(entry).write_to(&hash.to_hex(), &mut last);
        Self { last, text: Vec::new() }
    }

    /// Appends an entry and returns its hash.
    pub fn append(&mut self, entry: &LogEntry) -> WireHash {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        LegacyLog::from(entry).write_to("", &mut text);
        let hash = self.append_text(&text);
        self.text = text;
        hash
    }

    /// Appends an entry and returns its hash. `text` is the output of [`LegacyLog::write_to`] for the entry
    /// with an empty hash.
    ///
    /// # Panics
    ///
    /// If `text` is not such an output.
    pub fn append_text(&mut self, text: &[u8]) -> WireHash {
        let mut hasher = Sha256::new();
        hasher.update(if self.last.is_empty() { b"null".as_slice() } else { &self.last });
        hasher.update(text);
        let hash = WireHash::from_bytes(hasher.finalize().into());
        // Only the date follows the hash, so search for it from the end.
        let tail = text
            .windows(DATE.len())
            .rposition(|window| window == DATE)
            .expect("`write_to` writes a date into every text");
        self.last.clear();
        self.last.extend_from_slice(&text[..tail]);
        self.last.extend_from_slice(hash.to_hex().as_bytes());
        self.last.extend_from_slice(&text[tail..]);
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::LogId;
    use ledger_values::Transaction;
    use ledger_values::{AccountAddress, Asset};

    fn date(text: &str) -> Timestamp {
        Timestamp::parse(text).expect(text)
    }

    fn json(pairs: &[(&str, &str)]) -> Metadata {
        let mut metadata = Metadata::EMPTY;
        for (key, value) in pairs {
            metadata.insert(*key, MetadataValue::Json((*value).into()));
        }
        metadata
    }

    #[test]
    fn equals_the_chain_of_the_public_documents() {
        let text = |id| {
            format!(
                "{{\"id\":{id},\"type\":\"NEW_TRANSACTION\",\"data\":{{\"postings\":null,\"reference\":\"\",\
                 \"metadata\":{{}},\"timestamp\":\"0001-01-01T00:00:00Z\",\"txid\":0}},\"hash\":\"\",\
                 \"date\":\"2022-03-29T08:20:28Z\"}}"
            )
        };
        let mut chain = LegacyHashChain::default();
        let first = chain.append_text(text(0).as_bytes());
        assert_eq!(first.to_hex(), "839af3514b08e9efecdf578e104f10311801f6d786a2e8d4f5e81e66b0895690");
        let second = chain.append_text(text(1).as_bytes());
        assert_eq!(second.to_hex(), "9ee060170400f556b7e1575cb13f9db004f150a08355c7431c62bc639166431e");
    }

    fn entries() -> [LogEntry; 2] {
        let at = date("2023-06-01T10:00:00Z");
        let posting = Posting {
            source: AccountAddress::world(),
            destination: AccountAddress::parse("users:001").expect("an address"),
            amount: 100_u64.into(),
            asset: Asset::parse("USD/2").expect("an asset"),
        };
        let transaction = Box::new(Transaction {
            id: TransactionId::new(0),
            postings: [posting].into_iter().collect(),
            metadata: json(&[("a", "{\"b\":1}"), ("z", "true")]),
            timestamp: at,
            reference: Reference::parse("dep-1").ok(),
            template: None,
            // The insertion date is not part of the hash.
            inserted_at: date("2024-01-01T00:00:00Z"),
            updated_at: at,
            reverted_at: None,
            post_commit_volumes: Vec::new(),
        });
        let payload =
            LogPayload::NewTransaction { transaction, account_metadata: Vec::new(), effective_volumes: None };
        let target = Target::Account(AccountAddress::parse("users:001").expect("an address"));
        let set = LogPayload::SetMetadata { target, metadata: json(&[("vip", "true")]) };
        let entry = |id, date, payload| LogEntry {
            request_hash: None,
            defaults: Vec::new(),
            id: LogId::new(id),
            date,
            idempotency: None,
            schema_version: None,
            payload,
        };
        [entry(0, date("2024-01-01T00:00:00Z"), payload), entry(1, date("2023-06-01T10:00:04.6Z"), set)]
    }

    #[test]
    fn equals_the_chain_of_a_v1_server() {
        let [first, second] = entries();
        let mut chain = LegacyHashChain::default();
        let hash = chain.append(&first);
        assert_eq!(hash.to_hex(), "68e5f6be2f6be0d4a1e821c5ee15905506175c61e765e597aa1b9d73b018a7ab");
        let expected = "fcb86d28998e06cb56dbf58eff453a287b6ebe35305eb220baa1e18ac9087069";
        assert_eq!(chain.append(&second).to_hex(), expected);
        // A continued chain gives the same hashes.
        assert_eq!(LegacyHashChain::after(&first, &hash).append(&second).to_hex(), expected);
    }
}
