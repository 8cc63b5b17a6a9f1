//! Fingerprints: keyed 64-bit hashes that stand for texts in the index.
//!
//! The store's secret is the hash key, so a client cannot construct texts that collide. Even so, a lookup always
//! compares the text itself.

use ledger_journal::Secret;
use siphasher::sip::SipHasher13;

/// The kind of a key in the table of keys. The number is stored and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum KeyKind {
    /// Maps a reference to its transaction.
    Reference = 1,
    /// Maps an idempotency key to the position of its entry.
    Idempotency = 2,
    /// Maps an address to its account.
    Address = 3,
}

/// The kind of subject in the tables of terms (metadata pairs) and of versions (all states of the documents of accounts
/// and transactions). The number is stored and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Subject {
    /// An account.
    Account = 1,
    /// A transaction.
    Transaction = 2,
}

/// Returns the space of a ledger's keys of one kind: the ledger in the upper bits, then the kind. Each row of the table
/// of keys begins with its space.
pub(crate) fn key_space(ledger: u32, kind: KeyKind) -> u64 {
    u64::from(ledger) << 8 | kind as u64
}

/// Returns the space of a ledger's accounts or transactions: the ledger in the upper bits, then the subject. Each row
/// of the tables of terms and versions begins with its space.
pub(crate) fn subject_space(ledger: u32, subject: Subject) -> u64 {
    u64::from(ledger) << 8 | subject as u64
}

/// Returns the ledger of a space.
#[expect(clippy::cast_possible_truncation, reason = "a space has 40 bits")]
pub(crate) fn ledger_of_space(space: u64) -> u32 {
    (space >> 8) as u32
}

/// Computes the fingerprints of one store.
#[derive(Clone)]
pub(crate) struct Fingerprints {
    first: u64,
    second: u64,
}

impl Fingerprints {
    /// Derives the hash keys from the store's secret.
    pub(crate) fn new(secret: &Secret) -> Self {
        let digest = secret.digest(&[b"fingerprints"]);
        let (first, second) = digest.split_at(8);
        let word = |bytes: &[u8]| {
            u64::from_le_bytes(bytes.try_into().expect("the digest has 16 bytes, so each half has 8"))
        };
        Self { first: word(first), second: word(second) }
    }

    /// Returns the fingerprint of a reference, an idempotency key or an address. `space` is its [`key_space`].
    pub(crate) fn of(&self, space: u64, text: &str) -> u64 {
        self.digest(space, text)
    }

    /// Returns the fingerprint of a metadata key with a value. `space` is the [`subject_space`] of the metadata.
    pub(crate) fn term(&self, space: u64, key: &str, value: &str) -> u64 {
        self.term_of(self.key(space, key), value)
    }

    /// Returns the fingerprint of a metadata key, from which [`Fingerprints::term_of`] computes those of its values.
    pub(crate) fn key(&self, space: u64, key: &str) -> MetadataKeyPrint {
        MetadataKeyPrint(self.digest(space, key))
    }

    /// Returns the fingerprint of a value of a metadata key.
    pub(crate) fn term_of(&self, key: MetadataKeyPrint, value: &str) -> u64 {
        self.digest(key.0, value)
    }

    /// Returns the hash of a text in a context: a space, or the fingerprint of a metadata key. The context changes the
    /// hash key, so the hasher reads only the text, in one call. Hashing context and text one after the other takes
    /// three times as long.
    fn digest(&self, context: u64, text: &str) -> u64 {
        SipHasher13::new_with_keys(self.first ^ context, self.second).hash(text.as_bytes())
    }
}

/// The fingerprint of a metadata key of a ledger's accounts or transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetadataKeyPrint(u64);

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
