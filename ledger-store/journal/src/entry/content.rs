//! Encodes the content of an entry. [`super::section`] decodes it and documents its layout.
//!
//! Whatever is put one after the other makes room first: each of its numbers takes ten bytes at most, and texts leave
//! room behind them.

use ledger_codec::Output;
use ledger_core::Timestamp;

use super::amounts::put_amount;
use super::record::{
    AddressRef, Body, Event, MetadataRecord, NameRef, TargetRecord, TransactionRecord, ValueRef,
};
use super::section::{flag, kind, zigzag};

/// Encodes the content of an entry. Returns its kind and its flags.
pub(super) fn put_content(out: &mut Output, body: &Body<'_>) -> (u8, u64) {
    out.make_room();
    match body {
        Body::Log(log) => {
            let mut flags = 0;
            if let Some(idempotency) = &log.idempotency {
                flags |= flag::IDEMPOTENCY;
                out.put_prefixed(idempotency.key.as_bytes());
                out.put_prefixed(idempotency.hash.as_bytes());
            }
            if let Some(version) = log.schema_version {
                flags |= flag::SCHEMA_VERSION;
                out.put_prefixed(version.as_bytes());
            }
            if log.imported {
                flags |= flag::IMPORTED;
            }
            match &log.event {
                Event::Transaction(transaction) => {
                    (kind::TRANSACTION, flags | put_transaction(out, transaction, log.date))
                }
                Event::SetMetadata { target, defaults, metadata } => {
                    put_target(out, target);
                    if !defaults.is_empty() {
                        flags |= flag::DEFAULTS;
                        put_metadata(out, defaults);
                    }
                    put_metadata(out, metadata);
                    (kind::SET_METADATA, flags)
                }
                Event::DeleteMetadata { target, key } => {
                    put_target(out, target);
                    put_name(out, key);
                    (kind::DELETE_METADATA, flags)
                }
                Event::InsertedSchema { schema } => {
                    out.put_prefixed(schema.as_bytes());
                    (kind::INSERTED_SCHEMA, flags)
                }
            }
        }
        Body::Document(document) => {
            out.put_varint(u64::from(document.collection));
            out.put_prefixed(document.key);
            out.put_varint(document.secondary.len() as u64);
            for key in &document.secondary {
                out.put_varint(u64::from(key.index) * 2 + u64::from(key.unique));
                out.put_prefixed(key.key);
            }
            match document.value {
                Some(value) => {
                    out.put_prefixed(value);
                    (kind::DOCUMENT, 0)
                }
                None => (kind::DOCUMENT, flag::REMOVED),
            }
        }
    }
}

fn put_transaction(out: &mut Output, transaction: &TransactionRecord<'_>, date: Timestamp) -> u64 {
    let mut flags = put_transaction_head(out, transaction, date);
    flags |= put_moves(out, transaction);
    for holding in &transaction.holdings {
        out.make_room();
        out.put_varint(u64::from(holding.holding) * 2 + u64::from(holding.is_new));
        put_address(out, &holding.account);
        put_name(out, &holding.asset);
        put_amount(out, &holding.after.input);
        put_amount(out, &holding.after.output);
    }
    if !transaction.metadata.is_empty() {
        flags |= flag::METADATA;
        put_metadata(out, &transaction.metadata);
    }
    flags |= put_account_metadata(out, transaction);
    if let Some(effective) = &transaction.effective {
        flags |= flag::EFFECTIVE;
        for volumes in effective {
            out.make_room();
            put_amount(out, &volumes.input);
            put_amount(out, &volumes.output);
        }
    }
    flags
}

