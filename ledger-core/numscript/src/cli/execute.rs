//! The verb `run`: runs a script against balances and metadata from the command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::{
    Bound, Flag, Flags, Options, Outcome, Profile, Program, Range, ScriptError, Trace, Tracing, Variables,
    Withdrawal,
};
use ledger_values::Balance;

use super::console::{CommandError, CommandStatus, Console, load};
use super::ledger_state::{Failed, Key, LedgerState, balances_after, run as run_in};
use super::render::Json;
use super::show::{Paint, script_error};
use super::suggestion::suggestion;

/// The parsed arguments of `run`.
struct Request {
    file: PathBuf,
    variables: Variables,
    state: LedgerState,
    options: Options,
    json: bool,
}

/// Runs a script and prints its result.
pub(super) fn run(
    arguments: Vec<OsString>,
    console: &mut Console<'_>,
) -> Result<CommandStatus, CommandError> {
    let mut request = read(arguments).map_err(|fault| CommandError::Usage(format!("run: {fault}")))?;
    let text = load(&request.file)?;
    let outcome = Program::compile(&text, request.options.profile)
        .map_err(|error| Box::new(Failed { error, trace: None }))
        .and_then(|program| run_in(&program, &request.variables, request.options, &mut request.state));
    match outcome {
        Ok(outcome) => {
            let balances = balances_after(&request.state, &outcome);
            if request.json {
                writeln!(console.out, "{}", json_outcome(&outcome, &balances))?;
            } else {
                print_outcome(&outcome, &balances, &text, console)?;
            }
            Ok(CommandStatus::Success)
        }
        Err(failed) => {
            let Failed { error, trace } = *failed;
            if request.json {
                writeln!(console.out, "{}", json_error(&error, trace.as_ref()))?;
            } else {
                let name = request.file.display().to_string();
                let report = script_error(&name, &text, &error, Paint::new(console.colored));
                console.errors.write_all(report.as_bytes())?;
                if let Some(trace) = &trace {
                    print_short(trace, &text, Paint::new(console.colored), console.errors)?;
                }
            }
            Ok(CommandStatus::Failure)
        }
    }
}

/// Parses the arguments of `run`.
fn read(arguments: Vec<OsString>) -> Result<Request, lexopt::Error> {
    use lexopt::Arg;
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut file = None;
    let mut flags = None;
    let (mut variables, mut state) = (Variables::new(), LedgerState::default());
    let (mut options, mut json) = (Options::default(), false);
    while let Some(argument) = parser.next()? {
        let name = match argument {
            Arg::Value(path) if file.is_none() => {
                file = Some(PathBuf::from(path));
                continue;
            }
            Arg::Long(name) => name.to_owned(),
            other => return Err(other.unexpected()),
        };
        match name.as_str() {
            "json" => json = true,
            "explain" => options.trace = Tracing::On,
            "var" | "balance" | "meta" | "profile" | "flag" => {
                let value = parser.value().and_then(lexopt::ValueExt::string)?;
                let wrong = |form: &str| lexopt::Error::from(format!("--{name} {value}: expected {form}"));
                match name.as_str() {
                    "var" => {
                        let (name, text) = value.split_once('=').ok_or_else(|| wrong("NAME=VALUE"))?;
                        variables.insert(name.trim_start_matches('$').to_owned(), text.to_owned());
                    }
                    "balance" => {
                        let form = "ACCOUNT=ASSET:N";
                        let (key, amount) = balance(&value).ok_or_else(|| wrong(form))?;
                        state.balances.insert(key, amount);
                    }
                    "meta" => {
                        let form = "ACCOUNT.KEY=VALUE";
                        let (target, text) = value.split_once('=').ok_or_else(|| wrong(form))?;
                        let (account, key) = target.split_once('.').ok_or_else(|| wrong(form))?;
                        let account = state.metadata.entry(account.trim_start_matches('@').to_owned());
                        account.or_default().insert(key.to_owned(), text.to_owned());
                    }
                    "profile" => {
                        options.profile = Profile::from_name(&value)
                            .ok_or_else(|| wrong("default, interpreter or machine-2.0"))?;
                    }
                    _ => {
                        let named = flags.unwrap_or(Flags::NONE);
                        flags = Some(match (value.as_str(), Flag::from_name(&value)) {
                            ("none", _) => named,
                            (_, Some(flag)) => named.with(flag),
                            (_, None) => {
                                let all = Flag::ALL.map(Flag::name).join(", ");
                                return Err(wrong(&format!("none or one of {all}")));
                            }
                        });
                    }
                }
            }
            other => {
                let known = ["--var", "--balance", "--meta", "--profile", "--flag", "--explain", "--json"];
                let meant = suggestion(other, known);
                return Err(format!("unknown flag --{other}{meant}").into());
            }
        }
    }
    options.flags = flags.unwrap_or_default();
    let file = file.ok_or("no file")?;
    Ok(Request { file, variables, state, options, json })
}

