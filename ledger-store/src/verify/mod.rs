//! Verification: is the journal sound, and is the index what the journal says?
//!
//! 1. The journal is read from its first entry to its last: digests, the chain, positions, ids and dates, and
//!    that every entry decodes ([`journal`]).
//! 2. It is replayed into a second index, while the volumes of each entry are compared with those before plus
//!    what was moved, and reverts with what they revert.
//! 3. The two indexes are compared by contents, both ways ([`compare`]). How rows are spread over runs, sums
//!    that are local to a run, and rows that others have superseded are not contents.
//! 4. What must be unique is, inputs equal outputs, and the wire hashes are computed again ([`rules`]).
//!
//! Nobody can tell afterwards whether an overdraft was allowed: the journal does not say what the
//! request permitted.

mod compare;
mod journal;
mod report;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ledger_core::LedgerName;
use ledger_index::{Gone, IndexError, IndexFile, IndexOptions, IndexSnapshot};
use ledger_journal::disk::OpenMode;
use ledger_journal::{Identity, Journal};

use crate::backend::backend;
use crate::directory::DataDirectory;
use crate::error::{OpenError, ReadError};
use crate::flush::Watermark;
use crate::options::Shares;
use crate::recovery;
use crate::store::{Opening, Store};

pub use self::report::{VerifyError, VerifyReport, Violation, ViolationCode};

/// No more violations than these are gathered.
const VIOLATIONS_MAX: usize = 1_000;
/// The replay's part of a memory budget that the store itself nearly fills.
const BUDGET_PART: usize = 10;
/// The file of the second index, beside the real one.
const WORKSPACE: &str = "verify.redb";

/// The findings so far.
struct Findings {
    violations: Vec<Violation>,
    complete: bool,
    names: BTreeMap<u32, LedgerName>,
}

/// That it makes no sense to go on.
struct Stop;

impl Findings {
    fn new() -> Self {
        Self { violations: Vec::new(), complete: true, names: BTreeMap::new() }
    }

    fn push(&mut self, violation: Violation) -> Result<(), Stop> {
        self.violations.push(violation);
        if self.violations.len() < VIOLATIONS_MAX {
            return Ok(());
        }
        self.complete = false;
        Err(Stop)
    }

    fn add(
        &mut self,
        code: ViolationCode,
        ledger: Option<u32>,
        position: Option<u64>,
        detail: String,
    ) -> Result<(), Stop> {
        let ledger = ledger.and_then(|ledger| self.names.get(&ledger).cloned());
        self.push(Violation { code, ledger, position, detail })
    }

    /// Reports what stands in the way of looking at the rest of something.
    fn obstacle(&mut self, code: ViolationCode, detail: String) -> Result<(), Stop> {
        self.complete = false;
        self.add(code, None, None, detail)
    }

    fn index_error(&mut self, error: &IndexError) -> Result<(), Stop> {
        let is_of_the_disk = error.is_of_the_disk();
        let code = if is_of_the_disk { ViolationCode::StorageError } else { ViolationCode::RecordChecksum };
        self.obstacle(code, error.to_string())
    }

    fn read_error(&mut self, error: &ReadError) -> Result<(), Stop> {
        let code = match error {
            ReadError::Io { .. } => ViolationCode::StorageError,
            _ => ViolationCode::RecordChecksum,
        };
        self.obstacle(code, error.to_string())
    }

    /// Reports why the journal could not be replayed.
    fn replay_error(&mut self, error: &OpenError) -> Result<(), Stop> {
        match error {
            OpenError::Damaged { reason } => self.obstacle(ViolationCode::FileFormat, reason.clone()),
            error => self.obstacle(ViolationCode::StorageError, error.to_string()),
        }
    }
}

impl Store {
    /// Reads the whole journal and compares it with the index.
    ///
    /// It flushes first, and verifies what is acknowledged when it begins; reads and writes go on meanwhile.
    /// It takes about as long as building the index from nothing, some tenth of the memory budget, and on disk
    /// a second index, which is removed afterwards. Concurrent calls wait for each other.
    ///
    /// # Errors
    ///
    /// [`VerifyError`] if the second index cannot be made. Damage, and a disk that fails, are in the report.
    pub fn verify(&self) -> Result<VerifyReport, VerifyError> {
        let engine = self.engine();
        let _journal = engine.journal_lock.lock();
        self.flush();
        let live = engine.view().index.clone();
        let shares = engine.shares.divided(BUDGET_PART);
        let options = IndexOptions { cache_bytes: shares.index_cache, filter_bytes: shares.filters };
        let workspace = |reason: String| VerifyError::Workspace { reason };
        let second = match self.directory() {
            None => IndexFile::create(redb::backends::InMemoryBackend::new(), options)?,
            Some(directory) => {
                clear_workspace(directory).map_err(workspace)?;
                let path = directory.index_dir().join(WORKSPACE);
                let file = backend(&**directory.disk(), &path, OpenMode::CreateNew)
                    .map_err(|error| workspace(error.to_string()))?;
                IndexFile::create(file, options)?
            }
        };
        let mut report = check(&engine.journal, &live, &engine.identity, shares, &second);
        // Nobody needs what is in it: closing it writes nothing.
        second.abandon();
        drop(second);
        if let Some(directory) = self.directory() {
            clear_workspace(directory).map_err(workspace)?;
        }
        report.violations.splice(0..0, self.mended());
        report.violations.extend(torn_tail(self.opening()));
        Ok(report)
    }

