//! A pool of bytes that may be in memory at once.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::oneshot;

use crate::limits::STREAM_WAIT;

/// A maximum number of bytes that may be in memory at once. Cheap to clone.
///
/// An unused pool grants a reservation of any size, so that nothing is refused for its size alone. Freed bytes go to the
/// requests that have waited longest, but a small request does not wait behind a large one for which too few are free.
#[derive(Clone, Debug)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    /// Oldest first.
    waiting: Vec<Waiting>,
}

/// A request that waits for bytes.
#[derive(Debug)]
struct Waiting {
    wanted: Shortfall,
    grant: oneshot::Sender<Reservation>,
}

/// The bytes that a reservation lacks.
#[derive(Clone, Copy, Debug)]
struct Shortfall {
    more: usize,
    /// Number of bytes that the reservation has already.
    own: usize,
}

/// Reserved bytes of a pool. Dropping this returns them.
#[derive(Debug)]
pub(crate) struct Reservation {
    pool: Arc<Shared>,
    bytes: usize,
}

impl Pool {
    /// Creates a pool of this many bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self(Arc::new(Shared { max, state: Mutex::default() }))
    }

    /// Returns whether all bytes are in use.
    pub(crate) fn is_full(&self) -> bool {
        self.0.lock().used >= self.0.max
    }

    /// Returns an empty reservation, which can grow.
    pub(crate) fn nothing(&self) -> Reservation {
        self.0.held(0)
    }

    /// Reserves bytes if enough are free.
    pub(crate) fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let mut held = self.nothing();
        held.try_grow_to(bytes).then_some(held)
    }

    /// Reserves bytes even if not enough are free.
    pub(crate) fn reserve_beyond_limit(&self, bytes: usize) -> Reservation {
        self.0.lock().used += bytes;
        self.0.held(bytes)
    }

    /// Waits until bytes are free, for at most this long, and reserves them.
    pub(crate) async fn take(&self, bytes: usize, timeout: Duration) -> Option<Reservation> {
        let mut held = self.nothing();
        held.grow_to(bytes, timeout).await.then_some(held)
    }

    /// Waits without a limit until bytes are free, and reserves them.
    pub(crate) async fn wait(&self, bytes: usize) -> Reservation {
        loop {
            if let Some(held) = self.take(bytes, STREAM_WAIT).await {
                return held;
            }
        }
    }
}

impl Reservation {
    /// Grows the reservation to this many bytes, if enough are free. Returns whether it has grown.
    pub(crate) fn try_grow_to(&mut self, bytes: usize) -> bool {
        let wanted = self.shortfall(bytes);
        let is_granted = self.pool.lock().grant(wanted, self.pool.max);
        if is_granted {
            self.bytes += wanted.more;
        }
        is_granted
    }

    /// Waits, for at most this long, until the reservation can grow to this many bytes. Returns whether it has grown.
    pub(crate) async fn grow_to(&mut self, bytes: usize, timeout: Duration) -> bool {
        let wanted = self.shortfall(bytes);
        let Some(granted) = self.pool.grant_or_queue(wanted) else {
            self.bytes += wanted.more;
            return true;
        };
        // After the timeout the receiver is dropped, and with it a grant that has come too late.
        match tokio::time::timeout(timeout, granted).await {
            Ok(Ok(mut more)) => {
                self.bytes += mem::take(&mut more.bytes);
                true
            }
            _ => false,
        }
    }

