//! Properties of the core, tested with random input.

use ledger_core::model::Model;
use ledger_core::{
    AccountAddress, AddressPattern, Amount, Asset, Balance, Command, CreateTransaction, LedgerName,
    LogPayload, Metadata, Overdraft, OverdraftLimit, Posting, Reference, Resource, RevertDate,
    RevertTransaction, Target, Timestamp, TransactionId, WireHash,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::memory_ledger::MemoryLedger;

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        2 => Just(Amount::ZERO),
        8 => (0_u64..120).prop_map(Amount::from),
        1 => any::<u64>().prop_map(Amount::from),
        1 => any::<u128>().prop_map(Amount::from),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Amount::from_le_bytes(&bytes)),
    ]
}

fn account() -> impl Strategy<Value = AccountAddress> {
    select(vec!["world", "world", "a", "b", "a:x", "users:1"])
        .prop_map(|text| AccountAddress::parse(text).unwrap())
}

fn posting() -> impl Strategy<Value = Posting> {
    (account(), account(), amount(), select(vec!["USD/2", "EUR"])).prop_map(
        |(source, destination, amount, asset)| Posting {
            source,
            destination,
            amount,
            asset: Asset::parse(asset).unwrap(),
        },
    )
}

fn metadata() -> impl Strategy<Value = Metadata> {
    proptest::collection::vec((select(vec!["k", "l", "m"]), select(vec!["1", "2"])), 0..3)
        .prop_map(|pairs| pairs.into_iter().collect())
}

fn overdraft() -> impl Strategy<Value = Overdraft> {
    let limit = (account(), amount()).prop_map(|(account, limit)| {
        Overdraft::UpTo(vec![OverdraftLimit { account, asset: Asset::parse("EUR").unwrap(), limit }])
    });
    prop_oneof![4 => Just(Overdraft::Refuse), 1 => Just(Overdraft::Allow), 2 => limit]
}

fn id() -> impl Strategy<Value = TransactionId> {
    (0_u64..10).prop_map(TransactionId::new)
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![account().prop_map(Target::Account), id().prop_map(Target::Transaction)]
}

fn seconds() -> impl Strategy<Value = Timestamp> {
    (0_i64..40).prop_map(|seconds| Timestamp::from_micros(seconds * 1_000_000))
}

fn create() -> impl Strategy<Value = CreateTransaction> {
    (
        // `needs` handles more than eight postings differently.
        prop_oneof![4 => proptest::collection::vec(posting(), 0..4), 1 => proptest::collection::vec(posting(), 8..14)],
        metadata(),
        proptest::collection::btree_map(account(), metadata(), 0..2),
        proptest::option::of(seconds()),
        proptest::option::weighted(0.3, select(vec!["r", "s", "t"])),
        overdraft(),
    )
        .prop_map(|(postings, metadata, account_metadata, timestamp, reference, overdraft)| {
            CreateTransaction {
                metadata,
                account_metadata,
                timestamp,
                reference: reference.map(|text| Reference::parse(text).unwrap()),
                overdraft,
                ..CreateTransaction::of(postings.into_iter().collect())
            }
        })
}

fn command() -> impl Strategy<Value = Command> {
    let revert = (id(), overdraft(), select(vec![RevertDate::Now, RevertDate::OfOriginal]), metadata())
        .prop_map(|(id, overdraft, dated, metadata)| RevertTransaction {
            id,
            overdraft,
            dated,
            metadata,
            rules: ledger_core::Rules::Current,
        });
    prop_oneof![
        5 => create().prop_map(Command::CreateTransaction),
        2 => revert.prop_map(Command::RevertTransaction),
        1 => (target(), metadata()).prop_map(|(target, metadata)| Command::SetMetadata { target, metadata }),
        1 => (target(), select(vec!["k", "l"]))
            .prop_map(|(target, key)| Command::DeleteMetadata { target, key: key.into() }),
    ]
}

fn commands() -> impl Strategy<Value = Vec<(Command, Timestamp)>> {
    proptest::collection::vec((command(), seconds()), 1..24)
}

