//! Feeds the hashing thread with committed entries, so that it need not read them from the journal.

#![allow(clippy::cast_possible_truncation, reason = "a batch has fewer than 2^32 commands")]

use std::collections::VecDeque;
use std::time::Duration;

use ledger_core::{
    Command, Decision, LegacyLog, Memento, NewTransaction, SchemaVersion, Timestamp, TimestampText,
    TransactionId,
};
use ledger_journal::Position;
use parking_lot::{Condvar, Mutex};

use super::chain::ChainId;
use crate::submission::Request;

/// Maximum number of emptied batches whose buffers are kept for reuse. Each may hold at most the budget divided by
/// this number.
const SPARE_MAX: usize = 3;

/// Minimum number of bytes by which the text buffer grows.
const ROOM_MIN: usize = 4 << 10;

/// How [`Unhashed`] stores the canonical text of an entry.
#[derive(Clone, Copy, Debug)]
enum Text {
    /// The text is in the buffer and ends at this offset.
    Until(usize),
    /// The hashing thread creates the text from a request of a submission.
    OfCreate { submission: u32, at: u32, id: TransactionId, date: Timestamp },
}

/// An entry in [`Unhashed`].
#[derive(Clone, Copy, Debug)]
struct EntryRef {
    chain: ChainId,
    log: u64,
    text: Text,
}

/// The entries of a batch that the hashing thread will hash, in order.
///
/// Requests to create transactions are handed over unchanged once their callers no longer need them, and the hashing
/// thread creates their texts. This takes work off the writer. The texts of other entries are written before the
/// callers get the entries.
#[derive(Debug, Default)]
pub(crate) struct Unhashed {
    entries: Vec<EntryRef>,
    /// The text buffer. Longer than the texts, so that the next one is written without initialising memory.
    bytes: Vec<u8>,
    /// The end of the last text.
    end: usize,
    /// Requests by submission.
    requests: Vec<Vec<Request>>,
    /// True if entries were added whose requests are not handed over yet.
    awaits: bool,
    dates: TimestampText,
}

/// A state of an [`Unhashed`] to which [`Unhashed::reset`] returns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnhashedMark {
    entries: usize,
    end: usize,
}

impl Unhashed {
    /// Adds an entry with the text that the wire hash chain covers.
    pub(crate) fn push(&mut self, ledger: u32, log: u64, memento: &Memento<'_>) {
        self.end = put_text(memento, &mut self.bytes, self.end, &mut self.dates);
        self.entries.push(EntryRef { chain: ChainId::wire(ledger), log, text: Text::Until(self.end) });
    }

    /// Adds a transaction that request `at` of the current submission created. [`Unhashed::keep`] must follow with the
    /// requests, or [`Unhashed::reset`] to a mark before the submission.
    pub(crate) fn push_create(
        &mut self,
        ledger: u32,
        log: u64,
        at: usize,
        id: TransactionId,
        date: Timestamp,
    ) {
        let text = Text::OfCreate { submission: self.requests.len() as u32, at: at as u32, id, date };
        self.entries.push(EntryRef { chain: ChainId::wire(ledger), log, text });
        self.awaits = true;
    }

    /// Takes over the requests of the current submission, or returns them if they are not needed.
    #[must_use]
    pub(crate) fn keep(&mut self, requests: Vec<Request>) -> Vec<Request> {
        if !std::mem::take(&mut self.awaits) {
            return requests;
        }
        self.requests.push(requests);
        Vec::new()
    }

    /// Adds an entry with the text that the v1 hash chain covers.
    pub(crate) fn push_legacy(&mut self, ledger: u32, log: u64, entry: &LegacyLog<'_>) {
        self.bytes.truncate(self.end);
        entry.write_to("", &mut self.bytes);
        self.end = self.bytes.len();
        self.entries.push(EntryRef { chain: ChainId::legacy(ledger), log, text: Text::Until(self.end) });
    }

    /// Returns the current state, for [`Unhashed::reset`].
    pub(crate) fn mark(&self) -> UnhashedMark {
        UnhashedMark { entries: self.entries.len(), end: self.end }
    }

