//! Backs up a store while it takes payments, and restores it as it was before a mistake.
//!
//! ```text
//! first backup: 101 entries, 101 of them copied
//! second backup: 202 entries, 101 of them copied
//! the backup is sound
//! after the mistake, users:7 holds 0.00
//! restored to 201 entries, users:7 holds 14.00
//! as of 11:30, users:7 held 7.00
//! the backup of the restored store needs a new directory
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use ledger_store::prelude::*;
use ledger_store::{BackupError, RestorePoint, TimeSource};

type Failure = Box<dyn std::error::Error>;

/// A clock that advances by a minute each time it is read, so that the output is always the same.
#[derive(Debug)]
struct SteppingClock(AtomicI64);

impl TimeSource for SteppingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(60_000_000, Ordering::Relaxed))
    }
}

fn main() -> Result<(), Failure> {
    let home = std::env::temp_dir().join(format!("ledger-backup-and-restore-{}", std::process::id()));
    std::fs::create_dir(&home)?;
    let run = run(&home);
    std::fs::remove_dir_all(&home)?;
    run
}

fn run(home: &Path) -> Result<(), Failure> {
    let (data, backup) = (home.join("data"), home.join("backup"));
    let morning: Timestamp = "2024-05-01T10:00:00Z".parse()?;
    let options = Options::new().clock(SteppingClock(AtomicI64::new(morning.as_micros())));
    let store = Store::open_with(&data, &options)?;
    let ledger = store.ledger("main")?;

    pay_everybody(&ledger)?;
    let first = store.backup(&backup)?;
    println!("first backup: {} entries, {} of them copied", first.entries, first.copied);

    pay_everybody(&ledger)?;
    let before_the_mistake = store.status().entries;
    let all = ledger.balance("users:7", "USD/2")?;
    ledger.transaction().posting("users:7", "world", Amount::try_from(all)?, "USD/2").commit()?;
    let second = store.backup(&backup)?; // copies only what is new
    println!("second backup: {} entries, {} of them copied", second.entries, second.copied);
    assert_eq!(Store::verify_backup(&backup)?.chain, store.status().chain);
    println!("the backup is sound");
    println!("after the mistake, users:7 holds {}", held(&ledger)?);

    let restored = home.join("restored");
    let report = Store::restore(&backup, &restored, RestorePoint::Entries(before_the_mistake))?;
    let restored = Store::open(&restored)?;
    println!("restored to {} entries, users:7 holds {}", report.entries, held(&restored.ledger("main")?)?);

    // This date is in the first round of payments.
    let at = RestorePoint::Date("2024-05-01T11:30:00Z".parse()?);
    Store::restore(&backup, home.join("earlier"), at)?;
    println!("as of 11:30, users:7 held {}", held(&Store::open(home.join("earlier"))?.ledger("main")?)?);

    // With this commit, the history of the restored store differs from the backup's.
    restored.ledger("main")?.transaction().posting("world", "users:1", 1, "USD/2").commit()?;
    match restored.backup(&backup) {
        Err(BackupError::OtherHistory { .. }) => {
            println!("the backup of the restored store needs a new directory");
        }
        other => return Err(format!("expected a refusal, got {other:?}").into()),
    }
    Ok(())
}

/// Pays each of a hundred users as many dollars as the number of the user.
fn pay_everybody(ledger: &Ledger) -> Result<(), LedgerError> {
    for user in 1..=100_u64 {
        ledger.transaction().posting("world", format!("users:{user}"), user * 100, "USD/2").commit()?;
    }
    Ok(())
}

fn held(ledger: &Ledger) -> Result<String, Failure> {
    let usd = Asset::parse("USD/2")?;
    Ok(ledger.balance("users:7", &usd)?.to_decimal(&usd).ok_or("too large")?.to_string())
}
