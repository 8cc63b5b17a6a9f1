//! Splits a price into a commission and the seller's share with a script. Runs the script first without a ledger, and
//! then as a transaction of a ledger.
//!
//! ```text
//! world -> platform:commission: EUR/2 250
//! world -> sellers:ada: EUR/2 1749
//! transaction 1
//! commission: 250
//! ```

use ledger_core::script::{EmptyLedger, Options, Profile, Program, Progress, Run, Scratch, Variables};
use ledger_store::Store;

const SPLIT: &str = "\
vars {
  account $seller
  monetary $price
}

send $price (
  source = @world
  destination = {
    12.5% to @platform:commission
    remaining to $seller
  }
)
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let variables: Variables = [("seller", "sellers:ada"), ("price", "EUR/2 1999")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();

    // Run without a ledger: the result does not depend on balances, so an `EmptyLedger` is enough.
    let program = Program::compile(SPLIT, Profile::Default)?;
    let mut scratch = Scratch::default();
    let mut run = Run::new(&program, &variables, Options::default(), &mut scratch);
    while run.advance()? == Progress::Needs {
        run.answer(&mut EmptyLedger)?;
    }
    for posting in run.outcome().postings {
        let posting = posting.posting;
        println!("{} -> {}: {} {}", posting.source, posting.destination, posting.asset, posting.amount);
    }

    // Run in a ledger: the store runs the same script and records its postings as a transaction.
    let store = Store::in_memory();
    let ledger = store.ledger("main")?;
    let split =
        variables.into_iter().fold(ledger.script(SPLIT), |split, (name, value)| split.var(&name, value));
    println!("transaction {}", split.commit()?.id);
    println!("commission: {}", ledger.balance("platform:commission", "EUR/2")?);
    Ok(())
}
