//! Reads cases of the language's conformance suites: a script, its input and the expected result.
//!
//! Three file formats contain cases: `NAME.num` with `NAME.num.specs.json` beside it, JSON lines (`.jsonl`)
//! that include the script, and tables of balance comparisons (`.table.json`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{Flag, Flags, Variables};
use ledger_values::Balance;

use super::data::{Data, Fault};
use super::ledger_state::{Key, LedgerState};

/// A script with its input and its expected result.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) script: String,
    pub(crate) flags: Flags,
    pub(crate) state: LedgerState,
    pub(crate) variables: Variables,
    /// Metadata that the request sends along with the script.
    pub(crate) request_metadata: Option<BTreeMap<String, String>>,
    pub(crate) expect: Expect,
    /// Recorded results of other engines where they differ, by release.
    pub(crate) answered: BTreeMap<String, Expect>,
}

/// The expected result of a case. Fields that are `None` are not compared.
#[derive(Debug, Default)]
pub(crate) struct Expect {
    pub(crate) postings: Option<Vec<Row>>,
    pub(crate) transaction_metadata: Option<BTreeMap<String, String>>,
    pub(crate) account_metadata: Option<BTreeMap<String, BTreeMap<String, String>>>,
    pub(crate) end_balances: Option<BTreeMap<Key, Balance>>,
    pub(crate) end_balances_include: Option<BTreeMap<Key, Balance>>,
    pub(crate) movements: Option<Movements>,
    pub(crate) missing_funds: bool,
    pub(crate) negative_amount: bool,
    pub(crate) error: Option<ExpectedError>,
    pub(crate) parses: Option<bool>,
    pub(crate) diagnostics: Option<Vec<ExpectedFinding>>,
}

impl Expect {
    /// Tells whether the script must fail.
    pub(crate) fn is_failure(&self) -> bool {
        self.missing_funds || self.negative_amount || self.error.is_some()
    }
}

/// Total amounts by source, destination, asset and colour.
pub(crate) type Movements = BTreeMap<(String, String, String, String), Balance>;

/// An expected posting of a case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) asset: String,
    pub(crate) color: String,
    pub(crate) amount: Balance,
}

#[derive(Debug)]
pub(crate) struct ExpectedError {
    /// The accepted error kinds. `None` accepts any kind: another engine failed there and reports kinds of
    /// its own.
    pub(crate) classes: Option<Vec<String>>,
    pub(crate) kind: String,
    pub(crate) fields: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(crate) struct ExpectedFinding {
    pub(crate) kind: String,
    pub(crate) fields: BTreeMap<String, String>,
}

/// A comparison of two lists of balances.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) name: String,
    pub(crate) op: String,
    pub(crate) a: BTreeMap<Key, Balance>,
    pub(crate) b: BTreeMap<Key, Balance>,
    pub(crate) expected: bool,
}

/// An entry of a case file.
#[derive(Debug)]
pub(crate) enum Test {
    Case(Box<Case>),
    Comparison(Box<Comparison>),
}

/// Finds every case file at a path. Searches folders recursively.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, Fault> {
    let fault = |error: std::io::Error| format!("{}: {error}", path.display());
    if !path.is_dir() {
        std::fs::metadata(path).map_err(fault)?;
        let is_script = path.extension().is_some_and(|extension| extension == "num");
        return Ok(vec![if is_script { specs_of(path) } else { path.to_owned() }]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fault)? {
        let entry = entry.map_err(fault)?.path();
        if entry.is_dir() {
            found.extend(files(&entry)?);
        } else if is_cases(&entry) {
            found.push(entry);
        }
    }
    found.sort();
    Ok(found)
}

fn is_cases(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [".num.specs.json", ".jsonl", ".table.json"].iter().any(|ending| name.ends_with(ending))
}

fn specs_of(script: &Path) -> PathBuf {
    let mut name = script.as_os_str().to_owned();
    name.push(".specs.json");
    name.into()
}

