//! Small keyed documents: values beside the ledgers. Like all data they are projected from the journal, which records
//! their changes.
//!
//! A collection holds documents by key, in byte order. A document can have secondary keys, each in a numbered index of
//! its collection. A unique secondary key belongs to at most one document. One commit applies several changes or none.
//! Each change can require that the document is absent or has the version that the caller has read. The store keeps its
//! directory of ledgers in a collection of its own.
//!
//! - [`stored`]: the documents of accounts, transactions and ledgers.
//! - [`keys`]: one ordered key space for all collections and their indexes.
//! - [`indexed`]: the documents in the index.
//! - [`merged`]: the newest change of each key, from sources of several ages.
//! - [`overlay`]: the changes since the last flush of the index.

pub(crate) mod indexed;
pub(crate) mod keys;
pub(crate) mod merged;
pub(crate) mod overlay;
mod stored;

use std::fmt;
use std::ops::Bound;

pub(crate) use self::keys::decode_value;
pub(crate) use self::stored::{
    AccountDocument, LEDGERS, MAPPINGS, SCHEMAS, SCHEMAS_BY_POSITION, TransactionDocument, decode_ledger,
    encode_ledger, ledger_of_schema, read_ledger_name, schema_key, schema_position_key, schema_ranges,
};
use crate::query::Direction;

/// Maximum size of a document in bytes. Bounds the memory for reading one document.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Maximum size of a key in bytes, primary or secondary. Bounds the size of index entries.
pub const DOCUMENT_KEY_BYTES_MAX: usize = 1_024;
/// Maximum number of secondary keys of a document. Bounds the index entries that one change writes.
pub const DOCUMENT_KEYS_MAX: usize = 64;
/// Maximum number of changes in one commit. Bounds the time that the writer spends on it.
///
/// ```
/// use ledger_store::{
///     DOCUMENT_BYTES_MAX, DOCUMENT_CHANGES_MAX, DOCUMENT_COMMIT_BYTES_MAX, DOCUMENT_KEY_BYTES_MAX, DOCUMENT_KEYS_MAX,
///     DocumentAction, DocumentChange, Store, WriteError,
/// };
/// /// Returns whether a change alone would be accepted.
/// fn fits(change: &DocumentChange) -> bool {
///     let DocumentAction::Put { value, keys } = &change.action else { return true };
///     value.len() <= DOCUMENT_BYTES_MAX
///         && keys.len() <= DOCUMENT_KEYS_MAX
///         && keys.iter().all(|key| key.key.len() <= DOCUMENT_KEY_BYTES_MAX)
/// }
///
/// /// Writes many changes, in as many commits as they need at their largest.
/// fn write_all(store: &Store, changes: &[DocumentChange]) -> Result<(), WriteError> {
///     let size = DOCUMENT_CHANGES_MAX.min(DOCUMENT_COMMIT_BYTES_MAX / DOCUMENT_BYTES_MAX);
///     for part in changes.chunks(size) {
///         store.change_documents(part.to_vec())?;
///     }
///     Ok(())
/// }
/// # let store = Store::in_memory();
/// # let change = |number: usize| DocumentChange {
/// #     collection: ledger_store::Collection::new(ledger_store::Collection::FIRST).expect("a number"),
/// #     key: number.to_be_bytes().to_vec(),
/// #     expected: ledger_store::Expected::Absent,
/// #     action: DocumentAction::Put { value: vec![1], keys: vec![] },
/// # };
/// # let changes: Vec<_> = (0..2_000).map(change).collect();
/// # assert!(changes.iter().all(fits));
/// # write_all(&store, &changes)?;
/// # Ok::<(), ledger_store::WriteError>(())
/// ```
pub const DOCUMENT_CHANGES_MAX: usize = 1_000;
/// Maximum size of the changes in one commit in bytes, including keys. Bounds the memory of a batch.
pub const DOCUMENT_COMMIT_BYTES_MAX: usize = 16 << 20;
/// Maximum number of documents in one answer. Bounds the memory of a read.
///
/// ```
/// use ledger_store::{Collection, DOCUMENTS_PAGE_MAX, DocumentAction, DocumentChange, DocumentRange, Expected, Store};
/// const ORDERS: Collection = Collection::new(100).unwrap();
/// let store = Store::in_memory();
/// let put = |number: usize| DocumentChange {
///     collection: ORDERS,
///     key: number.to_be_bytes().to_vec(),
///     expected: Expected::Absent,
///     action: DocumentAction::Put { value: b"open".to_vec(), keys: vec![] },
/// };
/// store.change_documents((0..DOCUMENTS_PAGE_MAX).map(put).collect())?;
/// store.change_documents(vec![put(DOCUMENTS_PAGE_MAX)])?;
/// let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
/// assert_eq!(store.snapshot().documents(ORDERS, &range)?.len(), DOCUMENTS_PAGE_MAX);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const DOCUMENTS_PAGE_MAX: usize = 1_000;

