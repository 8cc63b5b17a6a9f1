//! The clock of the tasks.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use ledger_core::Timestamp;

use crate::log;

/// Tells the time and waits. Tests move their clock by hand.
pub(crate) trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Waits for this duration.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The clock of the system.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        log::now()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[cfg(test)]
pub(crate) mod manual {
    //! A clock that only moves when a test advances it.

    use std::sync::{Arc, Mutex};

    use tokio::sync::oneshot;

    use super::*;

    #[derive(Default)]
    struct State {
        now: i64,
        waiting: Vec<(i64, oneshot::Sender<()>)>,
    }

    #[derive(Clone, Default)]
    pub(crate) struct ManualClock(Arc<Mutex<State>>);

    impl ManualClock {
        /// Advances the clock, and wakes the tasks whose waits are over.
        pub(crate) fn advance(&self, duration: Duration) {
            let mut state = self.0.lock().expect("no panic");
            state.now += duration.as_micros() as i64;
            let now = state.now;
            let waiting = std::mem::take(&mut state.waiting);
            for (until, wake) in waiting {
                if until <= now {
                    // A failed send means that the waiting task was stopped.
                    let _ = wake.send(());
                } else {
                    state.waiting.push((until, wake));
                }
            }
        }

        /// Returns the number of waiting tasks.
        pub(crate) fn waiting(&self) -> usize {
            let mut state = self.0.lock().expect("no panic");
            state.waiting.retain(|(_, wake)| !wake.is_closed());
            state.waiting.len()
        }
    }

    impl Clock for ManualClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0.lock().expect("no panic").now)
        }

        fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            let mut state = self.0.lock().expect("no panic");
            let until = state.now + duration.as_micros() as i64;
            let (wake, woken) = oneshot::channel();
            if until <= state.now {
                let _ = wake.send(());
            } else {
                state.waiting.push((until, wake));
            }
            Box::pin(async move {
                let _ = woken.await;
            })
        }
    }
}
