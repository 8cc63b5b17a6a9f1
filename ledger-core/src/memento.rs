//! The canonical JSON text of a log entry: what its wire hash is computed of.

use std::ops::Range;

use crate::command::Target;
use crate::decide::Decision;
use crate::decimal::write_u64;
use crate::log::{LogEntry, LogPayload};
use crate::metadata::{Metadata, MetadataValue};
use crate::names::{AccountAddress, IdempotencyKey, Reference};
use crate::timestamp::Timestamp;
use crate::transaction::{Posting, Transaction, TransactionId};

/// What of a log entry is hashed, borrowed from an entry or from what was just decided.
///
/// Its text has the members in a fixed order without white space, keys of maps ascend bytewise, the id is 0
/// and the hash null. The idempotency key alone is not escaped.
#[derive(Clone, Copy, Debug)]
pub struct Memento<'a> {
    date: Timestamp,
    idempotency: Option<&'a IdempotencyKey>,
    schema_version: Option<&'a str>,
    event: Event<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Event<'a> {
    New { transaction: Recorded<'a>, account_metadata: &'a [(AccountAddress, Metadata)] },
    Reverted { reverted: TransactionId, transaction: Recorded<'a> },
    Set { target: &'a Target, metadata: &'a Metadata },
    Deleted { target: &'a Target, key: &'a str },
    Schema { schema: &'a str },
}

/// A transaction as it was born.
#[derive(Clone, Copy, Debug)]
struct Recorded<'a> {
    id: TransactionId,
    postings: &'a [Posting],
    metadata: &'a Metadata,
    timestamp: Timestamp,
    reference: Option<&'a Reference>,
}

impl<'a> Recorded<'a> {
    fn of(transaction: &'a Transaction) -> Self {
        Self {
            id: transaction.id,
            postings: &transaction.postings,
            metadata: &transaction.metadata,
            timestamp: transaction.timestamp,
            reference: transaction.reference.as_ref(),
        }
    }
}

impl<'a> From<&'a LogEntry> for Memento<'a> {
    fn from(entry: &'a LogEntry) -> Self {
        let event = match &entry.payload {
            LogPayload::NewTransaction { transaction, account_metadata, effective_volumes: _ } => {
                Event::New { transaction: Recorded::of(transaction), account_metadata }
            }
            LogPayload::RevertedTransaction { reverted, transaction, effective_volumes: _ } => {
                Event::Reverted { reverted: *reverted, transaction: Recorded::of(transaction) }
            }
            LogPayload::SetMetadata { target, metadata } => Event::Set { target, metadata },
            LogPayload::DeleteMetadata { target, key } => Event::Deleted { target, key },
            LogPayload::InsertedSchema { schema } => Event::Schema { schema },
        };
        Self {
            date: entry.date,
            idempotency: entry.idempotency.as_ref().map(|idempotency| &idempotency.key),
            schema_version: entry.schema_version.as_deref(),
            event,
        }
    }
}

impl<'a> Memento<'a> {
    /// Of what was decided and is recorded at `date`; `id` is that of the transaction, if it is one.
    pub fn of_decision(
        decision: &'a Decision,
        id: TransactionId,
        date: Timestamp,
        idempotency: Option<&'a IdempotencyKey>,
        schema_version: Option<&'a str>,
    ) -> Self {
        let event = match decision {
            Decision::Transaction(new) => {
                let transaction = Recorded {
                    id,
                    postings: &new.postings,
                    metadata: &new.metadata,
                    timestamp: new.timestamp,
                    reference: new.reference.as_ref(),
                };
                match new.reverts {
                    Some(reverted) => Event::Reverted { reverted, transaction },
                    None => Event::New { transaction, account_metadata: &new.account_metadata },
                }
            }
            Decision::SetMetadata { target, metadata } => Event::Set { target, metadata },
            Decision::DeleteMetadata { target, key } => Event::Deleted { target, key },
            Decision::InsertSchema { schema, .. } => Event::Schema { schema },
        };
        Self { date, idempotency, schema_version, event }
    }

