//! Fingerprints: 64 bits that stand for a text in the index.
//!
//! They are keyed by the store's secret, so that nobody outside can make two texts collide; where one is
//! found, the text itself is compared all the same.

use ledger_journal::Secret;
use siphasher::sip::SipHasher13;

/// The kind of a key in the key table. The number is stored and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum KeyKind {
    /// A reference leads to its transaction.
    Reference = 1,
    /// An idempotency key leads to the position of its entry.
    Idempotency = 2,
    /// An address leads to its account.
    Address = 3,
}

/// The subject of a row of the terms or versions tables. The number is stored and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Subject {
    /// An account.
    Account = 1,
    /// A transaction.
    Transaction = 2,
}

/// A ledger's part of a table: the ledger, then the kind.
pub(crate) fn key_space(ledger: u32, kind: KeyKind) -> u64 {
    u64::from(ledger) << 8 | kind as u64
}

/// A ledger's part of a table: the ledger, then the subject.
pub(crate) fn subject_space(ledger: u32, subject: Subject) -> u64 {
    u64::from(ledger) << 8 | subject as u64
}

/// Makes fingerprints for one store.
#[derive(Clone)]
pub(crate) struct Fingerprints {
    first: u64,
    second: u64,
}

impl Fingerprints {
    /// With keys derived from the store's secret.
    pub(crate) fn new(secret: &Secret) -> Self {
        let digest = secret.digest(&[b"fingerprints"]);
        let (first, second) = digest.split_at(8);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("half of 16 bytes"));
        Self { first: word(first), second: word(second) }
    }

    /// Of a text in a space.
    pub(crate) fn of(&self, space: u64, text: &str) -> u64 {
        self.digest(space, text)
    }

    /// Of a metadata key with its value.
    pub(crate) fn term(&self, space: u64, key: &str, value: &str) -> u64 {
        self.term_of(self.key(space, key), value)
    }

    /// Of a metadata key: what [`Fingerprints::term_of`] makes the fingerprints of its values from.
    pub(crate) fn key(&self, space: u64, key: &str) -> KeyPrint {
        KeyPrint(self.digest(space, key))
    }

    /// Of a value of a metadata key.
    pub(crate) fn term_of(&self, key: KeyPrint, value: &str) -> u64 {
        self.digest(key.0, value)
    }

    /// Each context has a key of its own, so that a hasher goes over the text alone and in one go: that is a third of
    /// what it takes to hash them one after the other.
    fn digest(&self, context: u64, text: &str) -> u64 {
        SipHasher13::new_with_keys(self.first ^ context, self.second).hash(text.as_bytes())
    }
}

/// The fingerprint of a metadata key in a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPrint(u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts() {
        let fingerprints = Fingerprints { first: 7, second: 8 };
        let others = Fingerprints { first: 7, second: 9 };
        let prints = [
            fingerprints.of(1, "a"),
            fingerprints.of(2, "a"),
            fingerprints.of(1, "b"),
            others.of(1, "a"),
            fingerprints.term(1, "k", "v"),
            fingerprints.term(2, "k", "v"),
            fingerprints.term(1, "l", "v"),
            fingerprints.term(1, "k", "w"),
            fingerprints.term(1, "kv", ""),
            fingerprints.term(1, "", "kv"),
        ];
        for (at, print) in prints.iter().enumerate() {
            assert!(!prints[..at].contains(print), "{at}");
        }
        assert_eq!(fingerprints.term(1, "k", "v"), fingerprints.term_of(fingerprints.key(1, "k"), "v"));
    }
}
