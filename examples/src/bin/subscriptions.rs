//! Bills subscriptions each month, and prints statements as of the end of a month.
//!
//! Bo joins on 16 May and pays for 16 of 31 days, rounded up. Cy pays on 30 May, but the bank reports it in June: the
//! statement of 31 May contains the payment, and a sum by insertion date shows what was known on that day.
//!
//! ```text
//! 2024-05-01: 2 charged, 0 when repeated
//! 2024-06-01: 3 charged, 0 when repeated
//! past due: subscribers:cy owes 20.00
//! statement of 2024-05-31
//!   subscribers:ada paid 30.00, was charged 10.00, has 20.00
//!   subscribers:bo paid 20.00, was charged 5.17, has 14.83
//!   subscribers:cy paid 15.00, was charged 10.00, has 5.00
//! all of them, as it was known on 2024-05-31: 24.83
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ledger_store::{TimeSource, prelude::*};
use rust_decimal::Decimal;

/// Charges a part of the price, which is metadata of the subscriber. A subscriber without funds goes below zero.
const CHARGE: &str = r#"
vars {
  account $subscriber
  monetary $price = meta($subscriber, "price")
  portion $part
}
send $price (
  source = $subscriber allowing unbounded overdraft
  destination = { $part to @revenue:subscriptions remaining kept }
)
"#;

type Failure = Box<dyn std::error::Error>;

/// A clock that the program sets, in microseconds since 1970.
#[derive(Debug, Default)]
struct SetClock(AtomicI64);

impl TimeSource for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed))
    }
}

fn main() -> Result<(), Failure> {
    let clock = Arc::<SetClock>::default();
    let store = Store::in_memory_with(&Options::new().clock(clock.clone()));
    let ledger = store.ledger("billing")?;
    let today = |at: Timestamp| clock.0.store(at.as_micros(), Ordering::Relaxed);
    let subscribe = |name: &str| ledger.update_account(name).metadata("price", "EUR/2 1000").commit();
    let pay = |name: &str, cents: u64, at: Timestamp| {
        ledger.transaction().posting("world", name, cents, "EUR/2").timestamp(at).commit()
    };
    let bill_all = |month: &str| bill(&ledger, month, "subscribers:*", "100%");

    today(day("2024-05-01")?);
    subscribe("subscribers:ada")?;
    subscribe("subscribers:cy")?;
    pay("subscribers:ada", 30_00, day("2024-05-01")?)?;
    let (charged, again) = (bill_all("2024-05")?, bill_all("2024-05")?);
    println!("2024-05-01: {charged} charged, {again} when repeated");

    today(day("2024-05-16")?);
    subscribe("subscribers:bo")?;
    pay("subscribers:bo", 20_00, day("2024-05-16")?)?;
    bill(&ledger, "2024-05", "subscribers:bo", "16/31")?;

    today(day("2024-06-01")?);
    let (charged, again) = (bill_all("2024-06")?, bill_all("2024-06")?);
    println!("2024-06-01: {charged} charged, {again} when repeated");
    let subscribers = ledger.accounts().matching("subscribers:*");
    for account in subscribers.filter_json(r#"{"$lt": {"balance[EUR/2]": 0}}"#)? {
        let address = account?.address;
        println!("past due: {address} owes {}", euros(&-ledger.balance(&address, "EUR/2")?)?);
    }

    today(day("2024-06-03")?);
    pay("subscribers:cy", 15_00, day("2024-05-30")?)?;
    statement(&ledger, "2024-05-31")?;
    let known = ledger.balances().under("subscribers:").at(day("2024-05-31")?, TimeAxis::Inserted)?;
    println!("all of them, as it was known on 2024-05-31: {}", euros(&known[0].1)?);
    Ok(())
}

/// Charges subscribers for a part of a month, in one durable commit, and each of them only once: the idempotency key
/// names the month. Returns how many were charged.
fn bill(ledger: &Ledger, month: &str, subscribers: &str, part: &str) -> Result<usize, Failure> {
    let mut batch = ledger.batch();
    for account in ledger.accounts().matching(subscribers) {
        let name = account?.address;
        let charge = ledger.script(CHARGE).var("subscriber", name.as_str()).var("part", part);
        batch = batch.push(charge.idempotency_key(format!("{month}/{name}")));
    }
    let receipts = batch.commit()?.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(receipts.iter().filter(|receipt| !receipt.replayed).count())
}

/// Prints the effective volumes of all subscribers as of a date.
fn statement(ledger: &Ledger, at: &str) -> Result<(), Failure> {
    println!("statement of {at}");
    for account in ledger.accounts().matching("subscribers:*").at(day(at)?).with_effective_volumes() {
        let account = account?;
        let total = &account.effective_volumes.unwrap_or_default()[0].1;
        let (paid, charged) = (euros(&total.input.clone().into())?, euros(&total.output.clone().into())?);
        let balance = euros(&total.balance())?;
        println!("  {} paid {paid}, was charged {charged}, has {balance}", account.address);
    }
    Ok(())
}

fn euros(balance: &Balance) -> Result<Decimal, Failure> {
    Ok(balance.to_decimal(&Asset::parse("EUR/2")?).ok_or("too large")?)
}

fn day(text: &str) -> Result<Timestamp, Failure> {
    Ok(format!("{text}T12:00:00Z").parse()?)
}
