//! Runs a conformance case and compares the result with the expected one.

use std::collections::BTreeMap;

use crate::{
    ErrorClass, Fields, Options, Outcome, Profile, Program, ScriptError, Tracing, check_as_interpreter, parse,
};
use ledger_values::Balance;

use super::cases::{Case, Comparison, Expect, ExpectedError, Row, Test, sum_of};
use super::ledger_state::{Key, balances_after, run};

/// A test with another result than expected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) name: String,
    /// The expected and the actual result, as text for people.
    pub(crate) report: String,
}

/// A difference between the expected and the actual result, as text for people.
struct Mismatch(String);

impl From<String> for Mismatch {
    fn from(report: String) -> Self {
        Self(report)
    }
}

/// Runs a test in a profile and compares its result. In the profile of another engine, the recorded result of
/// that engine's release is expected. Returns `None` if the test does not apply to the profile.
pub(crate) fn compare(test: &Test, profile: Profile) -> Option<Result<(), Failure>> {
    let (name, result) = match test {
        Test::Case(case) => (&case.name, compare_case(case, profile)?),
        Test::Comparison(comparison) if profile == Profile::Default => {
            (&comparison.name, compare_balances(comparison))
        }
        Test::Comparison(_) => return None,
    };
    Some(result.map_err(|Mismatch(report)| Failure { name: name.clone(), report }))
}

fn compare_case(case: &Case, profile: Profile) -> Option<Result<(), Mismatch>> {
    let checks_text = case.expect.parses.is_some() || case.expect.diagnostics.is_some();
    let expect = match profile {
        Profile::Default => &case.expect,
        // Checks of the text alone exist for one language only.
        _ if checks_text => return None,
        Profile::Interpreter => case.answered.get("numscript").unwrap_or(&case.expect),
        // The old machine has no recorded result for most cases.
        Profile::Machine => case.answered.get("machine-v2.0.0")?,
    };
    if let Some(expected) = expect.parses {
        let (_, errors) = parse(&case.script);
        return Some(same("parses", &expected, &errors.is_empty()));
    }
    if expect.diagnostics.is_some() {
        return Some(compare_findings(case));
    }
    let options = Options { profile, flags: case.flags, trace: Tracing::Off, ..Options::default() };
    let outcome = Program::compile(&case.script, profile).and_then(|program| {
        run(&program, &case.variables, options, &mut case.state.clone()).map_err(|failed| failed.error)
    });
    Some(match outcome {
        Ok(outcome) => compare_outcome(case, expect, &outcome),
        Err(error) => compare_error(expect, &error),
    })
}

fn compare_error(expect: &Expect, error: &ScriptError) -> Result<(), Mismatch> {
    let class = error.kind.class().name();
    let came = format!("{} ({class}) {error}", error.kind.name());
    if !expect.is_failure() {
        return Err(format!("expected success\n     got {came}").into());
    }
    if expect.missing_funds && class != "funds" {
        return Err(format!("expected a lack of funds\n     got {came}").into());
    }
    if expect.negative_amount && class != "negative" {
        return Err(format!("expected a negative amount\n     got {came}").into());
    }
    match &expect.error {
        Some(expected) => compare_kind(expected, error)
            .map_err(|Mismatch(wanted)| Mismatch(format!("expected {wanted}\n     got {came}"))),
        None => Ok(()),
    }
}

fn compare_kind(expected: &ExpectedError, error: &ScriptError) -> Result<(), Mismatch> {
    let class = error.kind.class().name();
    match &expected.classes {
        Some(classes) if !classes.iter().any(|wanted| wanted == class) => {
            return Err(format!("{} ({})", expected.kind, classes.join(" or ")).into());
        }
        None if !is_of_kind(&expected.kind, error) => return Err(expected.kind.clone().into()),
        Some(_) | None => {}
    }
    // Two stages can find the same fault under different kinds. Fields are comparable only within one kind.
    if expected.kind == error.kind.name() && !same_fields(&expected.fields, &error.kind.fields()) {
        return Err(format!("{} {:?}", expected.kind, expected.fields).into());
    }
    Ok(())
}

