//! The command line and its environment variables.
//!
//! Every flag has a variable; the flag goes first. Flags of this server's own have variables that begin with
//! `STACK_`, those that servers of this API already have keep their bare names. Of these some are common to much
//! software; what they hold that this server cannot read is passed over with a warning.
//!
//! `flags.rs` is the table of flags, `values.rs` how their values are read.

mod auth;
mod error;
mod flags;
mod values;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use self::auth::AuthMode;
pub(crate) use self::auth::key_file_of;
use self::auth::settle_auth;
pub use self::error::ConfigError;
use self::flags::{FOREIGN, Flag};
use crate::auth::authority::AuthorizationSettings;
use crate::auth::guard::AuthSettings;
use crate::auth::keys::master::KeySource;
use crate::cli::copies::Verb;
use crate::integrations::events::Publishing;
use crate::settings::Settings;

/// The command of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Serve until a signal.
    Serve(Box<Config>),
    /// Stay until a signal: deployments start a worker of its own, whose work the server does.
    Worker,
    /// Check a closed data directory, and whether its history is the one of which this is known.
    Verify(PathBuf, Option<KeptHead>),
    /// Work with scripts, as these arguments say.
    Script(Vec<OsString>),
    /// Manage the authorization server, as these arguments say.
    Auth(Vec<OsString>),
    /// Copy a closed data directory or one of its ledgers, as these arguments say.
    Copy(Verb, Vec<OsString>),
    /// Print the release.
    Version,
    /// Print [`help`].
    Help,
}

/// The head of a journal as it once was: what its hash was after so many entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptHead {
    /// How many entries there were.
    pub entries: u64,
    /// The hash of them all, in hex.
    pub hash: String,
}

impl KeptHead {
    /// Reads `ENTRIES:HASH`.
    fn parse(text: &str) -> Option<Self> {
        let (entries, hash) = text.split_once(':')?;
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let entries = entries.parse().ok().filter(|_| is_hash)?;
        Some(Self { entries, hash: hash.to_ascii_lowercase() })
    }
}

/// The configuration of `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the operator's")]
pub struct Config {
    /// Where to listen; port 0 lets the operating system choose.
    pub listen: SocketAddr,
    /// The data directory.
    pub data: PathBuf,
    /// Memory for the store, in bytes.
    pub memory_budget: usize,
    /// With fewer bytes free on the disk, writes are turned away; `None` goes by the size of the disk.
    pub free_space_floor: Option<u64>,
    /// Whether an address that others can reach may be listened on without authentication.
    pub allow_unauthenticated: bool,
    /// Whether others may write into the data directory.
    pub allow_shared_directory: bool,
    /// Whether requests need tokens.
    pub auth_enabled: bool,
    /// Whose tokens are taken; `None` goes by the switch and the issuers.
    pub auth_mode: Option<AuthMode>,
    /// The file of the key that seals private values; `None` is beside the data directory.
    pub auth_key_file: Option<PathBuf>,
    /// Whose tokens, and what they must allow.
    pub auth: AuthSettings,
    /// Settings of answers.
    pub settings: Settings,
    /// Which events are published where.
    pub publishing: Publishing,
    /// Whether it says where a separate worker is: then its work is asked for, and done by the server.
    pub names_worker: bool,
    /// Given options without meaning here: flags of other servers, and variables that other software has too.
    pub ignored: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        let data = PathBuf::from("./data");
        let authorization = Some(AuthorizationSettings::new(KeySource::File(key_file_of(&data))));
        let settings = Settings { authorization, ..Settings::default() };
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            data,
            memory_budget: 512 * 1_024 * 1_024,
            free_space_floor: None,
            allow_unauthenticated: false,
            allow_shared_directory: false,
            auth_enabled: false,
            auth_mode: None,
            auth_key_file: None,
            auth: AuthSettings {
                issuers: Vec::new(),
                audiences: Vec::new(),
                check_scopes: false,
                service: "ledger".to_owned(),
                own: false,
                check_management_scopes: false,
            },
            settings,
            publishing: Publishing::default(),
            names_worker: false,
            ignored: Vec::new(),
        }
    }
}

/// The environment variable of a flag that servers of this API have in common.
fn variable_of(flag: &str) -> String {
    flag.to_ascii_uppercase().replace('-', "_")
}

/// The text of `--help`.
pub fn help() -> String {
    let mut text = String::from(
        "stack-server: the Payments Stack API from an embedded ledger\n\n\
         Usage: stack-server [serve] [FLAGS]     serve until SIGTERM or SIGINT\n\
         \x20      stack-server verify DIR [--expect-head ENTRIES:HASH]\n\
         \x20                                      check a data directory that no server has open, and that its first\n\
         \x20                                      entries are those that had this hash\n\
         \x20      stack-server backup …           copy a data directory; restore, export and import: see backup --help\n\
         \x20      stack-server worker [FLAGS]      wait for a signal: the server does the work of a worker itself\n\
         \x20      stack-server script …           work with scripts; see stack-server script --help\n\
         \x20      stack-server auth …             manage clients, tokens and keys; see stack-server auth --help\n\
         \x20      stack-server --version | --help\n\nFlags of serve, each with its environment variable:\n",
    );
    for flag in flags::all() {
        let name = format!("--{} {}", flag.name, flag.value);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name:<40} {:<34} {}", flag.variable, flag.help);
    }
    let foreign: Vec<_> = FOREIGN.iter().map(|flag| format!("--{}", flag.name)).collect();
    let _ = writeln!(text, "\nAccepted with a warning, and without effect: {}", foreign.join(", "));
    text
}

