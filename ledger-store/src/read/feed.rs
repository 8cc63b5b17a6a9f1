//! Logs in the order of their commits, for whoever passes them on: what was missed is read again from the journal.
//!
//! A consumer remembers a [`FeedPosition`] (all ledgers in one order) or a log id (one ledger), reads a part from
//! there, passes it on, and remembers where the part ended. A part is bounded in bytes, so that a consumer that is
//! far behind takes no more memory than one that is not.

use std::rc::Rc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use ledger_core::{
    Features, HashLogs, HoldingVolumes, LedgerName, LogEntry, LogId, LogPayload, Metadata, Transaction,
};

use super::effective::Later;
use super::limits::{Meter, ReadLimits};
use super::session::Session;
use super::snapshot::{LedgerView, Snapshot};
use crate::codec::Corrupt;
use crate::entry::{Body, Record, read_chunk};
use crate::error::ReadError;
use crate::hashes::ChainId;
use crate::index::{LogRow, Way};
use crate::journal::Position;
use crate::query::LogView;

/// So many bytes of the journal make a part of the feed of all ledgers. A chunk is read whole, and the largest has
/// 4 MiB.
const PART_BYTES: usize = 64 << 10;

/// So long a part of one ledger's logs may take.
const PART_TIME: Duration = Duration::from_secs(1);

/// A place in the order of everything that a store has committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedPosition(Position);

impl FeedPosition {
    /// Before everything.
    pub const FIRST: Self = Self(Position::FIRST);

    /// The position with a number that [`FeedPosition::get`] gave; zero is none.
    pub const fn new(number: u64) -> Option<Self> {
        match Position::new(number) {
            Some(position) => Some(Self(position)),
            None => None,
        }
    }

    /// Its number, to be stored.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// A log that is to be passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FedLog {
    /// Its ledger.
    pub ledger: LedgerName,
    /// The ledger's number: another one that gets its name after it was removed has another.
    pub number: u32,
    /// What its ledger keeps.
    pub features: Features,
    /// Whether it was taken over from another ledger's log: then it is no news.
    pub imported: bool,
    /// The log, as lists show it.
    pub log: LogView,
}

/// A part of the feed of all ledgers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPart {
    /// Logs in the order of their commits; those of one ledger ascend by id. There may be none although the feed
    /// goes on: not every entry is a log.
    pub logs: Vec<FedLog>,
    /// Where the next part begins.
    pub next: FeedPosition,
}

/// How large a part of one ledger's logs may be. There is one log in it at least, if there is one at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedSize {
    /// Most logs.
    pub logs: usize,
    /// Most bytes in memory, about.
    pub bytes: usize,
}

/// A part of one ledger's logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FedLogs {
    /// Ascending by id.
    pub logs: Vec<FedLog>,
    /// Whether there were more at this moment.
    pub has_more: bool,
}

impl Snapshot {
    /// Where the feed ends at this moment.
    pub fn feed_end(&self) -> FeedPosition {
        FeedPosition(self.view().next)
    }

    /// Logs of all ledgers that were committed from a position on, without hashes. At the end the part is empty and
    /// ends where it begins.
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
            // A batch that was appended just now, and is not published yet.
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
                        Some(session) => session.fed_log(&record),
                        None => self.session(log.ledger).map(Session::without_limits).and_then(|session| {
                            sessions.entry(log.ledger).or_insert(session).fed_log(&record)
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
    /// The id of its last log, if it has one.
    pub fn last_log(&self) -> Option<LogId> {
        let counters = self.counters();
        if counters.is_new() { None } else { counters.next_log.checked_sub(1).map(LogId::new) }
    }

    /// Logs after one, or from the first on, ascending. `hashes` asks for wire hashes, where the ledger shows them;
    /// that may wait for the hashing thread. A part that takes long ends early: whoever goes on gets to the end,
    /// whatever there is on the way.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooExpensive`] if the hashes are too far behind, else as any read.
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
            let fed = session.reader.with_record(position, |record| session.fed_log(record))?;
            bytes += weight(&fed.log);
            part.logs.push(fed);
        }
        if hashes && session.head.info.features.hash_logs == HashLogs::Sync {
            let entries: Vec<&LogEntry> = part.logs.iter().map(|fed| &fed.log.entry).collect();
            let hashes = self.session().hashes_of(ChainId::wire(ledger), &entries)?;
            for (fed, hash) in part.logs.iter_mut().zip(hashes) {
                fed.log.hash = Some(*hash.as_bytes());
            }
        }
        Ok(part)
    }
}

impl Session {
    /// Without bounds of work: for what no caller chose.
    fn without_limits(mut self) -> Self {
        self.meter = Rc::new(Meter::start(ReadLimits::NONE));
        self
    }

    /// An entry as a log that is to be passed on.
    fn fed_log(&self, record: &Record<'_>) -> Result<FedLog, ReadError> {
        let Body::Log(log) = &record.body else { return Err(Corrupt { what: "entry without a log" }.into()) };
        let mut entry = self.reader.log_entry(record)?;
        let reverted = self.reverted_by(&entry, record.position.get())?;
        self.add_effective_volumes(&mut entry.payload, Later::Anywhere)?;
        Ok(FedLog {
            ledger: self.head.info.name.clone(),
            number: self.head.info.id,
            features: self.head.info.features,
            imported: log.imported,
            log: LogView { entry, hash: None, reverted },
        })
    }
}

/// About how many bytes a log holds.
fn weight(log: &LogView) -> usize {
    fn texts(metadata: &Metadata) -> usize {
        metadata.text_bytes()
    }
    fn holdings(volumes: &[HoldingVolumes]) -> usize {
        volumes.iter().map(|held| size_of::<HoldingVolumes>() + held.account.as_str().len()).sum()
    }
    fn transaction(transaction: &Transaction) -> usize {
        let postings = transaction.postings.iter();
        let postings: usize = postings
            .map(|posting| 128 + posting.source.as_str().len() + posting.destination.as_str().len())
            .sum();
        postings + texts(&transaction.metadata) + holdings(&transaction.post_commit_volumes)
    }
    let payload = match &log.entry.payload {
        LogPayload::NewTransaction { transaction: new, account_metadata, effective_volumes } => {
            let accounts: usize =
                account_metadata.iter().map(|(address, set)| 64 + address.as_str().len() + texts(set)).sum();
            transaction(new) + accounts + effective_volumes.as_deref().map_or(0, holdings)
        }
        LogPayload::RevertedTransaction { transaction: new, effective_volumes, .. } => {
            transaction(new) + effective_volumes.as_deref().map_or(0, holdings)
        }
        LogPayload::SetMetadata { metadata, .. } => texts(metadata),
        LogPayload::DeleteMetadata { key, .. } => key.len(),
        LogPayload::InsertedSchema { schema } => schema.len(),
    };
    size_of::<LogEntry>() + payload + log.reverted.as_deref().map_or(0, transaction)
}
