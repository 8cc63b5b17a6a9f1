//! Violations: rules that stored bytes break.

use std::fmt;

use ledger_core::LedgerName;

/// Which rule a stored byte, entry or row breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ViolationCode {
    /// An entry does not decode, or names what does not exist.
    FileFormat,
    /// Stored bytes do not match their digest or checksum.
    RecordChecksum,
    /// A chunk of the journal does not follow the one before it.
    ChainBreak,
    /// Positions, or the ids of a ledger's logs, have a gap or do not ascend.
    SequenceGap,
    /// A wire hash in the index is not that of the log.
    WireHash,
    /// The dates of a ledger's log decrease.
    DateOrder,
    /// Over all accounts of a ledger an asset's inputs and outputs differ.
    Unbalanced,
    /// Two transactions of a ledger have one reference.
    ReferenceDuplicate,
    /// Two entries of a ledger have one idempotency key.
    IdempotencyDuplicate,
    /// A transaction was reverted twice, or one that does not exist, or not an earlier one.
    RevertRule,
    /// Volumes are not those before plus what was moved.
    VolumeMismatch,
    /// Volumes in effective order are not those of the journal.
    EffectiveVolumeMismatch,
    /// Metadata, a name or a document is not that of the journal.
    MetadataMismatch,
    /// A transaction or a log does not stand where, or when, the journal has it.
    TransactionMismatch,
    /// An account is not that of the journal, or two have one address.
    AccountMismatch,
    /// The index lacks what the journal says.
    IndexMissing,
    /// The index has what the journal does not say.
    IndexExtra,
    /// The index holds entries that the journal does not have.
    IndexAhead,
    /// The head of the journal, or of a ledger, is not that of the entries.
    HeadMismatch,
    /// Opening dropped the end of the journal as torn by a power cut, and it may have been acknowledged.
    TornTail,
    /// The index was damaged when the store was opened, and was built again.
    IndexRebuilt,
    /// The disk or the system refused a read or a write, and part of the store was not looked at. That says nothing
    /// about the bytes that are stored.
    StorageError,
}

impl ViolationCode {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::FileFormat,
        Self::RecordChecksum,
        Self::ChainBreak,
        Self::SequenceGap,
        Self::WireHash,
        Self::DateOrder,
        Self::Unbalanced,
        Self::ReferenceDuplicate,
        Self::IdempotencyDuplicate,
        Self::RevertRule,
        Self::VolumeMismatch,
        Self::EffectiveVolumeMismatch,
        Self::MetadataMismatch,
        Self::TransactionMismatch,
        Self::AccountMismatch,
        Self::IndexMissing,
        Self::IndexExtra,
        Self::IndexAhead,
        Self::HeadMismatch,
        Self::TornTail,
        Self::IndexRebuilt,
        Self::StorageError,
    ];

    /// Its name in reports, such as `VOLUME_MISMATCH`. Names do not change.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FileFormat => "FILE_FORMAT",
            Self::RecordChecksum => "RECORD_CHECKSUM",
            Self::ChainBreak => "CHAIN_BREAK",
            Self::SequenceGap => "SEQUENCE_GAP",
            Self::WireHash => "WIRE_HASH",
            Self::DateOrder => "DATE_ORDER",
            Self::Unbalanced => "UNBALANCED",
            Self::ReferenceDuplicate => "REFERENCE_DUPLICATE",
            Self::IdempotencyDuplicate => "IDEMPOTENCY_DUPLICATE",
            Self::RevertRule => "REVERT_RULE",
            Self::VolumeMismatch => "VOLUME_MISMATCH",
            Self::EffectiveVolumeMismatch => "EFFECTIVE_VOLUME_MISMATCH",
            Self::MetadataMismatch => "METADATA_MISMATCH",
            Self::TransactionMismatch => "TRANSACTION_MISMATCH",
            Self::AccountMismatch => "ACCOUNT_MISMATCH",
            Self::IndexMissing => "INDEX_MISSING",
            Self::IndexExtra => "INDEX_EXTRA",
            Self::IndexAhead => "INDEX_AHEAD",
            Self::HeadMismatch => "HEAD_MISMATCH",
            Self::TornTail => "TORN_TAIL",
            Self::IndexRebuilt => "INDEX_REBUILT",
            Self::StorageError => "STORAGE_ERROR",
        }
    }
}

impl fmt::Display for ViolationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule is broken.
    pub code: ViolationCode,
    /// In which ledger, where it is in one.
    pub ledger: Option<LedgerName>,
    /// At which position of the journal, where one is known.
    pub position: Option<u64>,
    /// The expected and the found value, for a person.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(ledger) = &self.ledger {
            write!(f, " in ledger {ledger}")?;
        }
        if let Some(position) = self.position {
            write!(f, " at entry {position}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> =
            ViolationCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), ViolationCode::ALL.len());
    }
}
