//! What the writer hands to the hashing thread: the texts of entries, so that it need not read them back.

use std::collections::VecDeque;
use std::time::Duration;

use ledger_core::{LegacyLog, Memento, TimestampText};
use parking_lot::{Condvar, Mutex};

use super::ChainId;
use crate::journal::Position;

/// So many buffers are kept for the batches to come, each of at most the budget divided by as many.
const SPARE_MAX: usize = 3;

/// Room for texts grows by no less.
const ROOM_MIN: usize = 4 << 10;

/// The text of an entry in [`HashTexts`].
#[derive(Clone, Copy, Debug)]
struct Place {
    chain: ChainId,
    log: u64,
    end: usize,
}

/// What is to be hashed of a batch: the texts of its entries, in order.
#[derive(Debug, Default)]
pub(crate) struct HashTexts {
    places: Vec<Place>,
    /// Longer than the texts, so that the next is put where there is room already.
    bytes: Vec<u8>,
    dates: TimestampText,
}

/// A place to return to, see [`HashTexts::mark`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextMark(usize);

impl HashTexts {
    fn with_room(places: usize, bytes: usize) -> Self {
        Self { places: Vec::with_capacity(places), bytes: vec![0; bytes], dates: TimestampText::default() }
    }

    /// Adds what the wire's chain hashes of an entry.
    pub(crate) fn push(&mut self, ledger: u32, log: u64, memento: &Memento<'_>) {
        let start = self.len();
        let len = loop {
            if let Some(len) = memento.put_into(&mut self.bytes[start..], &mut self.dates) {
                break len;
            }
            self.bytes.resize(2 * self.bytes.len() + ROOM_MIN, 0);
        };
        self.places.push(Place { chain: ChainId::wire(ledger), log, end: start + len });
    }

    /// Adds what the chain of the first generation hashes of an entry.
    pub(crate) fn push_legacy(&mut self, ledger: u32, log: u64, entry: &LegacyLog<'_>) {
        self.bytes.truncate(self.len());
        entry.write_to("", &mut self.bytes);
        self.places.push(Place { chain: ChainId::legacy(ledger), log, end: self.bytes.len() });
    }

    /// Remembers this state, to return to with [`HashTexts::reset`].
    pub(crate) fn mark(&self) -> TextMark {
        TextMark(self.places.len())
    }

    /// Drops what was added since the mark.
    pub(crate) fn reset(&mut self, TextMark(count): TextMark) {
        self.places.truncate(count);
    }

    /// Chain, log and text of each entry, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ChainId, u64, &[u8])> {
        let mut start = 0;
        self.places.iter().map(move |place| {
            let text = &self.bytes[start..place.end];
            start = place.end;
            (place.chain, place.log, text)
        })
    }

    /// Bytes of all texts.
    fn len(&self) -> usize {
        self.places.last().map_or(0, |place| place.end)
    }

    fn size(&self) -> usize {
        self.len() + self.places.len() * size_of::<Place>()
    }

    fn clear(&mut self) {
        self.places.clear();
    }
}

/// The texts of a batch that is on disk.
pub(crate) struct FedBatch {
    /// The position after its last entry.
    pub(crate) next: Position,
    pub(crate) texts: HashTexts,
}

#[derive(Default)]
struct Waiting {
    batches: VecDeque<FedBatch>,
    bytes: usize,
    /// Whether texts are taken. Before, the hashing thread reads entries from the journal.
    open: bool,
    spare: Vec<HashTexts>,
    /// What the last batch took: the next will be alike, and a text that grows is copied again and again.
    last: (usize, usize),
}

/// Batches on their way to the hashing thread, within a budget of bytes.
pub(crate) struct Feed {
    waiting: Mutex<Waiting>,
    fed: Condvar,
    crowded: Condvar,
    taken: Condvar,
    bytes_max: usize,
}

