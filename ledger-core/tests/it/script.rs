//! The script language through its public interface: each case a script, what is there, and what comes of it.

use std::collections::BTreeMap;
use std::convert::Infallible;

use ledger_core::script::{
    Blank, Bound, ErrorKind, Need, Options, Outcome, Profile, Program, Progress, Reads, Run, Scratch,
    ScriptError, Tracing, Type, Variables, parse, settle,
};
use ledger_core::{
    AccountAddress, Amount, Asset, Balance, Command, CompactString, CreateTransaction, Facts, MetadataValue,
    Movement, Overdraft, Posting, Rejection, Script, Timestamp, VariableValue, Volumes, decide, needs,
};
use proptest::prelude::*;
use proptest::sample::select;

/// Lines of `account ASSET amount`, `account ASSET COLOR amount` or `account.key = value`.
#[derive(Clone, Default)]
struct Books {
    balances: BTreeMap<(String, String, String), Balance>,
    metadata: BTreeMap<(String, String), String>,
}

impl Books {
    fn of(lines: &str) -> Self {
        let mut books = Self::default();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some((target, value)) = line.split_once(" = ") {
                let (account, key) = target.split_once('.').expect("account.key");
                books.metadata.insert((account.into(), key.into()), value.into());
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let (account, asset, color, amount) = match words.as_slice() {
                [account, asset, amount] => (account, asset, "", amount),
                [account, asset, color, amount] => (account, asset, *color, amount),
                _ => panic!("{line}"),
            };
            let key = ((*account).to_owned(), (*asset).to_owned(), color.to_owned());
            books.balances.insert(key, Balance::parse(amount).expect("digits"));
        }
        books
    }
}

impl Reads for Books {
    type Error = Infallible;

    fn balance(&mut self, account: &AccountAddress, asset: &str, color: &str) -> Result<Balance, Infallible> {
        let key = (account.to_string(), asset.to_owned(), color.to_owned());
        Ok(self.balances.get(&key).cloned().unwrap_or_default())
    }

    fn scales(
        &mut self,
        account: &AccountAddress,
        base: &str,
    ) -> Result<Vec<(CompactString, Balance)>, Infallible> {
        let of_base = |asset: &str| asset.split('/').next() == Some(base);
        let held = self
            .balances
            .iter()
            .filter(|((of, asset, color), _)| of == account.as_str() && of_base(asset) && color.is_empty());
        Ok(held.map(|((_, asset, _), balance)| (asset.as_str().into(), balance.clone())).collect())
    }

    fn metadata(&mut self, account: &AccountAddress, key: &str) -> Result<Option<MetadataValue>, Infallible> {
        let value = self.metadata.get(&(account.to_string(), key.to_owned()));
        Ok(value.map(|text| MetadataValue::Text(text.as_str().into())))
    }
}

/// Words of `name=value`.
fn variables(words: &str) -> Variables {
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').expect("name=value");
        (name.to_owned(), value.replace('_', " "))
    };
    words.split_whitespace().map(pair).collect()
}

fn run(script: &str, given: &str, books: &str, options: Options) -> Result<Outcome, ScriptError> {
    let program = Program::compile(script, options.profile)?;
    let variables = variables(given);
    let mut scratch = Scratch::default();
    let mut run = Run::new(&program, &variables, options, &mut scratch);
    let mut books = Books::of(books);
    while run.advance()? == Progress::Needs {
        let Ok(()) = run.answer(&mut books);
    }
    Ok(run.outcome())
}

/// The postings, one a line, or the kind and text of the error.
fn shown(outcome: &Result<Outcome, ScriptError>) -> String {
    match outcome {
        Ok(outcome) => {
            let lines: Vec<String> = outcome
                .postings
                .iter()
                .map(|posting| {
                    let Posting { source, destination, amount, asset } = &posting.posting;
                    let color =
                        if posting.color.is_empty() { String::new() } else { format!(" {}", posting.color) };
                    format!("{source} -> {destination} {asset}{color} {amount}")
                })
                .collect();
            lines.join("\n")
        }
        Err(error) => format!("{}: {error}", error.kind.name()),
    }
}