/// Reads the cases of a file.
pub(crate) fn read(file: &Path) -> Result<Vec<Test>, Fault> {
    let load =
        |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let text = load(file)?;
    let name = file.display().to_string();
    if name.ends_with(".table.json") {
        let rows = Data::parse(&text)?.array()?;
        return rows.into_iter().enumerate().map(|(at, row)| comparison(&name, at, row)).collect();
    }
    if file.extension().is_some_and(|extension| extension == "jsonl") {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let cases = lines.map(|(at, line)| {
            let object = Data::parse(line)?.object()?;
            let script = object.get("script").ok_or("a case without a script")?.text()?;
            let case = case(&format!("{name}:{}", at + 1), &script, &BTreeMap::new(), &object)?;
            Ok(Test::Case(Box::new(case)))
        });
        return cases.collect();
    }
    let script_name = name.strip_suffix(".specs.json").ok_or("not a file of cases")?;
    let script = load(Path::new(script_name))?;
    let object = Data::parse(&text)?.object()?;
    let cases = object.get("testCases").ok_or("no testCases")?.array()?;
    let cases = cases.into_iter().map(Data::object).collect::<Result<Vec<_>, _>>()?;
    let has = |case: &BTreeMap<String, Data<'_>>, flag| case.get(flag).is_some_and(|value| value.is_true());
    let focused = cases.iter().any(|case| has(case, "focus"));
    cases
        .iter()
        .filter(|case| !has(case, "skip") && (!focused || has(case, "focus")))
        .map(|members| Ok(Test::Case(Box::new(case(script_name, &script, &object, members)?))))
        .collect()
}

fn comparison(file: &str, at: usize, row: Data<'_>) -> Result<Test, Fault> {
    let members = row.object()?;
    let member = |name: &str| members.get(name).copied().ok_or_else(|| format!("no {name}"));
    Ok(Test::Comparison(Box::new(Comparison {
        name: format!("{file}:{at}"),
        op: member("op")?.text()?,
        a: balances(member("a")?)?,
        b: balances(member("b")?)?,
        expected: member("expected")?.is_true(),
    })))
}

type Members<'a> = BTreeMap<String, Data<'a>>;

fn case(name: &str, script: &str, file: &Members<'_>, own: &Members<'_>) -> Result<Case, Fault> {
    let label = own.get("it").map(|it| it.text()).transpose()?.unwrap_or_default();
    let mut flags = Flags::NONE;
    for name in flags_of(file)?.into_iter().chain(flags_of(own)?).flatten() {
        if let Some(flag) = Flag::from_name(&name.text()?) {
            flags = flags.with(flag);
        }
    }
    // The balances of the case override those of the file.
    let mut state = LedgerState::default();
    let mut variables = Variables::new();
    for members in [file, own] {
        if let Some(rows) = members.get("balances") {
            state.balances.extend(balances(*rows)?);
        }
        if let Some(accounts) = members.get("metadata") {
            for (account, values) in accounts.object()? {
                let values = texts(values)?;
                state.metadata.entry(account).or_default().extend(values);
            }
        }
        if let Some(values) = members.get("variables") {
            variables.extend(texts(*values)?);
        }
    }
    Ok(Case {
        name: format!("{name} {label}"),
        script: script.to_owned(),
        flags,
        state,
        variables,
        request_metadata: own.get("x-inputMetadata").map(|values| texts(*values)).transpose()?,
        expect: expect(own)?,
        answered: own
            .get("x-expect")
            .map(|releases| {
                let releases = releases.object()?.into_iter();
                releases.map(|(release, members)| Ok((release, expect(&members.object()?)?))).collect()
            })
            .transpose()
            .map_err(|fault: Fault| fault)?
            .unwrap_or_default(),
    })
}

fn flags_of<'a>(members: &Members<'a>) -> Result<Option<Vec<Data<'a>>>, Fault> {
    members.get("featureFlags").map(|flags| flags.array()).transpose()
}

