//! Exchanges currencies: both legs of a deal are one transaction, and the desk keeps the spread.
//!
//! ```text
//! users:1 sells 100.00 USD for 91.54 EUR at 0.9154
//! users:1 sells 10000 JPY for 59.30 EUR at 0.00593
//! users:1 sells 900.00 USD for 823.86 EUR at 0.9154: refused, desk lacks funds
//! users:1 holds 150.84 EUR, 90000 JPY, 900.00 USD
//! desk holds 749.16 EUR, 10000 JPY, 100.00 USD
//! in EUR at the middle rates, the desk gained 1.16
//! ```

use ledger_store::LedgerError;
use ledger_store::prelude::*;
use rust_decimal::{Decimal, RoundingStrategy};

type Failure = Box<dyn std::error::Error>;

const USER: &str = "users:1";
const DESK: &str = "desk";

/// The value of one unit of a currency in euros.
const MIDDLE_RATES: [(&str, &str); 3] = [("EUR/2", "1"), ("JPY", "0.006"), ("USD/2", "0.92")];

fn main() -> Result<(), Failure> {
    let store = Store::in_memory();
    let ledger = store.ledger("exchange")?;
    for (account, asset, amount) in [(USER, "USD/2", 1_000), (USER, "JPY", 100_000), (DESK, "EUR/2", 900)] {
        ledger.transaction().posting("world", account, Decimal::from(amount), asset).commit()?;
    }
    let before = worth(&ledger)?;

    deal(&ledger, "USD/2", "100", "0.9154", "deal-1")?;
    deal(&ledger, "JPY", "10000", "0.00593", "deal-2")?;
    deal(&ledger, "USD/2", "900", "0.9154", "deal-3")?;

    for account in [USER, DESK] {
        println!("{account} holds {}", holdings(&ledger, account)?);
    }
    let gained = worth(&ledger)? - before;
    println!("in EUR at the middle rates, the desk gained {}", gained.round_dp(2));
    Ok(())
}

/// Buys an amount of a currency from the user, and pays in euros at a rate.
fn deal(ledger: &Ledger, asset: &str, sold: &str, rate: &str, reference: &str) -> Result<(), Failure> {
    let asset = Asset::parse(asset)?;
    let sold: Decimal = with_decimals(sold.parse()?, &asset);
    // All amounts are exact until here. The only rounding is in favour of the desk.
    let paid = (sold * rate.parse::<Decimal>()?).round_dp_with_strategy(2, RoundingStrategy::ToZero);
    print!("{USER} sells {sold} {} for {paid} EUR at {rate}", asset.code());
    let deal = ledger
        .transaction()
        .posting(USER, DESK, sold, &asset)
        .posting(DESK, USER, paid, "EUR/2")
        .reference(reference)
        .metadata("rate", rate);
    match deal.commit() {
        Ok(_) => println!(),
        // The store recorded neither leg.
        Err(LedgerError::Refused(_)) => println!(": refused, {DESK} lacks funds"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Returns the balances of an account as a text, by currency.
fn holdings(ledger: &Ledger, account: &str) -> Result<String, Failure> {
    let volumes = ledger.get_account(account)?.volumes.unwrap_or_default();
    let shown = volumes.iter().map(|(asset, volumes)| {
        let balance = volumes.balance().to_decimal(asset).ok_or("too large")?;
        Ok(format!("{balance} {}", asset.code()))
    });
    Ok(shown.collect::<Result<Vec<_>, Failure>>()?.join(", "))
}

/// Returns the value of the desk's holdings in euros.
fn worth(ledger: &Ledger) -> Result<Decimal, Failure> {
    let mut sum = Decimal::ZERO;
    for (asset, rate) in MIDDLE_RATES {
        let asset = Asset::parse(asset)?;
        let held = ledger.balance(DESK, &asset)?.to_decimal(&asset).ok_or("too large")?;
        sum += held * rate.parse::<Decimal>()?;
    }
    Ok(sum)
}

/// Returns a number with as many decimals as its asset.
fn with_decimals(mut number: Decimal, asset: &Asset) -> Decimal {
    number.rescale(asset.scale());
    number
}
