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

/// Frees memory before a batch is decided. Begins a flush when the memtable share is full, after the flush before
/// it has ended; until then, delays each batch a little. Adopts flushed data from the index and evicts cached
/// data.
pub(super) fn make_room(engine: &Engine, state: &mut State) {
    let gathered = unflushed_bytes(engine, state);
    if gathered >= engine.shares.memtable {
        // A second concurrent flush would only wait for the first, and memory would hold three times the share.
        if wait_for_flushes(engine) {
            begin_flush(engine, state);
        }
    } else {
        throttle(engine, gathered);
    }
    let view = engine.view();
    if view.next.get() > engine.hashes.next().get() + HASH_LAG_MAX {
        let until = Position::new(view.next.get() - HASH_LAG_MAX).unwrap_or(Position::FIRST);
        engine.hashes.wait(until, || engine.stopped().is_some());
    }
    engine.hashes.feed.wait_for_capacity(|| engine.stopped().is_some());
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
pub(super) fn lack_of_memory(engine: &Engine, state: &State) -> Option<WriteError> {
    let failing = engine.flushes.lock().failing.clone()?;
    if unflushed_bytes(engine, state) < engine.shares.memtable {
        return None;
    }
    Some(if failing.is_disk_full {
        WriteError::DiskNearlyFull
    } else {
        WriteError::Storage(failing.reason.into())
    })
}

/// Returns the number of bytes that no flush covers yet.
fn unflushed_bytes(engine: &Engine, state: &State) -> usize {
    engine.view().bytes_of(state.flush) + state.keys.bytes()
}

pub(super) fn begin_flush(engine: &Engine, state: &mut State) {
    let end = state.next;
    let heads = state.ledgers.take_changed_heads();
    let is_full = unflushed_bytes(engine, state) >= engine.shares.memtable;
    let flush = state.begin_flush();
    let request = FlushRequest { begun: Instant::now(), is_full, flush, end, heads };
    engine.flushes.lock().requests.push_back(request);
    engine.flush_wanted.notify_all();
}

/// Begins a flush of everything that no flush covers yet, if there is anything.
pub(crate) fn flush_pending(engine: &Engine) {
    flush_pending_of(engine, &mut engine.decider.lock());
}

pub(super) fn flush_pending_of(engine: &Engine, state: &mut State) {
    let _stopping = StopOnPanic::new(engine);
    drop(engine.committer.lock());
    if engine.stopped().is_some() {
        // The state may be ahead of the journal or half changed.
        return;
    }
    // While a flush keeps failing, do not queue more of them: memory would grow beyond its bound.
    let is_failing = engine.flushes.lock().failing.is_some();
    if !is_failing && engine.view().memtables.iter().any(|memtable| memtable.flush == state.flush) {
        begin_flush(engine, state);
    }
}

/// Waits until every requested flush is done. Returns `false` if one of them keeps failing.
pub(crate) fn wait_for_flushes(engine: &Engine) -> bool {
    let mut flushes = engine.flushes.lock();
    while !flushes.requests.is_empty() && !flushes.failed && flushes.failing.is_none() {
        engine.flush_done.wait(&mut flushes);
    }
    flushes.failing.is_none()
}

/// Delays a batch while a flush is running, depending on the bytes that have accumulated behind it.
fn throttle(engine: &Engine, gathered: usize) {
    let mut flushes = engine.flushes.lock();
    let Some(begun) = flushes.requests.front().map(|request| request.begun) else { return };
    let until = flushes.pace.wait_until(begun, Instant::now(), gathered, engine.shares.memtable);
    if let Some(until) = until {
        engine.flush_done.wait_until(&mut flushes, until);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::background;
    use crate::engine::flush_requests::Failing;
    use crate::options::Options;

    /// Creates an engine whose flusher does not run, with a requested flush that is expected to take `took`.
    fn flushing(took: Duration) -> Engine {
        let engine = Engine::in_memory(&Options::default());
        begin_flush(&engine, &mut engine.decider.lock());
        engine.flushes.lock().pace.note(took);
        engine
    }

    #[test]
    fn a_batch_waits_its_part_for_a_flush() {
        let began = Instant::now();
        let engine = flushing(Duration::from_millis(40));
        throttle(&engine, 0);
        throttle(&engine, engine.shares.memtable);
        assert!(began.elapsed() >= Duration::from_millis(40));
    }

    #[test]
    fn the_end_of_a_flush_ends_the_wait() {
        let engine = flushing(Duration::from_hours(1));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| throttle(&engine, engine.shares.memtable));
            while !writer.is_finished() {
                engine.flushes.lock().requests.clear();
                engine.flush_done.notify_all();
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn writes_wait_for_the_flush_to_a_new_index() {
        let mut engine = flushing(Duration::from_hours(1));
        engine.shares.memtable = 0;
        let state = engine.decider.lock();
        let failing = Failing { reason: "the index is damaged".to_owned(), is_disk_full: false };
        engine.flushes.lock().failing = Some(failing);
        assert!(lack_of_memory(&engine, &state).is_some(), "memory is full");
        engine.flushes.lock().restart();
        assert!(lack_of_memory(&engine, &state).is_none(), "the flush is tried again");
    }

    #[test]
    fn notes_the_duration_of_a_full_flush() {
        let engine = flushing(Duration::ZERO);
        let mut flushes = engine.flushes.lock();
        flushes.requests[0].is_full = true;
        flushes.stop = true;
        drop(flushes);
        let earlier = Instant::now();
        background::flush_loop(&engine);
        let until = |engine: &Engine| {
            let share = engine.shares.memtable;
            engine.flushes.lock().pace.wait_until(earlier + Duration::from_secs(1), earlier, share, share)
        };
        assert!(until(&engine) > Some(earlier + Duration::from_secs(1)));
    }
}
