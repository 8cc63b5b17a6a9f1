//! Tests of the reference model with the examples of the specification, because the oracle itself must be
//! right.

use std::collections::BTreeMap;

use ledger_core::model::{Model, ModelAnswer, MoveDate, Window};
use ledger_core::{
    AccountAddress, Asset, Balance, Command, Condition, CreateTransaction, Field, Filter, FilterNode,
    FilterValue, FirstId, Idempotency, IdempotencyKey, LedgerName, LedgerOptions, LogId, LogPayload,
    Metadata, Operator, Overdraft, Posting, Rejection, Resource, RevertDate, RevertTransaction, Target,
    Timestamp, TransactionId,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn address(text: &str) -> AccountAddress {
    AccountAddress::parse(text).unwrap()
}

fn main_ledger() -> LedgerName {
    LedgerName::parse("main").unwrap()
}

fn pay(source: &str, destination: &str, asset: &str, amount: u64) -> CreateTransaction {
    let posting = Posting {
        source: address(source),
        destination: address(destination),
        amount: amount.into(),
        asset: Asset::parse(asset).unwrap(),
    };
    CreateTransaction::of([posting].into_iter().collect())
}

fn dated(mut create: CreateTransaction, seconds: i64) -> Command {
    create.timestamp = Some(at(seconds));
    Command::CreateTransaction(create)
}

#[track_caller]
fn run(model: &mut Model, command: &Command, seconds: i64) -> ModelAnswer {
    model.execute(&main_ledger(), command, None, false, at(seconds)).unwrap()
}

fn filter(resource: Resource, operator: Operator, key: &str, value: &str) -> Filter {
    let field = Field::parse(resource, key).unwrap();
    let value = match value.parse::<i64>() {
        Ok(number) => FilterValue::Integer(Balance::from(number)),
        Err(_) => FilterValue::Text(value.into()),
    };
    Filter::new(resource, FilterNode::Is(Condition::new(&field, operator, value).unwrap())).unwrap()
}

/// Makes three accounts and two assets. The second transaction is dated before the first.
fn marketplace() -> Model {
    let mut model = Model::default();
    run(&mut model, &dated(pay("world", "users:1:main", "USD", 100), 1_200), 2_000);
    run(&mut model, &dated(pay("world", "users:1:main", "USD", 50), 1_100), 2_001);
    run(&mut model, &dated(pay("world", "users:2:main", "EUR", 7), 1_300), 2_002);
    run(&mut model, &dated(pay("users:1:main", "users:2:main", "USD", 30), 1_400), 2_003);
    model
}

fn rows(model: &Model, filter: &Filter, window: Window, group_by: Option<usize>) -> Vec<String> {
    let rows = model.volumes(&main_ledger(), filter, window, group_by);
    let show = |row: &ledger_core::HoldingVolumes| {
        format!("{} {} {} {}", row.account, row.asset, row.volumes.input, row.volumes.output)
    };
    rows.iter().map(show).collect()
}

#[test]
fn sums_volumes_in_a_window() {
    let model = marketplace();
    let all = Filter::all(Resource::Volumes);
    assert_eq!(
        rows(&model, &all, Window::ALL, None),
        [
            "users:1:main USD 150 30",
            "users:2:main EUR 7 0",
            "users:2:main USD 30 0",
            "world EUR 0 7",
            "world USD 0 150"
        ]
    );
    let effective = Window { start: Some(at(1_150)), end: Some(at(1_300)), by: MoveDate::Effective };
    assert_eq!(
        rows(&model, &all, effective, None),
        ["users:1:main USD 100 0", "users:2:main EUR 7 0", "world EUR 0 7", "world USD 0 100"]
    );
    let insertion = Window { start: Some(at(2_001)), end: Some(at(2_001)), by: MoveDate::Insertion };
    assert_eq!(rows(&model, &all, insertion, None), ["users:1:main USD 50 0", "world USD 0 50"]);
}

#[test]
fn groups_volumes_after_the_filter() {
    let model = marketplace();
    let all = Filter::all(Resource::Volumes);
    let joined = ["users EUR 7 0", "users USD 180 30", "world EUR 0 7", "world USD 0 150"];
    assert_eq!(rows(&model, &all, Window::ALL, Some(1)), joined);
    assert_eq!(rows(&model, &all, Window::ALL, Some(9)), rows(&model, &all, Window::ALL, None));
    assert_eq!(rows(&model, &all, Window::ALL, Some(0)), rows(&model, &all, Window::ALL, None));
    let rich = filter(Resource::Volumes, Operator::Gte, "balance[USD]", "100");
    assert_eq!(rows(&model, &rich, Window::ALL, Some(1)), ["users USD 150 30"]);
}

#[test]
fn sums_balances_of_matching_accounts() {
    let model = marketplace();
    let sums = |filter: &Filter, pit, by| {
        let sums = model.aggregated_balances(&main_ledger(), filter, pit, by);
        sums.iter().map(|(asset, sum)| format!("{asset} {sum}")).collect::<Vec<_>>()
    };
    let all = Filter::all(Resource::AggregatedBalances);
    assert_eq!(sums(&all, None, MoveDate::Effective), ["EUR 0", "USD 0"]);
    let users = filter(Resource::AggregatedBalances, Operator::Match, "address", "users:...");
    assert_eq!(sums(&users, None, MoveDate::Effective), ["EUR 7", "USD 150"]);
    assert_eq!(sums(&users, Some(at(1_250)), MoveDate::Effective), ["USD 150"]);
    assert_eq!(sums(&users, Some(at(2_000)), MoveDate::Insertion), ["USD 100"]);
}

#[test]
fn account_has_two_time_axes() {
    let model = marketplace();
    let user = |pit| model.account(&main_ledger(), &address("users:1:main"), pit);
    let usd = Asset::parse("USD").unwrap();
    let now = user(None).unwrap();
    assert_eq!((now.first_usage, now.insertion_date), (at(1_100), at(2_000)));
    assert_eq!(now.volumes, now.effective_volumes);
    let then = user(Some(at(1_200))).unwrap();
    assert_eq!(then.volumes, BTreeMap::new());
    assert_eq!(then.effective_volumes[&usd].input, 150_u64.into());
    assert_eq!(user(Some(at(1_099))), None);
    let later = user(Some(at(2_000))).unwrap();
    assert_eq!(later.volumes[&usd].input, 100_u64.into());
}

#[test]
fn stores_effective_volumes_where_they_differ() {
    let model = marketplace();
    let stored = model.log(&main_ledger()).iter().map(|entry| match &entry.payload {
        LogPayload::NewTransaction { effective_volumes, .. } => effective_volumes.clone(),
        other => panic!("{other:?}"),
    });
    let stored: Vec<_> = stored.map(|rows| rows.map(|rows| rows[0].volumes.balance())).collect();
    assert_eq!(stored, [None, Some(Balance::from(50)), None, None]);
}

#[test]
fn lists_are_ordered_and_filtered() {
    let model = marketplace();
    let ledger = main_ledger();
    let addresses = |filter: &Filter| {
        let accounts = model.accounts(&ledger, filter, None);
        accounts.iter().map(|account| account.address.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(addresses(&Filter::all(Resource::Accounts)), ["users:1:main", "users:2:main", "world"]);
    let euro = filter(Resource::Accounts, Operator::Gt, "balance[EUR]", "0");
    assert_eq!(addresses(&euro), ["users:2:main"]);

    let ids = |filter: &Filter, pit| {
        let transactions = model.transactions(&ledger, filter, pit);
        transactions.iter().map(|transaction| transaction.id.get()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&Filter::all(Resource::Transactions), None), [4, 3, 2, 1]);
    assert_eq!(ids(&Filter::all(Resource::Transactions), Some(at(1_200))), [2, 1]);
    assert_eq!(ids(&filter(Resource::Transactions, Operator::Match, "source", "users::"), None), [4]);
    assert_eq!(ids(&filter(Resource::Transactions, Operator::Match, "account", "users:2:"), None), [4, 3]);

    let newest = model.logs(&ledger, &filter(Resource::Logs, Operator::Gt, "id", "2"));
    assert_eq!(newest.iter().map(|entry| entry.id.get()).collect::<Vec<_>>(), [4, 3]);
    assert_eq!(model.stats(&ledger), (4, 3));
}

#[test]
fn shows_metadata_and_reverts_at_a_date() {
    let mut model = Model::default();
    let ledger = main_ledger();
    let first = TransactionId::new(1);
    let set = |target: Target, value: &str| Command::SetMetadata {
        target,
        metadata: [("k", value)].into_iter().collect(),
    };
    let user = address("users:1");
    run(&mut model, &set(Target::Account(user.clone()), "1"), 5);
    run(&mut model, &Command::CreateTransaction(pay("world", "users:1", "USD", 5)), 10);
    run(&mut model, &set(Target::Transaction(first), "1"), 20);
    run(&mut model, &set(Target::Account(user.clone()), "2"), 30);
    let revert = RevertTransaction {
        id: first,
        overdraft: Overdraft::Refuse,
        dated: RevertDate::Now,
        metadata: Metadata::EMPTY,
        rules: ledger_core::Rules::Current,
    };
    run(&mut model, &Command::RevertTransaction(revert), 40);
    let key = "k".into();
    run(&mut model, &Command::DeleteMetadata { target: Target::Account(user.clone()), key }, 50);

    let value = |pit| {
        let account = model.account(&ledger, &user, Some(at(pit))).unwrap();
        account.metadata.get("k").map(|value| value.as_shown().into_owned())
    };
    assert_eq!(model.account(&ledger, &user, Some(at(4))), None);
    assert_eq!(
        [value(5), value(29), value(30), value(50)].map(Option::unwrap_or_default),
        ["1", "1", "2", ""]
    );
    let transaction = |pit| model.transaction(&ledger, first, Some(at(pit))).unwrap();
    assert_eq!([19, 20].map(|pit| transaction(pit).metadata.len()), [0, 1]);
    assert_eq!([39, 40].map(|pit| transaction(pit).reverted_at), [None, Some(at(40))]);
    // The date of the last change is always the current one, as other servers of this API show it.
    assert_eq!([19, 20, 40].map(|pit| transaction(pit).updated_at), [at(40); 3]);
    assert_eq!(model.transaction(&ledger, first, Some(at(9))), None);
}

#[test]
fn idempotency_key_replays_the_first_answer() {
    let mut model = Model::default();
    let ledger = main_ledger();
    let key = |hash: &str| Idempotency { key: IdempotencyKey::parse("k").unwrap(), hash: hash.into() };
    let command = Command::CreateTransaction(pay("world", "a", "USD", 5));
    let refused = Command::CreateTransaction(pay("a", "b", "USD", 6));
    let mut ask = |command: &Command, hash: &str, dry_run, seconds| {
        model.execute(&ledger, command, Some(&key(hash)), dry_run, at(seconds))
    };
    assert!(ask(&refused, "x", false, 1).is_err(), "a refusal does not use up the key");
    let dry = ask(&command, "x", true, 2).unwrap();
    let first = ask(&command, "x", false, 3).unwrap();
    assert!(!dry.replayed && !first.replayed, "neither does a dry run");
    let again = ask(&command, "x", false, 9).unwrap();
    assert_eq!(again, ModelAnswer { replayed: true, ..first });
    assert!(matches!(ask(&command, "y", false, 10), Err(Rejection::IdempotencyMismatch { .. })));
    assert_eq!(model.stats(&ledger), (1, 2));
}

#[test]
fn ids_start_as_configured_and_dates_never_fall() {
    let mut model = Model::default();
    let ledger = main_ledger();
    let options = LedgerOptions { first_id: FirstId::Zero, ..LedgerOptions::default() };
    assert!(model.create(&ledger, options.clone()));
    assert!(!model.create(&ledger, options));
    let command = Command::CreateTransaction(pay("world", "a", "USD", 5));
    let first = run(&mut model, &command, 10).entry;
    let second = run(&mut model, &command, 5).entry;
    assert_eq!([first.id, second.id], [LogId::new(0), LogId::new(1)]);
    assert_eq!([first.date, second.date], [at(10), at(10)]);
    let LogPayload::NewTransaction { transaction, .. } = second.payload else { panic!("a transaction") };
    assert_eq!((transaction.id.get(), transaction.timestamp), (1, at(10)));
}

#[test]
fn first_entry_creates_the_ledger() {
    let mut model = Model::default();
    let ledger = main_ledger();
    let poor = Command::CreateTransaction(pay("a", "b", "USD", 5));
    let fine = Command::CreateTransaction(pay("world", "b", "USD", 5));
    assert!(model.execute(&ledger, &poor, None, false, at(1)).is_err());
    assert!(model.execute(&ledger, &fine, None, true, at(1)).is_ok());
    assert_eq!(model.ledgers().count(), 0);
    run(&mut model, &fine, 1);
    assert_eq!(model.ledgers().collect::<Vec<_>>(), [&ledger]);
}

#[test]
fn balances_of_accounts_at_a_date_are_effective() {
    let model = marketplace();
    let holders = |asset: &str, value: &str, pit: i64| -> Vec<String> {
        let filter = filter(Resource::Accounts, Operator::Match, &format!("balance[{asset}]"), value);
        let found = model.accounts(&main_ledger(), &filter, Some(at(pit)));
        found.iter().map(|account| account.address.to_string()).collect()
    };
    // All of it was recorded from the second 2,000 on.
    assert_eq!(holders("USD", "50", 1_150), ["users:1:main"]);
    assert_eq!(holders("USD", "150", 1_250), ["users:1:main"]);
    assert_eq!(holders("EUR", "7", 1_250), Vec::<String>::new());
    assert_eq!(holders("EUR", "7", 1_300), ["users:2:main"]);
    assert_eq!(holders("USD", "120", 1_400), ["users:1:main"]);
}
