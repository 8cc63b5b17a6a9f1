//! Limits the memory for request bodies that arrive, requests in progress, responses and events that clients have not
//! read yet, and long heads.
//!
//! The operator's budget is divided into pools, so that one kind of bytes never uses the memory of another. Small requests
//! are not counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::http::error::ApiError;
use crate::limits::{
    ANSWER_WAIT, ANSWERS_WAITING_MAX, BODY_WAIT, DISCARDS_MAX, STREAM_WAIT, WORK_FACTOR, WORK_WAIT,
};

/// The memory pools of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// Bodies of requests until they are answered, and the collected part of imports.
    pub(crate) bodies: Pool,
    /// Commands and results of large requests.
    pub(crate) work: Pool,
    /// Responses until the client has read them.
    pub(crate) answers: Pool,
    /// Parts of exports and of event streams until the client has read them.
    pub(crate) streams: Pool,
    /// The part of long heads beyond the usual size.
    pub(crate) heads: Pool,
    /// Slots for responses that wait for memory.
    waiting: Arc<Semaphore>,
    /// Slots for refused bodies that are read and discarded.
    pub(crate) discards: Arc<Semaphore>,
}

impl Memory {
    /// Divides a budget of this many bytes into pools.
    pub(crate) fn new(bytes: usize) -> Self {
        let part = |sixteenths: usize| Pool::new(bytes / 16 * sixteenths);
        Self {
            bodies: part(6),
            work: part(4),
            answers: part(3),
            streams: part(2),
            heads: part(1),
            waiting: Arc::new(Semaphore::new(ANSWERS_WAITING_MAX)),
            discards: Arc::new(Semaphore::new(DISCARDS_MAX)),
        }
    }

    /// Waits for memory for a body.
    ///
    /// # Errors
    ///
    /// 503 if no memory is free within [`BODY_WAIT`].
    pub(crate) async fn body(&self, bytes: usize) -> Result<Held, ApiError> {
        self.bodies.take(bytes, BODY_WAIT).await.ok_or_else(too_many_bodies)
    }

    /// Waits for memory for a large request whose body has arrived.
    ///
    /// # Errors
    ///
    /// 503 if no memory is free within [`WORK_WAIT`], or if too many responses wait for their clients. The request has not
    /// changed anything then.
    pub(crate) async fn request(&self, body: usize) -> Result<Held, ApiError> {
        if self.answers.is_full() {
            return Err(too_many_answers());
        }
        self.work(body).await
    }

    /// Waits for memory for the commands and the results of a body of this length.
    ///
    /// # Errors
    ///
    /// 503 if no memory is free within [`WORK_WAIT`].
    pub(crate) async fn work(&self, body: usize) -> Result<Held, ApiError> {
        let held = self.work.take(body.saturating_mul(WORK_FACTOR), WORK_WAIT).await;
        held.ok_or_else(|| ApiError::busy("too many large requests are at work"))
    }

    /// Waits for memory for the response to a request that changed nothing.
    ///
    /// # Errors
    ///
    /// 503 if no memory is free within [`ANSWER_WAIT`], or too many responses wait already.
    pub(crate) async fn answer(&self, bytes: usize) -> Result<Held, ApiError> {
        if let Some(held) = self.answers.try_take(bytes) {
            return Ok(held);
        }
        // A waiting response is in memory already, so only a few may wait.
        let Ok(_waiting) = self.waiting.try_acquire() else { return Err(too_many_answers()) };
        self.answers.take(bytes, ANSWER_WAIT).await.ok_or_else(too_many_answers)
    }
}

/// The error for a body for which there is no memory.
pub(crate) fn too_many_bodies() -> ApiError {
    ApiError::busy("too many large bodies are arriving")
}

fn too_many_answers() -> ApiError {
    ApiError::busy("too many large answers wait for their clients")
}

/// A maximum number of bytes that may be in memory at once. Cheap to clone.
///
/// An unused pool grants a reservation of any size, so that nothing is refused for its size alone.
#[derive(Clone, Debug)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    used: AtomicUsize,
    /// Wakes all tasks that wait for bytes.
    freed: Notify,
}

/// Reserved bytes of a pool. Dropping this returns them.
#[derive(Debug)]
pub(crate) struct Held {
    pool: Arc<Shared>,
    bytes: usize,
}

