//! Reads the journal from its first entry to its last, and checks what can be checked entry by entry.

use std::collections::HashMap;
use std::sync::Arc;

use ledger_journal::entry::{Body, Record, read_chunk};
use ledger_journal::{ChainHash, Chunk, Head, Identity, JournalError, JournalReader, Position, Section};

use super::findings::{Findings, Stop};
use crate::documents::{LEDGERS, decode_ledger};
use crate::violation::ViolationCode;

/// Number of journal bytes that are read at a time.
const WALK_BYTES: usize = 4 << 20;

/// How far the journal was read, and what the next entry must continue.
pub(super) struct JournalWalk {
    next: Position,
    chain: ChainHash,
    ledgers: HashMap<u32, Tail>,
}

/// The end of a ledger's log.
struct Tail {
    next_log: u64,
    date: i64,
}

impl JournalWalk {
    /// Creates the state before the first entry.
    pub(super) fn nothing(identity: &Identity) -> Self {
        Self { next: Position::FIRST, chain: ChainHash::genesis(identity.store), ledgers: HashMap::new() }
    }

    pub(super) fn entries(&self) -> u64 {
        self.next.get() - 1
    }

    pub(super) fn ledgers(&self) -> u32 {
        u32::try_from(self.ledgers.len()).expect("ledgers have 32-bit numbers")
    }

    pub(super) fn chain(&self) -> ChainHash {
        self.chain
    }

    /// Reads everything before `head`. Ends early at a defect that makes the rest unreadable.
    pub(super) fn walk(
        &mut self,
        journal: &dyn JournalReader,
        head: Head,
        findings: &mut Findings,
    ) -> Result<(), Stop> {
        while self.next < head.next {
            let chunks = match journal.scan(self.next, WALK_BYTES) {
                Ok(chunks) => chunks,
                // The failed scan returns none of the sound chunks before the damaged one, so read them one by one.
                Err(_) => match journal.read(self.next) {
                    Ok(chunk) => chunk.into_iter().collect(),
                    Err(error) => {
                        let code = match error {
                            JournalError::Storage { .. } => ViolationCode::StorageError,
                            _ => ViolationCode::RecordChecksum,
                        };
                        return stop(findings, code, self.next, error.to_string());
                    }
                },
            };
            if chunks.is_empty() {
                let what = format!("the journal ends here, not before {}", head.next);
                return stop(findings, ViolationCode::SequenceGap, self.next, what);
            }
            for chunk in chunks.iter().take_while(|chunk| chunk.first() < head.next) {
                self.step(chunk, findings)?;
            }
        }
        if (self.next, self.chain) != (head.next, head.chain) {
            let what =
                format!("the head is {} before {}, the entries end in {}", head.chain, head.next, self.chain);
            return stop(findings, ViolationCode::HeadMismatch, self.next, what);
        }
        Ok(())
    }

    fn step(&mut self, chunk: &Chunk, findings: &mut Findings) -> Result<(), Stop> {
        if chunk.first() != self.next {
            let what = format!("a chunk begins with entry {}", chunk.first());
            return stop(findings, ViolationCode::SequenceGap, self.next, what);
        }
        if chunk.previous() != self.chain {
            let what = format!("a chunk follows {}, the one before it is {}", chunk.previous(), self.chain);
            return stop(findings, ViolationCode::ChainBreak, self.next, what);
        }
        let mut expected = chunk.first().get();
        let mut is_whole = chunk.sections().iter().all(|(_, section)| matches!(section, Section::Present(_)));
        let mut outcome = Ok(());
        let read = read_chunk(chunk, |record| {
            let position = record.position.get();
            // Entries of a removed section leave gaps.
            if is_whole && position != expected && outcome.is_ok() {
                is_whole = false;
                let what = format!("entry {expected} is missing");
                outcome = stop(findings, ViolationCode::SequenceGap, record.position, what);
            }
            expected = position.saturating_add(1);
            if outcome.is_ok() {
                outcome = self.entry(&record, findings);
            }
            Ok(())
        });
        outcome?;
        if let Err(corrupt) = read {
            return stop(findings, ViolationCode::FileFormat, chunk.first(), corrupt.to_string());
        }
        if expected > chunk.next().get() || (is_whole && expected != chunk.next().get()) {
            let what = format!("a chunk has entries before {expected}, and says before {}", chunk.next());
            return stop(findings, ViolationCode::SequenceGap, chunk.first(), what);
        }
        (self.next, self.chain) = (chunk.next(), chunk.chain());
        Ok(())
    }

    fn entry(&mut self, record: &Record<'_>, findings: &mut Findings) -> Result<(), Stop> {
        let position = record.position;
        match &record.body {
            Body::Document(document) => {
                if let (LEDGERS, Some(value)) = (document.collection, document.value) {
                    match decode_ledger(document.key, value) {
                        Ok((info, _)) => {
                            let tail = Tail { next_log: info.first_id.get(), date: i64::MIN };
                            self.ledgers.entry(info.id).or_insert(tail);
                            findings.names.insert(info.id, info.name);
                        }
                        Err(corrupt) => {
                            return stop(findings, ViolationCode::FileFormat, position, corrupt.to_string());
                        }
                    }
                }
            }
            Body::Log(log) => {
                let Some(tail) = self.ledgers.get_mut(&log.ledger) else {
                    let what = format!("ledger {} was not created", log.ledger);
                    return stop(findings, ViolationCode::FileFormat, position, what);
                };
                // An import into an empty ledger may start below the ledger's first id.
                let begins = log.imported && tail.date == i64::MIN;
                if log.log < tail.next_log && !begins {
                    let what = format!("log {} where {} is due", log.log, tail.next_log);
                    findings.complete = false;
                    findings.add(ViolationCode::SequenceGap, Some(log.ledger), Some(position.get()), what)?;
                    return Err(Stop);
                }
                tail.next_log = log.log.saturating_add(1);
                let date = log.date.as_micros();
                if date < tail.date && !log.imported {
                    let what = format!(
                        "log {} is dated {} µs before the one before it",
                        log.log,
                        tail.date.abs_diff(date)
                    );
                    findings.add(ViolationCode::DateOrder, Some(log.ledger), Some(position.get()), what)?;
                }
                tail.date = tail.date.max(date);
            }
        }
        Ok(())
    }
}

/// Records a defect that makes the rest of the journal unreadable.
fn stop(
    findings: &mut Findings,
    code: ViolationCode,
    position: Position,
    detail: String,
) -> Result<(), Stop> {
    findings.complete = false;
    findings.add(code, None, Some(position.get()), detail)?;
    Err(Stop)
}

/// The part of a journal before a position.
pub(super) struct JournalPrefix {
    journal: Arc<dyn JournalReader>,
    head: Head,
}

impl JournalPrefix {
    pub(super) fn new(journal: Arc<dyn JournalReader>, next: Position, walk: &JournalWalk) -> Self {
        // No caller uses the chain of this head.
        Self { journal, head: Head { next, chain: walk.chain } }
    }
}

impl JournalReader for JournalPrefix {
    fn head(&self) -> Head {
        self.head
    }

    fn read(&self, at: Position) -> Result<Option<Chunk>, JournalError> {
        if at < self.head.next { self.journal.read(at) } else { Ok(None) }
    }

    fn scan(&self, from: Position, max_bytes: usize) -> Result<Vec<Chunk>, JournalError> {
        if from >= self.head.next {
            return Ok(Vec::new());
        }
        let mut chunks = self.journal.scan(from, max_bytes)?;
        chunks.retain(|chunk| chunk.first() < self.head.next);
        Ok(chunks)
    }
}
