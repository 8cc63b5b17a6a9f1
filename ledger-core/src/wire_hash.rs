//! The hash chain of a ledger's log, bit for bit that of other servers of this API.
//!
//! `H(n) = SHA-256(P(n) + J(n) + LF)`, where `J(n)` is a canonical JSON text of the entry without its id, and
//! `P(n)` the previous hash in base64 between quotes with a line feed, or nothing. So the hash covers what
//! happened and its place, and an export can be checked by whoever reads it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::command::Target;
use crate::decimal::write_u64;
use crate::log::{LogEntry, LogPayload};
use crate::metadata::Metadata;
use crate::transaction::Transaction;

/// The hash of one log entry and of all before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct WireHash([u8; 32]);

impl WireHash {
    /// From the digest's bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads standard base64 with padding; `None` if the text is not that of 32 bytes.
    pub fn from_base64(text: &str) -> Option<Self> {
        STANDARD.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// Standard base64 with padding, 44 characters, as logs show it.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0)
    }

    /// Appends what [`WireHash::to_base64`] returns.
    pub fn write_base64(&self, out: &mut Vec<u8>) {
        let mut text = [0; 44];
        STANDARD.encode_slice(self.0, &mut text).expect("32 bytes are 44 characters of base64");
        out.extend_from_slice(&text);
    }

    /// Lower-case hex, 64 characters, as the first generation of the API shows it.
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

/// The hash of `entry`, which follows the entry with hash `previous`, or is the first.
///
/// Whoever hashes many does it with a [`HashChain`], which keeps its buffer.
pub fn wire_hash(previous: Option<&WireHash>, entry: &LogEntry) -> WireHash {
    HashChain::after(previous.copied()).append(entry)
}

/// A chain of hashes that grows by one entry at a time.
#[derive(Clone, Debug, Default)]
pub struct HashChain {
    last: Option<WireHash>,
    /// Reused from entry to entry.
    text: Vec<u8>,
}

impl HashChain {
    /// A chain that goes on after `last`, or begins.
    pub const fn after(last: Option<WireHash>) -> Self {
        Self { last, text: Vec::new() }
    }

    /// The hash of the last entry.
    pub const fn last(&self) -> Option<WireHash> {
        self.last
    }

    /// Adds an entry and returns its hash.
    pub fn append(&mut self, entry: &LogEntry) -> WireHash {
        self.text.clear();
        if let Some(last) = &self.last {
            self.text.push(b'"');
            last.write_base64(&mut self.text);
            self.text.extend_from_slice(b"\"\n");
        }
        write_memento(entry, &mut self.text);
        self.text.push(b'\n');
        let hash = WireHash(Sha256::digest(&self.text).into());
        self.last = Some(hash);
        hash
    }
}

/// Appends the canonical JSON text of an entry, `J(n)`, without a line feed.
///
/// Members stand in a fixed order without white space, keys of maps ascend bytewise, the id is 0 and the hash
/// null. The idempotency key alone is not escaped.
pub fn write_memento(entry: &LogEntry, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(entry.payload.type_name().as_bytes());
    out.extend_from_slice(b"\",\"data\":{");
    match &entry.payload {
        LogPayload::NewTransaction { transaction, account_metadata, effective_volumes: _ } => {
            out.extend_from_slice(b"\"transaction\":");
            write_transaction(transaction, out);
            out.extend_from_slice(b",\"accountMetadata\":{");
            for (at, (account, metadata)) in account_metadata.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_plain(account.as_str(), out);
                out.push(b':');
                write_metadata(metadata, out);
            }
            out.extend_from_slice(b"}}");
        }
        LogPayload::RevertedTransaction { reverted, transaction, effective_volumes: _ } => {
            out.extend_from_slice(b"\"revertedTransactionID\":");
            write_u64(reverted.get(), out);
            out.extend_from_slice(b",\"transaction\":");
            write_transaction(transaction, out);
            out.push(b'}');
        }
        LogPayload::SetMetadata { target, metadata } => {
            write_target(target, out);
            out.extend_from_slice(b",\"metadata\":");
            write_metadata(metadata, out);
            out.push(b'}');
        }
        LogPayload::DeleteMetadata { target, key } => {
            write_target(target, out);
            out.extend_from_slice(b",\"key\":");
            write_json_text(key, out);
            out.push(b'}');
        }
        LogPayload::InsertedSchema { schema } => {
            out.extend_from_slice(b"\"schema\":");
            out.extend_from_slice(schema.as_bytes());
            out.push(b'}');
        }
    }
    out.extend_from_slice(b",\"date\":\"");
    entry.date.write_to(out);
    out.extend_from_slice(b"\",\"idempotencyKey\":\"");
    if let Some(idempotency) = &entry.idempotency {
        out.extend_from_slice(idempotency.key.as_str().as_bytes());
    }
    out.extend_from_slice(b"\",\"id\":0,\"hash\":null");
    if let Some(version) = &entry.schema_version {
        out.extend_from_slice(b",\"schemaVersion\":");
        write_json_text(version, out);
    }
    out.push(b'}');
}

