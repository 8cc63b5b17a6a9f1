//! Messages: events in the form that brokers receive.

use hyper::body::Bytes;
use ledger_core::{LedgerName, LogId};

/// An event with its topic and its message id.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) topic: String,
    /// The message id. Every delivery of the same event has the same id.
    pub(super) id: String,
    pub(super) body: Bytes,
}

/// Computes the message id: a UUID (version 8) from the key of the store, the name and number of the ledger, and the
/// log. Receivers recognise repetitions by the id. The number distinguishes a ledger from a removed one with the same
/// name.
pub(super) fn message_id(key: &[u8; 32], ledger: &LedgerName, number: u32, log: LogId) -> String {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher
        .update(b"event\0")
        .update(ledger.as_str().as_bytes())
        .update(b"\0")
        .update(&number.to_be_bytes())
        .update(&log.get().to_be_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    crate::uuid::text(bytes, 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_log_has_its_own_message_id() {
        let name = |text| LedgerName::parse(text).expect("a name");
        let id = |key: u8, ledger, log| message_id(&[key; 32], &name(ledger), 1, LogId::new(log));
        let one = id(1, "main", 7);
        assert_eq!(one, id(1, "main", 7));
        assert!(![id(1, "main", 8), id(1, "main2", 7), id(2, "main", 7)].contains(&one));
        assert_ne!(message_id(&[1; 32], &name("main"), 2, LogId::new(7)), one);
        assert_eq!((one.len(), one.as_bytes()[14]), (36, b'8'));
    }
}
