//! Tests of the script language through its public interface. A case is a script with variables, a ledger, and the
//! expected postings or error.

mod limits;
mod postings;
mod runs;
mod values;

use std::collections::BTreeMap;
use std::convert::Infallible;

use ledger_core::script::{Options, Outcome, Program, Progress, Reads, Run, Scratch, ScriptError, Variables};
use ledger_core::{AccountAddress, Balance, MetadataValue, Posting, SmolStr};

/// A ledger of a case, written as lines of `account ASSET amount`, `account ASSET COLOR amount` or
/// `account.key = value`.
#[derive(Clone, Default)]
struct FixedLedger {
    balances: BTreeMap<(String, String, String), Balance>,
    metadata: BTreeMap<(String, String), String>,
}

impl FixedLedger {
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

impl Reads for FixedLedger {
    type Error = Infallible;

    fn balance(&mut self, account: &AccountAddress, asset: &str, color: &str) -> Result<Balance, Infallible> {
        let key = (account.to_string(), asset.to_owned(), color.to_owned());
        Ok(self.balances.get(&key).cloned().unwrap_or_default())
    }

    fn scales(
        &mut self,
        account: &AccountAddress,
        base: &str,
    ) -> Result<Vec<(SmolStr, Balance)>, Infallible> {
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

/// Parses variables from words of `name=value`.
fn variables(words: &str) -> Variables {
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').expect("name=value");
        (name.to_owned(), value.replace('_', " "))
    };
    words.split_whitespace().map(pair).collect()
}

/// Runs a script with variables and a ledger.
fn run(script: &str, given: &str, books: &str, options: Options) -> Result<Outcome, ScriptError> {
    let program = Program::compile(script, options.profile)?;
    let variables = variables(given);
    let mut scratch = Scratch::default();
    let mut run = Run::new(&program, &variables, options, &mut scratch);
    let mut books = FixedLedger::of(books);
    while run.advance()? == Progress::Needs {
        let Ok(()) = run.answer(&mut books);
    }
    Ok(run.outcome())
}

/// Prints the postings of an outcome, one per line, or the kind and message of the error.
fn printed(outcome: &Result<Outcome, ScriptError>) -> String {
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

/// Runs a script and compares the printed outcome.
#[track_caller]
fn check_with(script: &str, given: &str, books: &str, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(printed(&run(script, given, books, Options::default())), expected.join("\n"), "{script}");
}

/// Runs a script without variables and compares the printed outcome.
#[track_caller]
fn check(script: &str, books: &str, expected: &str) {
    check_with(script, "", books, expected);
}
