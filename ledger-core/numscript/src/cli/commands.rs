//! The verbs of the command line, and their help text.

use std::ffi::OsString;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{Profile, Severity, check, format, parse};

use super::cases;
use super::compare::compare;
use super::console::{CommandError, CommandStatus, Console, load};
use super::execute;
use super::show::{Paint, finding, syntax_error};
use super::suggestion::suggestion;

/// Returns the text of `--help`. `program` is the command as the user typed it.
fn help(program: &str) -> String {
    format!("{program}: the script language without a ledger\n{COMMANDS}")
}

const COMMANDS: &str = "
  check FILE…    judge scripts; findings with their lines
  run FILE       run a script; nothing is recorded
      --var NAME=VALUE              a variable
      --balance ACCOUNT=ASSET:N     a balance; ASSET\\COLOR for colored funds
      --meta ACCOUNT.KEY=VALUE      metadata of an account
      --profile default|interpreter|machine-2.0
      --flag NAME                   turn on this feature and only those named so; none for none at all
      --explain                     say where each posting came from, and why sources gave less
      --json                        answer in JSON
  fmt FILE       print a script in its canonical layout
      --check                       print nothing; status 1 if the layout differs
      --write                       put the layout into the file
  test PATH…     run cases of the language's conformance suites; folders are walked
      --profile default|interpreter|machine-2.0
                                    judge a profile by what the release of that engine answered

A FILE of - is the standard input. Status: 0 all is well, 1 it is not, 2 the command makes no sense.
";

/// Runs a verb with the arguments that follow `program`, the words that the user typed to get here.
///
/// The exit status is 0 if everything is in order, 1 if a script or case has a fault, and 2 if the command
/// line is invalid.
///
/// # Examples
///
/// ```
/// let status = ledger_numscript::cli::main("numscript", ["--help".into()]);
/// assert_eq!(status, std::process::ExitCode::SUCCESS);
/// ```
pub fn main(program: &str, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let colored = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut console = Console { out: &mut out, errors: &mut std::io::stderr(), colored };
    let ended = run(program, arguments, &mut console).and_then(|ended| {
        out.flush()?;
        Ok(ended)
    });
    match ended {
        Ok(CommandStatus::Success) => ExitCode::SUCCESS,
        // A reader of the output may close it early.
        Ok(CommandStatus::Failure) | Err(CommandError::Output) => ExitCode::from(1),
        Err(CommandError::Usage(reason)) => {
            eprintln!("{program}: {reason}");
            ExitCode::from(2)
        }
    }
}

fn run(
    program: &str,
    arguments: impl IntoIterator<Item = OsString>,
    console: &mut Console<'_>,
) -> Result<CommandStatus, CommandError> {
    let mut arguments = arguments.into_iter();
    let command = arguments.next().map(|word| word.to_string_lossy().into_owned());
    let rest: Vec<OsString> = arguments.collect();
    match command.as_deref() {
        Some("check") => check_files(&rest, console),
        Some("run") => execute::run(rest, console),
        Some("fmt") => format_file(&rest, console),
        Some("test") => test(rest, console),
        Some("--help" | "-h" | "help") => {
            console.out.write_all(help(program).as_bytes())?;
            Ok(CommandStatus::Success)
        }
        Some(other) => {
            let meant = suggestion(other, ["check", "run", "fmt", "test", "help"]);
            Err(CommandError::Usage(format!("unknown command {other:?}{meant}; see {program} --help")))
        }
        None => Err(CommandError::Usage(format!("check, run, fmt or test? See {program} --help"))),
    }
}

fn check_files(paths: &[OsString], console: &mut Console<'_>) -> Result<CommandStatus, CommandError> {
    if paths.is_empty() {
        return Err(CommandError::Usage("check: no file".to_owned()));
    }
    let paint = Paint::new(console.colored);
    let mut ended = CommandStatus::Success;
    for path in paths {
        let path = Path::new(path);
        let (name, text) = (path.display().to_string(), load(path)?);
        let (tree, errors) = parse(&text);
        for error in &errors {
            console.out.write_all(syntax_error(&name, &text, error, paint).as_bytes())?;
            ended = CommandStatus::Failure;
        }
        // Findings in half a script would be misleading.
        if !errors.is_empty() {
            continue;
        }
        for found in check(&tree, &text) {
            console.out.write_all(finding(&name, &text, &found, paint).as_bytes())?;
            if found.fatal || found.kind.severity() == Severity::Error {
                ended = CommandStatus::Failure;
            }
        }
    }
    Ok(ended)
}