/// Reads a command line, without the name of the program, and the variables that `variable` looks up.
///
/// # Errors
///
/// If a flag is unknown or a value is not what its flag wants.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Invocation, ConfigError> {
    use lexopt::Arg;
    let mut config = Config::default();
    for foreign in FOREIGN {
        if variable(&variable_of(foreign.name)).is_some_and(|value| !value.is_empty()) {
            config.ignored.push(variable_of(foreign.name));
        }
    }
    let mut parser = lexopt::Parser::from_args(arguments);
    let refused = |error: lexopt::Error| ConfigError(error.to_string());
    let mut command: Option<String> = None;
    let mut directory = None;
    let mut kept = None;
    let mut given: Vec<(&Flag, String)> = Vec::new();
    while let Some(argument) = parser.next().map_err(refused)? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => return Ok(Invocation::Help),
            Arg::Long("version") | Arg::Short('V') => return Ok(Invocation::Version),
            Arg::Long("expect-head") if command.as_deref() == Some("verify") => {
                let text = parser.value().map_err(refused)?.to_string_lossy().into_owned();
                kept = Some(KeptHead::parse(&text).ok_or_else(|| {
                    ConfigError(format!("--expect-head: {text:?} is not ENTRIES:HASH, as the log tells it"))
                })?);
            }
            Arg::Long(name) => {
                if let Some(foreign) = FOREIGN.iter().find(|flag| flag.name == name) {
                    if foreign.is_switch {
                        parser.optional_value();
                    } else {
                        parser.value().map_err(refused)?;
                    }
                    config.ignored.push(format!("--{}", foreign.name));
                    continue;
                }
                let Some(flag) = flags::all().find(|flag| flag.name == name) else {
                    return Err(refused(argument.unexpected()));
                };
                let value = if flag.value.is_empty() {
                    // `--flag=false` is how other servers are told.
                    parser.optional_value().unwrap_or_else(|| "true".into())
                } else {
                    parser.value().map_err(refused)?
                };
                let value =
                    value.into_string().map_err(|_| ConfigError(format!("--{}: not UTF-8", flag.name)))?;
                match given.iter_mut().find(|(have, _)| have.name == flag.name) {
                    // A list may be given in several flags.
                    Some((_, list)) if flag.value.ends_with(",…") => list.extend([",", value.as_str()]),
                    _ => given.push((flag, value)),
                }
            }
            // What follows has a grammar of its own.
            Arg::Value(word) if command.is_none() && (word == "script" || word == "auth") => {
                let rest = parser.raw_args().map_err(refused)?.collect();
                return Ok(if word == "script" { Invocation::Script(rest) } else { Invocation::Auth(rest) });
            }
            Arg::Value(word) if command.is_none() => {
                let word = word.to_string_lossy().into_owned();
                if let Some(verb) = Verb::named(&word) {
                    let rest = parser.raw_args().map_err(refused)?.collect();
                    return Ok(Invocation::Copy(verb, rest));
                }
                command = Some(word);
            }
            Arg::Value(path) if command.as_deref() == Some("verify") && directory.is_none() => {
                directory = Some(PathBuf::from(path));
            }
            other => return Err(refused(other.unexpected())),
        }
    }
    for flag in flags::all().filter(|flag| given.iter().all(|(have, _)| have.name != flag.name)) {
        if let Some(value) = variable(flag.variable).filter(|value| !value.is_empty()) {
            match (flag.set)(&mut config, &value) {
                Ok(()) => {}
                Err(error) if flag.is_shared() => {
                    config.ignored.push(format!("{} ({error})", flag.variable));
                }
                Err(error) => return Err(ConfigError(format!("{}: {error}", flag.variable))),
            }
        }
    }
    for (flag, value) in given {
        (flag.set)(&mut config, &value).map_err(|error| ConfigError(format!("--{}: {error}", flag.name)))?;
    }
    let names_worker = |ignored: &String| ignored.to_lowercase().replace('_', "-").contains("worker-grpc-");
    if config.ignored.iter().any(names_worker) {
        (config.names_worker, config.settings.worker) = (true, true);
    }
    match command.as_deref() {
        None | Some("serve") => {
            settle_auth(&mut config, variable("STACK_AUTH_KEY").filter(|key| !key.is_empty()))?;
            let is_open = !config.auth_enabled && !config.allow_unauthenticated;
            if !config.listen.ip().is_loopback() && is_open {
                return Err(ConfigError(format!(
                    "{} can be reached by other machines and nothing asks them who they are: pass \
                     --auth-enabled, or --allow-unauthenticated if a proxy in front does",
                    config.listen
                )));
            }
            if let Some(tls) = &config.settings.tls
                && (tls.certificate.as_os_str().is_empty() || tls.key.as_os_str().is_empty())
            {
                return Err(ConfigError("TLS needs both --tls-certificate and --tls-key".to_owned()));
            }
            let is_in_the_clear = config.settings.tls.is_none() && !config.settings.behind_proxy;
            if !config.listen.ip().is_loopback() && config.auth_enabled && is_in_the_clear {
                return Err(ConfigError(format!(
                    "tokens that come to {} from other machines could be read on their way: pass --tls-certificate \
                     and --tls-key, or --behind-proxy if a proxy in front speaks TLS",
                    config.listen
                )));
            }
            Ok(Invocation::Serve(Box::new(config)))
        }
        // Its flags are those of a server, which it is not: what they say of the store or of tokens asks for nothing.
        Some("worker") => Ok(Invocation::Worker),
        Some("verify") => match directory {
            Some(directory) => Ok(Invocation::Verify(directory, kept)),
            None => Err(ConfigError("verify needs a data directory".to_owned())),
        },
        Some(other) => Err(ConfigError(format!("unknown command {other:?}; see --help"))),
    }
}

#[cfg(test)]
mod tests;
