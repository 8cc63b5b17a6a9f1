//! A command line that was understood: the command, and the configuration of `serve`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::auth::authority::AuthorizationSettings;
use crate::auth::guard::AuthSettings;
use crate::auth::keys::master::KeySource;
use crate::cli::copies::Verb;
use crate::integrations::events::Publishing;
use crate::log::{self, Level};
use crate::settings::{MEMORY_BUDGET, Settings};

/// The command of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Serve until a signal.
    Serve(Box<Config>),
    /// Stay until a signal: deployments start a worker of its own, whose work the server does. Has the given options
    /// without meaning here, as [`Config::ignored`].
    Worker(Vec<String>),
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
    /// Print [`help`](super::help).
    Help,
    /// Print [`help_of`](super::help_of) a command.
    HelpOf(Topic),
}

/// A command whose help is a text of its own.
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
    /// Finds the command with a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "serve" => Self::Serve,
            "verify" => Self::Verify,
            "worker" => Self::Worker,
            _ => return None,
        })
    }
}

/// An earlier head of a journal: a number of entries, and the hash after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptHead {
    /// How many entries there were.
    pub entries: u64,
    /// The hash of them all, in hex.
    pub hash: String,
}

impl KeptHead {
    /// Reads `ENTRIES:HASH`.
    pub(super) fn parse(text: &str) -> Option<Self> {
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

/// Whose tokens are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Nobody asks for tokens.
    Off,
    /// Those of this server's own authorization server.
    Own,
    /// Those of issuers elsewhere.
    Foreign,
    /// Those of all of them.
    Both,
}

/// Where the key of a data directory is unless the operator says otherwise: beside it, so that copies of the directory
/// do not hold it.
pub(crate) fn key_file_of(data: &Path) -> PathBuf {
    let mut name = data.as_os_str().to_owned();
    name.push(".auth-key");
    PathBuf::from(name)
}
