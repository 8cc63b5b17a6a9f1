//! Splits a command line into its command and its flags with their unparsed values.

use std::ffi::OsString;
use std::path::PathBuf;

use ledger_numscript::cli::suggestion;
use lexopt::{Arg, Parser};

use super::error::ConfigError;
use super::flags::{self, Flag, IGNORED_FLAGS};
use super::invocation::{ExpectedHead, Invocation, Topic};
use crate::cli::copies::Verb;

/// The commands, for suggestions.
const COMMANDS: [&str; 10] =
    ["serve", "verify", "backup", "restore", "export", "import", "worker", "script", "auth", "help"];

/// A command line that needs a configuration.
pub(super) struct Arguments {
    pub(super) command: Command,
    /// Flags with their values. Each flag occurs once.
    pub(super) flags: Vec<(&'static Flag, String)>,
    /// Flags of other servers, which are ignored.
    pub(super) ignored: Vec<String>,
}

/// A command that accepts the flags of the server.
pub(super) enum Command {
    Serve,
    Worker,
    Verify { directory: PathBuf, head: Option<ExpectedHead> },
}

/// A command line.
pub(super) enum CommandLine {
    /// The invocation needs no configuration.
    Complete(Invocation),
    Configured(Arguments),
}

/// Splits a command line.
pub(super) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<CommandLine, ConfigError> {
    let mut parser = Parser::from_args(arguments);
    let mut parsed = ParsedLine::default();
    while let Some(argument) = parser.next().map_err(refused)? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => return Ok(CommandLine::Complete(parsed.help())),
            Arg::Long("version") | Arg::Short('V') => return Ok(CommandLine::Complete(Invocation::Version)),
            Arg::Long("expect-head") if parsed.is("verify") => {
                let text = parser.value().map_err(refused)?.to_string_lossy().into_owned();
                parsed.head = Some(ExpectedHead::parse(&text).ok_or_else(|| {
                    ConfigError(format!("--expect-head: {text:?} is not ENTRIES:HASH, as the log tells it"))
                })?);
            }
            Arg::Long(name) => {
                let name = name.to_owned();
                parsed.flag(&name, &mut parser)?;
            }
            Arg::Value(word) if parsed.command.is_none() => {
                let word = word.to_string_lossy().into_owned();
                if let Some(invocation) = with_own_grammar(&word, &mut parser)? {
                    return Ok(CommandLine::Complete(invocation));
                }
                // Report an unknown command before the words after it, which may be right for the intended command.
                if !COMMANDS.contains(&word.as_str()) {
                    return Err(unknown_command(&word));
                }
                parsed.command = Some(word);
            }
            Arg::Value(path) if parsed.is("verify") && parsed.directory.is_none() => {
                parsed.directory = Some(PathBuf::from(path));
            }
            other => return Err(refused(other.unexpected())),
        }
    }
    parsed.finish()
}

/// Returns the invocation of a command that parses its own arguments. `help` of such a command is its `--help`.
fn with_own_grammar(word: &str, parser: &mut Parser) -> Result<Option<Invocation>, ConfigError> {
    if word != "help" && delegated_command(word, Vec::new()).is_none() {
        return Ok(None);
    }
    let mut rest: Vec<OsString> = parser.raw_args().map_err(refused)?.collect();
    if word != "help" {
        return Ok(delegated_command(word, rest));
    }
    let Some(subject) = rest.first().map(|subject| subject.to_string_lossy().into_owned()) else {
        return Ok(Some(Invocation::Help));
    };
    rest[0] = "--help".into();
    match delegated_command(&subject, rest) {
        Some(invocation) => Ok(Some(invocation)),
        None if COMMANDS.contains(&subject.as_str()) => Ok(Some(help_of(&subject))),
        None => Err(unknown_command(&subject)),
    }
}

/// Returns the help of a command that accepts the flags of the server, and for any other word the general help.
fn help_of(command: &str) -> Invocation {
    Topic::named(command).map_or(Invocation::Help, Invocation::HelpOf)
}

/// Returns the invocation of a command that parses its own arguments, or `None` for any other word.
fn delegated_command(command: &str, arguments: Vec<OsString>) -> Option<Invocation> {
    match command {
        "script" => Some(Invocation::Script(arguments)),
        "auth" => Some(Invocation::Auth(arguments)),
        _ => Verb::named(command).map(|verb| Invocation::Copy(verb, arguments)),
    }
}

/// The words of a command line so far.
#[derive(Default)]
struct ParsedLine {
    command: Option<String>,
    directory: Option<PathBuf>,
    head: Option<ExpectedHead>,
    flags: Vec<(&'static Flag, String)>,
    ignored: Vec<String>,
}

impl ParsedLine {
    fn is(&self, command: &str) -> bool {
        self.command.as_deref() == Some(command)
    }

    /// Returns the help for a `--help` after these words.
    fn help(&self) -> Invocation {
        self.command.as_deref().map_or(Invocation::Help, help_of)
    }

    /// Parses a flag and its value.
    fn flag(&mut self, name: &str, parser: &mut Parser) -> Result<(), ConfigError> {
        if let Some(foreign) = IGNORED_FLAGS.iter().find(|flag| flag.name == name) {
            if foreign.is_switch {
                parser.optional_value();
            } else {
                parser.value().map_err(refused)?;
            }
            self.ignored.push(format!("--{name}"));
            return Ok(());
        }
        let Some(flag) = flags::all().find(|flag| flag.name == name) else {
            let own = if self.is("verify") { Some("expect-head") } else { None };
            return Err(unknown_flag(name, own));
        };
        let value = if flag.value.is_empty() {
            // Other servers accept `--flag=false`.
            parser.optional_value().unwrap_or_else(|| "true".into())
        } else {
            parser.value().map_err(refused)?
        };
        let value = value.into_string().map_err(|_| ConfigError(format!("--{name}: not UTF-8")))?;
        match self.flags.iter_mut().find(|(have, _)| have.name == flag.name) {
            // Several flags can together specify a list.
            Some((_, list)) if flag.value.ends_with(",…") => list.extend([",", value.as_str()]),
            _ => self.flags.push((flag, value)),
        }
        Ok(())
    }

    fn finish(self) -> Result<CommandLine, ConfigError> {
        let command = match self.command.as_deref() {
            None | Some("serve") => Command::Serve,
            // A worker accepts the flags of a server but is not a server, so flags about the store or tokens have no
            // effect.
            Some("worker") => Command::Worker,
            Some("verify") => match self.directory {
                Some(directory) => Command::Verify { directory, head: self.head },
                None => return Err(ConfigError("verify needs a data directory".to_owned())),
            },
            Some(other) => return Err(unknown_command(other)),
        };
        Ok(CommandLine::Configured(Arguments { command, flags: self.flags, ignored: self.ignored }))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn refused(error: lexopt::Error) -> ConfigError {
    ConfigError(error.to_string())
}

fn unknown_command(word: &str) -> ConfigError {
    let meant = suggestion(word, COMMANDS);
    ConfigError(format!("unknown command {word:?}{meant}; see stack-server help"))
}

/// Returns the error for an unknown flag. `own` is a flag that only this command has.
fn unknown_flag(name: &str, own: Option<&'static str>) -> ConfigError {
    let known = flags::all().map(|flag| flag.name).chain(IGNORED_FLAGS.iter().map(|flag| flag.name));
    let known = known.chain(["help", "version"]).chain(own).map(|name| format!("--{name}"));
    let known: Vec<String> = known.collect();
    let meant = suggestion(name, known.iter().map(String::as_str));
    ConfigError(format!("unknown flag \"--{name}\"{meant}; see stack-server help"))
}