    /// Drops the entries that were added since the mark. All of them must belong to one submission whose requests are
    /// not kept yet.
    pub(crate) fn reset(&mut self, mark: UnhashedMark) {
        self.entries.truncate(mark.entries);
        self.end = mark.end;
        self.awaits = false;
    }

    /// Removes all entries and calls `each` with chain, log and text of each, in order. An error ends it.
    pub(crate) fn drain<E>(
        &mut self,
        scratch: &mut Scratch,
        mut each: impl FnMut(ChainId, u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = 0;
        for EntryRef { chain, log, text } in self.entries.drain(..) {
            let text = match text {
                Text::Until(end) => &self.bytes[std::mem::replace(&mut start, end)..end],
                Text::OfCreate { submission, at, id, date } => {
                    let request = &self.requests[submission as usize][at as usize];
                    scratch.put(request, id, date)
                }
            };
            each(chain, log, text)?;
        }
        self.clear();
        Ok(())
    }

    /// Returns the bytes of the texts and of the entries that refer to them.
    fn text_bytes(&self) -> usize {
        self.end + self.entries.len() * size_of::<EntryRef>()
    }

    /// Returns the allocated bytes.
    fn capacity(&self) -> usize {
        self.bytes.capacity() + self.requests.capacity() * size_of::<Vec<Request>>()
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.end = 0;
        self.requests.clear();
        self.awaits = false;
    }
}

/// A buffer in which the texts of requests are created one after the other.
#[derive(Default)]
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    dates: TimestampText,
}

impl Scratch {
    /// Creates the text of a transaction that was recorded for `request`.
    fn put(&mut self, request: &Request, id: TransactionId, date: Timestamp) -> &[u8] {
        let Command::CreateTransaction(create) = &request.command else {
            unreachable!("only requests to create transactions are kept without a text")
        };
        let decision = Decision::Transaction(NewTransaction::of_create(create, &[], date));
        let key = request.idempotency.as_ref().map(|have| &have.key);
        let version = request.schema_version.as_deref().map(SchemaVersion::as_str);
        let memento = Memento::of_decision(&decision, id, date, key, version);
        let len = put_text(&memento, &mut self.bytes, 0, &mut self.dates);
        &self.bytes[..len]
    }
}

/// Writes the text of an entry at offset `start` of `bytes`, which grow if necessary. Returns the end of the text.
fn put_text(memento: &Memento<'_>, bytes: &mut Vec<u8>, start: usize, dates: &mut TimestampText) -> usize {
    loop {
        if let Some(len) = memento.put_into(&mut bytes[start..], dates) {
            return start + len;
        }
        bytes.resize(2 * bytes.len() + ROOM_MIN, 0);
    }
}

/// The entries of a durable batch that will be hashed.
pub(crate) struct QueuedBatch {
    /// The position after its last entry.
    pub(crate) next: Position,
    pub(crate) unhashed: Unhashed,
    bytes: usize,
}

#[derive(Default)]
struct Waiting {
    batches: VecDeque<QueuedBatch>,
    bytes: usize,
    /// True if batches are accepted. Until then, the hashing thread reads entries from the journal.
    open: bool,
    spare: Vec<Unhashed>,
    /// The size of the last batch, by which the buffers of the next are allocated.
    last: UnhashedMark,
}

/// A queue of batches for the hashing thread, within a budget of bytes.
pub(crate) struct Feed {
    waiting: Mutex<Waiting>,
    fed: Condvar,
    crowded: Condvar,
    taken: Condvar,
    bytes_max: usize,
}

