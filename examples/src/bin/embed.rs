//! Embeds the ledger: records a deposit and a purchase, refuses a purchase without funds, and prints the
//! balance.

use ledger_store::{LedgerError, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("ledger-embed-{}", std::process::id()));
    let store = Store::open(&directory)?;
    let ledger = store.ledger("main")?; // created on first write

    let deposit = ledger
        .transaction()
        .posting("world", "users:001", 100_00, "USD/2")
        .reference("deposit-1")
        .commit()?; // on disk when this returns
    println!("transaction {} at {}", deposit.id.get(), deposit.timestamp);

    ledger
        .transaction()
        .posting("users:001", "shops:42", 60_00, "USD/2")
        .posting("shops:42", "platform:fees", 1_50, "USD/2")
        .metadata("order", "A-17")
        .commit()?;

    match ledger.transaction().posting("users:001", "shops:42", 60_00, "USD/2").commit() {
        Err(LedgerError::Refused(rejection)) => println!("refused: {rejection}"),
        other => return Err(format!("expected a refusal, got {other:?}").into()),
    }

    for account in ["users:001", "shops:42", "platform:fees", "world"] {
        println!("{account}: {}", ledger.balance(account, "USD/2")?);
    }
    assert_eq!(ledger.balance("users:001", "USD/2")?.to_string(), "4000");

    store.close()?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
