//! The lines that a newcomer would write first, according to the conventions of other libraries. They were written
//! without looking at the interface, and must compile.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use ledger_store::prelude::*;
use rust_decimal::Decimal;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn handles_open_and_show_themselves() -> Outcome {
    let home = tempfile::tempdir()?;
    let store = Store::open_with(home.path(), &Options::default().memory_budget(32 << 20))?;
    let ledger: Ledger = store.ledger("main")?;
    store.ledger("audit")?.create(LedgerOptions::default())?;
    assert!(format!("{store:?} {ledger:?}").contains("main"));
    for ledger in store.ledgers()? {
        assert_eq!(ledger.name.as_str(), "audit");
    }
    store.close()?;
    Ok(())
}

#[test]
fn values_convert_as_expected() -> Outcome {
    let usd: Asset = "USD/2".parse()?;
    let alice: AccountAddress = "users:alice".parse()?;
    let bob = AccountAddress::try_from("users:bob")?;
    let price: Monetary = "USD/2 1000".parse()?;
    assert_eq!((price.amount.to_string(), usd.scale(), usd.as_str()), ("1000".to_owned(), 2, "USD/2"));
    assert_eq!(Monetary::new(usd, 100_00).to_string(), "USD/2 10000");
    let start: Timestamp = "2024-01-01T00:00:00Z".parse()?;
    let now = Timestamp::try_from(SystemTime::now())?;
    assert!(now - Duration::from_hours(7 * 24) > start);
    assert_eq!(Balance::default(), Amount::default());
    let by_account = HashMap::from([(alice, 1), (bob, 2)]);
    assert_eq!(by_account.len(), 2);
    Ok(())
}

#[test]
fn money_moves_and_is_read_back() -> Outcome {
    let ledger = Store::in_memory().ledger("main")?;
    let usd = Asset::parse("USD/2")?;
    let ten = Amount::from(10_00_u64);
    ledger.transaction().posting("world", "users:alice", 100_00, &usd).reference("order-1").commit()?;
    let paid =
        ledger.transaction().posting("users:alice", "users:bob", ten, usd.clone()).metadata("kind", "p2p");
    let paid = paid.commit()?;
    let id: TransactionId = paid.id;
    for posting in &ledger.get_transaction(id)?.postings {
        assert_eq!(format!("{} {}", posting.amount, posting.asset), "1000 USD/2");
    }
    assert_eq!(paid.metadata.get("kind").map(ToString::to_string), Some("p2p".to_owned()));
    assert_eq!(ledger.transaction_by_reference("order-1")?.map(|found| found.id), Some(1.into()));
    let balance: Balance = ledger.balance("users:alice", &usd)?;
    assert_eq!((i64::try_from(&balance)?, i128::try_from(balance.clone())?), (90_00, 90_00));
    assert!(balance >= 90_00);
    assert!(balance < 90_01);
    let total = balance.clone() + ledger.balance("users:bob", &usd)?;
    assert_eq!(vec![total, -balance].into_iter().sum::<Balance>(), 10_00);
    ledger.set_account_metadata("users:alice", Metadata::from([("tier", "gold"), ("since", "2024")]))?;
    assert_eq!(ledger.get_account("users:alice")?.metadata.len(), 2);
    ledger.revert(id).commit()?;
    assert_eq!(ledger.balance_at("users:bob", "USD/2", Timestamp::try_from(SystemTime::now())?)?, 0);
    Ok(())
}

#[test]
fn lists_are_iterators_and_pages() -> Outcome {
    let ledger = Store::in_memory().ledger("main")?;
    for user in 1..=3 {
        ledger.transaction().posting("world", format!("users:{user}"), 5, "USD/2").commit()?;
    }
    let all: Vec<_> = ledger.transactions().into_iter().collect::<Result<_, _>>()?;
    let last: Vec<_> = ledger.transactions().newest_first().into_iter().take(2).collect::<Result<_, _>>()?;
    assert_eq!((all.len(), last[0].id, ledger.accounts().count()?), (3, all[2].id, 4));
    for transaction in &ledger.transactions().page(20)?.items {
        assert!(transaction.reference.is_none());
    }
    Ok(())
}

/// Returns a decimal as the macro of `rust_decimal_macros` does.
macro_rules! dec {
    ($number:literal) => {
        stringify!($number).parse::<Decimal>()?
    };
}

/// The lines that the interface was designed from. A dry run has no id, so its answer has a name of its own. The script
/// language wants its variables declared.
#[test]
fn designed_lines_compile_and_work() -> Outcome {
    let store = Store::in_memory();
    let usd = &Asset::parse("USD/2")?;
    let t0 = Timestamp::try_from(SystemTime::now())?;
    store.ledger("main")?.transaction().posting("world", "users:1", dec!(60.00), usd).commit()?;

    let ledger = store.ledger("main")?;
    let tx = ledger
        .transaction()
        .posting("world", "users:1", dec!(100.00), usd)
        .metadata("kind", "topup")
        .commit()?;
    let dry = ledger
        .script("vars { monetary $amount } send $amount ( source = @users:1 destination = @shops:42 )")
        .var("amount", Monetary::new(usd, 160_00))
        .dry_run()?;
    let tx = ledger.get_transaction(tx.id)?;
    ledger.revert(tx.id).at_effective_date().force().metadata("why", "fraud").commit()?;
    let mut topups = 0;
    for tx in ledger.transactions().account("users:").metadata("kind", "topup").since(t0).newest_first() {
        let tx = tx?;
        topups += usize::from(tx.reverted_by.is_some());
    }
    let t = Timestamp::try_from(SystemTime::now())?;
    let page = ledger.accounts().matching("users:*:main").with_volumes().at(t).page(50)?;
    let filtered = ledger
        .transactions()
        .filter_json(r#"{"$and": [{"$match": {"metadata[kind]": "topup"}}]}"#)?
        .count()?;
    let sums = ledger.balances().under("users:").at(t, TimeAxis::Inserted)?;
    let pay = || ledger.transaction().posting("world", "users:2", 1_00, usd);
    let receipts = ledger.batch().push(pay()).push(pay()).atomic().commit()?;

    assert_eq!((dry.postings[0].amount.to_u64(), topups, filtered), (Some(160_00), 1, 1));
    assert_eq!((page.items.len(), page.next), (0, None));
    assert_eq!((sums, receipts.len()), (vec![(usd.clone(), Balance::from(60_00))], 2));
    Ok(())
}

#[test]
fn refusals_are_told_apart() -> Outcome {
    fn is_an_error<E: std::error::Error + Send + Sync + 'static>() {}
    is_an_error::<LedgerError>();
    let ledger = Store::in_memory().ledger("main")?;
    match ledger.transaction().posting("users:nobody", "shop", 1, "USD/2").commit() {
        Err(error) if error.is_insufficient_funds() => {}
        other => panic!("{other:?}"),
    }
    let script = "send [USD/2 1] ( source = @users:nobody destination = @shop )";
    match ledger.script(script).commit() {
        Err(error) if error.is_insufficient_funds() => {}
        other => panic!("{other:?}"),
    }
    match ledger.transaction().posting("users:", "shop", 1, "USD/2").commit() {
        Err(error @ LedgerError::Name(_)) => assert!(!error.is_insufficient_funds()),
        other => panic!("{other:?}"),
    }
    Ok(())
}