/// Tells whether another engine would report an error under this kind.
fn is_of_kind(kind: &str, error: &ScriptError) -> bool {
    let class = error.kind.class();
    match kind {
        // Error kinds of the old machine.
        "CompileError" => matches!(class, ErrorClass::Syntax | ErrorClass::Script),
        "ErrInvalidVars" | "ErrMissingMetadata" => class == ErrorClass::Variables,
        "ErrNegativeAmount" => matches!(class, ErrorClass::Balance | ErrorClass::Negative),
        "ErrInsufficientFund" => class == ErrorClass::Funds,
        "ErrInvalidScript" => matches!(class, ErrorClass::Script | ErrorClass::Negative),
        "ErrScriptFailed" => class == ErrorClass::Failed,
        // The other engine failed without a kind, or crashed.
        "error" | "PANIC" => true,
        interpreters => interpreters == error.kind.name(),
    }
}

/// Tells whether the fields that both sides have are equal.
fn same_fields(expected: &BTreeMap<String, String>, got: &Fields) -> bool {
    // Engines print a whole portion with or without its denominator.
    let plain = |text: &str| text.strip_suffix("/1").unwrap_or(text).to_owned();
    got.iter().all(|(name, value)| expected.get(*name).is_none_or(|wanted| plain(wanted) == plain(value)))
}

fn compare_findings(case: &Case) -> Result<(), Mismatch> {
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
        // Each engine words syntax errors in its own way.
        let fits = |(kind, fields): &(String, Fields)| {
            *kind == wanted.kind && (kind == "Parsing" || same_fields(&wanted.fields, fields))
        };
        match left.iter().position(fits) {
            Some(at) => {
                left.swap_remove(at);
            }
            None => return Err(format!("expected {wanted:?}\n     got {got:?}").into()),
        }
    }
    if left.is_empty() { Ok(()) } else { Err(format!("expected only {expected:?}\n     got {got:?}").into()) }
}

fn compare_outcome(case: &Case, expect: &Expect, outcome: &Outcome) -> Result<(), Mismatch> {
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
        // An empty text counts as unset.
        let is_set = |key: &&String| metadata.get(*key).is_some_and(|text| !text.is_empty());
        if let Some(key) = request.keys().find(is_set) {
            let classes = expect.error.as_ref().and_then(|error| error.classes.as_ref());
            let is_expected = classes.is_some_and(|classes| classes.iter().any(|class| class == "override"));
            return if is_expected { Ok(()) } else { Err(format!("got override of {key:?}").into()) };
        }
        metadata.extend(request.clone());
    }
    if expect.is_failure() {
        return Err(format!("expected failure {:?}\n     got {rows:?}", expect.error).into());
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
    let balances = balances_after(&case.state, outcome);
    if let Some(expected) = &expect.end_balances {
        same("end balances", expected, &balances)?;
    }
    if let Some(expected) = &expect.end_balances_include
        && !includes(expected, &balances)
    {
        return Err(format!("expected end balances with {expected:?}\n     got {balances:?}").into());
    }
    if let Some(expected) = &expect.movements {
        same("movements", expected, &sum_of(rows))?;
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, got: &T) -> Result<(), Mismatch> {
    if expected == got {
        return Ok(());
    }
    Err(format!("expected {what} {expected:?}\n     got {got:?}").into())
}

fn includes(part: &BTreeMap<Key, Balance>, whole: &BTreeMap<Key, Balance>) -> bool {
    part.iter().all(|(key, balance)| whole.get(key) == Some(balance))
}

fn compare_balances(comparison: &Comparison) -> Result<(), Mismatch> {
    let got = match comparison.op.as_str() {
        "equal" => comparison.a == comparison.b,
        "includes" => includes(&comparison.a, &comparison.b),
        other => return Err(format!("unknown comparison {other:?}").into()),
    };
    same(&comparison.op, &comparison.expected, &got)
}