/// Formats a file, or checks that it is formatted.
fn format_file(arguments: &[OsString], console: &mut Console<'_>) -> Result<CommandStatus, CommandError> {
    let is_flag = |argument: &&OsString| argument.to_string_lossy().starts_with("--");
    let flags: Vec<&OsString> = arguments.iter().filter(is_flag).collect();
    let files: Vec<&OsString> = arguments.iter().filter(|argument| !is_flag(argument)).collect();
    let [file] = files.as_slice() else { return Err(CommandError::Usage("fmt: one file".to_owned())) };
    let (mut only_check, mut write) = (false, false);
    for flag in flags {
        match flag.to_string_lossy().as_ref() {
            "--check" => only_check = true,
            "--write" => write = true,
            other => {
                let meant = suggestion(other, ["--check", "--write"]);
                return Err(CommandError::Usage(format!("fmt: unknown flag {other}{meant}")));
            }
        }
    }
    let path = Path::new(file);
    let text = load(path)?;
    let formatted = match format(&text) {
        Ok(formatted) => formatted,
        Err(errors) => {
            let name = path.display().to_string();
            for error in &errors {
                let report = syntax_error(&name, &text, error, Paint::new(console.colored));
                console.errors.write_all(report.as_bytes())?;
            }
            return Ok(CommandStatus::Failure);
        }
    };
    if only_check {
        return Ok(if formatted == text { CommandStatus::Success } else { CommandStatus::Failure });
    }
    if write && formatted != text {
        std::fs::write(path, &formatted)
            .map_err(|error| CommandError::Usage(format!("{}: {error}", path.display())))?;
    } else if !write {
        console.out.write_all(formatted.as_bytes())?;
    }
    Ok(CommandStatus::Success)
}

/// Parses the arguments of `test`.
fn read_test(arguments: Vec<OsString>) -> Result<(Profile, Vec<PathBuf>), lexopt::Error> {
    use lexopt::Arg;
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut profile, mut paths) = (Profile::Default, Vec::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Value(path) => paths.push(PathBuf::from(path)),
            Arg::Long("profile") => {
                let name = parser.value().and_then(lexopt::ValueExt::string)?;
                profile = Profile::from_name(&name).ok_or_else(|| {
                    format!("--profile {name}: expected default, interpreter or machine-2.0")
                })?;
            }
            other => return Err(other.unexpected()),
        }
    }
    if paths.is_empty() { Err("no path".into()) } else { Ok((profile, paths)) }
}

/// Runs the cases at the paths.
fn test(arguments: Vec<OsString>, console: &mut Console<'_>) -> Result<CommandStatus, CommandError> {
    let (profile, paths) =
        read_test(arguments).map_err(|fault| CommandError::Usage(format!("test: {fault}")))?;
    let (mut passed, mut failed) = (0_usize, 0_usize);
    for path in &paths {
        for file in cases::files(path).map_err(CommandError::Usage)? {
            let tests = match cases::read(&file) {
                Ok(tests) => tests,
                Err(fault) => {
                    failed += 1;
                    writeln!(console.out, "FAILED {}\n{fault}\n", file.display())?;
                    continue;
                }
            };
            for case in &tests {
                match compare(case, profile) {
                    None => {}
                    Some(Ok(())) => passed += 1,
                    Some(Err(failure)) => {
                        failed += 1;
                        writeln!(console.out, "FAILED {}\n{}\n", failure.name, failure.report)?;
                    }
                }
            }
        }
    }
    writeln!(console.out, "{passed} passed, {failed} failed")?;
    Ok(if failed == 0 { CommandStatus::Success } else { CommandStatus::Failure })
}
