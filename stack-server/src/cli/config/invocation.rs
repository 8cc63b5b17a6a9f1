//! The parsed command line: the command, and the configuration of `serve`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::auth::authority::AuthorizationSettings;
use crate::auth::guard::AuthSettings;
use crate::auth::keys::master::KeySource;
use crate::cli::copies::Verb;
use crate::integrations::events::PublishSettings;
use crate::log::{self, Level};
use crate::settings::{MEMORY_BUDGET, Settings};

/// The command of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Serve until a signal.
    Serve(Box<Config>),
    /// Do nothing until a signal. Deployments start a separate worker, but the server does its work. Contains the
    /// options that have no effect, like [`Config::ignored`].
    Worker(Vec<String>),
    /// Check a closed data directory. With an earlier head, also check that the history still begins with its entries.
    Verify(PathBuf, Option<ExpectedHead>),
    /// Work with scripts. Contains the arguments after `script`.
    Script(Vec<OsString>),
    /// Manage the authorization server. Contains the arguments after `auth`.
    Auth(Vec<OsString>),
    /// Copy a closed data directory or one of its ledgers. Contains the command and its arguments.
    Copy(Verb, Vec<OsString>),
    /// Print the release.
    Version,
    /// Print [`help`](super::help).
    Help,
    /// Print [`help_of`](super::help_of) a command.
    HelpOf(Topic),
}

/// A command that has its own help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// `serve`, with its flags.
    Serve,
    /// `verify`.
    Verify,
    /// `worker`.
    Worker,
}

impl Topic {
    /// Returns the command with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "serve" => Self::Serve,
            "verify" => Self::Verify,
            "worker" => Self::Worker,
            _ => return None,
        })
    }
}

/// An earlier head of a journal, which the operator has kept: the number of entries and the hash of their chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedHead {
    /// The number of entries.
    pub entries: u64,
    /// The hash of all these entries in hex.
    pub hash: String,
}

impl ExpectedHead {
    /// Parses `ENTRIES:HASH`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (entries, hash) = text.split_once(':')?;
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let entries = entries.parse().ok().filter(|_| is_hash)?;
        Some(Self { entries, hash: hash.to_ascii_lowercase() })
    }
}

/// The configuration of `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch for the operator")]
pub struct Config {
    /// The address to listen on. With port 0 the operating system chooses the port.
    pub listen: SocketAddr,
    /// The data directory.
    pub data: PathBuf,
    /// The memory budget of the server in bytes.
    pub memory_budget: usize,
    /// The server refuses writes if fewer bytes are free on the disk. `None` derives the limit from the size of the
    /// disk.
    pub free_space_floor: Option<u64>,
    /// The format of log lines.
    pub log_format: log::Format,
    /// The minimum level of log lines.
    pub log_level: Level,
    /// True if the server may listen without authentication on an address that other machines can reach.
    pub allow_unauthenticated: bool,
    /// True if the server accepts a data directory that other users can write to.
    pub allow_shared_directory: bool,
    /// True if requests need tokens.
    pub auth_enabled: bool,
    /// The issuers whose tokens are accepted. `None` derives them from `auth_enabled` and the configured issuers.
    pub auth_mode: Option<AuthMode>,
    /// The file with the key that encrypts private values; `None` is the file next to the data directory.
    pub auth_key_file: Option<PathBuf>,
    /// The trusted issuers, and the required audiences and scopes of tokens.
    pub auth: AuthSettings,
    /// The settings of the HTTP server.
    pub settings: Settings,
    /// The brokers and topics of published events.
    pub publishing: PublishSettings,
    /// True if the command line or a variable contains the address of a separate worker. The server does the worker's
    /// work itself, and logs this.
    pub names_worker: bool,
    /// Given options that have no effect: flags of other servers, and invalid variables that other software also uses.
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
            publishing: PublishSettings::default(),
            names_worker: false,
            ignored: Vec::new(),
        }
    }
}

impl Config {
    /// Returns the part of the memory budget for the store.
    pub fn store_memory(&self) -> usize {
        self.memory_budget - self.settings.http_memory
    }
}

/// The issuers whose tokens the server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// The server requires no tokens.
    Off,
    /// The built-in authorization server.
    Own,
    /// Other issuers.
    Foreign,
    /// The built-in authorization server and other issuers.
    Both,
}

/// Returns the default key file of a data directory. It is next to the directory, so that copies of the directory do
/// not contain the key.
pub(crate) fn key_file_of(data: &Path) -> PathBuf {
    let mut name = data.as_os_str().to_owned();
    name.push(".auth-key");
    PathBuf::from(name)
}
