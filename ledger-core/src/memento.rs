//! The canonical JSON text of a log entry: what its wire hash is computed of.

use std::collections::BTreeMap;

use crate::command::Target;
use crate::decide::Decision;
use crate::decimal::write_u64;
use crate::json_text::{Out, Room, put_json_text, put_plain};
use crate::log::{LogEntry, LogPayload};
use crate::metadata::{Metadata, MetadataValue};
use crate::names::{AccountAddress, IdempotencyKey, Reference};
use crate::timestamp::{Timestamp, TimestampText};
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
    New { transaction: Recorded<'a>, account_metadata: OfAccounts<'a> },
    Reverted { reverted: TransactionId, transaction: Recorded<'a> },
    Set { target: &'a Target, metadata: &'a Metadata },
    Deleted { target: &'a Target, key: &'a str },
    Schema { schema: &'a str },
}

/// Metadata of accounts, ascending by address: as an entry or as a command has it.
#[derive(Clone, Copy, Debug)]
enum OfAccounts<'a> {
    Entry(&'a [(AccountAddress, Metadata)]),
    Command(&'a BTreeMap<AccountAddress, Metadata>),
}

impl<'a> OfAccounts<'a> {
    fn iter(self) -> impl Iterator<Item = (&'a AccountAddress, &'a Metadata)> {
        let (entry, command) = match self {
            Self::Entry(pairs) => (pairs, None),
            Self::Command(map) => ([].as_slice(), Some(map)),
        };
        entry.iter().map(|(account, metadata)| (account, metadata)).chain(command.into_iter().flatten())
    }
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
                let account_metadata = OfAccounts::Entry(account_metadata);
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
                let account_metadata = OfAccounts::Command(new.account_metadata);
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

    /// Puts the text to the begin of `room` and returns its length, or `None` if there is not enough room for it.
    /// Costs less than [`Memento::write_to`]. `dates` is anybody's, and best what the entry before was put with.
    pub fn put_into(&self, room: &mut [u8], dates: &mut TimestampText) -> Option<usize> {
        let len = room.len();
        let mut room = Room::new(room);
        self.put(&mut room, dates.of(self.date));
        room.left().map(|left| len - left)
    }

    fn put(&self, out: &mut impl Out, date: &[u8]) {
        match self.event {
            Event::New { transaction, account_metadata } => {
                out.put(b"{\"type\":\"NEW_TRANSACTION\",\"data\":{\"transaction\":");
                transaction.put(out, (self.date, date));
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
                transaction.put(out, (self.date, date));
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
    /// Appends the text. Most are dated as they are recorded: so that date comes with its text.
    fn put(&self, out: &mut impl Out, (recorded, text): (Timestamp, &[u8])) {
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
        // What is logged is the transaction as it was born: not reverted.
        out.put(b",\"reverted\":false}");
    }
}

fn put_target(target: &Target, out: &mut impl Out) {
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

fn put_metadata(metadata: &Metadata, out: &mut impl Out) {
    put_metadata_with(metadata, out, |value, out| put_json_text(value.as_shown(), out));
}

/// Appends metadata as a JSON object, its keys ascending, each value as `put_value` has it.
pub(crate) fn put_metadata_with<O: Out>(
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
    use crate::names::{Asset, SchemaVersion};

    #[test]
    fn a_text_is_the_same_in_room_for_it_and_there_is_none_in_less() {
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
            for room in [0, 1, 100, written.len() / 2, written.len() - 1] {
                assert_eq!(memento.put_into(&mut vec![0; room], dates), None, "{room} of {}", written.len());
            }
            for more in [0, 1, 1_000] {
                let mut room = vec![0; written.len() + more];
                assert_eq!(memento.put_into(&mut room, dates), Some(written.len()));
                assert_eq!(room[..written.len()], written);
            }
        }
    }
}
