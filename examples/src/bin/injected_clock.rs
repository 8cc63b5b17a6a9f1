//! Tests an application with a clock that the test sets: holds of a booking expire after a day.
//!
//! ```text
//! held at 2024-05-01T12:00:00Z: 1 hold
//! an hour later: 0 expired
//! a day later: 1 expired
//! again: 0 expired
//! guests:7 has 500 again
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ledger_store::TimeSource;
use ledger_store::prelude::*;

/// A clock that the test sets, in microseconds since 1970.
#[derive(Debug, Default)]
struct SetClock(AtomicI64);

impl SetClock {
    fn set(&self, time: Timestamp) {
        self.0.store(time.as_micros(), Ordering::Relaxed);
    }
}

impl TimeSource for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed))
    }
}

/// The application. It reads the time from the store's clock, so a test sets one clock for both.
struct Bookings {
    ledger: Ledger,
    clock: Arc<dyn TimeSource>,
}

const HOLD: Duration = Duration::from_hours(24);

impl Bookings {
    fn hold(&self, guest: &str, amount: u64) -> Result<TransactionId, LedgerError> {
        let hold =
            self.ledger.transaction().posting(guest, "holds", amount, "EUR/2").metadata("kind", "hold");
        Ok(hold.commit()?.id)
    }

    fn held(&self) -> Result<u64, LedgerError> {
        self.ledger.transactions().metadata("kind", "hold").reverted(false).count()
    }

    /// Reverts every hold that is older than a day. Returns their number.
    fn expire(&self) -> Result<usize, LedgerError> {
        let age = i64::try_from(HOLD.as_micros()).unwrap_or(i64::MAX);
        let limit = Timestamp::from_micros(self.clock.now().as_micros() - age + 1);
        let holds = self.ledger.transactions().metadata("kind", "hold").reverted(false).before(limit);
        let mut expired = 0;
        for hold in holds {
            self.ledger.revert(hold?.id).metadata("why", "expired").commit()?;
            expired += 1;
        }
        Ok(expired)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = Arc::<SetClock>::default();
    let store = Store::in_memory_with(&Options::new().clock(clock.clone()));
    let bookings = Bookings { ledger: store.ledger("bookings")?, clock: clock.clone() };

    let noon: Timestamp = "2024-05-01T12:00:00Z".parse()?;
    clock.set(noon);
    bookings.ledger.transaction().posting("world", "guests:7", 5_00, "EUR/2").commit()?;
    let hold = bookings.hold("guests:7", 5_00)?;
    let recorded = bookings.ledger.get_transaction(hold)?;
    println!("held at {}: {} hold", recorded.inserted_at, bookings.held()?);
    assert_eq!(recorded.inserted_at, noon, "the store reads the clock of the test");

    let later = |by: Duration| {
        clock.set(Timestamp::from_micros(
            noon.as_micros() + i64::try_from(by.as_micros()).unwrap_or(i64::MAX),
        ));
    };
    later(Duration::from_hours(1));
    println!("an hour later: {} expired", bookings.expire()?);
    later(HOLD);
    println!("a day later: {} expired", bookings.expire()?);
    println!("again: {} expired", bookings.expire()?);
    println!("guests:7 has {} again", bookings.ledger.balance("guests:7", "EUR/2")?);
    Ok(())
}
