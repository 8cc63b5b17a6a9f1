//! Work decided: what each kind of it does to the state and the batch.

use ledger_core::LedgerName;
use ledger_journal::entry::DocumentRecord;

use super::pending::{Pending, answer_from_within};
use super::written::WrittenHere;
use super::{Engine, LedgerEdit, Mark, Work};
use crate::documents::keys::document_key;
use crate::documents::{LEDGERS, MAPPINGS, encode_ledger};
use crate::error::WriteError;
use crate::imported::Imported;
use crate::query::LedgerInfo;
use crate::scripts::Programs;
use crate::submission::{Atomicity, Mode, Receipt, Submission};
use crate::writer::{Ahead, Batch, COMMANDS_AHEAD, Decided, Prepared, Setting, State};

/// Number of ledgers that one command of a bucket visits: a batch stays small, whatever the bucket holds.
const LEDGERS_MARKED: usize = 10_000;

impl Engine {
    /// Decides some work upon the state; what it records goes into the batch.
    pub(super) fn decide(
        &self,
        state: &mut State,
        work: Work,
        now: ledger_core::Timestamp,
        batch: &mut Batch,
        is_my_turn: bool,
    ) -> Result<Pending, WriteError> {
        match work {
            Work::Apply(submission, programs) => {
                let written = WrittenHere { engine: self, is_my_turn };
                Self::decide_submission(state, submission, &programs, now, batch, &written)
            }
            Work::CreateLedger(name, options) => {
                if state.ledger_number(&name).is_some() {
                    return Err(WriteError::LedgerExists);
                }
                let section = state.section_for(&options.bucket);
                let info = LedgerInfo {
                    id: state.ledgers.len() as u32 + 1,
                    name,
                    bucket: options.bucket,
                    added_at: now,
                    metadata: options.metadata,
                    features: options.features,
                    first_id: options.first_id,
                    deleted_at: None,
                };
                put_ledger(state, &info, section, batch)?;
                Ok(Pending::Ledger(info))
            }
            Work::Import(name, next, logs) => {
                let ledger = live(state, &name)?;
                if state.ledger(ledger).counters().next_log != next {
                    return Ok(Pending::Imported(Imported::Overtaken));
                }
                let written = WrittenHere { engine: self, is_my_turn };
                state.begin_undo(ledger);
                let mark = batch.mark();
                let mut imported = Imported::All;
                for log in &logs {
                    match state.import(ledger, log, batch, &written) {
                        Ok(Ok(())) => batch.touch(ledger),
                        Ok(Err(refusal)) => {
                            imported = Imported::Refused(log.entry.id, refusal);
                            break;
                        }
                        Err(error) => {
                            state.take_back();
                            batch.reset(mark);
                            return Err(error.into());
                        }
                    }
                }
                state.keep();
                Ok(Pending::Imported(imported))
            }
            Work::ChangeDocuments(changes) => {
                state.change_documents(&changes, batch)?.map(Pending::Documents).map_err(WriteError::Document)
            }
            Work::WriteAtomically(write, programs) => {
                let written = WrittenHere { engine: self, is_my_turn };
                Self::decide_atomic(state, write, &programs, now, batch, &written)
            }
            Work::MarkBucket { bucket, first, mark } => {
                if mark == Mark::Restored && first == 1 && state.is_bucket_gone(&bucket) {
                    return Err(WriteError::BucketRemoved);
                }
                let mut next = Some(first);
                let mut changed = Vec::new();
                for _ in 0..LEDGERS_MARKED {
                    let ledger = next.and_then(|next| state.ledgers.get(next as usize - 1));
                    let Some(ledger) = ledger else {
                        next = None;
                        break;
                    };
                    next = next.map(|next| next + 1);
                    let (info, section) = (&ledger.head.info, ledger.head.section);
                    if info.bucket != bucket || ledger.head.is_removed {
                        continue;
                    }
                    // Of a section that is being removed nothing is had back.
                    if mark == Mark::Restored && state.section(section).is_going() {
                        continue;
                    }
                    let deleted_at = match mark {
                        Mark::Deleted => info.deleted_at.or(Some(now)),
                        Mark::Restored => None,
                    };
                    if info.deleted_at != deleted_at {
                        let before = state.stored_document(&ledger_key(info))?;
                        changed.push((LedgerInfo { deleted_at, ..LedgerInfo::clone(info) }, section, before));
                    }
                }
                for (info, section, before) in changed {
                    put_ledger_over(state, &info, section, before, batch)?;
                }
                Ok(Pending::Marked(next))
            }
            Work::RemoveDeleted { retention } => {
                let retention = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
                let until = ledger_core::Timestamp::from_micros(now.as_micros().saturating_sub(retention));
                let mut due = Vec::new();
                for number in state.removable(until, LEDGERS_MARKED) {
                    let info = LedgerInfo::clone(&state.ledger(number).head.info);
                    let stored = |collection| {
                        state.stored_document(&document_key(collection, info.name.as_str().as_bytes()))
                    };
                    let before = [(MAPPINGS, stored(MAPPINGS)?), (LEDGERS, stored(LEDGERS)?)];
                    due.push((info, before));
                }
                let mut removed = Vec::with_capacity(due.len());
                for (info, before) in due {
                    let key = info.name.as_str().as_bytes();
                    for (collection, before) in before {
                        if before.is_some() {
                            let document =
                                DocumentRecord { collection, key, value: None, secondary: Vec::new() };
                            state.enter_document(document, before, batch)?;
                        }
                    }
                    batch.touch(info.id);
                    removed.push(info);
                }
                Ok(Pending::Removed(removed))
            }
            Work::EditLedger(name, edit) => {
                let ledger = live(state, &name)?;
                let head = &state.ledger(ledger).head;
                let (mut info, section) = (LedgerInfo::clone(&head.info), head.section);
                match edit {
                    LedgerEdit::Mapping(text) => {
                        let key = info.name.as_str().as_bytes();
                        let before = state.stored_document(&document_key(MAPPINGS, key))?;
                        let value = Some(text.as_bytes());
                        let document =
                            DocumentRecord { collection: MAPPINGS, key, value, secondary: Vec::new() };
                        state.enter_document(document, before, batch)?;
                        batch.touch(info.id);
                        return Ok(Pending::Ledger(info));
                    }
                    LedgerEdit::Set(metadata) => info.metadata.merge(&metadata),
                    LedgerEdit::Delete(key) => {
                        info.metadata.remove(&key);
                    }
                }
                put_ledger(state, &info, section, batch)?;
                Ok(Pending::Ledger(info))
            }
        }
    }

