//! The rules of API v1, tested on facts as a store would load them.

use std::sync::Arc;

use ledger_core::{
    AccountAddress, AddressExpression, Asset, Command, Comparison, Contract, CreateTransaction, Decision,
    Facts, KnownTransaction, LegacyRules, Mapping, Metadata, MetadataValue, Operand, Overdraft, PastDates,
    Posting, Postings, Reference, Rejection, RevertDate, RevertTransaction, Rule, Rules, Timestamp,
    TransactionId, Volumes, decide, needs,
};

fn account(address: &str) -> AccountAddress {
    AccountAddress::parse(address).expect(address)
}

fn posting(source: &str, destination: &str, amount: u64) -> Posting {
    let asset = Asset::parse("USD").expect("an asset");
    Posting { source: account(source), destination: account(destination), amount: amount.into(), asset }
}

fn rules(contracts: Vec<Contract>, past_dates: PastDates) -> Rules {
    Rules::Legacy(Arc::new(LegacyRules { mapping: Mapping::new(contracts), past_dates }))
}

fn create(postings: &[(&str, &str, u64)], rules: Rules) -> CreateTransaction {
    let postings: Postings = postings.iter().map(|(from, to, amount)| posting(from, to, *amount)).collect();
    CreateTransaction { rules, ..CreateTransaction::of(postings) }
}

/// Decides on balances by account, all in one asset. Returns the transaction that the result reverts, and its
/// reference.
fn decided(
    command: &Command,
    balances: &[(&str, u64, u64)],
    mut facts: Facts,
) -> Result<(Option<TransactionId>, Option<String>), Rejection> {
    let original = facts.transaction.clone();
    let wanted = needs(command, original.as_deref());
    let volumes = |address: &AccountAddress| {
        let found = balances.iter().find(|(have, ..)| *have == address.as_str());
        found.map_or_else(Volumes::default, |(_, input, output)| Volumes {
            input: (*input).into(),
            output: (*output).into(),
        })
    };
    facts.volumes = wanted.holdings.iter().map(|holding| volumes(holding.account)).collect();
    let decision = decide(command, &wanted.slots, &mut facts, Timestamp::from_micros(100))?;
    let Decision::Transaction(new) = decision else { panic!("{decision:?}") };
    Ok((new.reverts, new.reference.map(|reference| reference.as_str().to_owned())))
}

#[track_caller]
fn check(postings: &[(&str, &str, u64)], balances: &[(&str, u64, u64)], lacking: Option<&str>) {
    let command = Command::CreateTransaction(create(postings, rules(Vec::new(), PastDates::Accept)));
    let refused = match decided(&command, balances, Facts::default()) {
        Ok(_) => None,
        Err(Rejection::InsufficientFunds { account, .. }) => Some(account.to_string()),
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(refused.as_deref(), lacking, "{postings:?}");
}

#[test]
fn checks_only_balances_that_fall() {
    check(&[("a", "b", 100), ("world", "a", 100)], &[], None);
    check(&[("a", "b", 100), ("world", "a", 99)], &[], Some("a"));
    check(&[("world", "a", 1)], &[("a", 0, 5)], None);
    check(&[("a", "b", 1), ("b", "a", 1)], &[("a", 0, 5)], None);
    check(&[("a", "b", 1)], &[("a", 0, 5)], Some("a"));
    check(&[("a", "a", 7)], &[], None);
    check(&[("world", "a", 7)], &[], None);
}

#[test]
fn contract_may_read_metadata() {
    let limit =
        Rule::Compare(Comparison::GreaterOrEqual, Operand::Balance, Operand::Metadata("limit".into()));
    let contract = Contract { accounts: AddressExpression::anywhere("^cards:").expect("valid"), rule: limit };
    let command =
        Command::CreateTransaction(create(&[("cards:1", "b", 8)], rules(vec![contract], PastDates::Accept)));
    assert_eq!(needs(&command, None).metadata.as_slice(), [0]);
    for (limit, allowed) in [("-8", true), ("-7", false), ("\"-8\"", false)] {
        let mut metadata = Metadata::EMPTY;
        metadata.insert("limit", MetadataValue::Json(limit.into()));
        let facts = Facts { metadata: [(0, metadata)].into_iter().collect(), ..Facts::default() };
        assert_eq!(decided(&command, &[], facts).is_ok(), allowed, "{limit}");
    }
    assert!(decided(&command, &[], Facts::default()).is_err(), "no metadata, no limit");
}

#[test]
fn checks_dates_then_references_then_funds() {
    let mut poor = create(&[("a", "b", 1)], rules(Vec::new(), PastDates::Refuse));
    poor.reference = Some(Reference::parse("r").expect("a reference"));
    poor.timestamp = Some(Timestamp::from_micros(5));
    let command = Command::CreateTransaction(poor);
    assert!(needs(&command, None).last_date);
    let facts = |last, reference_taken| Facts {
        last_date: Some(Timestamp::from_micros(last)),
        reference_taken,
        ..Facts::default()
    };
    let past = decided(&command, &[], facts(6, true));
    assert!(matches!(past, Err(Rejection::PastDate { .. })), "{past:?}");
    let taken = decided(&command, &[], facts(5, true));
    assert!(matches!(taken, Err(Rejection::ReferenceTaken { .. })), "{taken:?}");
    let poor = decided(&command, &[], facts(5, false));
    assert!(matches!(poor, Err(Rejection::InsufficientFunds { .. })), "{poor:?}");
}

#[test]
fn revert_reference_derives_from_the_original() {
    let original = |reference: Option<&str>| KnownTransaction {
        postings: [posting("world", "a", 5)].into_iter().collect(),
        timestamp: Timestamp::from_micros(1),
        reference: reference.map(|text| Reference::parse(text).expect("a reference")),
        metadata: Metadata::EMPTY,
        reverted: false,
    };
    let revert = |rules| {
        Command::RevertTransaction(RevertTransaction {
            id: TransactionId::new(3),
            overdraft: Overdraft::Refuse,
            dated: RevertDate::Now,
            metadata: Metadata::EMPTY,
            rules,
        })
    };
    let longest = "r".repeat(ledger_core::limits::REFERENCE_BYTES_MAX);
    let legacy = || rules(Vec::new(), PastDates::Accept);
    for (rules, reference, expected) in [
        (legacy(), Some("x"), Some("revert_x")),
        (legacy(), None, None),
        (legacy(), Some(longest.as_str()), None),
        (Rules::Current, Some("x"), None),
    ] {
        let facts = Facts { transaction: Some(original(reference).into()), ..Facts::default() };
        let decision = decided(&revert(rules), &[("a", 5, 0)], facts);
        assert_eq!(decision, Ok((Some(TransactionId::new(3)), expected.map(Into::into))));
    }
    let facts = Facts { transaction: Some(original(Some("x")).into()), ..Facts::default() };
    let poor = decided(&revert(legacy()), &[("a", 5, 1)], facts);
    assert!(matches!(poor, Err(Rejection::InsufficientFunds { .. })), "{poor:?}");
}
