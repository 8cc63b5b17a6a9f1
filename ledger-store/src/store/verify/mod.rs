//! Verification: checks that the journal is sound and that the index matches it.
//!
//! 1. [`journal`] reads the journal from its first entry to its last. It checks digests, the chain, positions, ids and
//!    dates, and that every entry decodes.
//! 2. The journal is replayed into a second index. The replay compares the volumes of each entry with the previous
//!    volumes plus the moved amounts, and each revert with its original.
//! 3. [`compare`] compares the contents of the two indexes in both directions. The distribution of rows over runs,
//!    sums that are local to a run, and superseded rows do not count as content.
//! 4. [`rules`] checks that keys are unique and that inputs equal outputs, and [`wire_hashes`] computes the wire
//!    hashes again.
//!
//! Verification cannot tell whether an overdraft was allowed: the journal does not record what a request permitted.

mod compare;
pub(super) mod comparison_index;
mod findings;
mod journal;
mod report;
mod rules;
#[cfg(test)]
mod tests;
mod wire_hashes;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use ledger_index::{DroppedLedgers, IndexFile, IndexOptions, IndexSnapshot};
use ledger_journal::{Identity, JournalReader};

use self::compare::Indexes;
use self::findings::{Findings, Stop};
pub use self::report::{VerifyError, VerifyReport};
use super::{Opening, Store};
use crate::cause::Cause;
use crate::error::OpenError;
use crate::flush::Watermark;
use crate::options::Shares;
use crate::progress::{LongWork, ProgressWatcher};
use crate::readers::ReadFuture;
use crate::recovery;
use crate::violation::{Violation, ViolationCode};

/// The replay gets 1/10 of the store's memory budget, in addition to that budget.
const BUDGET_PART: usize = 10;

impl Store {
    /// Reads the whole journal and compares it with the index. Blocks the thread;
    /// [`verify_async`](Self::verify_async) does not.
    ///
    /// Flushes first, and then verifies what was acknowledged at that time. Reads and writes continue meanwhile. Takes
    /// about as long as rebuilding the index, a tenth of the memory budget, and disk space for a second index, which
    /// is removed afterwards. Concurrent calls run one after the other.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = ledger_store::Store::in_memory();
    /// store.ledger("main")?.transaction().posting("world", "users:1", 5, "USD").commit()?;
    /// let report = store.verify()?;
    /// assert!(report.is_clean() && !report.is_damaged(), "{}", report.to_json_lines());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`VerifyError`] if the second index cannot be created. The report contains damage and later disk failures.
    pub fn verify(&self) -> Result<VerifyReport, VerifyError> {
        let engine = self.engine();
        let _journal = engine.journal_lock.lock();
        self.flush();
        let live = engine.view().index.clone();
        let shares = engine.shares.divided(BUDGET_PART);
        let options = IndexOptions { cache_bytes: shares.index_cache, filter_bytes: shares.filters };
        let refused = |error: io::Error| VerifyError::Workspace(Cause::of(error));
        let scratch = match self.directory() {
            None => IndexFile::in_memory(options)?,
            Some(directory) => {
                comparison_index::clear(directory).map_err(refused)?;
                IndexFile::create(comparison_index::create(directory).map_err(refused)?, options)?
            }
        };
        let mut report = check(&engine.reader(), &live, &engine.identity, shares, &scratch, &engine.progress);
        // The second index is no longer needed. Abandoning it avoids the writes of a normal close.
        scratch.abandon();
        drop(scratch);
        if let Some(directory) = self.directory() {
            comparison_index::clear(directory).map_err(refused)?;
        }
        report.violations.splice(0..0, self.repaired_defects());
        report.violations.extend(torn_tail(self.opening()));
        Ok(report)
    }

    /// As [`Store::verify`], without blocking. A thread of its own reads.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::verify`].
    pub fn verify_async(&self) -> ReadFuture<Result<VerifyReport, VerifyError>> {
        self.run_async(Self::verify)
    }

    /// Returns the defects of the index that were repaired, by the opening or since. Rebuilding an index that was
    /// absent, or of another format, store or history, is no defect.
    fn repaired_defects(&self) -> Vec<Violation> {
        let opening = self.opening();
        let before = opening.rebuilt.clone().filter(|_| opening.was_damaged);
        let since = self.engine().index_status().rebuilt;
        let violation = |reason: String| {
            let detail = format!("it was damaged and is built again: {reason}");
            Violation { code: ViolationCode::IndexRebuilt, ledger: None, position: None, detail }
        };
        before.into_iter().chain(since).map(violation).collect()
    }
}

