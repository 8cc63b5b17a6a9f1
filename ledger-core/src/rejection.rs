//! Why a command is refused.

use std::fmt;

use compact_str::CompactString;

use crate::command::Runtime;
use crate::names::{AccountAddress, Asset, Reference, SchemaVersion};
use crate::script::{ErrorClass, ErrorKind, ScriptError};
use crate::timestamp::Timestamp;
use crate::transaction::TransactionId;

/// Why the core refuses a command. The variants stand in the order in which they are tested: a command with
/// several faults is refused with the first of them. The rules of the first generation test the date and
/// the reference before the script and the funds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The idempotency key was used before by a different request.
    IdempotencyMismatch {
        /// The key.
        key: CompactString,
        /// The hash of this request.
        computed: CompactString,
        /// The hash of the request that used the key first.
        stored: CompactString,
    },
    /// The ledger has no schema version of this name.
    SchemaNotFound {
        /// The version.
        version: SchemaVersion,
    },
    /// The request names a template but no schema version that has it.
    TemplateWithoutVersion {
        /// The template.
        template: CompactString,
    },
    /// The schema version has no such template.
    TemplateNotFound {
        /// The template.
        template: CompactString,
        /// The version.
        version: SchemaVersion,
    },
    /// The schema version has templates, and the request uses none.
    TemplateRequired {
        /// The version.
        version: SchemaVersion,
    },
    /// The ledger has schemas, and the request names none of them.
    SchemaNotSpecified,
    /// The script is none, or fails.
    Script {
        /// Why, and where in its text.
        error: Box<ScriptError>,
        /// In whose words to say it.
        runtime: Runtime,
    },
    /// The script and the request set the same key of the transaction's metadata.
    MetadataOverride {
        /// The key.
        key: CompactString,
    },
    /// More postings than a transaction may have.
    TooManyPostings {
        /// How many there were.
        postings: usize,
    },
    /// More bytes of metadata than one set may have.
    MetadataTooLarge {
        /// How many there were.
        bytes: usize,
    },
    /// The transaction, its names, amounts and metadata together, exceeds what one entry may hold.
    TransactionTooLarge {
        /// The bytes that one entry may hold.
        bytes_max: usize,
    },
    /// The ledger has as many different assets as it may.
    TooManyAssets,
    /// No transaction has this id.
    TransactionNotFound {
        /// The id.
        id: TransactionId,
    },
    /// The transaction has no such metadata key.
    MetadataKeyNotFound {
        /// The key.
        key: CompactString,
    },
    /// The transaction is reverted already.
    AlreadyReverted {
        /// The id.
        id: TransactionId,
    },
    /// The date is before that of the last transaction, which these rules do not allow.
    PastDate {
        /// The date of the new transaction.
        passed: Timestamp,
        /// The date of the last one.
        last: Timestamp,
    },
    /// An account lacks the funds for a posting.
    InsufficientFunds {
        /// The account.
        account: AccountAddress,
        /// The asset it lacks.
        asset: Asset,
    },
    /// There is nothing to post.
    NoPostings,
    /// The reference names another transaction already.
    ReferenceTaken {
        /// The reference.
        reference: Reference,
    },
    /// The ledger has a schema version of this name already.
    SchemaExists {
        /// The version.
        version: SchemaVersion,
    },
    /// An account is not in the chart of the schema version that the request names.
    AccountOutsideChart {
        /// The account.
        account: AccountAddress,
        /// The version.
        version: SchemaVersion,
    },
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IdempotencyMismatch { key, computed, stored } => write!(
                f,
                "invalid idempotency hash when using idempotency key '{key}', has computed '{computed}' but \
                 '{stored}' is stored"
            ),
            Self::TooManyPostings { postings } => {
                write!(f, "too many postings: {postings}, at most {}", crate::limits::POSTINGS_MAX)
            }
            Self::MetadataTooLarge { bytes } => {
                write!(f, "metadata too large: {bytes} bytes, at most {}", crate::limits::METADATA_BYTES_MAX)
            }
            Self::TransactionTooLarge { bytes_max } => {
                write!(f, "the transaction is too large: an entry holds at most {bytes_max} bytes")
            }
            Self::TooManyAssets => f.write_str("too many different assets in this ledger"),
            Self::Script { error, .. } => match (&error.kind, error.kind.class()) {
                (ErrorKind::MissingFunds { accounts, .. }, _) => {
                    for (at, account) in accounts.iter().enumerate() {
                        f.write_str(if at == 0 { "account(s) @" } else { "|@" })?;
                        f.write_str(account.as_str())?;
                    }
                    f.write_str(" had/have insufficient funds")
                }
                // The fault is in what came with the script, not at a place of it.
                (kind, ErrorClass::Variables) => kind.fmt(f),
                _ => error.fmt(f),
            },
            Self::MetadataOverride { key } => write!(f, "cannot override metadata '{key}'"),
            Self::TransactionNotFound { .. } => f.write_str("not found"),
            Self::MetadataKeyNotFound { key } => write!(f, "metadata key '{key}' not found"),
            Self::AlreadyReverted { id } => write!(f, "already reverted, id: {}", id.get()),
            Self::PastDate { passed, last } => {
                write!(f, "the date {passed} is before that of the last transaction, {last}")
            }
            Self::InsufficientFunds { account, .. } => {
                write!(f, "account(s) @{account} had/have insufficient funds")
            }
            Self::NoPostings => f.write_str("numscript execution returned no postings"),
            Self::ReferenceTaken { reference } => write!(f, "duplicate reference \"{reference}\""),
            Self::SchemaNotFound { version } => write!(f, "schema version '{version}' not found"),
            Self::TemplateWithoutVersion { template } => {
                write!(f, "template '{template}' needs a schema version to be named")
            }
            Self::TemplateNotFound { template, version } => {
                write!(f, "schema version '{version}' has no template '{template}'")
            }
            Self::TemplateRequired { version } => {
                write!(f, "schema version '{version}' allows transactions from its templates only")
            }
            Self::SchemaNotSpecified => f.write_str("the ledger has a schema, and no version of it is named"),
            Self::SchemaExists { version } => write!(f, "schema version '{version}' already exists"),
            Self::AccountOutsideChart { account, version } => {
                write!(f, "account '{account}' is not in the chart of schema version '{version}'")
            }
        }
    }
}

impl std::error::Error for Rejection {}
