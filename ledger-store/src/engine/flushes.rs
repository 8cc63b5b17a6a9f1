//! Decides when flushes begin and how long the writer waits for them.

use std::time::Instant;

use ledger_journal::Position;

use super::Engine;
use super::flush_requests::FlushRequest;
use super::panics::StopOnPanic;
use crate::error::WriteError;
use crate::writer::State;

/// Maximum number of published entries that the hashing thread may lag behind before the writer waits for it. It
/// applies while the thread reads entries from the journal. A budget of bytes bounds the texts that it receives
/// directly.
const HASH_LAG_MAX: u64 = 2_000_000;

impl Engine {
    /// Frees memory before a batch is decided. Begins a flush when the memtable share is full, after the flush before
    /// it has ended; until then, delays each batch a little. Adopts flushed data from the index and evicts cached
    /// data.
    pub(super) fn make_room(&self, state: &mut State) {
        let gathered = self.gathered(state);
        if gathered >= self.shares.memtable {
            // A second concurrent flush would only wait for the first, and memory would hold three times the share.
            if self.wait_for_flushes() {
                self.begin_flush(state);
            }
        } else {
            self.keep_pace(gathered);
        }
        let view = self.view();
        if view.next.get() > self.hashes.next().get() + HASH_LAG_MAX {
            let until = Position::new(view.next.get() - HASH_LAG_MAX).unwrap_or(Position::FIRST);
            self.hashes.wait(until, || self.stopped().is_some());
        }
        self.hashes.feed.wait_for_room(|| self.stopped().is_some());
        // If the index cannot be read, the state keeps the older snapshot, which is just as correct. The next batch
        // tries again.
        if view.generation != state.generation() {
            let _ = state.adopt_file(&view.index, view.generation, view.flushed);
        } else if view.flushed > state.flushed() {
            let _ = state.adopt(&view.index, view.flushed);
        }
        state.evict();
    }

    /// Returns the reason to refuse writes for lack of memory, if there is one: the memtable share is full and the
    /// flush before it keeps failing. The caller asks before it decides anything, so refused work has no effect.
    pub(super) fn lack_of_memory(&self, state: &State) -> Option<WriteError> {
        let failing = self.flushes.lock().failing.clone()?;
        if self.gathered(state) < self.shares.memtable {
            return None;
        }
        Some(if failing.is_disk_full {
            WriteError::DiskNearlyFull
        } else {
            WriteError::Storage { reason: failing.reason }
        })
    }

    /// Returns the number of bytes that no flush covers yet.
    fn gathered(&self, state: &State) -> usize {
        self.view().bytes_of(state.flush) + state.keys.bytes()
    }

    pub(super) fn begin_flush(&self, state: &mut State) {
        let end = state.next;
        let heads = state.ledgers.take_changed_heads();
        let is_full = self.gathered(state) >= self.shares.memtable;
        let flush = state.begin_flush();
        let request = FlushRequest { begun: Instant::now(), is_full, flush, end, heads };
        self.flushes.lock().requests.push_back(request);
        self.flush_wanted.notify_all();
    }

    /// Begins a flush of everything that no flush covers yet, if there is anything.
    pub(crate) fn flush_what_gathered(&self) {
        self.flush_gathered(&mut self.decider.lock());
    }

    pub(super) fn flush_gathered(&self, state: &mut State) {
        let _stopping = StopOnPanic::new(self);
        drop(self.committer.lock());
        if self.stopped().is_some() {
            // The state may be ahead of the journal or half changed.
            return;
        }
        // While a flush keeps failing, do not queue more of them: memory would grow beyond its bound.
        let is_failing = self.flushes.lock().failing.is_some();
        if !is_failing && self.view().memtables.iter().any(|memtable| memtable.flush == state.flush) {
            self.begin_flush(state);
        }
    }

    /// Marks flushing as ended for good, and wakes the threads that wait for a flush.
    pub(super) fn fail_flushes(&self) {
        self.flushes.lock().failed = true;
        self.flush_done.notify_all();
    }

    /// Waits until every requested flush is done. Returns `false` if one of them keeps failing.
    pub(crate) fn wait_for_flushes(&self) -> bool {
        let mut flushes = self.flushes.lock();
        while !flushes.requests.is_empty() && !flushes.failed && flushes.failing.is_none() {
            self.flush_done.wait(&mut flushes);
        }
        flushes.failing.is_none()
    }

    /// Delays a batch while a flush is running, depending on the bytes that have accumulated behind it.
    fn keep_pace(&self, gathered: usize) {
        let mut flushes = self.flushes.lock();
        let Some(begun) = flushes.requests.front().map(|request| request.begun) else { return };
        let until = flushes.pace.wait_until(begun, Instant::now(), gathered, self.shares.memtable);
        if let Some(until) = until {
            self.flush_done.wait_until(&mut flushes, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::options::Options;

    /// Creates an engine whose flusher does not run, with a requested flush that is expected to take `took`.
    fn flushing(took: Duration) -> Engine {
        let engine = Engine::in_memory(&Options::default());
        engine.begin_flush(&mut engine.decider.lock());
        engine.flushes.lock().pace.note(took);
        engine
    }

    #[test]
    fn a_batch_waits_its_part_for_a_flush() {
        let began = Instant::now();
        let engine = flushing(Duration::from_millis(40));
        engine.keep_pace(0);
        engine.keep_pace(engine.shares.memtable);
        assert!(began.elapsed() >= Duration::from_millis(40));
    }

    #[test]
    fn the_end_of_a_flush_ends_the_wait() {
        let engine = flushing(Duration::from_hours(1));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| engine.keep_pace(engine.shares.memtable));
            while !writer.is_finished() {
                engine.flushes.lock().requests.clear();
                engine.flush_done.notify_all();
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn what_a_full_flush_took_is_noted() {
        let engine = flushing(Duration::ZERO);
        let mut flushes = engine.flushes.lock();
        flushes.requests[0].is_full = true;
        flushes.stop = true;
        drop(flushes);
        let earlier = Instant::now();
        engine.flush_loop();
        let until = |engine: &Engine| {
            let share = engine.shares.memtable;
            engine.flushes.lock().pace.wait_until(earlier + Duration::from_secs(1), earlier, share, share)
        };
        assert!(until(&engine) > Some(earlier + Duration::from_secs(1)));
    }
}
