//! Prints monthly statements of an account by effective date.
//!
//! A shop reports an order a month late. The order appears in the month in which it took place. The last line shows
//! that month as it was known before the report.
//!
//! ```text
//! 2024-05: opens at 0.00
//!   2024-05-02 topup +100.00
//!   2024-05-20 order -30.00
//! 2024-05: closes at 70.00
//! 2024-06: opens at 70.00
//!   2024-06-11 order -25.50
//! 2024-06: closes at 44.50
//! 2024-05, as it was known on 2024-06-15: closes at 100.00
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ledger_store::TimeSource;
use ledger_store::prelude::*;
use rust_decimal::Decimal;

/// A clock that the program sets, in microseconds since 1970.
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

type Failure = Box<dyn std::error::Error>;

const USER: &str = "users:1";

fn main() -> Result<(), Failure> {
    let clock = Arc::<SetClock>::default();
    let store = Store::in_memory_with(&Options::new().clock(clock.clone()));
    let ledger = store.ledger("main")?;
    let usd = Asset::parse("USD/2")?;

    let pay = |recorded: &str, effective: &str, from: &str, to: &str, amount: &str, kind: &str| {
        clock.set(day(recorded)?);
        let amount: Decimal = amount.parse()?;
        let payment = ledger.transaction().posting(from, to, amount, &usd);
        payment.timestamp(day(effective)?).metadata("kind", kind).commit()?;
        Ok::<(), Failure>(())
    };
    pay("2024-05-02", "2024-05-02", "world", USER, "100", "topup")?;
    pay("2024-06-11", "2024-06-11", USER, "shops:42", "25.50", "order")?;
    // The shop reports an order of May a month late.
    pay("2024-06-20", "2024-05-20", USER, "shops:42", "30", "order")?;

    statement(&ledger, &usd, "2024-05", "2024-05-01", "2024-06-01")?;
    statement(&ledger, &usd, "2024-06", "2024-06-01", "2024-07-01")?;

    // Compute the same month from the transactions that were recorded before 15 June, which excludes the late order.
    let known: Vec<_> = ledger
        .transactions()
        .account(USER)
        .before(day("2024-06-01")?)
        .filter_json(r#"{"$lt": {"inserted_at": "2024-06-15T00:00:00Z"}}"#)?
        .into_iter()
        .collect::<Result<_, _>>()?;
    let closing = known.iter().map(|transaction| change(&transaction.postings)).sum::<Balance>();
    let closing = closing.to_decimal(&usd).ok_or("too large")?;
    println!("2024-05, as it was known on 2024-06-15: closes at {closing}");
    Ok(())
}

fn statement(ledger: &Ledger, usd: &Asset, month: &str, from: &str, to: &str) -> Result<(), Failure> {
    let (from, to) = (day(from)?, day(to)?);
    // All lines come from one snapshot, so a concurrent write cannot make them disagree.
    let snapshot = ledger.snapshot();
    let decimal = |balance: Balance| balance.to_decimal(usd).ok_or("too large");
    // `balance_at` includes the transactions at exactly that timestamp.
    let right_before = |at: Timestamp| Timestamp::from_micros(at.as_micros() - 1);
    println!("{month}: opens at {}", decimal(snapshot.balance_at(USER, usd, right_before(from))?)?);
    for transaction in snapshot.transactions().account(USER).since(from).before(to).by_effective_date() {
        let transaction = transaction?;
        let (year, month, day) = transaction.timestamp.date();
        let kind = transaction.metadata.get("kind").map(|kind| kind.text().to_owned()).unwrap_or_default();
        let change = decimal(change(&transaction.postings))?;
        let sign = if change.is_sign_negative() { "" } else { "+" };
        println!("  {year}-{month:02}-{day:02} {kind} {sign}{change}");
    }
    println!("{month}: closes at {}", decimal(snapshot.balance_at(USER, usd, right_before(to))?)?);
    Ok(())
}

/// Computes how postings change the balance of the user.
fn change(postings: &[Posting]) -> Balance {
    let change = |posting: &Posting| {
        let amount = Balance::from(posting.amount.clone());
        match (posting.destination.as_str() == USER, posting.source.as_str() == USER) {
            (true, false) => amount,
            (false, true) => -amount,
            (true, true) | (false, false) => Balance::ZERO,
        }
    };
    postings.iter().map(change).sum()
}

fn day(text: &str) -> Result<Timestamp, Failure> {
    Ok(format!("{text}T00:00:00Z").parse()?)
}