#[track_caller]
fn check_with(script: &str, given: &str, books: &str, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(shown(&run(script, given, books, Options::default())), expected.join("\n"), "{script}");
}

#[track_caller]
fn check(script: &str, books: &str, expected: &str) {
    check_with(script, "", books, expected);
}

#[test]
fn sources_pay_in_order_as_far_as_they_can() {
    let two = "send [PEAR 10] (source = { @bowl @tree } destination = @pie)";
    check(two, "bowl PEAR 4\ntree PEAR 90", "bowl -> pie PEAR 4\ntree -> pie PEAR 6");
    check(two, "bowl PEAR 14", "bowl -> pie PEAR 10");
    check(
        two,
        "bowl PEAR -4\ntree PEAR 9",
        "MissingFundsErr: 1:26 Not enough funds. Needed [PEAR 10] (only [PEAR 9] available)",
    );
    check(
        "send [PEAR 10] (source = { max [PEAR 3] from @tree @bowl allowing overdraft up to [PEAR 2] @world } destination = @pie)",
        "bowl PEAR 1\ntree PEAR 90",
        "tree -> pie PEAR 3\nbowl -> pie PEAR 3\nworld -> pie PEAR 4",
    );
    // The same account twice is not spent twice, and neighbours are one posting.
    check(
        "send [PEAR 9] (source = { max [PEAR 5] from @bowl @bowl @tree @bowl } destination = @pie)",
        "bowl PEAR 8\ntree PEAR 5",
        "bowl -> pie PEAR 8\ntree -> pie PEAR 1",
    );
}

#[test]
fn everything_is_what_is_there_and_may_be_borrowed() {
    let all = "send [PEAR *] (source = { @bowl allowing overdraft up to [PEAR 5] max [PEAR 2] from @world } destination = @pie)";
    check(all, "bowl PEAR 3", "bowl -> pie PEAR 8\nworld -> pie PEAR 2");
    check(all, "bowl PEAR -6", "world -> pie PEAR 2");
    check("send [PEAR *] (source = @bowl destination = @pie)", "", "");
    let endless = "send [PEAR *] (source = @bowl allowing unbounded overdraft destination = @pie)";
    check(endless, "", "InvalidUnboundedInSendAll: 1:25 cannot take all balance from an unbounded source");
    let halves = "send [PEAR *] (source = { 1/2 from @bowl remaining from @tree } destination = @pie)";
    check(halves, "", "InvalidAllotmentInSendAll: 1:25 cannot take all balance of an allotment source");
}

#[test]
fn shares_are_exact_and_the_first_get_the_rest() {
    let split = |amount: u32, shares: &str| {
        format!("send [PEAR {amount}] (source = @world destination = {{ {shares} }})")
    };
    check(
        &split(11, "1/4 to @a 1/4 to @b remaining to @c"),
        "",
        "world -> a PEAR 3\nworld -> b PEAR 3\nworld -> c PEAR 5",
    );
    check(&split(1, "0% to @a 1/2 to @b 1/2 to @c"), "", "world -> a PEAR 1");
    check(&split(7, "remaining to @a 99.9% to @b"), "", "world -> a PEAR 1\nworld -> b PEAR 6");
    check(&split(8, "2/3 to @a 1/3 kept"), "", "world -> a PEAR 6");
    check(
        &split(8, "2/3 to @a 2/3 to @b"),
        "",
        "BadAllotmentSum: 1:46 Allotment portions do not make one whole (got 4/3)",
    );
    check(
        &split(8, "3/2 to @a -1/2 to @b"),
        "",
        "InvalidPortion: 1:48 Invalid portion: 3/2 is not between 0% and 100%",
    );
    check(
        &split(8, "remaining to @a remaining to @b"),
        "",
        "DuplicateRemaining: 1:64 two 'remaining' clauses in one allotment",
    );
    let by_number = format!("vars {{ number $n }} {}", split(12, "$n/4 to @a remaining to @b"));
    check_with(&by_number, "n=3", "", "world -> a PEAR 9\nworld -> b PEAR 3");
    check_with(&by_number, "n=5", "", "InvalidPortion: 1:68 Invalid portion: 5/4 is not between 0% and 100%");
    check_with(
        &by_number,
        "n=-1",
        "",
        "InvalidPortion: 1:68 Invalid portion: -1/4 is not between 0% and 100%",
    );
    // A share of a source is paid whole or not at all.
    check(
        "send [PEAR 10] (source = { { 1/2 from @bowl remaining from @tree } @world } destination = @pie)",
        "bowl PEAR 4\ntree PEAR 50",
        "MissingFundsErr: 1:39 Not enough funds. Needed [PEAR 5] (only [PEAR 4] available)",
    );
}

