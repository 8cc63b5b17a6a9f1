//! The options of a ledger, which are fixed when it is created.

use ledger_values::{BucketName, Metadata};

/// The options of a new ledger. Only the metadata can change later.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct LedgerOptions {
    /// The bucket of the ledger.
    pub bucket: BucketName,
    /// The id of the first transaction and of the first log entry.
    pub first_id: FirstId,
    /// The features of the ledger.
    pub features: Features,
    /// The initial metadata.
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

/// The id with which transactions and log entries start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub enum FirstId {
    /// Ids start at 0, as in ledgers of older releases.
    Zero,
    /// Ids start at 1, as in current ledgers.
    One,
}

impl FirstId {
    /// Returns the first id.
    pub const fn get(self) -> u64 {
        match self {
            Self::Zero => 0,
            Self::One => 1,
        }
    }
}

/// The data that a ledger keeps in addition to its journal. A feature that is off keeps none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub struct Features {
    /// The wire hashes of the log entries.
    pub hash_logs: HashLogs,
    /// The hashes of API v1, in addition to the wire hashes.
    pub legacy_hashes: Switch,
    /// Volumes at any date.
    pub moves_history: Switch,
    /// Volumes in effective order at any date.
    pub effective_volumes: Switch,
    /// Account metadata at any date.
    pub account_metadata_history: Switch,
    /// Transaction metadata at any date.
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

/// State of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub enum Switch {
    /// The ledger keeps the data.
    On,
    /// The ledger does not keep the data.
    Off,
}

/// The time at which log entries get their wire hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub enum HashLogs {
    /// Every log entry shows its hash.
    Sync,
    /// No log entry shows a hash; the server hashes whole blocks in the background.
    Async,
    /// The ledger computes no hashes.
    Disabled,
}
