//! Embeds the ledger: records a deposit and a purchase, refuses a purchase without funds, and prints the
//! balances.
//!
//! ```text
//! transaction 1: users:001 receives 10000 USD/2
//! refused: account users:001 lacks funds: 6000 USD/2 needed, 4000 available
//! users:001: 4000
//! shops:42: 5850
//! platform:fees: 150
//! world: -10000
//! ```

use ledger_store::Store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("ledger-embed-{}", std::process::id()));
    let store = Store::open(&directory)?;
    let ledger = store.ledger("main")?; // created on first write

    let deposit = ledger
        .transaction()
        .posting("world", "users:001", 100_00, "USD/2")
        .reference("deposit-1")
        .commit()?; // on disk when this returns
    for posting in &deposit.postings {
        println!(
            "transaction {}: {} receives {} {}",
            deposit.id, posting.destination, posting.amount, posting.asset
        );
    }

    ledger
        .transaction()
        .posting("users:001", "shops:42", 60_00, "USD/2")
        .posting("shops:42", "platform:fees", 1_50, "USD/2")
        .metadata("order", "A-17")
        .commit()?;

    match ledger.transaction().posting("users:001", "shops:42", 60_00, "USD/2").commit() {
        Err(error) if error.is_insufficient_funds() => println!("refused: {error}"),
        other => return Err(format!("expected a refusal, got {other:?}").into()),
    }

    for account in ["users:001", "shops:42", "platform:fees", "world"] {
        println!("{account}: {}", ledger.balance(account, "USD/2")?);
    }

    store.close()?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
