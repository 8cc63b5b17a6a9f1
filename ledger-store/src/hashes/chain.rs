//! The hash chains of a ledger, and their numbers.

use ledger_core::{Features, HashChain, HashLogs, LegacyHashChain, LogEntry, Switch, WireHash};

use crate::error::ReadError;

/// Identifies one of the hash chains of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChainId(u32);

/// Bit in the number of a chain that marks the chain of the v1 API. Numbers of ledgers never reach it.
const LEGACY: u32 = 1 << 31;

impl ChainId {
    /// Returns the chain of a ledger's wire hashes.
    pub(crate) fn wire(ledger: u32) -> Self {
        Self(ledger)
    }

    /// Returns the chain of a ledger's v1 hashes.
    pub(crate) fn legacy(ledger: u32) -> Self {
        Self(ledger | LEGACY)
    }

    /// Returns the chain with a number.
    pub(crate) fn of_number(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number under which checkpoints of the chain are stored.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// Returns the ledger.
    pub(crate) fn ledger(self) -> u32 {
        self.0 & !LEGACY
    }

    /// Returns whether a ledger with these features keeps this chain.
    pub(crate) fn is_kept(self, features: Features) -> bool {
        features.hash_logs != HashLogs::Disabled
            && (self.0 & LEGACY == 0 || features.legacy_hashes == Switch::On)
    }

    /// Starts the chain before its first entry.
    pub(crate) fn begin(self) -> Chain {
        if self.0 & LEGACY == 0 {
            Chain::Wire(HashChain::after(None))
        } else {
            Chain::Legacy(LegacyHashChain::default())
        }
    }

    /// Resumes the chain after an entry with a known hash.
    pub(crate) fn after(
        self,
        entry: impl FnOnce() -> Result<LogEntry, ReadError>,
        hash: WireHash,
    ) -> Result<Chain, ReadError> {
        if self.0 & LEGACY == 0 {
            return Ok(Chain::Wire(HashChain::after(Some(hash))));
        }
        Ok(Chain::Legacy(LegacyHashChain::after(&entry()?, &hash)))
    }
}

/// The state of a chain, to which entries are appended.
pub(crate) enum Chain {
    Wire(HashChain),
    Legacy(LegacyHashChain),
}

impl Chain {
    /// Appends an entry and returns its hash.
    pub(crate) fn append(&mut self, entry: &LogEntry) -> WireHash {
        match self {
            Self::Wire(chain) => chain.append(entry),
            Self::Legacy(chain) => chain.append(entry),
        }
    }

    /// Appends an entry by its canonical text, and returns its hash.
    pub(crate) fn append_text(&mut self, text: &[u8]) -> WireHash {
        match self {
            Self::Wire(chain) => chain.append_text(text),
            Self::Legacy(chain) => chain.append_text(text),
        }
    }
}

/// Returns the key of a checkpoint in its table: the number of the chain, then the log.
pub(crate) fn checkpoint_key(chain: u32, log: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&chain.to_be_bytes());
    key[4..].copy_from_slice(&log.to_be_bytes());
    key
}