    /// Defects of the index that were mended, by the opening or since. An index that was absent, or of another format,
    /// store or history, is built again too: nothing was wrong with what was stored then.
    fn mended(&self) -> Vec<Violation> {
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

/// The bytes that opening dropped from the journal and that may have been acknowledged.
fn torn_tail(opening: &Opening) -> Option<Violation> {
    let dropped = opening.dropped_tail.filter(|dropped| dropped.may_have_been_acknowledged)?;
    let detail = format!(
        "opening dropped {} bytes from here on as torn by a power cut; they may have been acknowledged",
        dropped.bytes
    );
    Some(Violation { code: ViolationCode::TornTail, ledger: None, position: Some(dropped.position), detail })
}

/// Removes the second index, which an interrupted verification has left.
pub(crate) fn clear_workspace(directory: &DataDirectory) -> Result<(), String> {
    let path = directory.index_dir().join(WORKSPACE);
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if directory.disk().exists(&path).map_err(failed)? {
        directory.disk().remove(&path).map_err(failed)?;
    }
    Ok(())
}

/// Verifies a journal and, as far as it says it goes, an index of it. `second` is empty.
fn check(
    journal: &Arc<dyn Journal>,
    live: &IndexSnapshot,
    identity: &Identity,
    shares: Shares,
    second: &IndexFile,
) -> VerifyReport {
    let begun = Instant::now();
    let mut findings = Findings::new();
    let mut walked = journal::Walked::nothing(identity);
    // Whatever stops it is among the findings.
    let _ = check_all(journal, live, identity, shares, second, &mut findings, &mut walked);
    VerifyReport {
        violations: findings.violations,
        entries: walked.entries(),
        ledgers: walked.ledgers(),
        head: walked.chain().to_string(),
        complete: findings.complete,
        seconds: begun.elapsed().as_secs_f64(),
    }
}

fn check_all(
    journal: &Arc<dyn Journal>,
    live: &IndexSnapshot,
    identity: &Identity,
    shares: Shares,
    second: &IndexFile,
    findings: &mut Findings,
    walked: &mut journal::Walked,
) -> Result<(), Stop> {
    let head = journal.head();
    walked.walk(&**journal, head, findings)?;
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
        // An index that was never flushed into holds nothing.
        None => ledger_journal::Position::FIRST,
    };
    let bounded: Arc<dyn Journal> = Arc::new(journal::Bounded::new(journal.clone(), through, walked));
    let mut stopped = false;
    let replayed = recovery::replay(
        &bounded,
        second,
        identity,
        shares,
        ledger_journal::Position::FIRST,
        &mut |violation| {
            stopped |= findings.push(violation).is_err();
            if stopped { Err(OpenError::Damaged { reason: String::new() }) } else { Ok(()) }
        },
    );
    let mut replayed = match replayed {
        Ok(replayed) => replayed,
        Err(_) if stopped => return Err(Stop),
        Err(error) => return findings.replay_error(&error).and(Err(Stop)),
    };
    if !replayed.view.pieces.is_empty() {
        let hashed = replayed.hashed;
        let state = &mut replayed.state;
        if let Err(error) =
            recovery::flush_now(state, &mut replayed.view, second, identity, &*bounded, hashed)
        {
            return findings.replay_error(&error).and(Err(Stop));
        }
    }
    let mut gone = Gone::new();
    for head in replayed.view.heads.iter() {
        findings.names.insert(head.info.id, head.info.name.clone());
        if head.is_removed {
            gone.insert(head.info.id);
        }
    }
    let fresh = replayed.view.index.clone();
    compare::compare(&fresh, live, &gone, findings)
        .and_then(|()| rules::unique(&fresh, &gone, &bounded, findings))
        .and_then(|()| rules::balanced(&fresh, &gone, findings))
        .and_then(|()| rules::wire_hashes(&Arc::new(replayed.view), live, &bounded, findings))
}
