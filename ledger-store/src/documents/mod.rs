//! Small keyed documents: what is no posting, projected from the journal like everything else.
//!
//! A collection holds documents by key, in bytewise order. A document may have further keys, each in a numbered
//! index of its collection, by which it is found too; one that is unique is given to one document only. Several
//! changes are made in one commit or not at all, each on the condition that a document stands as the caller
//! saw it. The directory of ledgers is the first collection.
//!
//! - [`stored`]: what accounts, transactions and ledgers keep as documents.
//! - [`keys`]: one ordered space of keys for all collections and their indexes.
//! - [`overlay`]: what changed since the index was last flushed.

pub(crate) mod keys;
pub(crate) mod overlay;
mod stored;

use std::fmt;
use std::ops::Bound;

pub(crate) use self::keys::decode_value;
pub(crate) use self::stored::{
    AccountDocument, LEDGERS, MAPPINGS, SCHEMAS, SCHEMAS_BY_POSITION, TransactionDocument, decode_ledger,
    encode_ledger, ledger_of_schema, schema_key, schema_position_key, schema_ranges,
};
use crate::query::Direction;

/// Most bytes of a document.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Most bytes of a key of a document, primary or other.
pub const DOCUMENT_KEY_BYTES_MAX: usize = 1_024;
/// Most further keys of a document.
pub const DOCUMENT_KEYS_MAX: usize = 64;
/// Most changes of one commit.
pub const DOCUMENT_CHANGES_MAX: usize = 1_000;
/// Most bytes of the changes of one commit, keys included.
pub const DOCUMENT_COMMIT_BYTES_MAX: usize = 16 << 20;
/// Most documents of one answer.
pub const DOCUMENTS_PAGE_MAX: usize = 1_000;

/// A set of documents with keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Collection(u32);

impl Collection {
    /// Numbers below this are the store's own.
    pub const FIRST: u32 = 16;

    /// The collection with a number. The number is stored: it must never get another meaning. `None` below
    /// [`Collection::FIRST`].
    pub const fn new(number: u32) -> Option<Self> {
        if number < Self::FIRST { None } else { Some(Self(number)) }
    }

    /// The number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// When a document was last changed: it grows with every change in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentVersion(pub(crate) u64);

/// A further key of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentKey {
    /// In which index of the collection. The number is stored.
    pub index: u32,
    /// The key; bytewise order.
    pub key: Vec<u8>,
    /// Whether no other document may have the same key in this index.
    pub unique: bool,
}

/// A document as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its key in the collection.
    pub key: Vec<u8>,
    /// Its bytes.
    pub value: Vec<u8>,
    /// Its further keys, as they were given.
    pub keys: Vec<DocumentKey>,
    /// When it was last changed.
    pub version: DocumentVersion,
}

/// How a document must stand for a change of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// As it likes.
    Anything,
    /// There must be none.
    Absent,
    /// It must not have changed since it had this version.
    Version(DocumentVersion),
}

/// What becomes of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentAction {
    /// It is this from now on.
    Put {
        /// Its bytes.
        value: Vec<u8>,
        /// All its further keys.
        keys: Vec<DocumentKey>,
    },
    /// It is removed, if it is there.
    Delete,
}

/// A change of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentChange {
    /// Where it stands.
    pub collection: Collection,
    /// Its key there.
    pub key: Vec<u8>,
    /// How it must stand before.
    pub expected: Expected,
    /// What becomes of it.
    pub action: DocumentAction,
}

impl DocumentChange {
    /// Bytes that it brings.
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

/// Why changes of documents were refused. None of them happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentRejection {
    /// A document does not stand as it was expected to.
    Changed {
        /// Which change.
        change: usize,
        /// How it stands: its version, or `None` if there is none.
        found: Option<DocumentVersion>,
    },
    /// Another document has a key that is unique.
    KeyTaken {
        /// Which change.
        change: usize,
        /// The index.
        index: u32,
    },
    /// Two changes are of one document.
    Repeated {
        /// The second of them.
        change: usize,
    },
    /// Something is longer or more than the limits of this module allow.
    TooLarge {
        /// Which change; that after the last if it is all of them together.
        change: usize,
    },
}

impl fmt::Display for DocumentRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { change, found: Some(_) } => {
                write!(f, "change {change}: the document was changed")
            }
            Self::Changed { change, found: None } => write!(f, "change {change}: there is no such document"),
            Self::KeyTaken { change, index } => {
                write!(f, "change {change}: another document has the key in index {index}")
            }
            Self::Repeated { change } => write!(f, "change {change}: the document is changed twice"),
            Self::TooLarge { change } => write!(f, "change {change}: more than a document may have"),
        }
    }
}

/// Which documents of a collection, by key or by a further key.
#[derive(Clone, Debug)]
pub struct DocumentRange {
    /// From which key on.
    pub from: Bound<Vec<u8>>,
    /// Up to which key.
    pub to: Bound<Vec<u8>>,
    /// Only what comes after the document with this key, in the direction of the range: where the range is of
    /// further keys, the document's further key and its own.
    pub beyond: Option<(Vec<u8>, Vec<u8>)>,
    /// In which order.
    pub direction: Direction,
    /// How many at most; no more than [`DOCUMENTS_PAGE_MAX`].
    pub limit: usize,
}

impl Default for DocumentRange {
    /// The first documents of all.
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
