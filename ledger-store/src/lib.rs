#![doc = include_str!("guide.md")]
#![warn(missing_debug_implementations)]

mod address_cache;
mod atomic;
mod backend;
mod backup;
mod cause;
mod directory;
mod documents;
mod engine;
mod error;
mod feature;
mod fingerprint;
mod flush;
mod free_space;
mod hashes;
mod import;
mod imported;
pub mod json;
mod ledger;
mod lookup;
mod manifest;
mod names;
mod opening;
mod options;
mod progress;
mod projection;
mod quantity;
mod query;
mod query_params;
mod read;
mod readers;
mod recovery;
mod removal;
mod removed;
mod scripts;
mod sections;
mod store;
mod submission;
#[cfg(feature = "testing")]
pub mod testing;
mod transfer;
mod verify;
mod view;
mod violation;
mod watch;
mod workspace;
mod writer;

pub use atomic::{AtomicWrite, LedgerCommand};
pub use backup::{BackupError, BackupReport, RestorePoint, RestorePointError};
pub use cause::Cause;
pub use documents::{
    Collection, DOCUMENT_BYTES_MAX, DOCUMENT_CHANGES_MAX, DOCUMENT_COMMIT_BYTES_MAX, DOCUMENT_KEY_BYTES_MAX,
    DOCUMENT_KEYS_MAX, DOCUMENTS_PAGE_MAX, Document, DocumentAction, DocumentChange, DocumentKey,
    DocumentRange, DocumentRejection, DocumentVersion, Expected,
};
pub use engine::{IndexEvent, IndexStatus};
pub use error::{OpenError, ReadError, WriteError};
pub use feature::Feature;
pub use import::{ImportError, ImportReport};
pub use imported::{ImportRefusal, ImportedLog};
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
pub use removal::Reclaimed;
pub use store::{Opening, Status, Store};
pub use submission::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};
pub use transfer::{LogImporter, TransferError};
pub use verify::{VerifyError, VerifyReport};
pub use violation::{Violation, ViolationCode};
pub use watch::CommitWatch;

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