#[test]
fn what_is_kept_is_what_would_have_come_last() {
    check(
        "send [PEAR 10] (source = { @bowl @tree } destination = { max [PEAR 6] kept remaining to @pie })
         send [PEAR 2] (source = @tree destination = @jam)",
        "bowl PEAR 5\ntree PEAR 5",
        "bowl -> pie PEAR 4\ntree -> jam PEAR 2",
    );
    let interpreter = Options { profile: Profile::Interpreter, ..Options::default() };
    let kept =
        "send [PEAR 10] (source = { @bowl @tree } destination = { max [PEAR 6] kept remaining to @pie })";
    let outcome = run(kept, "", "bowl PEAR 5\ntree PEAR 5", interpreter);
    assert_eq!(shown(&outcome), "tree -> pie PEAR 4");
}

#[test]
fn destinations_are_filled_in_order_or_chosen() {
    let to = |destination: &str| format!("send [PEAR 10] (source = @world destination = {destination})");
    check(
        &to(
            "{ max [PEAR 3] to @a max [PEAR -1] to @b max [PEAR 4] to { 1/2 to @c 1/2 to @d } remaining to @e }",
        ),
        "",
        "world -> a PEAR 3\nworld -> c PEAR 2\nworld -> d PEAR 2\nworld -> e PEAR 3",
    );
    check(&to("oneof { max [PEAR 9] to @a max [PEAR 10] to @b remaining to @c }"), "", "world -> b PEAR 10");
    check(&to("oneof { max [PEAR 9] to @a remaining to @c }"), "", "world -> c PEAR 10");
    check(
        &to("{ max [PLUM 9] to @a remaining to @c }"),
        "",
        "MismatchedCurrencyError: 1:53 Mismatched currency (expected 'PEAR', got 'PLUM' instead)",
    );
}

#[test]
fn one_of_several_sources_pays_alone() {
    let one = "send [PEAR 6] (source = oneof { @bowl { @bowl @tree } @world } destination = @pie)";
    check(one, "bowl PEAR 6", "bowl -> pie PEAR 6");
    check(one, "bowl PEAR 5\ntree PEAR 1", "bowl -> pie PEAR 5\ntree -> pie PEAR 1");
    check(one, "bowl PEAR 5", "world -> pie PEAR 6");
    check(
        "send [PEAR 6] (source = oneof { @bowl @tree } destination = @pie)",
        "bowl PEAR 5\ntree PEAR 4",
        "MissingFundsErr: 1:25 Not enough funds. Needed [PEAR 6] (only [PEAR 4] available)",
    );
}

