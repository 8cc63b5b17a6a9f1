//! Violations of rules in stored data.

use std::fmt;

use ledger_core::LedgerName;

/// The rule that stored data breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ViolationCode {
    /// An entry does not decode, or refers to something that does not exist.
    FileFormat,
    /// Stored bytes do not match their digest or checksum.
    RecordChecksum,
    /// A chunk of the journal does not continue the one before it.
    ChainBreak,
    /// Positions, or the log ids of a ledger, have a gap or do not ascend.
    SequenceGap,
    /// A wire hash in the index differs from the hash of the log.
    WireHash,
    /// The dates of a ledger's log decrease.
    DateOrder,
    /// The inputs and outputs of an asset over all accounts of a ledger differ.
    Unbalanced,
    /// Two transactions of a ledger have the same reference.
    ReferenceDuplicate,
    /// Two entries of a ledger have the same idempotency key.
    IdempotencyDuplicate,
    /// A transaction was reverted twice, or an entry reverts one that does not exist or is not earlier.
    RevertRule,
    /// Volumes differ from the previous volumes plus the moved amounts.
    VolumeMismatch,
    /// Volumes in effective order differ from those that follow from the journal.
    EffectiveVolumeMismatch,
    /// Metadata, a name or a document differs from the journal.
    MetadataMismatch,
    /// A transaction or log has another position or date in the index than in the journal.
    TransactionMismatch,
    /// An account differs from the journal, or two accounts have the same address.
    AccountMismatch,
    /// The index lacks data that the journal implies.
    IndexMissing,
    /// The index has data that the journal does not imply.
    IndexExtra,
    /// The index holds entries that the journal lacks.
    IndexAhead,
    /// The recorded head of the journal, or of a ledger, differs from the entries.
    HeadMismatch,
    /// Opening the store dropped the end of the journal as torn by a power cut, but it may have been acknowledged.
    TornTail,
    /// The index was damaged and was rebuilt, by the opening or since.
    IndexRebuilt,
    /// The disk or the operating system refused an access, so part of the store was not examined. This implies nothing
    /// about the stored bytes.
    StorageError,
}

impl ViolationCode {
    /// All codes.
    ///
    /// ```
    /// use ledger_store::ViolationCode;
    /// let names = ViolationCode::ALL.map(|code| code.to_string());
    /// assert!(names.iter().all(|name| !name.is_empty() && !name.contains(' ')));
    /// ```
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

    /// Returns the name in reports, such as `VOLUME_MISMATCH`. Names never change.
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

/// A place where stored data breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The broken rule.
    pub code: ViolationCode,
    /// The ledger, if the defect is within one.
    pub ledger: Option<LedgerName>,
    /// The position in the journal, if known.
    pub position: Option<u64>,
    /// The expected and the found value, as text for a person.
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