/// Parses `account=ASSET:n`, with `ASSET\COLOR` for coloured funds.
fn balance(text: &str) -> Option<(Key, Balance)> {
    let (account, held) = text.split_once('=')?;
    let (asset, amount) = held.rsplit_once(':')?;
    let (asset, color) = asset.split_once('\\').unwrap_or((asset, ""));
    let account = account.trim_start_matches('@');
    Some(((account.to_owned(), asset.to_owned(), color.to_owned()), Balance::parse(amount).ok()?))
}

// Output for people.

fn print_outcome(
    outcome: &Outcome,
    balances: &BTreeMap<Key, Balance>,
    text: &str,
    console: &mut Console<'_>,
) -> std::io::Result<()> {
    let paint = Paint::new(console.colored);
    let out = &mut *console.out;
    writeln!(out, "{}", paint.strong("postings"))?;
    for (at, posting) in outcome.postings.iter().enumerate() {
        let moved = &posting.posting;
        let asset = asset_text(moved.asset.as_str(), &posting.color);
        writeln!(out, "  {} -> {}  {asset} {}", moved.source, moved.destination, moved.amount)?;
        let Some(made) = outcome.trace.as_ref().and_then(|trace| trace.postings.get(at)) else { continue };
        for (range, amount) in &made.sources {
            writeln!(out, "      {amount} from {}", clause(*range, text))?;
        }
        match made.destination {
            Some(range) => writeln!(out, "      to {}", clause(range, text))?,
            None => writeln!(out, "      to convert precisions")?,
        }
    }
    if let Some(trace) = &outcome.trace {
        print_short(trace, text, paint, out)?;
    }
    if !outcome.metadata.is_empty() {
        writeln!(out, "{}", paint.strong("transaction metadata"))?;
        for (key, value) in outcome.metadata.iter() {
            writeln!(out, "  {key} = {}", value.text())?;
        }
    }
    for (account, metadata) in &outcome.account_metadata {
        writeln!(out, "{} {account}", paint.strong("metadata of"))?;
        for (key, value) in metadata.iter() {
            writeln!(out, "  {key} = {}", value.text())?;
        }
    }
    writeln!(out, "{}", paint.strong("balances"))?;
    for ((account, asset, color), balance) in balances {
        writeln!(out, "  {account}  {} {balance}", asset_text(asset, color))?;
    }
    Ok(())
}

/// Prints the sources that paid less than requested.
fn print_short(trace: &Trace, text: &str, paint: Paint, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    let is_short = |withdrawal: &&Withdrawal| {
        withdrawal.returned || withdrawal.asked.as_ref().is_some_and(|asked| withdrawal.gave < *asked)
    };
    let mut titled = false;
    for withdrawal in trace.withdrawals.iter().filter(is_short) {
        if !std::mem::replace(&mut titled, true) {
            writeln!(out, "{}", paint.strong("sources that gave less"))?;
        }
        let asked = withdrawal.asked.as_ref().map_or("everything".to_owned(), ToString::to_string);
        writeln!(
            out,
            "  {}: asked for {asked}, gave {}{}",
            clause(withdrawal.range, text),
            withdrawal.gave,
            reason(withdrawal)
        )?;
    }
    Ok(())
}

fn reason(withdrawal: &Withdrawal) -> String {
    let asset = asset_text(&withdrawal.asset, &withdrawal.color);
    let bound = match &withdrawal.bound {
        Bound::Nothing => String::new(),
        Bound::Balance { balance, overdraft } if overdraft.is_zero() => {
            format!(": it held {asset} {balance}")
        }
        Bound::Balance { balance, overdraft } => {
            format!(": it held {asset} {balance} and may go {overdraft} below zero")
        }
    };
    if withdrawal.returned { format!("{bound}, and gave it back for the next of its oneof") } else { bound }
}

fn clause(range: Range, text: &str) -> String {
    let line = text.lines().nth(range.start.line as usize).unwrap_or_default();
    let characters = line.chars().skip(range.start.column as usize);
    let is_one_line = range.start.line == range.end.line;
    let length = if is_one_line { (range.end.column - range.start.column) as usize } else { usize::MAX };
    let words: String = characters.take(length).collect();
    format!("{}:{} {words}", range.start.line + 1, range.start.column + 1)
}

