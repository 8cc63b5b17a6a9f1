//! The content of a journal entry.

use ledger_core::{Amount, Timestamp, Volumes};
use smallvec::SmallVec;

use crate::Position;

/// One entry, with numbers in the place of names. Texts borrow from the command or from the chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct Record<'a> {
    /// Position of the entry in the journal.
    pub position: Position,
    /// Content of the entry.
    pub body: Body<'a>,
}

/// The kinds of entries.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly every entry is of the large kind, and none is kept")]
pub enum Body<'a> {
    /// An entry of a ledger's log.
    Log(LogRecord<'a>),
    /// A change of a small keyed document. It belongs to no log.
    Document(DocumentRecord<'a>),
}

/// An entry of a ledger's log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord<'a> {
    /// Number of the ledger in the store.
    pub ledger: u32,
    /// Id in the ledger's log.
    pub log: u64,
    /// Date when it was recorded.
    pub date: Timestamp,
    /// Idempotency key and hash of the request.
    pub idempotency: Option<IdempotencyRecord<'a>>,
    /// Schema version that the request named.
    pub schema_version: Option<&'a str>,
    /// True if an import copied the entry from another ledger's log.
    pub imported: bool,
    /// The recorded change.
    pub event: Event<'a>,
}

/// The change that a log entry records.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly every entry is a transaction, and none is kept")]
pub enum Event<'a> {
    /// A transaction, which may revert another one.
    Transaction(TransactionRecord<'a>),
    /// Metadata keys were set.
    SetMetadata {
        /// Account or transaction that got the metadata.
        target: TargetRecord<'a>,
        /// Default metadata of a new account from the chart of a schema. It applies before `metadata`.
        defaults: MetadataRecord<'a>,
        /// The new keys and values.
        metadata: MetadataRecord<'a>,
    },
    /// A metadata key was removed.
    DeleteMetadata {
        /// Account or transaction that lost the key.
        target: TargetRecord<'a>,
        /// The removed key.
        key: NameRef<'a>,
    },
    /// A schema version was added.
    InsertedSchema {
        /// Schema as compact JSON text.
        schema: &'a str,
    },
}

/// An idempotency key and the hash that recognizes a repeated request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdempotencyRecord<'a> {
    /// The idempotency key.
    pub key: &'a str,
    /// Hash as text; empty if there is nothing to compare.
    pub hash: &'a str,
}

/// A name that its ledger may have numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRef<'a> {
    /// A name that an earlier entry numbered.
    Known(u32),
    /// A name that this entry numbers.
    New(u32, &'a str),
    /// A name without a number, because the ledger reached its limit of numbered names of this kind.
    Inline(&'a str),
}

/// An account. Every account has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRef<'a> {
    /// Number of the account in its ledger.
    pub account: u32,
    /// Address of the account, if this entry is the first to name it.
    pub new: Option<&'a str>,
}

/// The owner of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetRecord<'a> {
    /// An account.
    Account(AddressRef<'a>),
    /// A transaction.
    Transaction(u64),
    /// An account that does not exist. The removal of a key from it is recorded all the same.
    Unknown(&'a str),
}

/// A metadata value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRef<'a> {
    /// A string.
    Text(&'a str),
    /// Any other JSON value, as compact text.
    Json(&'a str),
}

/// Metadata keys and values, in ascending order of the key text.
pub type MetadataRecord<'a> = SmallVec<[(NameRef<'a>, ValueRef<'a>); 2]>;

/// A transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionRecord<'a> {
    /// Id of the transaction.
    pub id: u64,
    /// Effective date.
    pub timestamp: Timestamp,
    /// Date when it was first recorded, if that differs from the date of its log. Only imported transactions have one.
    pub inserted_at: Option<Timestamp>,
    /// Date of the last change of the reverted transaction, if it differs from the date of the log. Only imported
    /// transactions have one.
    pub original_updated_at: Option<Timestamp>,
    /// True if the transaction's log was imported without volumes, and is therefore returned without them.
    pub volumes_omitted: bool,
    /// Reference that the caller chose.
    pub reference: Option<&'a str>,
    /// Schema template from which it was made.
    pub template: Option<&'a str>,
    /// Id of the transaction that it reverts.
    pub reverts: Option<u64>,
    /// Holdings that it touches, each once.
    pub holdings: SmallVec<[HoldingRecord<'a>; 2]>,
    /// Postings, in order.
    pub moves: SmallVec<[Move; 1]>,
    /// Metadata of the transaction.
    pub metadata: MetadataRecord<'a>,
    /// Metadata that the transaction sets on accounts.
    pub account_metadata: Vec<(AddressRef<'a>, MetadataRecord<'a>)>,
    /// Number of leading items of `account_metadata` that are defaults of new accounts from the chart of a schema.
    pub defaults: usize,
    /// Volumes of each holding by effective date at the time of the commit, if they differ from those by insertion
    /// date.
    pub effective: Option<Vec<Volumes>>,
}

/// An asset in an account, with its volumes right after the transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldingRecord<'a> {
    /// Number of the holding in its ledger.
    pub holding: u32,
    /// True if this entry is the first to touch the holding.
    pub is_new: bool,
    /// Account of the holding.
    pub account: AddressRef<'a>,
    /// Asset of the holding.
    pub asset: NameRef<'a>,
    /// Volumes right after the transaction.
    pub after: Volumes,
}

/// A posting. Source and destination are indexes into the holdings of the transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// Index of the holding that sends.
    pub source: u32,
    /// Index of the holding that receives.
    pub destination: u32,
    /// Amount that moves.
    pub amount: Amount,
}

/// A change of a document: `Some` value stores it, `None` removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentRecord<'a> {
    /// Number of the collection.
    pub collection: u32,
    /// Key of the document in the collection.
    pub key: &'a [u8],
    /// Stored value of the document.
    pub value: Option<&'a [u8]>,
    /// Secondary keys of the document.
    pub secondary: Vec<SecondaryKey<'a>>,
}

/// A secondary key of a document, in one of the indexes of its collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondaryKey<'a> {
    /// Number of the index.
    pub index: u32,
    /// True if no other document can have the same key in the index.
    pub unique: bool,
    /// The key. Keys sort in byte order.
    pub key: &'a [u8],
}
