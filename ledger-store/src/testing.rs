//! Internals for the crate `ledger-testkit`. Exists only with the feature `testing`, and is not part of the stable
//! interface.
//!
//! Together with [`Store::open_on_disk`], this is all that tests of a whole store need beyond the public interface.
//!
//! ```
//! use ledger_store::prelude::*;
//! use ledger_store::testing::{fail_decision_read, logs, miscounted_bytes};
//! use ledger_testkit::SimDisk;
//! use std::{path::Path, sync::Arc};
//! let disk = Arc::new(SimDisk::new());
//! let open = || Store::open_on_disk(disk.clone(), Path::new("data"), &Options::default());
//! let pay = |store: &Store| store.ledger("main")?.transaction().posting("world", "users:1", 5, "USD").commit();
//! pay(&open()?)?;
//! let store = open()?;
//! fail_decision_read(&store, 1);
//! assert!(pay(&store).is_err_and(|error| error.is_retryable()));
//! pay(&store)?;
//! assert_eq!(logs(&store)?.values().map(Vec::len).sum::<usize>(), 2);
//! assert_eq!(miscounted_bytes(&store), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use ledger_core::{LedgerName, LogEntry};
use ledger_index::Way;
use ledger_journal::Position;

use crate::documents::DocumentVersion;
use crate::error::ReadError;
use crate::lookup::missing;
use crate::read::LedgerReader;
use crate::store::Store;

/// Returns every acknowledged log of every ledger, oldest entry first. Includes ledgers of deleted buckets.
///
/// # Errors
///
/// [`ReadError`] if the store is damaged.
pub fn logs(store: &Store) -> Result<BTreeMap<LedgerName, Vec<LogEntry>>, ReadError> {
    let engine = store.engine();
    let view = engine.view();
    let mut all = BTreeMap::new();
    for head in view.heads.iter().filter(|head| !head.is_removed) {
        let ledger = head.info.id;
        let reader = LedgerReader::new(engine.journal.clone(), view.clone(), ledger);
        let mut entries = Vec::new();
        let rows = view.table(|memtable| &memtable.logs);
        for row in rows.cursor((ledger, 0), (ledger, u64::MAX), Way::Ascending) {
            let position = Position::new(row?.position);
            entries.push(reader.entry(position.ok_or_else(|| missing("a position"))?)?);
        }
        all.insert(head.info.name.clone(), entries);
    }
    Ok(all)
}

/// Makes the `nth` of the next reads fail that the writer needs for a decision, counted from 1. 0 cancels it. Returns
/// whether an earlier request of this kind was still pending.
pub fn fail_decision_read(store: &Store, nth: u64) -> bool {
    store.engine().fail_decision_read(nth)
}

/// Compares the writer's byte counters, which bound its memory, with the data that it holds. Returns the difference,
/// or `None` if there is none.
pub fn miscounted_bytes(store: &Store) -> Option<String> {
    store.engine().check_bytes().err().map(|miscount| miscount.to_string())
}

/// Returns the version that a document gets from a change at a position of the journal.
///
/// ```
/// use ledger_store::testing::document_version;
/// use ledger_store::{Collection, DocumentAction, DocumentChange, Expected, Store};
/// let store = Store::in_memory();
/// let change = DocumentChange {
///     collection: Collection::new(100).expect("a number of callers"),
///     key: b"payment-1".to_vec(),
///     expected: Expected::Absent,
///     action: DocumentAction::Put { value: b"received".to_vec(), keys: vec![] },
/// };
/// let versions = store.change_documents(vec![change])?;
/// assert_eq!(versions, [document_version(store.status().entries)]);
/// # Ok::<(), ledger_store::WriteError>(())
/// ```
pub const fn document_version(position: u64) -> DocumentVersion {
    DocumentVersion(position)
}