/// Matches a pattern literally as the specification describes it, with lists of segments.
fn fits(pattern: &str, address: &str) -> bool {
    let mut pattern: Vec<&str> = pattern.split(':').collect();
    let address: Vec<&str> = address.split(':').collect();
    if pattern.last() == Some(&"...") {
        pattern.pop();
        return (0..pattern.len()).all(|at| pattern[at].is_empty() || address.get(at) == Some(&pattern[at]));
    }
    pattern.len() == address.len()
        && (0..pattern.len()).all(|at| pattern[at].is_empty() || address[at] == pattern[at])
}

fn common_prefix(texts: &[String]) -> String {
    let first = &texts[0];
    let length = (0..=first.len())
        .rev()
        .find(|&length| texts.iter().all(|text| text.starts_with(&first[..length])))
        .unwrap();
    first[..length].to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rules_and_model_agree(commands in commands()) {
        let (mut books, mut model) = (MemoryLedger::default(), Model::default());
        let ledger = LedgerName::parse("main").unwrap();
        for (command, now) in &commands {
            let before = books.clone();
            let entry = books.execute(command, *now);
            if entry.is_err() {
                prop_assert!(books == before, "a refusal changes nothing");
            }
            let dry = model.execute(&ledger, command, None, true, *now);
            let modelled = model.execute(&ledger, command, None, false, *now);
            prop_assert_eq!(&dry, &modelled, "a dry run answers the same");
            let modelled = modelled.map(|mut answer| {
                if let LogPayload::NewTransaction { effective_volumes, .. }
                | LogPayload::RevertedTransaction { effective_volumes, .. } = &mut answer.entry.payload
                {
                    *effective_volumes = None;
                }
                answer.entry
            });
            prop_assert_eq!(entry, modelled);
            for (asset, sum) in books.sums() {
                prop_assert_eq!(sum, Balance::ZERO, "{} came from nowhere", asset);
            }
        }
        let all = ledger_core::Filter::all(Resource::Volumes);
        let rows = model.volumes(&ledger, &all, ledger_core::model::Window::ALL, None);
        prop_assert_eq!(rows.len(), books.volumes.len());
        for row in rows {
            prop_assert_eq!(&books.volumes[&(row.account, row.asset)], &row.volumes);
        }
        let accounts = model.accounts(&ledger, &ledger_core::Filter::all(Resource::Accounts), None);
        prop_assert_eq!(accounts.len(), books.accounts.len());
        for account in accounts {
            prop_assert_eq!(&books.accounts[&account.address], &account.metadata);
        }
    }

    #[test]
    fn last_effective_volumes_are_the_totals(commands in commands()) {
        let mut model = Model::default();
        let ledger = LedgerName::parse("main").unwrap();
        for (command, now) in &commands {
            let _ = model.execute(&ledger, command, None, false, *now);
        }
        let mut transactions =
            model.transactions(&ledger, &ledger_core::Filter::all(Resource::Transactions), None);
        transactions.sort_by_key(|transaction| (transaction.timestamp, transaction.id));
        let mut last = std::collections::BTreeMap::new();
        for transaction in &transactions {
            for row in model.post_commit_effective_volumes(&ledger, transaction.id).unwrap() {
                last.insert((row.account, row.asset), row.volumes);
            }
        }
        let all = ledger_core::Filter::all(Resource::Volumes);
        for row in model.volumes(&ledger, &all, ledger_core::model::Window::ALL, None) {
            prop_assert_eq!(&last[&(row.account, row.asset)], &row.volumes);
        }
    }

    #[test]
    fn revert_restores_balances(commands in commands(), mut create in create()) {
        let mut books = MemoryLedger::default();
        for (command, now) in &commands {
            let _ = books.execute(command, *now);
        }
        create.overdraft = Overdraft::Allow;
        create.reference = None;
        let mut before = books.balances();
        let now = Timestamp::from_micros(60_000_000);
        if books.execute(&Command::CreateTransaction(create), now).is_ok() {
            let id = *books.transactions.last_key_value().unwrap().0;
            let (overdraft, dated) = (Overdraft::Allow, RevertDate::Now);
            let revert = RevertTransaction { id, overdraft, dated, metadata: Metadata::EMPTY, rules: ledger_core::Rules::Current };
            books.execute(&Command::RevertTransaction(revert), now).unwrap();
        }
        for holding in books.volumes.keys() {
            before.entry(holding.clone()).or_insert(Balance::ZERO);
        }
        prop_assert_eq!(books.balances(), before);
    }

    #[test]
    fn printed_values_parse_to_the_same(
        micros in Timestamp::MIN.as_micros()..=Timestamp::MAX.as_micros(),
        input in amount(),
        output in amount(),
        bytes in any::<[u8; 32]>(),
        address in "[a-zA-Z0-9_-]{1,9}(:[a-zA-Z0-9_-]{1,9}){0,4}",
        asset in "[A-Z][A-Z0-9]{0,16}(_[A-Z]{1,16})?(/[0-9]{1,6})?",
    ) {
        let timestamp = Timestamp::from_micros(micros);
        prop_assert_eq!(Timestamp::parse(&timestamp.to_string()), Ok(timestamp));
        prop_assert_eq!(&input.to_string().parse::<Amount>().unwrap(), &input);
        prop_assert_eq!(&Amount::from_le_bytes(&input.to_le_bytes()), &input);
        let balance = Balance::of(&input, &output);
        prop_assert_eq!(&Balance::parse(&balance.to_string()).unwrap(), &balance);
        let mut written = Vec::new();
        balance.write_to(&mut written);
        prop_assert_eq!(String::from_utf8(written).unwrap(), balance.to_string());
        let hash = WireHash::from_bytes(bytes);
        prop_assert_eq!(WireHash::from_base64(&hash.to_base64()), Some(hash));
        prop_assert_eq!(AccountAddress::parse(&address).unwrap().to_string(), address);
        prop_assert_eq!(Asset::parse(&asset).unwrap().to_string(), asset);
    }

    #[test]
    fn parsers_never_panic(text in "\\PC{0,40}", date in "[0-9T:Z.+-]{0,32}") {
        let _ = (Timestamp::parse(&text), Timestamp::parse(&date), Balance::parse(&text));
        let _ = (AccountAddress::parse(&text), Asset::parse(&text), WireHash::from_base64(&text));
        let pattern = AddressPattern::parse(&text);
        prop_assert!(text.starts_with(pattern.literal_prefix()));
        let _ = pattern.matches(&date);
    }

    #[test]
    fn patterns_match_as_specified(
        pattern in "[ab]{0,2}(:[ab]{0,2}){0,3}(:\\.\\.\\.)?|\\.\\.\\.",
        address in "[ab]{1,2}(:[ab]{1,2}){0,3}",
    ) {
        let parsed = AddressPattern::parse(&pattern);
        prop_assert_eq!(parsed.matches(&address), fits(&pattern, &address));
        if parsed.matches(&address) {
            prop_assert!(address.starts_with(parsed.literal_prefix()));
            prop_assert!(parsed.exact().is_none_or(|exact| exact.as_str() == address));
        }
    }

    #[test]
    fn literal_prefix_is_the_longest(
        pattern in "[ab]{0,2}(:[ab]{0,2}){0,3}(:\\.\\.\\.)?|\\.\\.\\.",
    ) {
        let parsed = AddressPattern::parse(&pattern);
        let segments: Vec<&str> = pattern.split(':').filter(|segment| *segment != "...").collect();
        let filled = |with: &str| {
            let fill = |segment: &&str| if segment.is_empty() { with.to_owned() } else { (*segment).to_owned() };
            segments.iter().map(fill).collect::<Vec<_>>().join(":")
        };
        let mut some = vec![filled("0"), filled("z")];
        if pattern.ends_with("...") {
            // Empty segments before the dots may be absent, and more segments may follow.
            let least = filled("").trim_end_matches(':').to_owned();
            let gap = |text: &str| text.split(':').map(|s| if s.is_empty() { "0" } else { s }.to_owned())
                .collect::<Vec<_>>().join(":");
            some.push(gap(&least));
            some.push(format!("{}:y", filled("0")));
            some.push(if segments.iter().all(|s| s.is_empty()) { "q".to_owned() } else { filled("q") });
        }
        for address in &some {
            prop_assert!(parsed.matches(address), "{} {}", pattern, address);
        }
        prop_assert_eq!(parsed.literal_prefix(), common_prefix(&some));
        prop_assert_eq!(parsed.exact().is_some(), some.iter().all(|address| *address == some[0]));
    }
}