impl Feed {
    /// Creates a closed feed, which accepts no batches.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            fed: Condvar::new(),
            crowded: Condvar::new(),
            taken: Condvar::new(),
            bytes_max,
        }
    }

    /// Accepts batches from now on. The caller must exclude commits meanwhile, so that it knows which batch will be
    /// the first.
    pub(crate) fn open(&self) {
        self.waiting.lock().open = true;
    }

    /// Accepts no more batches, and drops those that wait: the journal holds them.
    pub(crate) fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.open = false;
        waiting.batches.clear();
        waiting.bytes = 0;
        drop(waiting);
        self.taken.notify_all();
    }

    /// Returns an empty buffer for the next batch.
    pub(crate) fn take_buffer(&self) -> Unhashed {
        let mut waiting = self.waiting.lock();
        let UnhashedMark { entries, end } = waiting.last;
        waiting.spare.pop().unwrap_or_else(|| Unhashed {
            entries: Vec::with_capacity(entries),
            bytes: vec![0; end.min(self.spare_bytes_max())],
            ..Unhashed::default()
        })
    }

    /// Adds a durable batch, in commit order. `submitted` is the memory of its requests in bytes.
    pub(crate) fn put(&self, next: Position, unhashed: Unhashed, submitted: usize) {
        let mut waiting = self.waiting.lock();
        if waiting.open {
            let bytes = unhashed.text_bytes() + if unhashed.requests.is_empty() { 0 } else { submitted };
            waiting.bytes += bytes;
            let with_some_more = |count: usize| count + count / 16;
            let UnhashedMark { entries, end } = unhashed.mark();
            waiting.last = UnhashedMark { entries: with_some_more(entries), end: with_some_more(end) };
            waiting.batches.push_back(QueuedBatch { next, unhashed, bytes });
            let crowded = self.is_crowded(&waiting);
            drop(waiting);
            self.fed.notify_one();
            if crowded {
                self.crowded.notify_one();
            }
        } else {
            drop(waiting);
            self.give_back(unhashed);
        }
    }

    /// Returns the oldest batch if all of its entries are before `until`.
    pub(crate) fn take(&self, until: Position) -> Option<QueuedBatch> {
        let mut waiting = self.waiting.lock();
        let batch = waiting.batches.pop_front_if(|batch| batch.next <= until)?;
        waiting.bytes -= batch.bytes;
        drop(waiting);
        self.taken.notify_all();
        Some(batch)
    }

    /// Keeps the buffers of a batch for reuse, unless they grew too large.
    pub(crate) fn give_back(&self, mut unhashed: Unhashed) {
        unhashed.clear();
        let mut waiting = self.waiting.lock();
        if waiting.spare.len() < SPARE_MAX && unhashed.capacity() <= self.spare_bytes_max() {
            waiting.spare.push(unhashed);
        }
    }

    /// Waits up to `timeout` for a batch, and then up to `gather` for more, unless half of the budget is used.
    pub(crate) fn wait(&self, gather: Duration, timeout: Duration) {
        let mut waiting = self.waiting.lock();
        if waiting.batches.is_empty() {
            self.fed.wait_for(&mut waiting, timeout);
        }
        if !waiting.batches.is_empty() && !self.is_crowded(&waiting) {
            self.crowded.wait_for(&mut waiting, gather);
        }
    }

    fn spare_bytes_max(&self) -> usize {
        self.bytes_max / SPARE_MAX
    }

    fn is_crowded(&self, waiting: &Waiting) -> bool {
        waiting.bytes > self.bytes_max / 2
    }

    /// Waits until the used bytes are within the budget, or `stopped` returns `true`.
    pub(crate) fn wait_for_capacity(&self, stopped: impl Fn() -> bool) {
        let mut waiting = self.waiting.lock();
        while waiting.bytes > self.bytes_max && !stopped() {
            self.taken.wait_for(&mut waiting, Duration::from_millis(100));
        }
    }

    /// Wakes the hashing thread, so that it notices when it must end.
    pub(crate) fn wake(&self) {
        drop(self.waiting.lock());
        self.fed.notify_all();
        self.crowded.notify_all();
        self.taken.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::{CreateTransaction, Postings, Reference};

    use super::*;

    fn unhashed(logs: std::ops::Range<u64>) -> Unhashed {
        let mut unhashed = Unhashed::default();
        submit(&mut unhashed, logs);
        unhashed
    }

    /// Adds transactions whose ids equal their log ids, and keeps their requests.
    fn submit(unhashed: &mut Unhashed, logs: std::ops::Range<u64>) {
        let requests = add(unhashed, logs);
        assert!(unhashed.keep(requests).is_empty(), "they are needed");
    }

    /// Adds every third transaction as a text.
    fn add(unhashed: &mut Unhashed, logs: std::ops::Range<u64>) -> Vec<Request> {
        let mut requests = Vec::new();
        let date = Timestamp::from_micros(0);
        for log in logs {
            let id = TransactionId::new(log);
            let reference = Some(Reference::parse(&format!("r{log}")).expect("a reference"));
            let create = CreateTransaction { reference, ..CreateTransaction::of(Postings::new()) };
            if log.is_multiple_of(3) {
                let decision = Decision::Transaction(NewTransaction::of_create(&create, &[], date));
                unhashed.push(1, log, &Memento::of_decision(&decision, id, date, None, None));
            } else {
                unhashed.push_create(1, log, requests.len(), id, date);
            }
            requests.push(Command::CreateTransaction(create).into());
        }
        requests
    }

    fn all(mut unhashed: Unhashed) -> Vec<(ChainId, u64, Vec<u8>)> {
        let mut all = Vec::new();
        let each = |chain, log, text: &[u8]| {
            all.push((chain, log, text.to_vec()));
            Ok::<(), ()>(())
        };
        unhashed.drain(&mut Scratch::default(), each).expect("no error");
        all
    }

    fn at(position: u64) -> Position {
        Position::new(position).expect("positions begin at 1")
    }

    #[test]
    fn reset_restores_the_marked_state() {
        let mut taken_back = unhashed(0..3);
        let mark = taken_back.mark();
        let undone = add(&mut taken_back, 9..12);
        taken_back.reset(mark);
        assert_eq!(taken_back.keep(undone).len(), 3, "nobody needs them");
        submit(&mut taken_back, 3..6);
        let straight = all(unhashed(0..6));
        assert_eq!(all(taken_back), straight);
        let said: Vec<_> = straight.iter().map(|(_, log, text)| (*log, id_in(text))).collect();
        assert_eq!(said, (0..6).map(|log| (log, (log, log))).collect::<Vec<_>>());
    }

    /// Returns the id of the transaction in a text, and the number in its reference.
    fn id_in(text: &[u8]) -> (u64, u64) {
        let text = std::str::from_utf8(text).expect("JSON");
        let number = |name: &str| {
            let (_, after) = text.split_once(name).expect(name);
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().expect("a number")
        };
        (number("\"id\":"), number("\"reference\":\"r"))
    }

    #[test]
    fn a_drained_buffer_is_as_new() {
        let mut used = unhashed(0..6);
        used.drain(&mut Scratch::default(), |_, log, _| if log < 4 { Ok(()) } else { Err(()) })
            .expect_err("at 4");
        used.clear();
        submit(&mut used, 6..9);
        assert_eq!(all(used), all(unhashed(6..9)));
    }

    #[test]
    fn batches_come_out_in_order_once_they_are_published() {
        let feed = Feed::new(1 << 20);
        feed.put(at(3), unhashed(0..2), 0);
        assert!(feed.take(at(3)).is_none(), "what was fed before the feed was open is read from the journal");
        feed.open();
        feed.put(at(5), unhashed(2..4), 0);
        feed.put(at(6), unhashed(4..5), 0);
        assert!(feed.take(at(4)).is_none());
        assert_eq!(feed.take(at(5)).map(|batch| batch.next), Some(at(5)));
        assert!(feed.take(at(5)).is_none());
        assert_eq!(feed.take(at(9)).map(|batch| all(batch.unhashed).len()), Some(1));
    }

    #[test]
    fn full_feed_blocks_until_a_batch_is_taken() {
        let feed = Feed::new(64);
        feed.open();
        feed.put(at(5), unhashed(0..4), 64);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| feed.wait_for_capacity(|| false));
            let batch = feed.take(at(5)).expect("a batch");
            feed.give_back(batch.unhashed);
            waiting.join().expect("it does not wait any longer");
        });
        assert!(feed.take_buffer().capacity() <= 64, "no buffer beyond the budget is kept");
        feed.put(at(6), unhashed(4..8), 64);
        feed.wait_for_capacity(|| true);
    }
}