fn expect(own: &Members<'_>) -> Result<Expect, Fault> {
    let given = |name: &str| own.get(name).copied().filter(|value| !value.is_null());
    let is_true = |name: &str| given(name).is_some_and(Data::is_true);
    Ok(Expect {
        postings: given("expect.postings").map(rows).transpose()?,
        transaction_metadata: given("expect.txMetadata").map(texts).transpose()?,
        account_metadata: given("expect.metadata")
            .map(|accounts| {
                accounts
                    .object()?
                    .into_iter()
                    .map(|(account, values)| Ok((account, texts(values)?)))
                    .collect()
            })
            .transpose()
            .map_err(|fault: Fault| fault)?,
        end_balances: given("expect.endBalances").map(balances).transpose()?,
        end_balances_include: given("expect.endBalances.include").map(balances).transpose()?,
        movements: given("expect.movements").map(movements).transpose()?,
        missing_funds: is_true("expect.error.missingFunds"),
        negative_amount: is_true("expect.error.negativeAmount"),
        error: given("expect.error").map(expected_error).transpose()?,
        parses: given("expect.parses").map(Data::is_true),
        diagnostics: given("expect.diagnostics")
            .map(|list| list.array()?.into_iter().map(expected_finding).collect::<Result<_, Fault>>())
            .transpose()?,
    })
}

fn texts(object: Data<'_>) -> Result<BTreeMap<String, String>, Fault> {
    Ok(object.object()?.into_iter().map(|(name, value)| (name, value.text_or_raw())).collect())
}

fn member(members: &Members<'_>, name: &str) -> Result<String, Fault> {
    members.get(name).ok_or_else(|| format!("no {name}"))?.text()
}

fn color(members: &Members<'_>) -> Result<String, Fault> {
    Ok(members.get("color").map(|color| color.text()).transpose()?.unwrap_or_default())
}

fn amount(members: &Members<'_>) -> Result<Balance, Fault> {
    let text = members.get("amount").ok_or("no amount")?.text_or_raw();
    Balance::parse(&text).map_err(|error| format!("{text}: {error}"))
}

/// Reads rows of balances. Refuses two rows with the same account, asset and colour.
pub(crate) fn balances(list: Data<'_>) -> Result<BTreeMap<Key, Balance>, Fault> {
    let mut balances = BTreeMap::new();
    for row in list.array()? {
        let row = row.object()?;
        let key = (member(&row, "account")?, member(&row, "asset")?, color(&row)?);
        if balances.insert(key.clone(), amount(&row)?).is_some() {
            return Err(format!("two balances of {key:?}"));
        }
    }
    Ok(balances)
}

fn rows(list: Data<'_>) -> Result<Vec<Row>, Fault> {
    let row = |row: Data<'_>| {
        let row = row.object()?;
        Ok(Row {
            source: member(&row, "source")?,
            destination: member(&row, "destination")?,
            asset: member(&row, "asset")?,
            color: color(&row)?,
            amount: amount(&row)?,
        })
    };
    list.array()?.into_iter().map(row).collect()
}

fn movements(list: Data<'_>) -> Result<Movements, Fault> {
    Ok(sum_of(rows(list)?))
}

/// Adds up postings by source, destination, asset and colour.
pub(crate) fn sum_of(rows: Vec<Row>) -> Movements {
    let mut sums = Movements::new();
    for row in rows {
        *sums.entry((row.source, row.destination, row.asset, row.color)).or_default() += &row.amount;
    }
    sums
}

fn expected_error(error: Data<'_>) -> Result<ExpectedError, Fault> {
    let members = error.object()?;
    let classes = members.get("class").map(|class| match class.text() {
        Ok(class) => Ok(vec![class]),
        Err(_) => class.array()?.into_iter().map(Data::text).collect::<Result<_, _>>(),
    });
    if classes.is_none() && !members.contains_key("kind") {
        return Err("an error without a class and a kind".to_owned());
    }
    Ok(ExpectedError {
        classes: classes.transpose()?,
        kind: members.get("kind").map(|kind| kind.text()).transpose()?.unwrap_or_default(),
        fields: members.get("fields").map(|fields| texts(*fields)).transpose()?.unwrap_or_default(),
    })
}

fn expected_finding(finding: Data<'_>) -> Result<ExpectedFinding, Fault> {
    let members = finding.object()?;
    Ok(ExpectedFinding {
        kind: member(&members, "kind")?,
        fields: members.get("fields").map(|fields| texts(*fields)).transpose()?.unwrap_or_default(),
    })
}
