//! Pays the sellers of a marketplace by a script. The commission of each seller is metadata of the seller's account.
//!
//! ```text
//! sale 1: paid 9.90
//! sale 2: paid 125.00
//! payout of sale 1: 8.41 to sellers:bo, 1.49 to platform:commission
//! payout of sale 2: 112.50 to sellers:cy, 12.50 to platform:commission
//! payout of sale 1 again: was made before, as transaction 3
//! refund of sale 2 refused: account sellers:cy lacks funds: 11250 EUR/2 needed, 0 available
//! platform:commission holds 13.99, sellers hold 8.41
//! ```

use ledger_store::LedgerError;
use ledger_store::prelude::*;
use rust_decimal::Decimal;

/// The buyer's card is outside the ledger, so the money comes from `@world`.
const SALE: &str = r#"
vars {
  account $sale
  account $seller
  monetary $price
}
send $price ( source = @world destination = $sale )
set_account_meta($sale, "seller", $seller)
"#;

/// Empties the account of a sale. The script reads the seller and the commission from the ledger.
const PAYOUT: &str = r#"
vars {
  account $sale
  account $seller = meta($sale, "seller")
  portion $commission = meta($seller, "commission")
  monetary $due = balance($sale, EUR/2)
}
send $due (
  source = $sale
  destination = {
    $commission to @platform:commission
    remaining to $seller
  }
)
"#;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let store = Store::in_memory();
    let ledger = store.ledger("marketplace")?;
    let eur = Asset::parse("EUR/2")?;
    let shown = |balance: &Balance| balance.to_decimal(&eur).ok_or("too large");

    for (seller, commission) in [("sellers:bo", "15%"), ("sellers:cy", "10%")] {
        ledger.set_account_metadata(seller, Metadata::from_iter([("commission", commission)]))?;
    }
    for (number, seller, price) in [(1, "sellers:bo", 9_90), (2, "sellers:cy", 125_00)] {
        let sale = ledger.script(SALE).var("sale", format!("sales:{number}")).var("seller", seller);
        let sale =
            sale.var("price", Monetary::new(&eur, price)).reference(format!("sale-{number}")).commit()?;
        println!("sale {number}: paid {}", shown(&sale.postings[0].amount.clone().into())?);
    }

    // A payout that is repeated, for example after a crash of the program, pays once.
    let payout = |number: u64| {
        let payout = ledger.script(PAYOUT).var("sale", format!("sales:{number}"));
        payout.idempotency_key(format!("payout-{number}")).commit()
    };
    let mut last = None;
    for number in [1, 2] {
        let paid = payout(number)?;
        // Print the seller's part first.
        let parts: Vec<String> = paid
            .postings
            .iter()
            .rev()
            .map(|posting| {
                Ok(format!("{} to {}", shown(&posting.amount.clone().into())?, posting.destination))
            })
            .collect::<Result<_, Failure>>()?;
        println!("payout of sale {number}: {}", parts.join(", "));
        last = Some(paid.id);
    }
    let again = payout(1)?;
    assert!(again.replayed);
    println!("payout of sale 1 again: was made before, as transaction {}", again.id);

    // The bank takes the money of the second seller out of the marketplace, so nothing is left for a refund.
    ledger.transaction().posting("sellers:cy", "world", Decimal::new(112_50, 2), &eur).commit()?;
    match ledger.revert(last.ok_or("there were payouts")?).commit() {
        Err(LedgerError::Refused(reason)) => println!("refund of sale 2 refused: {reason}"),
        other => return Err(format!("expected a refusal, got {other:?}").into()),
    }

    let commission = ledger.balance("platform:commission", &eur)?;
    let sellers: Balance =
        ledger.balances().under("sellers:").now()?.into_iter().map(|(_, balance)| balance).sum();
    println!("platform:commission holds {}, sellers hold {}", shown(&commission)?, shown(&sellers)?);
    Ok(())
}