/// Encodes dates, reference and origin of a transaction.
#[inline]
fn put_transaction_head(out: &mut Output, transaction: &TransactionRecord<'_>, date: Timestamp) -> u64 {
    let mut flags = 0;
    if transaction.timestamp != date {
        flags |= flag::BACKDATED;
        out.put_varint(zigzag(transaction.timestamp.as_micros().wrapping_sub(date.as_micros())));
    }
    if let Some(inserted_at) = transaction.inserted_at {
        flags |= flag::INSERTED_AT;
        out.put_varint(zigzag(inserted_at.as_micros().wrapping_sub(date.as_micros())));
    }
    if transaction.volumes_omitted {
        flags |= flag::VOLUMES_OMITTED;
    }
    if let Some(updated_at) = transaction.original_updated_at {
        flags |= flag::ORIGINAL_UPDATED_AT;
        out.put_varint(zigzag(updated_at.as_micros().wrapping_sub(date.as_micros())));
    }
    if let Some(reference) = transaction.reference {
        flags |= flag::REFERENCE;
        out.put_prefixed(reference.as_bytes());
    }
    if let Some(reverts) = transaction.reverts {
        flags |= flag::REVERTS;
        out.put_varint(reverts);
    }
    if let Some(template) = transaction.template {
        flags |= flag::TEMPLATE;
        out.put_prefixed(template.as_bytes());
    }
    flags
}

#[inline]
fn put_moves(out: &mut Output, transaction: &TransactionRecord<'_>) -> u64 {
    // Most transactions have one posting between two holdings.
    let plain = transaction.holdings.len() == 2
        && matches!(transaction.moves.as_slice(), [only] if only.source == 0 && only.destination == 1);
    if plain {
        put_amount(out, &transaction.moves[0].amount);
        return flag::PLAIN_PAIR;
    }
    out.put_varint(transaction.holdings.len() as u64);
    out.put_varint(transaction.moves.len() as u64);
    for posting in &transaction.moves {
        out.make_room();
        out.put_varint(u64::from(posting.source));
        out.put_varint(u64::from(posting.destination));
        put_amount(out, &posting.amount);
    }
    0
}

#[inline]
fn put_account_metadata(out: &mut Output, transaction: &TransactionRecord<'_>) -> u64 {
    if transaction.account_metadata.is_empty() {
        return 0;
    }
    let mut flags = flag::ACCOUNT_METADATA;
    out.put_varint(transaction.account_metadata.len() as u64);
    if transaction.defaults > 0 {
        flags |= flag::DEFAULTS;
        out.put_varint(transaction.defaults as u64);
    }
    for (account, metadata) in &transaction.account_metadata {
        out.make_room();
        put_address(out, account);
        put_metadata(out, metadata);
    }
    flags
}

fn put_name(out: &mut Output, name: &NameRef<'_>) {
    match name {
        NameRef::Inline(text) => {
            out.put_byte(0);
            out.put_prefixed(text.as_bytes());
        }
        NameRef::Known(id) => out.put_varint((u64::from(*id) + 1) * 2),
        NameRef::New(id, text) => {
            out.put_varint((u64::from(*id) + 1) * 2 + 1);
            out.put_prefixed(text.as_bytes());
        }
    }
}

fn put_address(out: &mut Output, address: &AddressRef<'_>) {
    out.put_varint(u64::from(address.account) * 2 + u64::from(address.new.is_some()));
    if let Some(text) = address.new {
        out.put_prefixed(text.as_bytes());
    }
}

fn put_target(out: &mut Output, target: &TargetRecord<'_>) {
    match target {
        TargetRecord::Account(address) => {
            out.put_byte(0);
            put_address(out, address);
        }
        TargetRecord::Transaction(id) => {
            out.put_byte(1);
            out.put_varint(*id);
        }
        TargetRecord::Unknown(address) => {
            out.put_byte(2);
            out.put_prefixed(address.as_bytes());
        }
    }
}

fn put_metadata(out: &mut Output, metadata: &MetadataRecord<'_>) {
    out.put_varint(metadata.len() as u64);
    for (key, value) in metadata {
        put_name(out, key);
        let (text, json) = match value {
            ValueRef::Text(text) => (text, 0),
            ValueRef::Json(text) => (text, 1),
        };
        out.put_varint(text.len() as u64 * 2 + json);
        out.put_bytes(text.as_bytes());
    }
}