/// Returns a violation if the opening dropped bytes of the journal that may have been acknowledged.
fn torn_tail(opening: &Opening) -> Option<Violation> {
    let dropped = opening.dropped_tail.filter(|dropped| dropped.may_have_been_acknowledged)?;
    let detail = format!(
        "opening dropped {} bytes from here on as torn by a power cut; they may have been acknowledged",
        dropped.bytes
    );
    Some(Violation { code: ViolationCode::TornTail, ledger: None, position: Some(dropped.position), detail })
}

/// Verifies a journal, and an index of it up to the index's watermark. `scratch` is an empty index for the replay.
fn check(
    journal: &Arc<dyn JournalReader>,
    live: &IndexSnapshot,
    identity: &Identity,
    shares: Shares,
    scratch: &IndexFile,
    progress: &ProgressWatcher,
) -> VerifyReport {
    let begun = Instant::now();
    let mut findings = Findings::new();
    let mut walk = journal::JournalWalk::nothing(identity);
    // If the check ends early, the findings contain the reason.
    let scratch = ScratchIndex { index: scratch, shares, progress };
    let _ = check_all(journal, live, identity, &scratch, &mut findings, &mut walk);
    VerifyReport {
        violations: findings.violations,
        entries: walk.entries(),
        ledgers: walk.ledgers(),
        head: walk.chain().to_string(),
        complete: findings.complete,
        seconds: begun.elapsed().as_secs_f64(),
    }
}

/// The second index, with the resources to build it.
struct ScratchIndex<'a> {
    index: &'a IndexFile,
    shares: Shares,
    progress: &'a ProgressWatcher,
}

fn check_all(
    journal: &Arc<dyn JournalReader>,
    live: &IndexSnapshot,
    identity: &Identity,
    scratch: &ScratchIndex<'_>,
    findings: &mut Findings,
    walk: &mut journal::JournalWalk,
) -> Result<(), Stop> {
    let head = journal.head();
    walk.walk(&*scratch.progress.watch(journal.clone(), LongWork::VerifyJournal), head, findings)?;
    let watermark = match Watermark::read(live) {
        Ok(watermark) => watermark,
        Err(error) => return findings.index_error(&error).and(Err(Stop)),
    };
    let through = match watermark {
        Some(watermark) if watermark.next > head.next => {
            let detail =
                format!("it holds entries before {}, the journal ends before {}", watermark.next, head.next);
            return findings.obstacle(ViolationCode::IndexAhead, detail).and(Err(Stop));
        }
        Some(watermark) => watermark.next,
        // An index without a watermark holds no entries.
        None => ledger_journal::Position::FIRST,
    };
    let bounded: Arc<dyn JournalReader> =
        Arc::new(journal::JournalPrefix::new(journal.clone(), through, walk));
    let bounded = scratch.progress.watch(bounded, LongWork::VerifyReplay);
    let mut stopped = false;
    let replayed = recovery::replay(
        &bounded,
        scratch.index,
        identity,
        scratch.shares,
        ledger_journal::Position::FIRST,
        &mut |violation| {
            stopped |= findings.push(violation).is_err();
            if stopped { Err(OpenError::Damaged("".into())) } else { Ok(()) }
        },
    );
    let mut replayed = match replayed {
        Ok(replayed) => replayed,
        Err(_) if stopped => return Err(Stop),
        Err(error) => return findings.replay_error(&error).and(Err(Stop)),
    };
    if !replayed.view.memtables.is_empty() {
        let hashed = replayed.hashed;
        let state = &mut replayed.state;
        if let Err(error) =
            recovery::flush_now(state, &mut replayed.view, scratch.index, identity, &*bounded, hashed)
        {
            return findings.replay_error(&error).and(Err(Stop));
        }
    }
    let mut dropped = DroppedLedgers::new();
    for head in replayed.view.heads.iter() {
        findings.names.insert(head.info.id, head.info.name.clone());
        if head.is_removed {
            dropped.insert(head.info.id);
        }
    }
    let fresh = replayed.view.index.clone();
    compare::compare(Indexes { fresh: &fresh, live, dropped: &dropped }, findings)
        .and_then(|()| rules::unique(&fresh, &dropped, &bounded, findings))
        .and_then(|()| rules::balanced(&fresh, &dropped, findings))
        .and_then(|()| wire_hashes::wire_hashes(&Arc::new(replayed.view), live, &bounded, findings))
}