    fn decide_submission(
        state: &mut State,
        submission: Submission,
        programs: &Programs,
        now: ledger_core::Timestamp,
        batch: &mut Batch,
        written: &WrittenHere<'_>,
    ) -> Result<Pending, WriteError> {
        let Submission { ledger, mut requests, atomicity, mode, detail } = submission;
        let ledger = live(state, &ledger)?;
        let setting = Setting { ledger, now, detail };
        let first = state.next;
        let whole = matches!(atomicity, Atomicity::AllOrNothing | Atomicity::AsOne);
        let mark = (mode == Mode::DryRun || whole).then(|| {
            state.begin_undo(ledger);
            batch.mark()
        });
        let several = atomicity == Atomicity::AsOne && requests.len() > 1;
        let mut outcomes: Vec<Decided> = Vec::with_capacity(requests.len());
        let mut refused = false;
        let mut failed = None;
        let mut ahead = Ahead::default();
        for at in 0..requests.len() {
            if ahead.is_taken() {
                let end = requests.len().min(at + COMMANDS_AHEAD);
                state.look_ahead(ledger, &requests[at..end], &mut ahead);
                outcomes.resize_with(end, || Decided::Done(Receipt::EMPTY));
            }
            let (prints, near) = ahead.take();
            if refused && atomicity != Atomicity::Independent {
                outcomes[at] = Decided::Cancelled;
                continue;
            }
            if atomicity == Atomicity::AsOne
                && let Some(Decided::Replay { position, .. }) = outcomes.first()
            {
                // They were recorded one after the other.
                outcomes[at] = Decided::Replay { position: *position, later: at as u64 };
                continue;
            }
            let program = programs.get(at).and_then(Option::as_ref);
            let prepared = Prepared { request: &mut requests[at], at, program, several, prints, near };
            let Decided::Done(receipt) = &mut outcomes[at] else { unreachable!("it was put so") };
            match state.execute(setting, prepared, batch, written, receipt) {
                Ok(None) => {}
                Ok(Some(other)) => {
                    refused |= matches!(other, Decided::Refused(_));
                    outcomes[at] = other;
                }
                // Of several that need not be undone together one fails alone.
                Err(error) if mark.is_none() && requests.len() > 1 && !state.is_half_changed() => {
                    refused = true;
                    outcomes[at] = Decided::Failed(error);
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        if mode == Mode::DryRun {
            answer_from_within(&mut outcomes, first);
        }
        let undone = match mark {
            Some(mark) if mode == Mode::DryRun || refused || failed.is_some() => {
                state.take_back();
                batch.reset(mark);
                true
            }
            _ => {
                state.keep();
                batch.touch(ledger);
                false
            }
        };
        if let Some(error) = failed {
            return Err(error.into());
        }
        if undone && mode == Mode::Commit {
            for outcome in &mut outcomes {
                if !matches!(outcome, Decided::Refused(_)) {
                    *outcome = Decided::Cancelled;
                }
            }
        }
        let spent = batch.unhashed.keep(requests);
        Ok(Pending::Outcomes { ledger, mode, detail, outcomes, spent })
    }
}

/// The number of a ledger that exists.
pub(super) fn live(state: &State, name: &LedgerName) -> Result<u32, WriteError> {
    state.live_ledger(name).ok_or_else(|| WriteError::LedgerNotFound { ledger: name.clone() })
}

/// The key of a ledger's document.
fn ledger_key(info: &LedgerInfo) -> Vec<u8> {
    document_key(LEDGERS, info.name.as_str().as_bytes())
}

fn put_ledger(
    state: &mut State,
    info: &LedgerInfo,
    section: u32,
    batch: &mut Batch,
) -> Result<(), WriteError> {
    let before = state.stored_document(&ledger_key(info))?;
    put_ledger_over(state, info, section, before, batch)
}

/// Puts the document of a ledger where `before` stands.
fn put_ledger_over(
    state: &mut State,
    info: &LedgerInfo,
    section: u32,
    before: Option<Box<[u8]>>,
    batch: &mut Batch,
) -> Result<(), WriteError> {
    let value = encode_ledger(info, section);
    let key = info.name.as_str().as_bytes();
    let document = DocumentRecord { collection: LEDGERS, key, value: Some(&value), secondary: Vec::new() };
    state.enter_document(document, before, batch)?;
    batch.touch(info.id);
    Ok(())
}
