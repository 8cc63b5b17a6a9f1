//! Hash chains of a ledger, and their numbers.

use ledger_core::{Features, HashChain, HashLogs, LegacyHashChain, LogEntry, Switch, WireHash};

use crate::error::ReadError;

/// One of the chains of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChainId(u32);

/// Set in the number of a chain of the first generation. Ledgers are numbered from 1 and never reach it.
const LEGACY: u32 = 1 << 31;

impl ChainId {
    /// The wire hashes of a ledger.
    pub(crate) fn wire(ledger: u32) -> Self {
        Self(ledger)
    }

    /// The hashes of the first generation of the API.
    pub(crate) fn legacy(ledger: u32) -> Self {
        Self(ledger | LEGACY)
    }

    /// The chain with a number.
    pub(crate) fn of_number(number: u32) -> Self {
        Self(number)
    }

    /// Its number, by which its checkpoints are kept.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// Its ledger.
    pub(crate) fn ledger(self) -> u32 {
        self.0 & !LEGACY
    }

    /// Whether a ledger keeps it.
    pub(crate) fn is_kept(self, features: Features) -> bool {
        features.hash_logs != HashLogs::Disabled
            && (self.0 & LEGACY == 0 || features.legacy_hashes == Switch::On)
    }

    /// The chain before its first entry.
    pub(crate) fn begin(self) -> Chain {
        if self.0 & LEGACY == 0 {
            Chain::Wire(HashChain::after(None))
        } else {
            Chain::Legacy(LegacyHashChain::default())
        }
    }

    /// The chain after an entry with a hash.
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

/// A chain that grows.
pub(crate) enum Chain {
    Wire(HashChain),
    Legacy(LegacyHashChain),
}

impl Chain {
    /// Adds an entry and returns its hash.
    pub(crate) fn append(&mut self, entry: &LogEntry) -> WireHash {
        match self {
            Self::Wire(chain) => chain.append(entry),
            Self::Legacy(chain) => chain.append(entry),
        }
    }

    /// Adds an entry by the text that is hashed of it.
    pub(crate) fn append_text(&mut self, text: &[u8]) -> WireHash {
        match self {
            Self::Wire(chain) => chain.append_text(text),
            Self::Legacy(chain) => chain.append_text(text),
        }
    }
}

/// The key of a checkpoint in its table: the number of the chain, and the log.
pub(crate) fn checkpoint_key(chain: u32, log: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&chain.to_be_bytes());
    key[4..].copy_from_slice(&log.to_be_bytes());
    key
}
