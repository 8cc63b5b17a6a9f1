//! Runs of scripts: their needs, traces, profiles, and their effect as commands.

use ledger_core::script::{
    Bound, EmptyLedger, ErrorKind, Language, Need, Options, Profile, Program, Progress, Run, Scratch,
    Tracing, Variables, parse,
};
use ledger_core::{
    AccountAddress, Amount, Asset, Balance, Command, CreateTransaction, Facts, Movement, Overdraft, Posting,
    Rejection, Script, Timestamp, Volumes, decide, needs, settle,
};
use proptest::prelude::*;
use proptest::sample::select;

use super::{FixedLedger, printed, run, variables};

#[test]
fn asks_once_if_all_accounts_are_given() {
    let script = "vars { account $a monetary $m = balance(@b, PEAR) number $n = meta(@c, \"n\") }
        save [PLUM 1] from @d
        send [PEAR 1] (source = { $a \\ \"RED\" @world max $m from @e @f allowing unbounded overdraft } destination = @g)
        set_tx_meta(\"k\", balance(@h, PLUM))";
    let program = Program::compile(script, Profile::Default).expect("a script");
    let variables = variables("a=x");
    let mut scratch = Scratch::default();
    let mut run = Run::new(&program, &variables, Options::default(), &mut scratch);
    assert_eq!(run.advance(), Ok(Progress::Needs));
    let asked: Vec<String> = run
        .needs()
        .map(|need| match need {
            Need::Balance { account, asset, color } => format!("{account} {asset}{color}"),
            Need::Scales { account, base } => format!("{account} {base}/*"),
            Need::Metadata { account, key } => format!("{account}.{key}"),
        })
        .collect();
    assert_eq!(asked, ["b PEAR", "c.n", "d PLUM", "x PEARRED", "e PEAR", "h PLUM"]);
    // Advancing again without an answer changes nothing.
    assert_eq!(run.advance(), Ok(Progress::Needs));
    assert_eq!(run.needs().len(), 6);
    let Ok(()) = run.answer(&mut FixedLedger::of("c.n = 1"));
    assert_eq!(run.advance(), Ok(Progress::Done));
}

#[test]
fn traces_sources_and_limits_of_postings() {
    let script = "send [PEAR 9] (
  source = { @bowl oneof { @tree @world } }
  destination = { 1/3 to @a remaining to @b }
)";
    let options = Options { trace: Tracing::On, ..Options::default() };
    let outcome = run(script, "", "bowl PEAR 4\ntree PEAR 1", options).expect("it works");
    assert_eq!(outcome.postings.len(), 3);
    let trace = outcome.trace.expect("it was asked for");
    let lines = |at: usize| {
        trace.postings[at].sources.iter().map(|(range, amount)| (range.start.column, amount.to_string()))
    };
    assert_eq!(lines(1).collect::<Vec<_>>(), [(13, "1".to_owned())]);
    assert_eq!(lines(2).collect::<Vec<_>>(), [(33, "5".to_owned())]);
    assert_eq!(
        trace.postings[2].destination.map(|range| (range.start.line, range.start.column)),
        Some((2, 41))
    );
    let withdrawals: Vec<_> = trace
        .withdrawals
        .iter()
        .map(|one| (one.account.as_str(), one.gave.to_string(), one.returned))
        .collect();
    assert_eq!(
        withdrawals,
        [("bowl", "4".to_owned(), false), ("tree", "1".to_owned(), true), ("world", "5".to_owned(), false)]
    );
    assert_eq!(trace.withdrawals[1].asked, Some(Amount::from(5_u64)));
    let bound = Bound::Balance { balance: Balance::from(1), overdraft: Amount::ZERO };
    assert_eq!(trace.withdrawals[1].bound, bound);
}

#[test]
fn reports_several_syntax_errors_at_once() {
    let (_, errors) =
        parse("vars { account a number $n }\nsend [PEAR 1] (source = )\nsave\nset_tx_meta(\"k\" 1)\nsend");
    let places: Vec<u32> = errors.iter().map(|error| error.span.start).collect();
    assert_eq!(errors.len(), 5, "{errors:?}");
    assert!(places.is_sorted(), "{errors:?}");
    let many = "save ".repeat(10_000);
    assert_eq!(parse(&many).1.len(), ledger_core::limits::SCRIPT_ERRORS_MAX);
}

#[test]
fn profiles_behave_like_their_engines() {
    let with = |script: &str, profile| {
        printed(&run(script, "x=1", "a PEAR -3\nworld PEAR -7", Options { profile, ..Options::default() }))
    };
    let unused = "set_tx_meta(\"a\\qb\", balance(@world, PEAR))";
    assert_eq!(with(unused, Profile::Interpreter), "");
    assert!(with(unused, Profile::Default).starts_with("ParserError"), "{}", with(unused, Profile::Default));
    let given = "vars { number $x } save [PEAR 0] from @a send [PEAR 2] (source = @a allowing overdraft up to [PEAR 2] destination = @b)";
    assert_eq!(with(given, Profile::Interpreter), "a -> b PEAR 2");
    assert!(with(given, Profile::Default).starts_with("MissingFundsErr"));
    let unreached = "vars { number $x } send [PEAR 2] (source = { @world @a } destination = @b)";
    assert_eq!(with(unreached, Profile::Default), "world -> b PEAR 2");
    assert!(
        with(unreached, Profile::Machine).starts_with("Refused"),
        "{}",
        with(unreached, Profile::Machine)
    );
}

#[test]
fn settles_a_command_into_postings() {
    let settled = |plain: &str, books: &str| {
        let script = Script { plain: plain.into(), ..Script::default() };
        let mut create = CreateTransaction::of([].into_iter().collect());
        create.movement = Movement::Script(script);
        create.metadata.insert_text("k", "request");
        let compiled = Language::NUMSCRIPT.compile(plain);
        let Ok(settled) = settle(&mut create, &compiled, &mut FixedLedger::of(books));
        settled.map(|()| create)
    };
    let create = settled(
        "send [PEAR 2] (source = @a \\ \"RED\" destination = @b) set_tx_meta(\"j\", 1)",
        "a PEAR RED 2",
    );
    let create = create.expect("it is settled");
    let Movement::Postings(postings) = &create.movement else { panic!("a script is left") };
    assert_eq!(postings[0].asset.as_str(), "PEAR_RED");
    assert_eq!((create.metadata.len(), create.overdraft), (2, Overdraft::Allow));
    let refused = |plain: &str| settled(plain, "").expect_err("it is refused");
    let send = "send [PEAR 2] (source = @world destination = @b)";
    assert_eq!(
        refused(&format!("{send} set_tx_meta(\"k\", 1)")),
        Rejection::MetadataOverride { key: "k".into() }
    );
    assert_eq!(refused("print 1"), Rejection::NoPostings);
    assert_eq!(
        refused("send [PEAR 2] (source = { @a @c } destination = @b)").to_string(),
        "accounts a, c lack funds: 2 PEAR needed, 0 available"
    );
    let Rejection::Script { error, .. } = refused("send") else { panic!("another refusal") };
    assert!(matches!(error.kind, ErrorKind::Syntax { .. }));
}

#[test]
fn blank_ledger_answers_every_need() {
    let program = Program::compile(
        "send [PEAR 1] (source = { @a with scaling through @b @world } destination = @c)",
        Profile::Default,
    );
    let (program, variables, mut scratch) =
        (program.expect("a script"), Variables::new(), Scratch::default());
    let mut run = Run::new(&program, &variables, Options::default(), &mut scratch);
    while run.advance().expect("it works") == Progress::Needs {
        let Ok(()) = run.answer(&mut EmptyLedger);
    }
    assert_eq!(run.outcome().postings.len(), 1);
}

fn posting() -> impl Strategy<Value = Posting> {
    let account = || {
        select(vec!["world", "a", "b", "a:x"])
            .prop_map(|text| AccountAddress::parse(text).expect("an address"))
    };
    let amount = prop_oneof![5 => (1_u64..100).prop_map(Amount::from), 1 => any::<u128>().prop_map(|n| Amount::from(n.max(1)))];
    let asset = select(vec!["PEAR/2", "PLUM"]).prop_map(|text| Asset::parse(text).expect("an asset"));
    (account(), account(), amount, asset).prop_map(|(source, destination, amount, asset)| Posting {
        source,
        destination,
        amount,
        asset,
    })
}

proptest! {
    #[test]
    fn plain_sends_equal_their_postings(
        postings in proptest::collection::vec(posting(), 1..8),
        held in proptest::collection::vec(0_u64..150, 6),
    ) {
        let script: String = postings.iter().fold(String::new(), |script, posting| {
            let Posting { source, destination, amount, asset } = posting;
            script + &format!("send [{asset} {amount}] (source = @{source} destination = @{destination})\n")
        });
        let mut books = FixedLedger::default();
        for (at, (account, asset)) in [("a", "PEAR/2"), ("b", "PEAR/2"), ("a:x", "PEAR/2"), ("a", "PLUM"), ("b", "PLUM"), ("a:x", "PLUM")].into_iter().enumerate() {
            books.balances.insert((account.into(), asset.into(), String::new()), Balance::from(Amount::from(held[at])));
        }
        let command = Command::CreateTransaction(CreateTransaction::of(postings.iter().cloned().collect()));
        let needed = needs(&command, None);
        let volumes = needed.holdings.iter().map(|holding| {
            let key = (holding.account.to_string(), holding.asset.to_string(), String::new());
            let input = books.balances.get(&key).map_or(Amount::ZERO, |balance| balance.to_string().parse().expect("digits"));
            Volumes { input, output: Amount::ZERO }
        }).collect();
        let slots = needed.slots.clone();
        drop(needed);
        let mut facts = Facts { volumes, ..Facts::default() };
        let direct = decide(&command, &slots, &mut facts, Timestamp::from_micros(0));
        let program = Program::compile(&script, Profile::Default).expect("a script");
        let (variables, mut scratch) = (Variables::new(), Scratch::default());
        let mut run = Run::new(&program, &variables, Options::default(), &mut scratch);
        let scripted = loop {
            match run.advance() {
                Ok(Progress::Needs) => { let Ok(()) = run.answer(&mut books); }
                Ok(Progress::Done) => break Ok(run.ledger_postings().expect("assets of a ledger")),
                Err(error) => break Err(error),
            }
        };
        match (direct, scripted) {
            (Ok(_), Ok(scripted)) => prop_assert_eq!(scripted.to_vec(), postings),
            (Err(Rejection::InsufficientFunds { account, .. }), Err(error)) => match error.kind {
                ErrorKind::MissingFunds { accounts, .. } => prop_assert_eq!(accounts, vec![account]),
                other => prop_assert!(false, "{other:?}"),
            },
            (direct, scripted) => prop_assert!(false, "{direct:?} {scripted:?}"),
        }
    }
}
