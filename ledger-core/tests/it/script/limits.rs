//! Limits of scripts: a short script cannot cost much time or memory.

use std::collections::BTreeMap;
use std::convert::Infallible;

use ledger_core::limits::{
    SCRIPT_COLOR_BYTES_MAX, SCRIPT_PRECISIONS_MAX, SCRIPT_ROUNDS_MAX, SCRIPT_SCALED_MAX,
    SCRIPT_TEXT_BYTES_MAX,
};
use ledger_core::script::{
    ErrorKind, Language, Options, Outcome, Profile, Program, Progress, Reads, Run, Scratch, ScriptError,
    Variables,
};
use ledger_core::{
    AccountAddress, Balance, CreateTransaction, Metadata, MetadataValue, Movement, Script, SmolStr, settle,
};

/// A ledger in which every account holds 1,000 of every asset, in a number of precisions. `metadata` answers every key.
#[derive(Clone)]
struct RichLedger {
    precisions: usize,
    metadata: fn(&str, &str) -> Option<String>,
    asked: usize,
}

const RICH_LEDGER: RichLedger = RichLedger { precisions: 0, metadata: |_, _| None, asked: 0 };

impl Reads for RichLedger {
    type Error = Infallible;

    fn balance(&mut self, _: &AccountAddress, _: &str, _: &str) -> Result<Balance, Infallible> {
        self.asked += 1;
        Ok(Balance::from(1_000))
    }

    fn scales(&mut self, _: &AccountAddress, base: &str) -> Result<Vec<(SmolStr, Balance)>, Infallible> {
        self.asked += 1;
        Ok((1..=self.precisions).map(|n| (format!("{base}/{n}").into(), Balance::from(0))).collect())
    }

    fn metadata(&mut self, account: &AccountAddress, key: &str) -> Result<Option<MetadataValue>, Infallible> {
        self.asked += 1;
        Ok((self.metadata)(account.as_str(), key).map(|text| MetadataValue::Text(text.into())))
    }
}

fn run(text: &str, given: &[(&str, &str)], ledger: &mut RichLedger) -> Result<Outcome, ScriptError> {
    let program = Program::compile(text, Profile::Default)?;
    let variables: Variables =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut scratch = Scratch::default();
    let mut run = Run::new(&program, &variables, Options::default(), &mut scratch);
    while run.advance()? == Progress::Needs {
        let Ok(()) = run.answer(ledger);
    }
    Ok(run.outcome())
}

#[track_caller]
fn too_large(result: Result<Outcome, ScriptError>, said: &str) {
    let error = result.expect_err("it is too large");
    assert!(matches!(error.kind, ErrorKind::TooLarge { .. }), "{error}");
    assert!(error.to_string().contains(said), "{error}");
}

fn texts(metadata: &Metadata) -> Vec<(&str, &str)> {
    metadata.iter().map(|(key, value)| (key, value.text())).collect()
}

