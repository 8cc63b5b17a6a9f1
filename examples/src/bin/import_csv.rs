//! Imports payments from a CSV file. The first run stops at a bad line. The second run, with the line repaired, resumes
//! without recording a payment twice: "known" payments were recorded before.
//!
//! ```text
//! line 5: invalid account address 'users::4': segments of '0-9a-zA-Z_-', separated by ':', at most 1024 bytes
//! first run: 3 payments, 0 known
//! second run: 2 payments, 3 known
//! line 2 with another amount: a different request used the idempotency key "payments.csv:p1" before
//! users: 96.50
//! ```

use ledger_store::prelude::*;
use rust_decimal::Decimal;

type Failure = Box<dyn std::error::Error>;

/// The account in the line of `p4` is invalid.
const BROKEN: &str = "\
id,account,amount
p1,users:1,10.00
p2,users:2,20.50
p3,users:3,30
p4,users::4,16
p5,users:5,20
";

fn main() -> Result<(), Failure> {
    let store = Store::in_memory();
    let ledger = store.ledger("main")?;
    let usd = Asset::parse("USD/2")?;

    let first = Import::run(&ledger, &usd, BROKEN);
    println!("first run: {} payments, {} known", first.recorded, first.known);
    let repaired = BROKEN.replace("users::4", "users:4");
    let second = Import::run(&ledger, &usd, &repaired);
    println!("second run: {} payments, {} known", second.recorded, second.known);

    // The same line with another amount is refused: its idempotency key belongs to a different request.
    if let Err(error) = record(&ledger, &usd, "p1,users:1,77.00") {
        println!("line 2 with another amount: {error}");
    }
    let (_, total) = ledger.balances().under("users:").now()?.remove(0);
    println!("users: {}", total.to_decimal(&usd).ok_or("too large")?);
    Ok(())
}

#[derive(Default)]
struct Import {
    recorded: u32,
    known: u32,
}

impl Import {
    /// Records the lines in order. Stops at the first one that is invalid or refused.
    fn run(ledger: &Ledger, usd: &Asset, csv: &str) -> Self {
        let mut import = Self::default();
        for (at, line) in csv.lines().enumerate().skip(1) {
            match record(ledger, usd, line) {
                Ok(true) => import.recorded += 1,
                Ok(false) => import.known += 1,
                Err(error) => {
                    println!("line {}: {error}", at + 1);
                    break;
                }
            }
        }
        import
    }
}

/// Records one line. Returns whether it is new.
fn record(ledger: &Ledger, usd: &Asset, line: &str) -> Result<bool, Failure> {
    let mut fields = line.split(',');
    let mut field = || fields.next().ok_or("a line has three fields");
    let (id, account, amount) = (field()?, field()?, field()?);
    let amount: Decimal = amount.parse()?;
    let payment = ledger
        .transaction()
        .posting("world", account, amount, usd)
        .reference(id)
        .idempotency_key(format!("payments.csv:{id}"))
        .commit()?;
    Ok(!payment.replayed)
}
