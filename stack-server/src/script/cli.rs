//! `stack-server script …`: the language without a ledger.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use ledger_core::script::{Profile, Severity, check, format, parse};

use super::cases;
use super::execute;
use super::judge::judge;
use super::show::{Paint, finding, syntax_error};

/// The text of `script --help`.
const HELP: &str = "\
stack-server script: the script language without a ledger

  script check FILE…    judge scripts; findings with their lines
  script run FILE       run a script; nothing is recorded
      --var NAME=VALUE              a variable
      --balance ACCOUNT=ASSET:N     a balance; ASSET\\COLOR for colored funds
      --meta ACCOUNT.KEY=VALUE      metadata of an account
      --profile default|interpreter|machine-2.0
      --flag NAME                   turn on this feature and only those named so; none for none at all
      --explain                     say where each posting came from, and why sources gave less
      --json                        answer in JSON
  script fmt FILE       print a script in its canonical layout
      --check                       print nothing; status 1 if the layout differs
      --write                       put the layout into the file
  script test PATH…     run cases of the language's conformance suites; folders are walked
      --profile default|interpreter|machine-2.0
                                    judge a profile by what the release of that engine answered

A FILE of - is the standard input. Status: 0 all is well, 1 it is not, 2 the command makes no sense.
";

/// How a command of scripts ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All is well.
    Well,
    /// Something that was looked at is not as it should be.
    Badly,
    /// The command line makes no sense; the reason was written to the errors.
    Misused,
}

/// Where the commands write.
pub struct Console<'a> {
    /// What was asked for.
    pub out: &'a mut dyn Write,
    /// Why it cannot be given.
    pub errors: &'a mut dyn Write,
    /// Whether `out` shows colours.
    pub colored: bool,
}

/// Runs a command of scripts, given what follows the word `script`.
///
/// # Errors
///
/// If what it has to say cannot be written.
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    console: &mut Console<'_>,
) -> std::io::Result<Ended> {
    let mut arguments = arguments.into_iter();
    let command = arguments.next().map(|word| word.to_string_lossy().into_owned());
    let rest: Vec<OsString> = arguments.collect();
    let ended = match command.as_deref() {
        Some("check") => check_files(&rest, console),
        Some("run") => execute::run(rest, console),
        Some("fmt") => lay_out(&rest, console),
        Some("test") => test(rest, console),
        Some("--help" | "-h" | "help") => {
            console.out.write_all(HELP.as_bytes())?;
            return Ok(Ended::Well);
        }
        Some(other) => Err(Stopped::Misused(format!("unknown command {other:?}; see script --help"))),
        None => Err(Stopped::Misused("check, run, fmt or test? See script --help".to_owned())),
    };
    match ended {
        Ok(ended) => Ok(ended),
        Err(Stopped::Output(error)) => Err(error),
        Err(Stopped::Misused(reason)) => {
            writeln!(console.errors, "stack-server script: {reason}")?;
            Ok(Ended::Misused)
        }
    }
}

/// Why a command cannot go on.
pub(super) enum Stopped {
    /// The command line makes no sense, or names what is not there.
    Misused(String),
    /// What it says cannot be written.
    Output(std::io::Error),
}

impl From<std::io::Error> for Stopped {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

/// The text of a file, or of the standard input for `-`.
pub(super) fn load(path: &Path) -> Result<String, Stopped> {
    let read = if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|error| Stopped::Misused(format!("{}: {error}", path.display())))
}

fn check_files(paths: &[OsString], console: &mut Console<'_>) -> Result<Ended, Stopped> {
    if paths.is_empty() {
        return Err(Stopped::Misused("check: no file".to_owned()));
    }
    let paint = Paint::new(console.colored);
    let mut ended = Ended::Well;
    for path in paths {
        let path = Path::new(path);
        let (name, text) = (path.display().to_string(), load(path)?);
        let (tree, errors) = parse(&text);
        for error in &errors {
            console.out.write_all(syntax_error(&name, &text, error, paint).as_bytes())?;
            ended = Ended::Badly;
        }
        // Of half a script, much would be said that is not so.
        if !errors.is_empty() {
            continue;
        }
        for found in check(&tree, &text) {
            console.out.write_all(finding(&name, &text, &found, paint).as_bytes())?;
            if found.fatal || found.kind.severity() == Severity::Error {
                ended = Ended::Badly;
            }
        }
    }
    Ok(ended)
}

fn lay_out(arguments: &[OsString], console: &mut Console<'_>) -> Result<Ended, Stopped> {
    let is_flag = |argument: &&OsString| argument.to_string_lossy().starts_with("--");
    let flags: Vec<&OsString> = arguments.iter().filter(is_flag).collect();
    let files: Vec<&OsString> = arguments.iter().filter(|argument| !is_flag(argument)).collect();
    let [file] = files.as_slice() else { return Err(Stopped::Misused("fmt: one file".to_owned())) };
    let (mut only_check, mut write) = (false, false);
    for flag in flags {
        match flag.to_string_lossy().as_ref() {
            "--check" => only_check = true,
            "--write" => write = true,
            other => return Err(Stopped::Misused(format!("fmt: unknown flag {other}"))),
        }
    }
    let path = Path::new(file);
    let text = load(path)?;
    let laid_out = match format(&text) {
        Ok(laid_out) => laid_out,
        Err(errors) => {
            let name = path.display().to_string();
            for error in &errors {
                let report = syntax_error(&name, &text, error, Paint::new(console.colored));
                console.errors.write_all(report.as_bytes())?;
            }
            return Ok(Ended::Badly);
        }
    };
    if only_check {
        return Ok(if laid_out == text { Ended::Well } else { Ended::Badly });
    }
    if write && laid_out != text {
        std::fs::write(path, &laid_out)
            .map_err(|error| Stopped::Misused(format!("{}: {error}", path.display())))?;
    } else if !write {
        console.out.write_all(laid_out.as_bytes())?;
    }
    Ok(Ended::Well)
}

fn read_test(arguments: Vec<OsString>) -> Result<(Profile, Vec<PathBuf>), String> {
    use lexopt::Arg;
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut profile, mut paths) = (Profile::Default, Vec::new());
    let said = |error: lexopt::Error| error.to_string();
    while let Some(argument) = parser.next().map_err(said)? {
        match argument {
            Arg::Value(path) => paths.push(PathBuf::from(path)),
            Arg::Long("profile") => {
                let name = parser.value().and_then(lexopt::ValueExt::string).map_err(said)?;
                profile = Profile::from_name(&name).ok_or_else(|| {
                    format!("--profile {name}: expected default, interpreter or machine-2.0")
                })?;
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    if paths.is_empty() { Err("no path".to_owned()) } else { Ok((profile, paths)) }
}

/// Runs the cases at the paths.
fn test(arguments: Vec<OsString>, console: &mut Console<'_>) -> Result<Ended, Stopped> {
    let (profile, paths) =
        read_test(arguments).map_err(|fault| Stopped::Misused(format!("test: {fault}")))?;
    let (mut passed, mut failed) = (0_usize, 0_usize);
    for path in &paths {
        for file in cases::files(path).map_err(Stopped::Misused)? {
            let tests = match cases::read(&file) {
                Ok(tests) => tests,
                Err(fault) => {
                    failed += 1;
                    writeln!(console.out, "FAILED {}\n{fault}\n", file.display())?;
                    continue;
                }
            };
            for case in &tests {
                match judge(case, profile) {
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
    Ok(if failed == 0 { Ended::Well } else { Ended::Badly })
}
