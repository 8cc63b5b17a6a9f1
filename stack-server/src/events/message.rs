//! An event on its way to a broker.

use hyper::body::Bytes;
use ledger_core::{LedgerName, LogId};

/// An event with where it goes and what it is known by.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) topic: String,
    /// The same each time this event is delivered.
    pub(super) id: String,
    pub(super) body: Bytes,
}

/// What an event is known by: a UUID (version 8) that the store's key, the ledger's name and number and the log decide,
/// so that a receiver can tell a repetition. A ledger that has the name of one that was removed has another number.
pub(super) fn message_id(key: &[u8; 32], (ledger, number): (&LedgerName, u32), log: LogId) -> String {
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
    fn each_log_of_each_ledger_has_an_identity_of_its_own() {
        let name = |text| LedgerName::parse(text).expect("a name");
        let id = |key: u8, ledger, log| message_id(&[key; 32], (&name(ledger), 1), LogId::new(log));
        let one = id(1, "main", 7);
        assert_eq!(one, id(1, "main", 7));
        assert!(![id(1, "main", 8), id(1, "main2", 7), id(2, "main", 7)].contains(&one));
        assert_ne!(message_id(&[1; 32], (&name("main"), 2), LogId::new(7)), one);
        assert_eq!((one.len(), one.as_bytes()[14]), (36, b'8'));
    }
}
