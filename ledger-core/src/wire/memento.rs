//! The canonical JSON text of a log entry, from which its wire hash is computed.

use std::collections::BTreeMap;

use crate::command::Target;
use crate::decide::Decision;
use crate::log::{LogEntry, LogPayload};
use ledger_values::decimal::write_u64;
use ledger_values::json_text::{ByteSink, FixedBuffer, put_json_text, put_plain};
use ledger_values::{
    AccountAddress, IdempotencyKey, Metadata, MetadataValue, Posting, Reference, Timestamp, TimestampText,
    Transaction, TransactionId,
};

/// The hashed part of a log entry, borrowed from an entry or from a decision.
///
/// The text has its members in a fixed order without white space. Keys of maps are sorted bytewise, the id is
/// 0 and the hash is null. Only the idempotency key is not escaped.
///
/// ```
/// use ledger_core::{AccountAddress, Decision, Memento, Target, Timestamp, TimestampText, TransactionId};
/// let target = Target::Account(AccountAddress::parse("users:001")?);
/// let decision = Decision::DeleteMetadata { target: &target, key: "note" };
/// let memento = Memento::of_decision(&decision, TransactionId::new(0), Timestamp::MIN, None, None);
/// let mut text = Vec::new();
/// memento.write_to(&mut text);
/// assert!(text.starts_with(br#"{"type":"DELETE_METADATA","data":{"targetType":"ACCOUNT","#));
/// let (mut buffer, mut dates) = ([0; 512], TimestampText::default());
/// assert_eq!(memento.put_into(&mut buffer, &mut dates), Some(text.len()));
/// assert!(buffer.starts_with(&text));
/// assert_eq!(memento.put_into(&mut buffer[..16], &mut dates), None);
/// # Ok::<(), ledger_core::NameError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Memento<'a> {
    date: Timestamp,
    idempotency: Option<&'a IdempotencyKey>,
    schema_version: Option<&'a str>,
    event: Event<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Event<'a> {
    New { transaction: Recorded<'a>, account_metadata: AccountMetadata<'a> },
    Reverted { reverted: TransactionId, transaction: Recorded<'a> },
    Set { target: &'a Target, metadata: &'a Metadata },
    Deleted { target: &'a Target, key: &'a str },
    Schema { schema: &'a str },
}

/// Metadata of accounts sorted by address, in the form of an entry or of a command.
#[derive(Clone, Copy, Debug)]
enum AccountMetadata<'a> {
    Entry(&'a [(AccountAddress, Metadata)]),
    Command(&'a BTreeMap<AccountAddress, Metadata>),
}

impl<'a> AccountMetadata<'a> {
    fn iter(self) -> impl Iterator<Item = (&'a AccountAddress, &'a Metadata)> {
        let (entry, command) = match self {
            Self::Entry(pairs) => (pairs, None),
            Self::Command(map) => ([].as_slice(), Some(map)),
        };
        entry.iter().map(|(account, metadata)| (account, metadata)).chain(command.into_iter().flatten())
    }
}

/// A transaction as it was when it was recorded.
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
                let account_metadata = AccountMetadata::Entry(account_metadata);
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
    /// Makes the memento of a decision that is recorded at `date`. `id` is the id of the transaction, if the
    /// decision is one.
    pub fn of_decision(
        decision: &'a Decision<'_>,
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
                    reference: new.reference.as_deref(),
                };
                let account_metadata = AccountMetadata::Command(new.account_metadata);
                match new.reverts {
                    Some(reverted) => Event::Reverted { reverted, transaction },
                    None => Event::New { transaction, account_metadata },
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
        self.put(out, TimestampText::default().of(self.date));
    }

    /// Writes the text to the beginning of `buffer` and returns its length, or `None` if it does not fit.
    /// Faster than [`Memento::write_to`], because the buffer does not grow. `dates` caches the text of a
    /// date; pass the same one for consecutive entries.
    pub fn put_into(&self, buffer: &mut [u8], dates: &mut TimestampText) -> Option<usize> {
        let len = buffer.len();
        let mut buffer = FixedBuffer::new(buffer);
        self.put(&mut buffer, dates.of(self.date));
        buffer.left().map(|left| len - left)
    }

    fn put(&self, out: &mut impl ByteSink, date: &[u8]) {
        match self.event {
            Event::New { transaction, account_metadata } => {
                out.put(b"{\"type\":\"NEW_TRANSACTION\",\"data\":{\"transaction\":");
                transaction.put(out, self.date, date);
                out.put(b",\"accountMetadata\":{");
                for (at, (account, metadata)) in account_metadata.iter().enumerate() {
                    if at > 0 {
                        out.put(b",");
                    }
                    put_plain(account.as_str(), out);
                    out.put(b":");
                    put_metadata(metadata, out);
                }
                out.put(b"}}");
            }
            Event::Reverted { reverted, transaction } => {
                out.put(b"{\"type\":\"REVERTED_TRANSACTION\",\"data\":{\"revertedTransactionID\":");
                write_u64(reverted.get(), out);
                out.put(b",\"transaction\":");
                transaction.put(out, self.date, date);
                out.put(b"}");
            }
            Event::Set { target, metadata } => {
                out.put(b"{\"type\":\"SET_METADATA\",\"data\":{");
                put_target(target, out);
                out.put(b",\"metadata\":");
                put_metadata(metadata, out);
                out.put(b"}");
            }
            Event::Deleted { target, key } => {
                out.put(b"{\"type\":\"DELETE_METADATA\",\"data\":{");
                put_target(target, out);
                out.put(b",\"key\":");
                put_json_text(key, out);
                out.put(b"}");
            }
            Event::Schema { schema } => {
                out.put(b"{\"type\":\"INSERTED_SCHEMA\",\"data\":{\"schema\":");
                out.put(schema.as_bytes());
                out.put(b"}");
            }
        }
        out.put(b",\"date\":\"");
        out.put(date);
        out.put(b"\",\"idempotencyKey\":\"");
        if let Some(key) = self.idempotency {
            out.put(key.as_str().as_bytes());
        }
        out.put(b"\",\"id\":0,\"hash\":null");
        if let Some(version) = self.schema_version {
            out.put(b",\"schemaVersion\":");
            put_json_text(version, out);
        }
        out.put(b"}");
    }
}

impl Recorded<'_> {
    /// Appends the text. The insertion date comes with its text, because most transactions have it as their
    /// effective date.
    fn put(&self, out: &mut impl ByteSink, recorded: Timestamp, text: &[u8]) {
        out.put(b"{\"postings\":[");
        for (at, posting) in self.postings.iter().enumerate() {
            out.put(if at == 0 { b"{\"source\":".as_slice() } else { b",{\"source\":" });
            put_plain(posting.source.as_str(), out);
            out.put(b",\"destination\":");
            put_plain(posting.destination.as_str(), out);
            out.put(b",\"amount\":");
            posting.amount.put_digits(out);
            out.put(b",\"asset\":");
            put_plain(posting.asset.as_str(), out);
            out.put(b"}");
        }
        out.put(b"],\"metadata\":");
        put_metadata(self.metadata, out);
        out.put(b",\"timestamp\":\"");
        if self.timestamp == recorded {
            out.put(text);
        } else {
            self.timestamp.put(out);
        }
        out.put(b"\"");
        if let Some(reference) = self.reference {
            out.put(b",\"reference\":");
            put_json_text(reference.as_str(), out);
        }
        out.put(b",\"id\":");
        write_u64(self.id.get(), out);
        // The log contains the transaction as it was recorded: not reverted.
        out.put(b",\"reverted\":false}");
    }
}