#[test]
fn colors_are_funds_of_their_own() {
    check(
        "send [PEAR 7] (source = { @bowl \\ \"RED\" @bowl } destination = @pie)
         send [PEAR *] (source = @pie \\ \"RED\" destination = @jam)",
        "bowl PEAR 9\nbowl PEAR RED 3",
        "bowl -> pie PEAR RED 3\nbowl -> pie PEAR 4\npie -> jam PEAR RED 3",
    );
    check(
        "send [PEAR 1] (source = @bowl \\ \"red\" destination = @pie)",
        "",
        "InvalidColor: 1:33 Invalid color name: 'red'. Only uppercase letters are allowed.",
    );
}

#[test]
fn other_precisions_are_changed() {
    check(
        "send [OIL/1 25] (source = @tank with scaling through @pump destination = @car)",
        "tank OIL 1\ntank OIL/1 2\ntank OIL/3 750",
        "MissingFundsErr: 1:27 Not enough funds. Needed [OIL/1 25] (only [OIL/1 19] available)",
    );
    check(
        "send [OIL/1 15] (source = @tank with scaling through @pump destination = @car)",
        "tank OIL 1\ntank OIL/1 2\ntank OIL/3 750",
        "tank -> pump OIL/3 700\ntank -> pump OIL 1\npump -> tank OIL/1 17\ntank -> car OIL/1 15",
    );
    check(
        "send [OIL/1 15] (source = @tank with scaling through @pump destination = @car)",
        "tank OIL/99999 1",
        "ScaleOutOfRange: 1:27 OIL/99999 is too far from the precision that is sent to be scaled",
    );
}

#[test]
fn saved_money_is_not_spent() {
    check(
        "save [PEAR 4] from @bowl send [PEAR *] (source = @bowl destination = @pie)",
        "bowl PEAR 9",
        "bowl -> pie PEAR 5",
    );
    check(
        "save [PEAR *] from @bowl send [PEAR 3] (source = @bowl allowing overdraft up to [PEAR 8] destination = @pie)",
        "bowl PEAR -5",
        "bowl -> pie PEAR 3",
    );
    check("save -[PEAR 1] from @bowl", "", "NegativeAmountErr: 1:6 Cannot send negative amount: -1");
}

#[test]
fn later_statements_see_what_earlier_ones_did() {
    check(
        "send [PEAR 5] (source = @world destination = @bowl)
         send [PEAR *] (source = @bowl destination = @pie)",
        "bowl PEAR 2",
        "world -> bowl PEAR 5\nbowl -> pie PEAR 7",
    );
    // Within one send, what arrives cannot be sent on.
    check(
        "send [PEAR 5] (source = { max [PEAR 3] from @world @bowl } destination = @bowl)",
        "",
        "MissingFundsErr: 1:25 Not enough funds. Needed [PEAR 5] (only [PEAR 3] available)",
    );
    check(
        "send [PEAR 5] (source = @world destination = @bowl)
         send balance(@bowl, PEAR) (source = @world destination = @jar)",
        "bowl PEAR 2",
        "world -> bowl PEAR 5\nworld -> jar PEAR 7",
    );
}

#[test]
fn values_are_exact_and_keep_their_text() {
    let script = "vars { account $a number $n portion $p string $s }
        set_tx_meta(\"account\", @x:$a:$n:$s) set_tx_meta(\"number\", $n - 1_000 + 2)
        set_tx_meta(\"portion\", $p) set_tx_meta(\"sum\", [PEAR/2 $n] - [PEAR/2 1])
        set_tx_meta(\"asset\", get_asset([PEAR/2 1])) set_tx_meta(\"amount\", get_amount(-[PEAR 5]))
        set_tx_meta(\"text\", \"tab\\t\\u00e9\\\"\") set_account_meta($a, \"k\", 6/4)";
    let huge = "123456789012345678901234567890";
    let outcome =
        run(script, &format!("a=y:z n={huge} p=12.5% s=w"), "", Options::default()).expect("it works");
    let texts: Vec<(&str, &str)> = outcome.metadata.iter().map(|(key, value)| (key, value.text())).collect();
    assert_eq!(
        texts,
        [
            ("account", &*format!("x:y:z:{huge}:w")),
            ("amount", "-5"),
            ("asset", "PEAR/2"),
            ("number", "123456789012345678901234566892"),
            ("portion", "1/8"),
            ("sum", "PEAR/2 123456789012345678901234567889"),
            ("text", "tab\té\""),
        ]
    );
    let account = AccountAddress::parse("y:z").expect("an address");
    assert_eq!(outcome.account_metadata[&account].get("k").map(MetadataValue::text), Some("3/2"));
}

#[test]
fn variables_come_from_the_caller_or_from_the_ledger() {
    let script = "vars { account $shop account $owner = meta($shop, \"owner\") portion $cut = meta($owner, \"cut\")
        monetary $held = balance($shop, PEAR) } send $held (source = $shop destination = { $cut to $owner remaining kept })";
    check_with(script, "shop=s", "s.owner = o:1\no:1.cut = 1/4\ns PEAR 80", "s -> o:1 PEAR 20");
    check_with(
        script,
        "shop=s",
        "s.owner = o:1\ns PEAR 80",
        "MetadataNotFound: 1:75 account '@o:1' doesn't have metadata associated to the 'cut' key",
    );
    check_with(script, "", "", "MissingVariableErr: 1:16 Variable is missing in json: shop");
    check_with(
        script,
        "shop=s cut=1/2",
        "s.owner = o:1\no:1.cut = 1/4",
        "ExtraneousVariable: extraneous variable $cut",
    );
    check_with(script, "shop=s!", "", "InvalidAccountName: 1:16 Invalid account name: @s!");
    check_with(
        "vars { monetary $m }",
        "m=PEAR_-1",
        "",
        "InvalidVariable: 1:17 invalid value of variable $m: negative amount",
    );
    let typed = "vars { monetary $m = meta(@a, \"m\") } send $m (source = @world destination = @a)";
    check(
        typed,
        "a.m = {\"type\":\"monetary\",\"value\":{\"asset\":\"PEAR\",\"amount\":3}}",
        "world -> a PEAR 3",
    );
    let program = Program::compile(script, Profile::Default).expect("a script");
    assert_eq!(program.needed_variables().collect::<Vec<_>>(), [("shop", Type::Account)]);
}

#[test]
fn a_script_whose_accounts_are_given_asks_once() {
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
    // Asking again without an answer changes nothing.
    assert_eq!(run.advance(), Ok(Progress::Needs));
    assert_eq!(run.needs().len(), 6);
    let Ok(()) = run.answer(&mut Books::of("c.n = 1"));
    assert_eq!(run.advance(), Ok(Progress::Done));
}

#[test]
fn a_trace_says_where_money_came_from_and_why_there_was_less() {
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
    let drawn: Vec<_> = trace
        .drawn
        .iter()
        .map(|drawn| (drawn.account.as_str(), drawn.gave.to_string(), drawn.returned))
        .collect();
    assert_eq!(
        drawn,
        [("bowl", "4".to_owned(), false), ("tree", "1".to_owned(), true), ("world", "5".to_owned(), false)]
    );
    assert_eq!(trace.drawn[1].asked, Some(Amount::from(5_u64)));
    let bound = Bound::Balance { balance: Balance::from(1), overdraft: Amount::ZERO };
    assert_eq!(trace.drawn[1].bound, bound);
}

#[test]
fn several_syntax_errors_are_found_at_once() {
    let (_, errors) =
        parse("vars { account a number $n }\nsend [PEAR 1] (source = )\nsave\nset_tx_meta(\"k\" 1)\nsend");
    let places: Vec<u32> = errors.iter().map(|error| error.span.start).collect();
    assert_eq!(errors.len(), 5, "{errors:?}");
    assert!(places.is_sorted(), "{errors:?}");
    let many = "save ".repeat(10_000);
    assert_eq!(parse(&many).1.len(), ledger_core::limits::SCRIPT_ERRORS_MAX);
}

#[test]
fn profiles_answer_as_their_engines_do() {
    let with = |script: &str, profile| {
        shown(&run(script, "x=1", "a PEAR -3\nworld PEAR -7", Options { profile, ..Options::default() }))
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
fn the_machine_moves_entries_of_zero() {
    let options = Options { profile: Profile::Machine, ..Options::default() };
    let check = |script: &str, books: &str, expected: &str| {
        assert_eq!(shown(&run(script, "", books, options)), expected, "{script}");
    };
    // It saves more than there is, and what comes in then is saved too; all of a debt is no debt.
    let more = "save [PEAR 7] from @a send [PEAR 5] (source = @world destination = @a) send [PEAR 4] (source = @a destination = @b)";
    check(more, "a PEAR 6", "world -> a PEAR 5\na -> b PEAR 4");
    check(
        more,
        "a PEAR 5",
        "MissingFundsErr: 1:96 Not enough funds. Needed [PEAR 4] (only [PEAR 3] available)",
    );
    check(
        "save [PEAR *] from @a send [PEAR 2] (source = @a allowing overdraft up to [PEAR 2] destination = @b)",
        "a PEAR -9",
        "a -> b PEAR 2",
    );
    let three = "send [PEAR 9] (source = { @a @b @c } destination = @d)";
    check(three, "a PEAR 4\nc PEAR 9", "a -> d PEAR 4\nb -> d PEAR 0\nc -> d PEAR 5");
    check(three, "a PEAR 9", "a -> d PEAR 9");
    check(
        three,
        "a PEAR 4\nc PEAR 4",
        "MissingFundsErr: 1:25 Not enough funds. Needed [PEAR 9] (only [PEAR 8] available)",
    );
    check("send [PEAR 9] (source = { @a @world } destination = @d)", "", "a -> d PEAR 0\nworld -> d PEAR 9");
    check("send [PEAR 0] (source = { @b @a } destination = @d)", "a PEAR 1", "b -> d PEAR 0");
    check("send [PEAR *] (source = @a destination = @d)", "a PEAR -3", "a -> d PEAR 0");
    check(
        "send [PEAR 9] (source = { max [PEAR 5] from @a allowing unbounded overdraft @b allowing unbounded overdraft }
         destination = { max [PEAR 6] kept remaining to @e })
         send [PEAR 2] (source = { 1/2 from @world 1/2 from @c } destination = @e)",
        "a PEAR 2\nc PEAR 5",
        "a -> e PEAR 3\nworld -> e PEAR 1\nc -> e PEAR 1",
    );
}

#[test]
fn a_value_of_a_known_form_is_of_one_type() {
    let settled = |declared: &str, value: &VariableValue| {
        let plain =
            format!("vars {{ {declared} $v }} send [PEAR 1] (source = @world destination = @b) print $v");
        let mut create = CreateTransaction::of([].into_iter().collect());
        let program = Program::compile(&plain, Profile::Default);
        let mut script = Script::new(plain, Variables::new());
        script.variables.insert("v".to_owned(), value.clone());
        create.movement = Movement::Script(script);
        let Ok(settled) = settle(&mut create, &program, &mut Scratch::default(), &mut Books::of(""));
        settled.is_ok()
    };
    let types = ["account", "string", "number", "monetary"];
    for (value, fits) in [
        (VariableValue::Text("7".into()), [true, true, true, false]),
        (VariableValue::Number("7".into()), [false, false, true, false]),
        (VariableValue::Monetary("PEAR 7".into()), [false, false, false, true]),
        (VariableValue::Unfit, [false; 4]),
    ] {
        assert_eq!(types.map(|declared| settled(declared, &value)), fits, "{value:?}");
    }
}

#[test]
fn a_command_is_settled_into_postings() {
    let settled = |plain: &str, books: &str| {
        let script = Script { plain: plain.into(), ..Script::default() };
        let mut create = CreateTransaction::of([].into_iter().collect());
        create.movement = Movement::Script(script);
        create.metadata.insert_text("k", "request");
        let program = Program::compile(plain, Profile::Default);
        let Ok(settled) = settle(&mut create, &program, &mut Scratch::default(), &mut Books::of(books));
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
        "account(s) @a|@c had/have insufficient funds"
    );
    let Rejection::Script { error, .. } = refused("send") else { panic!("another refusal") };
    assert!(matches!(error.kind, ErrorKind::Syntax { .. }));
}

#[test]
fn blank_books_answer_everything() {
    let program = Program::compile(
        "send [PEAR 1] (source = { @a with scaling through @b @world } destination = @c)",
        Profile::Default,
    );
    let (program, variables, mut scratch) =
        (program.expect("a script"), Variables::new(), Scratch::default());
    let mut run = Run::new(&program, &variables, Options::default(), &mut scratch);
    while run.advance().expect("it works") == Progress::Needs {
        let Ok(()) = run.answer(&mut Blank);
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
    fn plain_sends_do_what_the_same_postings_do(
        postings in proptest::collection::vec(posting(), 1..8),
        held in proptest::collection::vec(0_u64..150, 6),
    ) {
        let script: String = postings.iter().fold(String::new(), |script, posting| {
            let Posting { source, destination, amount, asset } = posting;
            script + &format!("send [{asset} {amount}] (source = @{source} destination = @{destination})\n")
        });
        let mut books = Books::default();
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