fn asset_text(asset: &str, color: &str) -> String {
    if color.is_empty() { asset.to_owned() } else { format!("{asset} \\ \"{color}\"") }
}

// Output for programs.

fn json_outcome(outcome: &Outcome, balances: &BTreeMap<Key, Balance>) -> Json {
    let postings = outcome.postings.iter().map(|posting| {
        let moved = &posting.posting;
        let members = Json::object([
            ("source", Json::text(moved.source.as_str())),
            ("destination", Json::text(moved.destination.as_str())),
            ("amount", Json::integer(&moved.amount)),
            ("asset", Json::text(moved.asset.as_str())),
        ]);
        with_color(members, &posting.color)
    });
    let texts = |metadata: &ledger_values::Metadata| {
        let member =
            |(key, value): (&str, &ledger_values::MetadataValue)| (key.to_owned(), Json::text(value.text()));
        Json::Object(metadata.iter().map(member).collect())
    };
    let accounts = outcome.account_metadata.iter();
    let accounts = accounts.map(|(account, metadata)| (account.to_string(), texts(metadata)));
    let balances = balances.iter().map(|((account, asset, color), balance)| {
        let members = Json::object([
            ("account", Json::text(account)),
            ("asset", Json::text(asset)),
            ("amount", Json::integer(balance)),
        ]);
        with_color(members, color)
    });
    let mut answer = vec![
        ("postings".to_owned(), Json::List(postings.collect())),
        ("txMeta".to_owned(), texts(&outcome.metadata)),
        ("accountsMeta".to_owned(), Json::Object(accounts.collect())),
        ("balances".to_owned(), Json::List(balances.collect())),
    ];
    if let Some(trace) = &outcome.trace {
        answer.push(("trace".to_owned(), json_trace(trace)));
    }
    Json::Object(answer)
}

fn with_color(mut members: Json, color: &str) -> Json {
    if let (Json::Object(members), false) = (&mut members, color.is_empty()) {
        members.push(("color".to_owned(), Json::text(color)));
    }
    members
}

fn json_trace(trace: &Trace) -> Json {
    let postings = trace.postings.iter().map(|made| {
        let sources = made.sources.iter().map(|(at, amount)| {
            Json::object([("range", json_range(*at)), ("amount", Json::integer(amount))])
        });
        Json::object([
            ("sources", Json::List(sources.collect())),
            ("destination", made.destination.map_or(Json::Null, json_range)),
        ])
    });
    let withdrawals = trace.withdrawals.iter().map(|withdrawal| {
        let bound = match &withdrawal.bound {
            Bound::Nothing => Json::Null,
            Bound::Balance { balance, overdraft } => {
                Json::object([("balance", Json::integer(balance)), ("overdraft", Json::integer(overdraft))])
            }
        };
        Json::object([
            ("range", json_range(withdrawal.range)),
            ("account", Json::text(withdrawal.account.as_str())),
            ("asset", Json::text(withdrawal.asset.as_str())),
            ("color", Json::text(withdrawal.color.as_str())),
            ("asked", withdrawal.asked.as_ref().map_or(Json::Null, Json::integer)),
            ("gave", Json::integer(&withdrawal.gave)),
            ("bound", bound),
            ("returned", if withdrawal.returned { Json::True } else { Json::False }),
        ])
    });
    Json::object([("postings", Json::List(postings.collect())), ("drawn", Json::List(withdrawals.collect()))])
}

fn json_range(range: Range) -> Json {
    let numbers = [range.start.line, range.start.column, range.end.line, range.end.column];
    Json::List(numbers.into_iter().map(Json::integer).collect())
}

fn json_error(error: &ScriptError, trace: Option<&Trace>) -> Json {
    let fields = error.kind.fields().into_iter().map(|(name, value)| (name.to_owned(), Json::text(value)));
    let members = Json::object([
        ("kind", Json::text(error.kind.name())),
        ("class", Json::text(error.kind.class().name())),
        ("message", Json::text(error.kind.to_string())),
        ("fields", Json::Object(fields.collect())),
        ("range", error.range.map_or(Json::Null, json_range)),
    ]);
    let mut answer = vec![("error".to_owned(), members)];
    answer.extend(trace.map(|trace| ("trace".to_owned(), json_trace(trace))));
    Json::Object(answer)
}
