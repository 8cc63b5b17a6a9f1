//! `stack-server script …`: the language without a ledger.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use super::cases;
use super::judge::judge;

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

/// Runs a command of scripts, given what follows the word `script`.
///
/// # Errors
///
/// If what it has to say cannot be written.
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut impl Write,
    errors: &mut impl Write,
) -> std::io::Result<Ended> {
    let mut arguments = arguments.into_iter();
    let command = arguments.next().map(|word| word.to_string_lossy().into_owned());
    match command.as_deref() {
        Some("test") => test(arguments.map(PathBuf::from).collect(), out, errors),
        other => {
            writeln!(errors, "stack-server script: unknown command {:?}", other.unwrap_or_default())?;
            Ok(Ended::Misused)
        }
    }
}

/// Runs the cases at the paths.
fn test(paths: Vec<PathBuf>, out: &mut impl Write, errors: &mut impl Write) -> std::io::Result<Ended> {
    if paths.is_empty() {
        writeln!(errors, "stack-server script test: no path")?;
        return Ok(Ended::Misused);
    }
    let (mut passed, mut failed) = (0_usize, 0_usize);
    for path in paths {
        let files = match cases::files(&path) {
            Ok(files) => files,
            Err(fault) => {
                writeln!(errors, "stack-server script test: {fault}")?;
                return Ok(Ended::Misused);
            }
        };
        for file in files {
            match cases::read(&file) {
                Ok(tests) => {
                    for case in &tests {
                        match judge(case) {
                            Ok(()) => passed += 1,
                            Err(failure) => {
                                failed += 1;
                                writeln!(out, "FAILED {}\n{}\n", failure.name, failure.report)?;
                            }
                        }
                    }
                }
                Err(fault) => {
                    failed += 1;
                    writeln!(out, "FAILED {}\n{fault}\n", file.display())?;
                }
            }
        }
    }
    writeln!(out, "{passed} passed, {failed} failed")?;
    Ok(if failed == 0 { Ended::Well } else { Ended::Badly })
}