impl Feed {
    /// Takes nothing before it is opened.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            fed: Condvar::new(),
            crowded: Condvar::new(),
            taken: Condvar::new(),
            bytes_max,
        }
    }

    /// From now on batches are taken. The caller sees to it that none is committed meanwhile, so that it knows
    /// which is the first.
    pub(crate) fn open(&self) {
        self.waiting.lock().open = true;
    }

    /// A buffer for the next batch.
    pub(crate) fn buffer(&self) -> HashTexts {
        let mut waiting = self.waiting.lock();
        let (places, bytes) = waiting.last;
        waiting.spare.pop().unwrap_or_else(|| HashTexts::with_room(places, bytes.min(self.spare_bytes_max())))
    }

    /// Hands over a batch that is on disk, in order of the batches.
    pub(crate) fn put(&self, next: Position, texts: HashTexts) {
        let mut waiting = self.waiting.lock();
        if waiting.open {
            waiting.bytes += texts.size();
            let with_some_more = |count: usize| count + count / 16;
            waiting.last = (with_some_more(texts.places.len()), with_some_more(texts.len()));
            waiting.batches.push_back(FedBatch { next, texts });
            let crowded = self.is_crowded(&waiting);
            drop(waiting);
            self.fed.notify_one();
            if crowded {
                self.crowded.notify_one();
            }
        } else {
            drop(waiting);
            self.give_back(texts);
        }
    }

    /// The oldest batch, if its entries are before `until`.
    pub(crate) fn take(&self, until: Position) -> Option<FedBatch> {
        let mut waiting = self.waiting.lock();
        let batch = waiting.batches.pop_front_if(|batch| batch.next <= until)?;
        waiting.bytes -= batch.texts.size();
        drop(waiting);
        self.taken.notify_all();
        Some(batch)
    }

    /// Keeps the buffer of a batch for another, unless it grew too large.
    pub(crate) fn give_back(&self, mut texts: HashTexts) {
        texts.clear();
        let mut waiting = self.waiting.lock();
        if waiting.spare.len() < SPARE_MAX && texts.bytes.capacity() <= self.spare_bytes_max() {
            waiting.spare.push(texts);
        }
    }

    /// Waits for a batch up to `timeout`, and then up to `gather` for more, unless half of the budget is used.
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

    /// Waits until less than the budget is used, or `stopped` says so.
    pub(crate) fn wait_for_room(&self, stopped: impl Fn() -> bool) {
        let mut waiting = self.waiting.lock();
        while waiting.bytes > self.bytes_max && !stopped() {
            self.taken.wait_for(&mut waiting, Duration::from_millis(100));
        }
    }

    /// Wakes the hashing thread, so that it sees that it is to end.
    pub(crate) fn wake(&self) {
        drop(self.waiting.lock());
        self.fed.notify_all();
        self.crowded.notify_all();
        self.taken.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::{Decision, Memento, Metadata, Target, Timestamp, TransactionId};

    use super::*;

    fn texts(logs: std::ops::Range<u64>) -> HashTexts {
        let mut texts = HashTexts::default();
        for log in logs {
            push(&mut texts, log);
        }
        texts
    }

    fn push(texts: &mut HashTexts, log: u64) {
        let target = Target::Transaction(TransactionId::new(log));
        let decision = Decision::SetMetadata { target, metadata: Metadata::EMPTY };
        let (id, date) = (TransactionId::new(0), Timestamp::from_micros(0));
        let memento = Memento::of_decision(&decision, id, date, None, None);
        texts.push(1, log, &memento);
    }

    fn at(position: u64) -> Position {
        Position::new(position).expect("positions begin at 1")
    }

    #[test]
    fn what_is_taken_back_leaves_the_texts_before_it() {
        let mut taken_back = texts(0..3);
        let mark = taken_back.mark();
        push(&mut taken_back, 9);
        push(&mut taken_back, 10);
        taken_back.reset(mark);
        push(&mut taken_back, 3);
        let straight = texts(0..4);
        assert_eq!(taken_back.iter().collect::<Vec<_>>(), straight.iter().collect::<Vec<_>>());
        assert_eq!(straight.iter().map(|(_, log, _)| log).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn batches_come_out_in_order_once_they_are_published() {
        let feed = Feed::new(1 << 20);
        feed.put(at(3), texts(0..2));
        assert!(feed.take(at(3)).is_none(), "what was fed before the feed was open is read from the journal");
        feed.open();
        feed.put(at(5), texts(2..4));
        feed.put(at(6), texts(4..5));
        assert!(feed.take(at(4)).is_none());
        assert_eq!(feed.take(at(5)).map(|batch| batch.next), Some(at(5)));
        assert!(feed.take(at(5)).is_none());
        assert_eq!(feed.take(at(9)).map(|batch| batch.texts.iter().count()), Some(1));
    }

    #[test]
    fn who_feeds_too_much_waits_until_it_is_taken() {
        let feed = Feed::new(64);
        feed.open();
        feed.put(at(5), texts(0..4));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| feed.wait_for_room(|| false));
            let batch = feed.take(at(5)).expect("a batch");
            feed.give_back(batch.texts);
            waiting.join().expect("it does not wait any longer");
        });
        assert!(feed.buffer().bytes.capacity() <= 64, "a buffer beyond the budget is not kept");
        feed.put(at(6), texts(4..8));
        feed.wait_for_room(|| true);
    }
}
