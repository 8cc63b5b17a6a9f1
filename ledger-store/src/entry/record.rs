//! What an entry of the journal says.

use ledger_core::{Amount, Timestamp, Volumes};
use smallvec::SmallVec;

use crate::journal::Position;

/// One entry, with names as numbers. Texts are borrowed from the command or from the chunk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record<'a> {
    /// Its place in the journal.
    pub(crate) position: Position,
    /// What it says.
    pub(crate) body: Body<'a>,
}

/// The kinds of entries.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly every entry is of the large kind, and none is kept")]
pub(crate) enum Body<'a> {
    /// An entry of a ledger's log.
    Log(LogRecord<'a>),
    /// A change of a small keyed document. It has no log.
    Document(DocumentRecord<'a>),
}

/// An entry of a ledger's log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogRecord<'a> {
    /// The ledger's number in the store.
    pub(crate) ledger: u32,
    /// The id in the ledger's log.
    pub(crate) log: u64,
    /// When it was recorded.
    pub(crate) date: Timestamp,
    /// The caller's key.
    pub(crate) idempotency: Option<IdempotencyRecord<'a>>,
    /// The schema version that the request named.
    pub(crate) schema_version: Option<&'a str>,
    /// Whether it was taken over from another ledger's log.
    pub(crate) imported: bool,
    /// What happened.
    pub(crate) event: Event<'a>,
}

/// What a log entry records.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly every entry is a transaction, and none is kept")]
pub(crate) enum Event<'a> {
    /// A transaction, new or reverting.
    Transaction(TransactionRecord<'a>),
    /// Metadata keys set.
    SetMetadata {
        /// On what.
        target: TargetRecord<'a>,
        /// What the chart of a schema gives to the account, which is new. It goes before the keys.
        defaults: MetadataRecord<'a>,
        /// The keys.
        metadata: MetadataRecord<'a>,
    },
    /// A metadata key removed.
    DeleteMetadata {
        /// From what.
        target: TargetRecord<'a>,
        /// The key.
        key: NameRef<'a>,
    },
    /// A schema version added: compact JSON text.
    InsertedSchema {
        /// The text.
        schema: &'a str,
    },
}

impl Event<'_> {
    /// The transaction of nothing, to be made another event where it lies.
    #[inline]
    pub(crate) fn blank() -> Self {
        Self::Transaction(TransactionRecord {
            id: 0,
            timestamp: Timestamp::MIN,
            inserted_at: None,
            original_updated_at: None,
            volumes_untold: false,
            reference: None,
            template: None,
            reverts: None,
            holdings: SmallVec::new(),
            moves: SmallVec::new(),
            metadata: SmallVec::new(),
            account_metadata: Vec::new(),
            defaults: 0,
            effective: None,
        })
    }
}

/// A caller's key with what its request is recognized by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IdempotencyRecord<'a> {
    /// The key.
    pub(crate) key: &'a str,
    /// The text of the hash; empty where nothing is to be compared.
    pub(crate) hash: &'a str,
}

/// A name that its ledger has numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRef<'a> {
    /// Numbered by an earlier entry.
    Known(u32),
    /// Numbered by this one.
    New(u32, &'a str),
    /// Never numbered: the ledger has as many numbered names of this kind as it may.
    Inline(&'a str),
}

/// An account, numbered always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressRef<'a> {
    /// Its number in the ledger.
    pub(crate) account: u32,
    /// Its address, where this entry is the first to name it.
    pub(crate) new: Option<&'a str>,
}

/// What metadata belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetRecord<'a> {
    /// An account.
    Account(AddressRef<'a>),
    /// A transaction.
    Transaction(u64),
    /// An account that does not exist: a key was removed from it all the same.
    Unknown(&'a str),
}

/// A metadata value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueRef<'a> {
    /// A string.
    Text(&'a str),
    /// Any other JSON value, as compact text.
    Json(&'a str),
}

/// Metadata keys and values, ascending by the text of the key.
pub(crate) type MetadataRecord<'a> = SmallVec<[(NameRef<'a>, ValueRef<'a>); 2]>;

/// A transaction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TransactionRecord<'a> {
    /// Its id.
    pub(crate) id: u64,
    /// Its effective date.
    pub(crate) timestamp: Timestamp,
    /// When it was first recorded, where that is not the date of its log: only imported ones say so.
    pub(crate) inserted_at: Option<Timestamp>,
    /// When the transaction that it reverts had last changed, where that is not the date of its log: only imported
    /// ones say so.
    pub(crate) original_updated_at: Option<Timestamp>,
    /// Whether its log came without volumes, and so is shown without.
    pub(crate) volumes_untold: bool,
    /// The caller's name for it.
    pub(crate) reference: Option<&'a str>,
    /// The schema template it was made from.
    pub(crate) template: Option<&'a str>,
    /// The transaction it reverts.
    pub(crate) reverts: Option<u64>,
    /// The holdings it touches, each once.
    pub(crate) holdings: SmallVec<[HoldingRecord<'a>; 2]>,
    /// Its postings, in order.
    pub(crate) moves: SmallVec<[Move; 1]>,
    /// Its metadata.
    pub(crate) metadata: MetadataRecord<'a>,
    /// Metadata it sets on accounts.
    pub(crate) account_metadata: Vec<(AddressRef<'a>, MetadataRecord<'a>)>,
    /// How many of the first of them are what the chart of a schema gives to new accounts.
    pub(crate) defaults: usize,
    /// Volumes in effective order at commit, for each holding, where they differ from those by insertion.
    pub(crate) effective: Option<Vec<Volumes>>,
}

/// An asset in an account, with its volumes right after the transaction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HoldingRecord<'a> {
    /// Its number in the ledger.
    pub(crate) holding: u32,
    /// Whether this entry is the first to touch it.
    pub(crate) is_new: bool,
    /// The account.
    pub(crate) account: AddressRef<'a>,
    /// The asset.
    pub(crate) asset: NameRef<'a>,
    /// The totals after the transaction.
    pub(crate) after: Volumes,
}

/// A posting, its ends as indexes into the transaction's holdings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Move {
    /// The holding that sends.
    pub(crate) source: u32,
    /// The holding that receives.
    pub(crate) destination: u32,
    /// How much.
    pub(crate) amount: Amount,
}

/// A change of a document: put with `Some` bytes, removed with `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentRecord<'a> {
    /// The collection.
    pub(crate) collection: u32,
    /// The key in it.
    pub(crate) key: &'a [u8],
    /// The document.
    pub(crate) value: Option<&'a [u8]>,
    /// What else it is found by.
    pub(crate) secondary: Vec<SecondaryKey<'a>>,
}

/// A second key of a document, in one of the indexes of its collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SecondaryKey<'a> {
    /// Which index.
    pub(crate) index: u32,
    /// Whether no other document may have the same key in it.
    pub(crate) unique: bool,
    /// The key; order is bytewise.
    pub(crate) key: &'a [u8],
}