/// A set of documents with a key space of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Collection(u32);

impl Collection {
    /// First number for callers. The store itself uses the smaller ones.
    pub const FIRST: u32 = 16;

    /// Returns the collection with a number, or `None` for numbers below [`Collection::FIRST`]. The number is stored,
    /// so it must never get another meaning.
    pub const fn new(number: u32) -> Option<Self> {
        if number < Self::FIRST { None } else { Some(Self(number)) }
    }

    /// Returns the number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// The version of a document, which identifies its last change. Versions grow with every change in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentVersion(pub(crate) u64);

/// A secondary key of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentKey {
    /// Number of the index in the collection. The number is stored.
    pub index: u32,
    /// The key. Keys sort in byte order.
    pub key: Vec<u8>,
    /// True if no other document can have the same key in this index.
    pub unique: bool,
}

/// A document as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Key of the document in its collection.
    pub key: Vec<u8>,
    /// Content of the document.
    pub value: Vec<u8>,
    /// Secondary keys of the document, in the order in which the caller gave them.
    pub keys: Vec<DocumentKey>,
    /// Version after the last change.
    pub version: DocumentVersion,
}

/// The state of a document that a change requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any state.
    Anything,
    /// The document must not exist.
    Absent,
    /// The document must have this version, which proves that it has not changed since.
    Version(DocumentVersion),
}

/// The effect of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentAction {
    /// Creates or replaces the document.
    Put {
        /// New content.
        value: Vec<u8>,
        /// New secondary keys. They replace all earlier ones.
        keys: Vec<DocumentKey>,
    },
    /// Removes the document, if it exists.
    Delete,
}

/// A change of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentChange {
    /// Collection of the document.
    pub collection: Collection,
    /// Key of the document in its collection.
    pub key: Vec<u8>,
    /// State that the change requires.
    pub expected: Expected,
    /// Effect of the change.
    pub action: DocumentAction,
}

impl DocumentChange {
    /// Estimates the size of the change in bytes, including all keys.
    pub(crate) fn bytes(&self) -> usize {
        let content = match &self.action {
            DocumentAction::Put { value, keys } => {
                value.len() + keys.iter().map(|key| key.key.len() + 16).sum::<usize>()
            }
            DocumentAction::Delete => 0,
        };
        64 + self.key.len() + content
    }
}

/// The reason why changes of documents were refused. None of them was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DocumentRejection {
    /// A document is not in the required state.
    Changed {
        /// Index of the refused change.
        change: usize,
        /// State that the change requires.
        expected: Expected,
        /// Current version of the document, or `None` if it does not exist.
        found: Option<DocumentVersion>,
    },
    /// Another document already has a unique key.
    KeyTaken {
        /// Index of the refused change.
        change: usize,
        /// Number of the index with the unique key.
        index: u32,
    },
    /// Two changes are of the same document.
    Repeated {
        /// Index of the second change.
        change: usize,
    },
    /// A change exceeds a limit of this module.
    TooLarge {
        /// Index of the refused change, or the number of changes if only all of them together exceed a limit.
        change: usize,
    },
}

impl fmt::Display for DocumentRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { change, expected: Expected::Absent, .. } => {
                write!(f, "change {change}: the document exists already")
            }
            Self::Changed { change, found: Some(_), .. } => {
                write!(f, "change {change}: the document was changed")
            }
            Self::Changed { change, found: None, .. } => {
                write!(f, "change {change}: there is no such document")
            }
            Self::KeyTaken { change, index } => {
                write!(f, "change {change}: another document has the key in index {index}")
            }
            Self::Repeated { change } => write!(f, "change {change}: the document is changed twice"),
            Self::TooLarge { change } => write!(f, "change {change}: more than a document may have"),
        }
    }
}

impl std::error::Error for DocumentRejection {}

/// Selects documents of a collection by key or by secondary key.
#[derive(Clone, Debug)]
pub struct DocumentRange {
    /// Lower bound of the keys.
    pub from: Bound<Vec<u8>>,
    /// Upper bound of the keys.
    pub to: Bound<Vec<u8>>,
    /// Selects only documents after this one, in the direction of the range. The first part is its secondary key, which
    /// a range of primary keys ignores. The second part is its own key.
    pub beyond: Option<(Vec<u8>, Vec<u8>)>,
    /// Order of the documents.
    pub direction: Direction,
    /// Maximum number of documents, at most [`DOCUMENTS_PAGE_MAX`].
    pub limit: usize,
}

impl Default for DocumentRange {
    /// Selects the first documents of the collection.
    fn default() -> Self {
        Self {
            from: Bound::Unbounded,
            to: Bound::Unbounded,
            beyond: None,
            direction: Direction::Ascending,
            limit: DOCUMENTS_PAGE_MAX,
        }
    }
}
