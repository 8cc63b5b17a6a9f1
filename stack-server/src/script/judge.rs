//! Running a case and comparing what comes of it with what must.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ledger_core::Balance;
use ledger_core::script::{
    ErrorClass, Fields, Options, Outcome, Profile, Program, ScriptError, Tracing, check_as_interpreter, parse,
};

use super::cases::{Case, Comparison, Expect, ExpectedError, Row, Test, sum_of};
use super::world::{Key, balances_after, run};

/// What a case expects and what came, for a person.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) name: String,
    pub(crate) report: String,
}

/// Judges a test by what must come of it in a profile: in one of another engine, by what that engine's release
/// answered. `None` if the test is none of that profile.
pub(crate) fn judge(test: &Test, profile: Profile) -> Option<Result<(), Failure>> {
    let (name, verdict) = match test {
        Test::Case(case) => (&case.name, judge_case(case, profile)?),
        Test::Comparison(comparison) if profile == Profile::Default => {
            (&comparison.name, compare(comparison))
        }
        Test::Comparison(_) => return None,
    };
    Some(verdict.map_err(|report| Failure { name: name.clone(), report }))
}

fn judge_case(case: &Case, profile: Profile) -> Option<Result<(), String>> {
    let judges_text = case.expect.parses.is_some() || case.expect.diagnostics.is_some();
    let expect = match profile {
        Profile::Default => &case.expect,
        // What is said of the text alone is said of one language.
        _ if judges_text => return None,
        Profile::Interpreter => case.answered.get("numscript").unwrap_or(&case.expect),
        // It never saw most of the cases.
        Profile::Machine => case.answered.get("machine-v2.0.0")?,
    };
    if let Some(expected) = expect.parses {
        let (_, errors) = parse(&case.script);
        return Some(same("parses", &expected, &errors.is_empty()));
    }
    if expect.diagnostics.is_some() {
        return Some(judge_findings(case));
    }
    let options = Options { profile, flags: case.flags, trace: Tracing::Off, ..Options::default() };
    let outcome = Program::compile(&case.script, profile).and_then(|program| {
        run(&program, &case.variables, options, &mut case.world.clone()).map_err(|failed| failed.error)
    });
    Some(match outcome {
        Ok(outcome) => judge_outcome(case, expect, &outcome),
        Err(error) => judge_error(expect, &error),
    })
}

fn judge_error(expect: &Expect, error: &ScriptError) -> Result<(), String> {
    let class = error.kind.class().name();
    let came = format!("{} ({class}) {error}", error.kind.name());
    if !expect.is_failure() {
        return Err(format!("expected success\n     got {came}"));
    }
    if expect.missing_funds && class != "funds" {
        return Err(format!("expected a lack of funds\n     got {came}"));
    }
    if expect.negative_amount && class != "negative" {
        return Err(format!("expected a negative amount\n     got {came}"));
    }
    match &expect.error {
        Some(expected) => {
            judge_kind(expected, error).map_err(|wanted| format!("expected {wanted}\n     got {came}"))
        }
        None => Ok(()),
    }
}

fn judge_kind(expected: &ExpectedError, error: &ScriptError) -> Result<(), String> {
    let class = error.kind.class().name();
    match &expected.classes {
        Some(classes) if !classes.iter().any(|wanted| wanted == class) => {
            return Err(format!("{} ({})", expected.kind, classes.join(" or ")));
        }
        None if !is_of_kind(&expected.kind, error) => return Err(expected.kind.clone()),
        Some(_) | None => {}
    }
    // One fault can be found at two stages, under two names; the fields belong to the name.
    if expected.kind == error.kind.name() && !same_fields(&expected.fields, &error.kind.fields()) {
        return Err(format!("{} {:?}", expected.kind, expected.fields));
    }
    Ok(())
}

/// Whether an error is what another engine calls so.
fn is_of_kind(kind: &str, error: &ScriptError) -> bool {
    let class = error.kind.class();
    match kind {
        // The machine's words.
        "CompileError" => matches!(class, ErrorClass::Syntax | ErrorClass::Script),
        "ErrInvalidVars" | "ErrMissingMetadata" => class == ErrorClass::Variables,
        "ErrNegativeAmount" => matches!(class, ErrorClass::Balance | ErrorClass::Negative),
        "ErrInsufficientFund" => class == ErrorClass::Funds,
        "ErrInvalidScript" => matches!(class, ErrorClass::Script | ErrorClass::Negative),
        "ErrScriptFailed" => class == ErrorClass::Failed,
        // It failed without a word for it, or broke.
        "error" | "PANIC" => true,
        interpreters => interpreters == error.kind.name(),
    }
}