#[test]
fn last_value_of_each_metadata_key_counts() {
    let script = "set_tx_meta(\"c\", 1) set_account_meta(@z, \"k\", 1) set_tx_meta(\"a\", 2) set_account_meta(@y, \"k\", 3)
        set_tx_meta(\"c\", 4) set_tx_meta(\"b\", 5) set_account_meta(@z, \"j\", 6) set_account_meta(@z, \"k\", 7) set_tx_meta(\"c\", 8)";
    let outcome = run(script, &[], &mut RICH_LEDGER.clone()).expect("it works");
    assert_eq!(texts(&outcome.metadata), [("a", "2"), ("b", "5"), ("c", "8")]);
    let accounts: BTreeMap<&str, Vec<_>> = outcome
        .account_metadata
        .iter()
        .map(|(account, metadata)| (account.as_str(), texts(metadata)))
        .collect();
    assert_eq!(accounts, BTreeMap::from([("y", vec![("k", "3")]), ("z", vec![("j", "6"), ("k", "7")])]));
}

#[test]
fn joins_metadata_of_request_and_script() {
    let plain = "send [PEAR 1] (source = @world destination = @a) set_tx_meta(\"b\", 1) set_tx_meta(\"d\", \"\")
        set_tx_meta(\"f\", 2) set_account_meta(@a, \"b\", 3) set_account_meta(@a, \"c\", 4) set_account_meta(@b, \"k\", 5)";
    let script = Script { plain: plain.into(), ..Script::default() };
    let mut create = CreateTransaction::of([].into_iter().collect());
    create.movement = Movement::Script(script);
    create.metadata = ["a", "d", "e", "g"].into_iter().map(|key| (key, "request")).collect();
    let account = |text: &str| AccountAddress::parse(text).expect("an address");
    let own: Metadata = [("a", "request"), ("b", "request")].into_iter().collect();
    create.account_metadata.insert(account("a"), own);
    let compiled = Language::NUMSCRIPT.compile(plain);
    let Ok(settled) = settle(&mut create, &compiled, &mut RICH_LEDGER.clone());
    settled.expect("it is settled");
    assert_eq!(
        texts(&create.metadata),
        [("a", "request"), ("b", "1"), ("d", "request"), ("e", "request"), ("f", "2"), ("g", "request")]
    );
    assert_eq!(
        texts(&create.account_metadata[&account("a")]),
        [("a", "request"), ("b", "request"), ("c", "4")]
    );
    assert_eq!(texts(&create.account_metadata[&account("b")]), [("k", "5")]);
}

#[test]
fn bounds_written_text() {
    let long = "x".repeat(SCRIPT_TEXT_BYTES_MAX / 4);
    let given = [("t", long.as_str())];
    let set = |times: usize| {
        let sets: String =
            (0..times).map(|n| "set_tx_meta(\"k\", $t)\n".replace('k', &format!("k{n}"))).collect();
        format!("vars {{ string $t }} {sets}")
    };
    assert_eq!(run(&set(3), &given, &mut RICH_LEDGER.clone()).map(|outcome| outcome.metadata.len()), Ok(3));
    too_large(run(&set(4), &given, &mut RICH_LEDGER.clone()), "the metadata that it writes is too long");
    let print = format!("vars {{ string $t }} {}", "print $t ".repeat(10_000));
    assert!(run(&print, &given, &mut RICH_LEDGER.clone()).is_ok());
    let address = format!("vars {{ string $t }} print @a{}", ":$t".repeat(100_000));
    let error = run(&address, &given, &mut RICH_LEDGER.clone()).expect_err("no address");
    assert_eq!((error.kind.name(), error.to_string().len() < 1_000), ("InvalidAccountName", true));
    let longer = "x".repeat(SCRIPT_TEXT_BYTES_MAX + 1);
    too_large(run(&set(0), &[("t", &longer)], &mut RICH_LEDGER.clone()), "its variables");
    let color = "vars { string $t } send [PEAR 1] (source = @a \\ $t destination = @b)";
    let capitals = "X".repeat(SCRIPT_COLOR_BYTES_MAX);
    assert!(run(color, &[("t", &capitals)], &mut RICH_LEDGER.clone()).is_ok());
    too_large(run(color, &[("t", &(capitals + "X"))], &mut RICH_LEDGER.clone()), "the name of a color");
}

#[test]
fn bounds_read_metadata() {
    let long: fn(&str, &str) -> Option<String> = |_, _| Some("x".repeat(SCRIPT_TEXT_BYTES_MAX / 16));
    let reads = |accounts: usize, times: usize| {
        let one = |n: usize| format!("string $v{n} = meta(@a{}, \"k\")\n", n % accounts);
        format!("vars {{ {} }}", (0..times).map(one).collect::<String>())
    };
    let ledger = RichLedger { metadata: long, ..RICH_LEDGER };
    // Texts count once when they are answered, and once for each variable that reads them.
    let mut some = ledger.clone();
    assert!(run(&reads(1, 13), &[], &mut some).is_ok());
    assert_eq!(some.asked, 1, "one value is asked for once");
    too_large(run(&reads(1, 16), &[], &mut ledger.clone()), "the metadata that it reads");
    too_large(run(&reads(100, 100), &[], &mut ledger.clone()), "the metadata that it reads");
}

#[test]
fn bounds_rounds_of_dependent_variables() {
    // The metadata of each account names the next account.
    let next: fn(&str, &str) -> Option<String> =
        |account, _| account[1..].parse::<u32>().ok().map(|number| format!("a{}", number + 1));
    let chain = |length: usize| {
        let one = |n: usize| format!("account $v{} = meta($v{n}, \"next\")\n", n + 1);
        let chain: String = (0..length).map(one).collect();
        format!("vars {{ account $v0 {chain} }} send [PEAR 1] (source = $v{length} destination = @b)")
    };
    let ledger = RichLedger { metadata: next, ..RICH_LEDGER };
    let outcome = run(&chain(100), &[("v0", "a0")], &mut ledger.clone()).expect("it works");
    assert_eq!(outcome.postings[0].posting.source.as_str(), "a100");
    too_large(run(&chain(SCRIPT_ROUNDS_MAX + 1), &[("v0", "a0")], &mut ledger.clone()), "too deeply");
}

#[test]
fn account_pays_in_many_assets() {
    let send = |n: usize| format!("send [A{n} 600] (source = @a destination = @b)\n");
    let each: String = (0..60).map(send).collect();
    let once = run(&each, &[], &mut RICH_LEDGER.clone()).expect("there is enough of each");
    assert_eq!(once.postings.len(), 60);
    let error = run(&(each + &send(0)), &[], &mut RICH_LEDGER.clone()).expect_err("not of the first");
    assert!(matches!(error.kind, ErrorKind::MissingFunds { asset, .. } if asset == "A0"));
}

#[test]
fn scaling_uses_received_funds_within_bounds() {
    let scaled =
        |asset: &str| format!("send [{asset} 5] (source = @a with scaling through @b destination = @c)\n");
    let some = RichLedger { precisions: 3, ..RICH_LEDGER };
    let script = scaled("OIL/1").replace(" 5]", " 0]")
        + "send [OIL/2 50] (source = @world destination = @a)\n\
           send [OIL/2 90] (source = { max [OIL/2 0] from @a \\ \"RED\" @world } destination = @z)\n"
        + &scaled("OIL/1");
    let outcome = run(&script, &[], &mut some.clone()).expect("it came in before");
    let postings: Vec<String> = outcome
        .postings
        .iter()
        .map(|made| format!("{} {}", made.posting.asset, made.posting.amount))
        .collect();
    assert_eq!(postings, ["OIL/2 50", "OIL/2 90", "OIL/2 50", "OIL/1 5", "OIL/1 5"]);
    let many = RichLedger { precisions: SCRIPT_PRECISIONS_MAX + 1, ..RICH_LEDGER };
    too_large(run(&scaled("OIL/1"), &[], &mut many.clone()), "too many precisions");
    let accounts: String =
        (0..=SCRIPT_SCALED_MAX).map(|n| scaled("OIL/1").replace("@a ", &format!("@a{n} "))).collect();
    let mut none = some.clone();
    too_large(run(&accounts, &[], &mut none), "too many accounts");
    assert_eq!(none.asked, SCRIPT_SCALED_MAX);
}
