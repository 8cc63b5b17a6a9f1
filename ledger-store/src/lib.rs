#![doc = include_str!("guide.md")]
#![warn(missing_debug_implementations)]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers in tests are small"
    )
)]

// The public face: what applications call.
mod atomic;
mod commit_watch;
mod feature;
mod ledger;
mod options;
mod progress;
mod query;
mod query_params;
mod store;
mod submission;

// The engine, and the writer that decides.
mod engine;
mod scripts;
mod writer;

// Reads of the published state.
mod address_cache;
mod read;
mod readers;
mod view;

// Projections of the journal, and the index that holds them.
mod documents;
mod fingerprint;
mod flush;
mod hashes;
mod lookup;
mod names;
mod projection;
mod quantity;

// Removed ledgers.
mod sections;
mod tombstones;

// Opening and recovery.
mod directory;
mod disk_backend;
mod free_space;
mod opening;
mod recovery;

// Exports and imports.
mod imported_log;
pub mod json;
mod transfer;

// Verification.
mod violation;

// Errors.
mod cause;
mod error;

#[cfg(feature = "testing")]
pub mod testing;

pub use atomic::{AtomicWrite, LedgerCommand};
pub use cause::Cause;
pub use commit_watch::CommitWatch;
pub use documents::{
    Collection, DOCUMENT_BYTES_MAX, DOCUMENT_CHANGES_MAX, DOCUMENT_COMMIT_BYTES_MAX, DOCUMENT_KEY_BYTES_MAX,
    DOCUMENT_KEYS_MAX, DOCUMENTS_PAGE_MAX, Document, DocumentAction, DocumentChange, DocumentKey,
    DocumentRange, DocumentRejection, DocumentVersion, Expected,
};
pub use engine::{IndexEvent, IndexStatus};
pub use error::{OpenError, ReadError, WriteError};
pub use feature::Feature;
pub use imported_log::{ImportRefusal, ImportedLog};
pub use ledger::{
    AccountKind, AccountList, AtomicBatch, BalanceSums, Batch, ByPostings, ByScript, CommitFuture, Committed,
    DryRun, IntoRequest, Ledger, LedgerError, LedgerSnapshot, List, ListIter, ListKind, ListPage, ListStream,
    LogKind, LogList, MetadataBuilder, RevertBuilder, SchemaKind, SchemaList, StoredList, TransactionBuilder,
    TransactionKind, TransactionList, VolumeKind, VolumeList, check_queries,
};
pub use ledger_core::{self, MissingFunds, Rejection};
pub use ledger_journal::DroppedTail;
pub use options::{Options, SystemClock, TimeSource};
pub use progress::{LongWork, Progress, ProgressWatcher};
pub use query::*;
pub use query_params::{QueryParams, parse_sort};
pub use read::{FedLog, FedLogs, FeedPart, FeedPosition, FeedSize, LedgerView, Snapshot};
pub use readers::ReadFuture;
pub use store::{
    BackupError, BackupReport, ImportError, ImportReport, Opening, Reclaimed, RestorePoint,
    RestorePointError, Status, Store, VerifyError, VerifyReport,
};
pub use submission::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};
pub use transfer::{LogImporter, TransferError};
pub use violation::{Violation, ViolationCode};

/// The names that most programs need: `use ledger_store::prelude::*;`.
pub mod prelude {
    pub use ledger_core::{
        AccountAddress, Accounts, AggregatedBalances, Amount, AmountError, Asset, Balance, FilterOf,
        LedgerName, LedgerOptions, LogId, Metadata, MissingFunds, Monetary, Operator, Posting, Rejection,
        Timestamp, TransactionId, Transactions, VolumeRows, Volumes,
    };

    pub use crate::{
        Account, CommitFuture, Committed, DryRun, Ledger, LedgerError, LedgerInfo, LedgerSnapshot, Options,
        Outcome, ReadFuture, Receipt, Request, RestorePoint, Store, TimeAxis, TransactionView, VolumesRow,
    };
}