/// Whether the fields that both name are equal.
fn same_fields(expected: &BTreeMap<String, String>, got: &Fields) -> bool {
    // A whole number is written with its denominator or without.
    let plain = |text: &str| text.strip_suffix("/1").unwrap_or(text).to_owned();
    got.iter().all(|(name, value)| expected.get(*name).is_none_or(|wanted| plain(wanted) == plain(value)))
}

fn judge_findings(case: &Case) -> Result<(), String> {
    let (tree, errors) = parse(&case.script);
    let mut got: Vec<(String, Fields)> = errors
        .into_iter()
        .map(|error| ("Parsing".to_owned(), vec![("Description", error.message)]))
        .collect();
    let findings = check_as_interpreter(&tree, &case.script);
    got.extend(findings.iter().map(|finding| (finding.kind.name().to_owned(), finding.kind.fields())));
    let mut left = got.clone();
    let expected = case.expect.diagnostics.as_deref().unwrap_or_default();
    for wanted in expected {
        // How a syntax error is worded is everybody's own affair.
        let fits = |(kind, fields): &(String, Fields)| {
            *kind == wanted.kind && (kind == "Parsing" || same_fields(&wanted.fields, fields))
        };
        match left.iter().position(fits) {
            Some(at) => {
                left.swap_remove(at);
            }
            None => return Err(format!("expected {wanted:?}\n     got {got:?}")),
        }
    }
    if left.is_empty() { Ok(()) } else { Err(format!("expected only {expected:?}\n     got {got:?}")) }
}

fn judge_outcome(case: &Case, expect: &Expect, outcome: &Outcome) -> Result<(), String> {
    let rows: Vec<Row> = outcome
        .postings
        .iter()
        .map(|posting| Row {
            source: posting.posting.source.to_string(),
            destination: posting.posting.destination.to_string(),
            asset: posting.posting.asset.to_string(),
            color: posting.color.to_string(),
            amount: Balance::from(posting.posting.amount.clone()),
        })
        .collect();
    let mut metadata: BTreeMap<String, String> =
        outcome.metadata.iter().map(|(key, value)| (key.to_owned(), value.text().to_owned())).collect();
    if let Some(request) = &case.request_metadata {
        // An empty text is as if the script had not set it.
        let is_set = |key: &&String| metadata.get(*key).is_some_and(|text| !text.is_empty());
        if let Some(key) = request.keys().find(is_set) {
            let classes = expect.error.as_ref().and_then(|error| error.classes.as_ref());
            let is_expected = classes.is_some_and(|classes| classes.iter().any(|class| class == "override"));
            return if is_expected { Ok(()) } else { Err(format!("got override of {key:?}")) };
        }
        metadata.extend(request.clone());
    }
    if expect.is_failure() {
        return Err(format!("expected failure {:?}\n     got {rows:?}", expect.error));
    }
    if let Some(expected) = &expect.postings {
        same("postings", expected, &rows)?;
    }
    if let Some(expected) = &expect.transaction_metadata {
        same("metadata", expected, &metadata)?;
    }
    if let Some(expected) = &expect.account_metadata {
        let got: BTreeMap<String, BTreeMap<String, String>> = outcome
            .account_metadata
            .iter()
            .map(|(account, metadata)| {
                let values = metadata.iter().map(|(key, value)| (key.to_owned(), value.text().to_owned()));
                (account.to_string(), values.collect())
            })
            .collect();
        same("account metadata", expected, &got)?;
    }
    let balances = balances_after(&case.world, outcome);
    if let Some(expected) = &expect.end_balances {
        same("end balances", expected, &balances)?;
    }
    if let Some(expected) = &expect.end_balances_include
        && !includes(expected, &balances)
    {
        return Err(format!("expected end balances with {expected:?}\n     got {balances:?}"));
    }
    if let Some(expected) = &expect.movements {
        same("movements", expected, &sum_of(rows))?;
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, got: &T) -> Result<(), String> {
    if expected == got {
        return Ok(());
    }
    let mut report = String::new();
    // Writing to a String cannot fail.
    let _ = write!(report, "expected {what} {expected:?}\n     got {got:?}");
    Err(report)
}

fn includes(part: &BTreeMap<Key, Balance>, whole: &BTreeMap<Key, Balance>) -> bool {
    part.iter().all(|(key, balance)| whole.get(key) == Some(balance))
}

fn compare(comparison: &Comparison) -> Result<(), String> {
    let got = match comparison.op.as_str() {
        "equal" => comparison.a == comparison.b,
        "includes" => includes(&comparison.a, &comparison.b),
        other => return Err(format!("unknown comparison {other:?}")),
    };
    same(&comparison.op, &comparison.expected, &got)
}
