//! The command line and its environment variables.
//!
//! Every flag has a variable; the flag goes first. Flags of this server's own have variables that begin with
//! `STACK_`, those that servers of this API already have keep their bare names. Of these some are common to much
//! software; what they hold that this server cannot read is passed over with a warning.
//!
//! `arguments.rs` takes a command line apart, `flags.rs` is the table of flags, `values.rs` how their values are read,
//! `usage.rs` the text of `--help`.

mod arguments;
mod auth;
mod error;
mod flags;
mod usage;
mod values;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use self::arguments::{Command, Line};
pub use self::auth::AuthMode;
pub(crate) use self::auth::key_file_of;
use self::auth::settle_auth;
pub use self::error::ConfigError;
use self::flags::{FOREIGN, Flag};
pub use self::usage::help;
use crate::auth::authority::AuthorizationSettings;
use crate::auth::guard::AuthSettings;
use crate::auth::keys::master::KeySource;
use crate::integrations::events::Publishing;
use crate::log::{self, Level};
use crate::settings::{MEMORY_BUDGET, Settings, http_share};

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
    /// Memory of the server, in bytes.
    pub memory_budget: usize,
    /// With fewer bytes free on the disk, writes are turned away; `None` goes by the size of the disk.
    pub free_space_floor: Option<u64>,
    /// The form of log lines.
    pub log_format: log::Format,
    /// The level below which log lines are left out.
    pub log_level: Level,
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
            memory_budget: MEMORY_BUDGET,
            free_space_floor: None,
            log_format: log::Format::Text,
            log_level: Level::Info,
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

impl Config {
    /// The part of the memory budget that is for the store.
    pub fn store_memory(&self) -> usize {
        self.memory_budget - self.settings.http_memory
    }
}

/// The environment variable of a flag that servers of this API have in common.
fn variable_of(flag: &str) -> String {
    flag.to_ascii_uppercase().replace('-', "_")
}

/// Reads a command line, without the name of the program, and the variables that `variable` looks up.
///
/// # Errors
///
/// If a command or a flag is unknown or a value is not what its flag wants.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Invocation, ConfigError> {
    let arguments = match arguments::read(arguments)? {
        Line::Answered(invocation) => return Ok(invocation),
        Line::Configured(arguments) => arguments,
    };
    // A variable that is empty is one that is not set.
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let foreign = FOREIGN.iter().map(|flag| variable_of(flag.name)).filter(|name| variable(name).is_some());
    let mut config = Config { ignored: foreign.collect(), ..Config::default() };
    config.ignored.extend(arguments.ignored);
    set_all(&mut config, &arguments.flags, &variable)?;
    Ok(match arguments.command {
        Command::Serve => {
            settle_auth(&mut config, variable("STACK_AUTH_KEY"))?;
            check_exposure(&config)?;
            Invocation::Serve(Box::new(config))
        }
        Command::Worker => Invocation::Worker,
        Command::Verify { directory, head } => Invocation::Verify(directory, head),
    })
}

/// Sets what flags say, and what variables say of all others.
fn set_all(
    config: &mut Config,
    given: &[(&Flag, String)],
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<(), ConfigError> {
    for flag in flags::all().filter(|flag| given.iter().all(|(have, _)| have.name != flag.name)) {
        let Some(value) = variable(flag.variable) else { continue };
        match (flag.set)(config, &value) {
            Ok(()) => {}
            Err(error) if flag.is_shared() => config.ignored.push(format!("{} ({error})", flag.variable)),
            Err(error) => return Err(ConfigError(format!("{}: {error}", flag.variable))),
        }
    }
    for (flag, value) in given {
        (flag.set)(config, value).map_err(|error| ConfigError(format!("--{}: {error}", flag.name)))?;
    }
    let names_worker = |ignored: &String| ignored.to_lowercase().replace('_', "-").contains("worker-grpc-");
    if config.ignored.iter().any(names_worker) {
        (config.names_worker, config.settings.worker) = (true, true);
    }
    config.settings.http_memory = http_share(config.memory_budget);
    Ok(())
}

/// Refuses to listen where others could do anything, or read tokens on their way.
fn check_exposure(config: &Config) -> Result<(), ConfigError> {
    let tls = config.settings.tls.as_ref();
    if tls.is_some_and(|tls| tls.certificate.as_os_str().is_empty() || tls.key.as_os_str().is_empty()) {
        return Err(ConfigError("TLS needs both --tls-certificate and --tls-key".to_owned()));
    }
    if config.listen.ip().is_loopback() {
        return Ok(());
    }
    if !config.auth_enabled && !config.allow_unauthenticated {
        return Err(ConfigError(format!(
            "{} can be reached by other machines and nothing asks them who they are: pass --auth-enabled, or \
             --allow-unauthenticated if a proxy in front does",
            config.listen
        )));
    }
    if config.auth_enabled && tls.is_none() && !config.settings.behind_proxy {
        return Err(ConfigError(format!(
            "tokens that come to {} from other machines could be read on their way: pass --tls-certificate and \
             --tls-key, or --behind-proxy if a proxy in front speaks TLS",
            config.listen
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
