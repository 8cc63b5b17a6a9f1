//! Reads a balance at a date, with a transaction that was backdated.

use ledger_core::Timestamp;
use ledger_store::Store;

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
    assert_eq!(ledger.balance_at("users:001", "COIN", evening)?.to_string(), "100");
    assert_eq!(ledger.balance_at("users:001", "COIN", night)?.to_string(), "150");
    Ok(())
}