fn write_transaction(transaction: &Transaction, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"postings\":[");
    for (at, posting) in transaction.postings.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"source\":");
        write_plain(posting.source.as_str(), out);
        out.extend_from_slice(b",\"destination\":");
        write_plain(posting.destination.as_str(), out);
        out.extend_from_slice(b",\"amount\":");
        posting.amount.write_to(out);
        out.extend_from_slice(b",\"asset\":");
        write_plain(posting.asset.as_str(), out);
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"metadata\":");
    write_metadata(&transaction.metadata, out);
    out.extend_from_slice(b",\"timestamp\":\"");
    transaction.timestamp.write_to(out);
    out.push(b'"');
    if let Some(reference) = &transaction.reference {
        out.extend_from_slice(b",\"reference\":");
        write_json_text(reference.as_str(), out);
    }
    out.extend_from_slice(b",\"id\":");
    write_u64(transaction.id.get(), out);
    // What is logged is the transaction as it was born: not reverted.
    out.extend_from_slice(b",\"reverted\":false}");
}

fn write_target(target: &Target, out: &mut Vec<u8>) {
    match target {
        Target::Account(address) => {
            out.extend_from_slice(b"\"targetType\":\"ACCOUNT\",\"targetId\":");
            write_plain(address.as_str(), out);
        }
        Target::Transaction(id) => {
            out.extend_from_slice(b"\"targetType\":\"TRANSACTION\",\"targetId\":");
            write_u64(id.get(), out);
        }
    }
}

fn write_metadata(metadata: &Metadata, out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, (key, value)) in metadata.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_json_text(key, out);
        out.push(b':');
        write_json_text(value.as_shown(), out);
    }
    out.push(b'}');
}

/// Appends a text whose grammar leaves nothing to escape, between quotes.
fn write_plain(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A byte that stands for itself.
const PLAIN: u8 = 0;
/// A byte that is written as `\u00xx`.
const CODED: u8 = 1;
/// The first byte of U+2028 and U+2029, and of many others.
const SEPARATOR: u8 = 2;

/// For each byte how it is written; what is none of the three above follows a backslash.
const ESCAPES: [u8; 256] = {
    let mut table = [PLAIN; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = CODED;
        byte += 1;
    }
    table[b'<' as usize] = CODED;
    table[b'>' as usize] = CODED;
    table[b'&' as usize] = CODED;
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'\n' as usize] = b'n';
    table[b'\r' as usize] = b'r';
    table[b'\t' as usize] = b't';
    table[0x08] = b'b';
    table[0x0c] = b'f';
    table[0xe2] = SEPARATOR;
    table
};

