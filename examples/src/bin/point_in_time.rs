//! Reads a balance at a date, with a transaction that was backdated.
//!
//! ```text
//! 2024-05-01T12:00:00Z: 100
//! 2024-05-01T18:00:00Z: 100
//! 2024-05-01T23:00:00Z: 150
//! ```

use ledger_store::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::in_memory();
    let ledger = store.ledger("main")?;
    let noon = Timestamp::parse("2024-05-01T12:00:00Z")?;
    let evening = Timestamp::parse("2024-05-01T18:00:00Z")?;
    let night = Timestamp::parse("2024-05-01T23:00:00Z")?;

    ledger.transaction().posting("world", "users:001", 50, "COIN").timestamp(night).commit()?;
    // Recorded later, but with an earlier effective date.
    ledger.transaction().posting("world", "users:001", 100, "COIN").timestamp(noon).commit()?;

    for at in [noon, evening, night] {
        println!("{at}: {}", ledger.balance_at("users:001", "COIN", at)?);
    }
    Ok(())
}