fn put_target(target: &Target, out: &mut impl ByteSink) {
    match target {
        Target::Account(address) => {
            out.put(b"\"targetType\":\"ACCOUNT\",\"targetId\":");
            put_plain(address.as_str(), out);
        }
        Target::Transaction(id) => {
            out.put(b"\"targetType\":\"TRANSACTION\",\"targetId\":");
            write_u64(id.get(), out);
        }
    }
}

fn put_metadata(metadata: &Metadata, out: &mut impl ByteSink) {
    put_metadata_with(metadata, out, |value, out| put_json_text(&value.as_shown(), out));
}

/// Appends metadata as a JSON object with sorted keys. `put_value` writes each value.
pub(crate) fn put_metadata_with<O: ByteSink>(
    metadata: &Metadata,
    out: &mut O,
    put_value: impl Fn(&MetadataValue, &mut O),
) {
    out.put(b"{");
    for (at, (key, value)) in metadata.iter().enumerate() {
        if at > 0 {
            out.put(b",");
        }
        put_json_text(key, out);
        out.put(b":");
        put_value(value, out);
    }
    out.put(b"}");
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::decide::NewTransaction;
    use ledger_values::{Asset, SchemaVersion};

    #[test]
    fn writes_equal_text_into_fixed_buffers() {
        let odd = "\u{1}".repeat(1_000);
        let metadata = || Metadata::from_iter([(odd.as_str(), odd.as_str()), ("", "")]);
        let address = || AccountAddress::parse(&"a".repeat(1_000)).expect("an address");
        let (target, metadata_set) = (Target::Account(address()), metadata());
        let account_metadata = [(address(), metadata()), (AccountAddress::world(), metadata())].into();
        let amount = || "9".repeat(1_000).parse().expect("an amount");
        let asset = || Asset::parse("A").expect("an asset");
        let posting = Posting { source: address(), destination: address(), amount: amount(), asset: asset() };
        let transaction = |postings: usize, reverts| NewTransaction {
            postings: vec![posting.clone(); postings].into(),
            slots: &[],
            metadata: Cow::Owned(metadata()),
            account_metadata: &account_metadata,
            timestamp: Timestamp::from_micros(i64::MIN),
            reference: Some(Cow::Owned(Reference::parse(&odd).expect("a reference"))),
            reverts,
            template: None,
        };
        let key = IdempotencyKey::parse(&"k".repeat(200)).expect("a key");
        let version = SchemaVersion::parse("v").expect("a version");
        let id = TransactionId::new(u64::MAX);
        for decision in [
            Decision::Transaction(transaction(0, None)),
            Decision::Transaction(transaction(30, None)),
            Decision::Transaction(transaction(30, Some(id))),
            Decision::SetMetadata { target: &target, metadata: &metadata_set },
            Decision::SetMetadata { target: &Target::Transaction(id), metadata: &metadata_set },
            Decision::DeleteMetadata { target: &target, key: &odd },
            Decision::DeleteMetadata { target: &Target::Transaction(id), key: &odd },
            Decision::InsertSchema { version: &version, schema: "{}".repeat(5_000).into() },
        ] {
            let memento = Memento::of_decision(&decision, id, Timestamp::MAX, Some(&key), Some(&odd));
            let mut written = Vec::new();
            memento.write_to(&mut written);
            let dates = &mut TimestampText::default();
            for size in [0, 1, 100, written.len() / 2, written.len() - 1] {
                assert_eq!(memento.put_into(&mut vec![0; size], dates), None, "{size} of {}", written.len());
            }
            for more in [0, 1, 1_000] {
                let mut buffer = vec![0; written.len() + more];
                assert_eq!(memento.put_into(&mut buffer, dates), Some(written.len()));
                assert_eq!(buffer[..written.len()], written);
            }
        }
    }
}
