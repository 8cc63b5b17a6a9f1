//! The feed: logs in commit order, for consumers that forward them. A consumer that missed logs reads them again from
//! the journal.
//!
//! A consumer stores a [`FeedPosition`] (all ledgers in one order) or a log id (one ledger). It reads a part from
//! there, forwards it, and stores where the part ended. The size of a part is limited, so a consumer that is far behind
//! needs no more memory than one that is up to date.

use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use ledger_codec::Corrupt;
use ledger_core::{Features, HashLogs, LedgerName, LogEntry, LogId};
use ledger_index::{LogRow, Way};
use ledger_journal::Position;
use ledger_journal::entry::{Body, Record, read_chunk};

use super::effective::LaterTransactions;
use super::session::Session;
use super::snapshot::{LedgerView, Snapshot};
use super::weight::Weight;
use super::{effective, hash, logs};
use crate::error::ReadError;
use crate::hashes::ChainId;
use crate::query::LogView;

/// Number of journal bytes in one part of the feed of all ledgers. Bounds the memory of a read. The journal returns
/// whole chunks, and the largest has 4 MiB.
const PART_BYTES: usize = 64 << 10;

/// Time after which a part of one ledger's logs ends early. Bounds how long a consumer waits.
const PART_TIME: Duration = Duration::from_secs(1);

/// A position in the feed: in the order of everything that a store has committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedPosition(Position);

impl FeedPosition {
    /// The start of the feed.
    pub const FIRST: Self = Self(Position::FIRST);

    /// Restores a position from the number that [`FeedPosition::get`] returned. Returns `None` for zero.
    pub const fn new(number: u64) -> Option<Self> {
        match Position::new(number) {
            Some(position) => Some(Self(position)),
            None => None,
        }
    }

    /// Returns the number of the position, for storing it.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// A log in the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FedLog {
    /// Name of the log's ledger.
    pub ledger: LedgerName,
    /// Number of the log's ledger. A ledger that reuses the name of a removed one has another number.
    pub number: u32,
    /// Features of the log's ledger.
    pub features: Features,
    /// True if an import copied the log from another ledger. An imported log does not report a new event.
    pub imported: bool,
    /// The log in the form in which lists return it.
    pub log: LogView,
}

/// A part of the feed of all ledgers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPart {
    /// Logs in commit order; the ids of one ledger ascend. Can be empty before the end of the feed, because not every
    /// entry is a log.
    pub logs: Vec<FedLog>,
    /// Position at which the next part starts.
    pub next: FeedPosition,
}

/// Limits of a part of one ledger's logs. A part contains at least one log, unless no more exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedSize {
    /// Maximum number of logs.
    pub logs: usize,
    /// Approximate maximum size in memory, in bytes.
    pub bytes: usize,
}

/// A part of one ledger's logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FedLogs {
    /// Logs in ascending order of id.
    pub logs: Vec<FedLog>,
    /// True if the snapshot has more logs after this part.
    pub has_more: bool,
}

impl Snapshot {
    /// Returns the position at which the feed of this snapshot ends.
    pub fn feed_end(&self) -> FeedPosition {
        FeedPosition(self.view().next)
    }

    /// Returns logs of all ledgers from a position on, without wire hashes. At the end of the feed, the part is empty
    /// and its next position is `from`.
    ///
    /// # Errors
    ///
    /// [`ReadError::Damaged`], [`ReadError::Io`].
    pub fn feed(&self, from: FeedPosition) -> Result<FeedPart, ReadError> {
        let mut part = FeedPart { logs: Vec::new(), next: from };
        if from >= self.feed_end() {
            return Ok(part);
        }
        let mut sessions: HashMap<u32, Session, RandomState> = HashMap::default();
        for chunk in self.journal().scan(from.0, PART_BYTES)? {
            // The journal has this batch already, but the store has not published it yet.
            if chunk.next() > self.view().next {
                break;
            }
            let mut failed = None;
            read_chunk(&chunk, |record| {
                if let Body::Log(log) = &record.body
                    && record.position >= from.0
                    && failed.is_none()
                    && self.view().heads.get(log.ledger).is_none_or(|head| !head.is_removed)
                {
                    let fed = match sessions.get(&log.ledger) {
                        Some(session) => fed_log(session, &record),
                        None => self.session(log.ledger).map(Session::without_limits).and_then(|session| {
                            fed_log(sessions.entry(log.ledger).or_insert(session), &record)
                        }),
                    };
                    match fed {
                        Ok(fed) => part.logs.push(fed),
                        Err(error) => failed = Some(error),
                    }
                }
                Ok(())
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            part.next = FeedPosition(chunk.next());
        }
        Ok(part)
    }
}

impl LedgerView {
    /// Returns the id of the ledger's last log, if it has one.
    pub fn last_log(&self) -> Option<LogId> {
        let counters = self.counters();
        if counters.is_new() { None } else { counters.next_log.checked_sub(1).map(LogId::new) }
    }

    /// Returns the logs after one, or from the first log on, in ascending order. `hashes` adds wire hashes if the
    /// ledger shows them; the read may then wait for the hashing thread. A part that takes long ends early. A caller
    /// that continues from its end reaches the last log in any case.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooExpensive`] if hashing is too far behind, and the errors of any read.
    pub fn logs_after(
        &self,
        after: Option<LogId>,
        size: FeedSize,
        hashes: bool,
    ) -> Result<FedLogs, ReadError> {
        let began = Instant::now();
        let session = self.session().without_limits();
        let mut part = FedLogs { logs: Vec::new(), has_more: false };
        let Some(from) = after.map_or(Some(0), |after| after.get().checked_add(1)) else { return Ok(part) };
        let mut bytes = 0;
        let ledger = session.ledger();
        for row in session.logs().cursor((ledger, from), (ledger, u64::MAX), Way::Ascending) {
            let is_full = part.logs.len() >= size.logs || bytes >= size.bytes || began.elapsed() > PART_TIME;
            if is_full && !part.logs.is_empty() {
                part.has_more = true;
                break;
            }
            let row: LogRow = row?;
            let position = Position::new(row.position).ok_or(Corrupt { what: "position of a log" })?;
            let fed = session.reader.with_record(position, |record| fed_log(&session, record))?;
            bytes += fed.log.weight();
            part.logs.push(fed);
        }
        if hashes && session.head.info.features.hash_logs == HashLogs::Sync {
            let entries: Vec<&LogEntry> = part.logs.iter().map(|fed| &fed.log.entry).collect();
            let hashes = hash::hashes_of(&self.session(), ChainId::wire(ledger), &entries)?;
            for (fed, hash) in part.logs.iter_mut().zip(hashes) {
                fed.log.hash = Some(*hash.as_bytes());
            }
        }
        Ok(part)
    }
}

/// Converts an entry into a log of the feed.
fn fed_log(session: &Session, record: &Record<'_>) -> Result<FedLog, ReadError> {
    let Body::Log(log) = &record.body else { return Err(Corrupt { what: "entry without a log" }.into()) };
    let mut entry = session.reader.log_entry(record)?;
    let reverted = logs::reverted_by(session, &entry, record.position.get())?;
    effective::add_effective_volumes(session, &mut entry.payload, LaterTransactions::Anywhere)?;
    Ok(FedLog {
        ledger: session.head.info.name.clone(),
        number: session.head.info.id,
        features: session.head.info.features,
        imported: log.imported,
        log: LogView { entry, hash: None, reverted },
    })
}