/// Appends a text as a JSON string: `<`, `>`, `&`, U+2028, U+2029 and control characters as `\u` with
/// lower-case hex where JSON has no shorter form, all else as raw UTF-8.
///
/// This is how the wire writes text, not only what is hashed.
pub fn write_json_text(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    // What lies between `copied` and `at` stands for itself and is copied in one go.
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[usize::from(byte)];
        if escape == PLAIN {
            continue;
        }
        if escape == SEPARATOR {
            if let [_, 0x80, last @ (0xa8 | 0xa9), ..] = bytes[at..] {
                out.extend_from_slice(&bytes[copied..at]);
                out.extend_from_slice(if last == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                copied = at + 3;
            }
            continue;
        }
        out.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
        if escape == CODED {
            let hex = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&hex);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use compact_str::CompactString;

    use super::*;
    use crate::log::{Idempotency, LogId};
    use crate::metadata::MetadataValue;
    use crate::names::{AccountAddress, Asset, IdempotencyKey, Reference};
    use crate::timestamp::Timestamp;
    use crate::transaction::{Posting, TransactionId};

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
        LogEntry { id: LogId::new(id), date: at(date), idempotency: None, schema_version: None, payload }
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
        first.idempotency = Some(Idempotency {
            key: IdempotencyKey::parse("key-1").unwrap(),
            hash: CompactString::const_new(""),
        });
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
    fn mementos_and_hashes_are_those_of_the_specification() {
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
            let mut text = Vec::new();
            write_memento(entry, &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), memento);
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
    fn a_chain_goes_on_where_it_was_left() {
        let entries = chain();
        let mut whole = HashChain::default();
        let hashes: Vec<_> = entries.iter().map(|entry| whole.append(entry)).collect();
        assert_eq!(HashChain::after(Some(hashes[1])).append(&entries[2]), hashes[2]);
        assert_eq!(whole.last(), Some(hashes[3]));
    }

    #[test]
    fn text_is_escaped_as_on_the_wire() {
        for (text, written) in [
            ("", r#""""#),
            ("plain ä 🧾", "\"plain ä 🧾\""),
            ("<>&", r#""\u003c\u003e\u0026""#),
            ("\"\\/", r#""\"\\/""#),
            ("\n\r\t", r#""\n\r\t""#),
            ("\u{8}\u{c}", r#""\b\f""#),
            ("\u{0}\u{b}\u{1f}\u{7f}", "\"\\u0000\\u000b\\u001f\u{7f}\""),
            ("\u{2028}\u{2029}", r#""\u2028\u2029""#),
            // They begin with the same bytes as the separators.
            ("\u{2027}\u{202a}€", "\"\u{2027}\u{202a}€\""),
            ("a\u{2028}", r#""a\u2028""#),
        ] {
            let mut out = Vec::new();
            write_json_text(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), written, "{text:?}");
        }
    }

    #[test]
    fn keys_values_and_versions_are_escaped_but_idempotency_keys_are_not() {
        let mut metadata = Metadata::EMPTY;
        metadata.insert_text("a\"<", "x");
        metadata.insert("n", MetadataValue::Json("[1,\"é\"]".into()));
        metadata.insert("t", MetadataValue::Json("true".into()));
        let target = Target::Account(AccountAddress::world());
        let mut entry = entry(1, "2024-05-01T09:30:00Z", LogPayload::SetMetadata { target, metadata });
        entry.schema_version = Some("v<1".into());
        entry.idempotency =
            Some(Idempotency { key: IdempotencyKey::parse("k\"<\\").unwrap(), hash: "".into() });
        let mut text = Vec::new();
        write_memento(&entry, &mut text);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            r#"{"type":"SET_METADATA","data":{"targetType":"ACCOUNT","targetId":"world","metadata":{"a\"\u003c":"x","n":"[1,\"é\"]","t":"true"}},"date":"2024-05-01T09:30:00Z","idempotencyKey":"k"<\","id":0,"hash":null,"schemaVersion":"v\u003c1"}"#
        );
    }

    #[test]
    fn metadata_of_accounts_and_large_amounts_are_covered() {
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
        let mut text = Vec::new();
        write_memento(&entry(1, "2024-05-01T09:33:00Z", payload), &mut text);
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(r#""amount":47695699000000000000000,"#), "{text}");
        assert!(text.contains(r#""accountMetadata":{"a":{"k":"v"},"b":{}}}"#), "{text}");
    }
}