impl Pool {
    /// Creates a pool of this many bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self(Arc::new(Shared { max, used: AtomicUsize::new(0), freed: Notify::new() }))
    }

    /// Whether all bytes are in use.
    pub(crate) fn is_full(&self) -> bool {
        self.0.used.load(Ordering::Relaxed) >= self.0.max
    }

    /// Returns an empty reservation, which can grow.
    pub(crate) fn nothing(&self) -> Held {
        Held { pool: Arc::clone(&self.0), bytes: 0 }
    }

    /// Reserves bytes if enough are free.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Held> {
        let mut held = self.nothing();
        held.try_reach(bytes).then_some(held)
    }

    /// Reserves bytes even if not enough are free.
    pub(crate) fn take_anyway(&self, bytes: usize) -> Held {
        self.0.used.fetch_add(bytes, Ordering::Relaxed);
        Held { pool: Arc::clone(&self.0), bytes }
    }

    /// Waits until bytes are free, for at most this long, and reserves them.
    pub(crate) async fn take(&self, bytes: usize, timeout: Duration) -> Option<Held> {
        let mut held = self.nothing();
        held.reach(bytes, timeout).await.then_some(held)
    }

    /// Waits without a limit until bytes are free, and reserves them.
    pub(crate) async fn wait(&self, bytes: usize) -> Held {
        loop {
            if let Some(held) = self.take(bytes, STREAM_WAIT).await {
                return held;
            }
        }
    }
}

impl Held {
    /// Grows the reservation to this many bytes, if enough are free. Returns whether it has grown.
    pub(crate) fn try_reach(&mut self, bytes: usize) -> bool {
        let Shared { max, used, .. } = &*self.pool;
        let (own, more) = (self.bytes, bytes.saturating_sub(self.bytes));
        let fits = |used: usize| {
            let wanted = used.saturating_add(more);
            (wanted <= *max || used == own).then_some(wanted)
        };
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if taken {
            self.bytes += more;
        }
        taken
    }

    /// Waits, for at most this long, until the reservation can grow to this many bytes. Returns whether it has grown.
    pub(crate) async fn reach(&mut self, bytes: usize, timeout: Duration) -> bool {
        if self.try_reach(bytes) {
            return true;
        }
        let pool = Arc::clone(&self.pool);
        let deadline = Instant::now() + timeout;
        loop {
            let mut freed = std::pin::pin!(pool.freed.notified());
            // Register before the attempt, so that no release in between is missed.
            freed.as_mut().enable();
            if self.try_reach(bytes) {
                return true;
            }
            if tokio::time::timeout_at(deadline, freed).await.is_err() {
                return false;
            }
        }
    }

    /// Changes the reservation to this many bytes, even if not enough are free.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes >= self.bytes {
            self.pool.used.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.pool.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// Returns the bytes together with the reservation, which ends when they are dropped.
    pub(crate) fn keep(mut self, bytes: Bytes) -> Bytes {
        self.set(bytes.len());
        Bytes::from_owner(Kept { bytes, _held: self })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.pool.give_back(self.bytes);
    }
}

impl Shared {
    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.freed.notify_waiters();
    }
}

/// Bytes with their reservation.
struct Kept {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn pool_gives_what_it_has_and_gets_it_back() {
        let pool = Pool::new(10);
        let first = pool.try_take(6).expect("it fits");
        assert!(pool.try_take(5).is_none());
        let second = pool.try_take(4).expect("it fits exactly");
        assert!(pool.is_full() && pool.try_take(1).is_none());
        drop(first);
        assert!(!pool.is_full() && pool.try_take(7).is_none());
        let mut held = pool.try_take(6).expect("it is free again");
        assert!(!held.try_reach(7));
        drop(second);
        assert!(held.try_reach(10) && pool.is_full());
        held.set(2);
        let beyond = pool.take_anyway(20);
        assert!(pool.is_full());
        drop((held, beyond));
        assert_eq!(pool.0.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn empty_pool_gives_any_number() {
        let pool = Pool::new(10);
        let mut only = pool.try_take(100).expect("nobody else has any");
        assert!(pool.try_take(1).is_none());
        assert!(only.try_reach(200), "it still is the only one");
    }

    #[tokio::test]
    async fn waits_until_somebody_gives_back() {
        let pool = Pool::new(10);
        let first = pool.try_take(8).expect("it fits");
        assert!(pool.take(4, SOON).await.is_none());
        let other = pool.clone();
        let waiting = tokio::spawn(async move { other.take(4, LONG).await });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waiting.await.expect("no panic").is_some());
    }

    #[test]
    fn sent_bytes_return_to_the_pool() {
        let pool = Pool::new(10);
        let bytes = pool.take_anyway(3).keep(Bytes::from_static(b"0123456789"));
        let rest = bytes.slice(4..);
        drop(bytes);
        assert!(pool.is_full(), "a part of them is still there");
        assert_eq!(rest, "456789");
        drop(rest);
        assert!(!pool.is_full());
    }

    #[tokio::test]
    async fn few_answers_wait_for_memory() {
        let memory = Memory::new(16);
        let all = memory.answers.take_anyway(3);
        let waiting: Vec<_> = (0..ANSWERS_WAITING_MAX)
            .map(|_| {
                let memory = memory.clone();
                tokio::spawn(async move { memory.answer(1).await.is_ok() })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(memory.answer(1).await.is_err_and(|error| error.transient), "no slot to wait in");
        assert!(memory.request(1).await.is_err(), "a request would add to them");
        drop(all);
        for waiting in waiting {
            assert!(waiting.await.expect("no panic"));
        }
    }
}