    /// Changes the reservation to this many bytes, even if not enough are free.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes >= self.bytes {
            self.pool.lock().used += bytes - self.bytes;
        } else {
            self.pool.release(self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// Returns the bytes together with the reservation, which ends when they are dropped.
    pub(crate) fn keep(mut self, bytes: Bytes) -> Bytes {
        self.set(bytes.len());
        Bytes::from_owner(ReservedBytes { bytes, _held: self })
    }

    fn shortfall(&self, bytes: usize) -> Shortfall {
        Shortfall { more: bytes.saturating_sub(self.bytes), own: self.bytes }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.pool.release(self.bytes);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(self: &Arc<Self>, bytes: usize) -> Reservation {
        Reservation { pool: Arc::clone(self), bytes }
    }

    /// Reserves bytes at once and returns `None`, or returns the receiver of the bytes.
    fn grant_or_queue(&self, wanted: Shortfall) -> Option<oneshot::Receiver<Reservation>> {
        let mut state = self.lock();
        if state.grant(wanted, self.max) {
            return None;
        }
        let (grant, granted) = oneshot::channel();
        state.drop_cancelled();
        state.waiting.push(Waiting { wanted, grant });
        Some(granted)
    }

    /// Frees bytes, and gives them to requests that wait. Only requests that get theirs wake up: if all did, hundreds of
    /// them would delay every other request of their thread.
    fn release(self: &Arc<Self>, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut state = self.lock();
        state.used -= bytes;
        let granted = state.grant_waiting(self.max);
        drop(state);
        for Waiting { wanted, grant } in granted {
            // If the request has just left, its bytes come back with the error.
            drop(grant.send(self.held(wanted.more)));
        }
    }
}

impl State {
    /// Reserves bytes if enough are free. Returns whether it has.
    fn grant(&mut self, Shortfall { more, own }: Shortfall, max: usize) -> bool {
        let used = self.used.saturating_add(more);
        let fits = used <= max || self.used == own;
        if fits {
            self.used = used;
        }
        fits
    }

    /// Reserves bytes for requests that wait, oldest first, and returns these requests.
    fn grant_waiting(&mut self, max: usize) -> Vec<Waiting> {
        self.drop_cancelled();
        let mut waiting = mem::take(&mut self.waiting);
        let granted = waiting.extract_if(.., |one| self.grant(one.wanted, max)).collect();
        self.waiting = waiting;
        granted
    }

    /// Drops requests that no longer wait.
    fn drop_cancelled(&mut self) {
        self.waiting.retain(|one| !one.grant.is_closed());
    }
}

/// Bytes with their reservation.
struct ReservedBytes {
    bytes: Bytes,
    _held: Reservation,
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;

    const SOON: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn pool_gives_what_it_has_and_gets_it_back() {
        let pool = Pool::new(10);
        let first = pool.try_reserve(6).expect("it fits");
        assert!(pool.try_reserve(5).is_none());
        let second = pool.try_reserve(4).expect("it fits exactly");
        assert!(pool.is_full() && pool.try_reserve(1).is_none());
        drop(first);
        assert!(!pool.is_full() && pool.try_reserve(7).is_none());
        let mut held = pool.try_reserve(6).expect("it is free again");
        assert!(!held.try_grow_to(7));
        drop(second);
        assert!(held.try_grow_to(10) && pool.is_full());
        held.set(2);
        let beyond = pool.reserve_beyond_limit(20);
        assert!(pool.is_full());
        drop((held, beyond));
        assert_eq!(pool.0.lock().used, 0);
    }

    #[test]
    fn empty_pool_gives_any_number() {
        let pool = Pool::new(10);
        let mut only = pool.try_reserve(100).expect("nobody else has any");
        assert!(pool.try_reserve(1).is_none());
        assert!(only.try_grow_to(200), "it still is the only one");
    }

    #[tokio::test]
    async fn waits_until_somebody_gives_back() {
        let pool = Pool::new(10);
        let first = pool.try_reserve(8).expect("it fits");
        assert!(pool.take(4, SOON).await.is_none());
        let other = pool.clone();
        let waiting = tokio::spawn(async move { other.take(4, LONG).await });
        tokio::task::yield_now().await;
        drop(first);
        assert!(waiting.await.expect("no panic").is_some());
    }

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A task that takes bytes, and is polled once.
    struct PendingReservation {
        future: Pin<Box<dyn Future<Output = Option<Reservation>>>>,
        wakes: Arc<WakeCounter>,
    }

    impl PendingReservation {
        fn begin(pool: &Pool, bytes: usize) -> Self {
            let pool = pool.clone();
            let future = Box::pin(async move { pool.take(bytes, LONG).await });
            let mut taking = Self { future, wakes: Arc::default() };
            assert!(taking.poll().is_pending(), "too few bytes are free");
            taking
        }

        fn poll(&mut self) -> Poll<Option<Reservation>> {
            let waker = Waker::from(Arc::clone(&self.wakes));
            self.future.as_mut().poll(&mut Context::from_waker(&waker))
        }

        fn is_woken(&self) -> bool {
            self.wakes.0.load(Ordering::Relaxed) > 0
        }
    }

    #[tokio::test]
    async fn wakes_only_requests_that_get_bytes() {
        let pool = Pool::new(10);
        let all = pool.reserve_beyond_limit(10);
        let mut waiting = [6, 6, 4].map(|bytes| PendingReservation::begin(&pool, bytes));
        drop(all);
        assert_eq!(waiting.each_ref().map(PendingReservation::is_woken), [true, false, true]);
        let Poll::Ready(Some(first)) = waiting[0].poll() else { panic!("the first has its bytes") };
        assert!(pool.try_reserve(1).is_none(), "the third has its bytes, too");
        drop(first);
        assert!(waiting[1].is_woken() && waiting[1].poll().is_ready());
    }

    #[tokio::test]
    async fn requests_that_leave_take_no_bytes() {
        let pool = Pool::new(10);
        let all = pool.reserve_beyond_limit(10);
        let [left, leaving, mut last] = [10, 6, 10].map(|bytes| PendingReservation::begin(&pool, bytes));
        drop(left);
        drop(all);
        assert!(leaving.is_woken() && !last.is_woken());
        // It leaves between its grant and its next step.
        drop(leaving);
        assert!(last.is_woken());
        drop(last.poll());
        let state = pool.0.lock();
        assert_eq!((state.used, state.waiting.len()), (0, 0));
    }

    #[test]
    fn sent_bytes_return_to_the_pool() {
        let pool = Pool::new(10);
        let bytes = pool.reserve_beyond_limit(3).keep(Bytes::from_static(b"0123456789"));
        let rest = bytes.slice(4..);
        drop(bytes);
        assert!(pool.is_full(), "a part of them is still there");
        assert_eq!(rest, "456789");
        drop(rest);
        assert!(!pool.is_full());
    }
}
