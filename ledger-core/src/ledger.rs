//! What a ledger is fixed to be when it is created.

use crate::metadata::Metadata;
use crate::names::BucketName;

/// What a new ledger shall be. Nothing of it but the metadata can change later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerOptions {
    /// The group it belongs to.
    pub bucket: BucketName,
    /// The id of its first transaction and of its first log entry.
    pub first_id: FirstId,
    /// What it keeps.
    pub features: Features,
    /// Its first metadata.
    pub metadata: Metadata,
}

impl Default for LedgerOptions {
    fn default() -> Self {
        Self {
            bucket: BucketName::default_bucket(),
            first_id: FirstId::One,
            features: Features::default(),
            metadata: Metadata::EMPTY,
        }
    }
}

/// The first id of transactions and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstId {
    /// As ledgers of the first generations counted.
    Zero,
    /// As ledgers count today.
    One,
}

impl FirstId {
    /// The number.
    pub const fn get(self) -> u64 {
        match self {
            Self::Zero => 0,
            Self::One => 1,
        }
    }
}

/// What a ledger keeps beside its journal. Each is fixed at creation; off means that it is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// The wire hash of its logs.
    pub hash_logs: HashLogs,
    /// Beside the wire hash, the hashes of the first generation of the API.
    pub legacy_hashes: Switch,
    /// Volumes at any point in time.
    pub moves_history: Switch,
    /// Volumes in effective order at any point in time.
    pub effective_volumes: Switch,
    /// Account metadata as of a date.
    pub account_metadata_history: Switch,
    /// Transaction metadata as of a date.
    pub transaction_metadata_history: Switch,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            hash_logs: HashLogs::Sync,
            legacy_hashes: Switch::Off,
            moves_history: Switch::On,
            effective_volumes: Switch::On,
            account_metadata_history: Switch::On,
            transaction_metadata_history: Switch::On,
        }
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Kept.
    On,
    /// Not kept.
    Off,
}

/// Whether logs carry the wire hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashLogs {
    /// Every log shows it.
    Sync,
    /// No log shows it; whole blocks are hashed in the background.
    Async,
    /// Not at all.
    Disabled,
}