    /// Appends the text, without a line feed.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let mut dated = None;
        match self.event {
            Event::New { transaction, account_metadata } => {
                out.extend_from_slice(b"{\"type\":\"NEW_TRANSACTION\",\"data\":{\"transaction\":");
                dated = Some(transaction.write_to(out));
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
            Event::Reverted { reverted, transaction } => {
                out.extend_from_slice(
                    b"{\"type\":\"REVERTED_TRANSACTION\",\"data\":{\"revertedTransactionID\":",
                );
                write_u64(reverted.get(), out);
                out.extend_from_slice(b",\"transaction\":");
                dated = Some(transaction.write_to(out));
                out.push(b'}');
            }
            Event::Set { target, metadata } => {
                out.extend_from_slice(b"{\"type\":\"SET_METADATA\",\"data\":{");
                write_target(target, out);
                out.extend_from_slice(b",\"metadata\":");
                write_metadata(metadata, out);
                out.push(b'}');
            }
            Event::Deleted { target, key } => {
                out.extend_from_slice(b"{\"type\":\"DELETE_METADATA\",\"data\":{");
                write_target(target, out);
                out.extend_from_slice(b",\"key\":");
                write_json_text(key, out);
                out.push(b'}');
            }
            Event::Schema { schema } => {
                out.extend_from_slice(b"{\"type\":\"INSERTED_SCHEMA\",\"data\":{\"schema\":");
                out.extend_from_slice(schema.as_bytes());
                out.push(b'}');
            }
        }
        out.extend_from_slice(b",\"date\":\"");
        match dated {
            // Most transactions are dated as they are recorded, and a copy costs less than the calendar.
            Some((date, text)) if date == self.date => out.extend_from_within(text),
            _ => self.date.write_to(out),
        }
        out.extend_from_slice(b"\",\"idempotencyKey\":\"");
        if let Some(key) = self.idempotency {
            out.extend_from_slice(key.as_str().as_bytes());
        }
        out.extend_from_slice(b"\",\"id\":0,\"hash\":null");
        if let Some(version) = self.schema_version {
            out.extend_from_slice(b",\"schemaVersion\":");
            write_json_text(version, out);
        }
        out.push(b'}');
    }
}

impl Recorded<'_> {
    /// Appends the text; returns its date, and where in `out` that stands.
    fn write_to(&self, out: &mut Vec<u8>) -> (Timestamp, Range<usize>) {
        out.extend_from_slice(b"{\"postings\":[");
        for (at, posting) in self.postings.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"{\"source\":".as_slice() } else { b",{\"source\":" });
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
        write_metadata(self.metadata, out);
        out.extend_from_slice(b",\"timestamp\":\"");
        let start = out.len();
        self.timestamp.write_to(out);
        let dated = (self.timestamp, start..out.len());
        out.push(b'"');
        if let Some(reference) = self.reference {
            out.extend_from_slice(b",\"reference\":");
            write_json_text(reference.as_str(), out);
        }
        out.extend_from_slice(b",\"id\":");
        write_u64(self.id.get(), out);
        // What is logged is the transaction as it was born: not reverted.
        out.extend_from_slice(b",\"reverted\":false}");
        dated
    }
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
    write_metadata_with(metadata, out, |value, out| write_json_text(value.as_shown(), out));
}

/// Appends metadata as a JSON object, its keys ascending, each value as `write_value` has it.
pub(crate) fn write_metadata_with(
    metadata: &Metadata,
    out: &mut Vec<u8>,
    write_value: impl Fn(&MetadataValue, &mut Vec<u8>),
) {
    out.push(b'{');
    for (at, (key, value)) in metadata.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_json_text(key, out);
        out.push(b':');
        write_value(value, out);
    }
    out.push(b'}');
}

/// Appends a text whose grammar leaves nothing to escape, between quotes.
fn write_plain(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

pub(crate) const HEX: &[u8; 16] = b"0123456789abcdef";

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
    use super::*;

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
}
