//! The command line and its environment variables.
//!
//! Every flag has a variable; the flag goes first. Flags of this server's own have variables that begin with
//! `STACK_`, those that servers of this API already have keep their bare names. Of these some are common to much
//! software; what they hold that this server cannot read is passed over with a warning.
//!
//! `flags.rs` is the table of flags, `values.rs` how their values are read.

mod flags;
mod values;

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use self::flags::{FOREIGN, Flag};
use crate::events::Publishing;
use crate::guard::AuthSettings;
use crate::settings::Settings;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Serve until a signal.
    Serve(Box<Config>),
    /// Check a closed data directory, and whether its history is the one of which this is known.
    Verify(PathBuf, Option<KeptHead>),
    /// Work with scripts, as these arguments say.
    Script(Vec<OsString>),
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
    /// Whether a proxy in front speaks TLS for this server.
    pub behind_proxy: bool,
    /// Whether requests need tokens.
    pub auth_enabled: bool,
    /// Whose tokens, and what they must allow.
    pub auth: AuthSettings,
    /// What there is to choose about answers.
    pub settings: Settings,
    /// Which events are published where.
    pub publishing: Publishing,
    /// What was given and has no meaning here: flags of other servers, and variables that other software has too.
    pub ignored: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            data: PathBuf::from("./data"),
            memory_budget: 512 * 1_024 * 1_024,
            free_space_floor: None,
            allow_unauthenticated: false,
            behind_proxy: false,
            auth_enabled: false,
            auth: AuthSettings { issuers: Vec::new(), check_scopes: false, service: "ledger".to_owned() },
            settings: Settings::default(),
            publishing: Publishing::default(),
            ignored: Vec::new(),
        }
    }
}

/// Why a command line is refused; its text is for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

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
         \x20      stack-server script …           work with scripts; see stack-server script --help\n\
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
            Arg::Value(word) if command.is_none() && word == "script" => {
                let rest = parser.raw_args().map_err(refused)?;
                return Ok(Invocation::Script(rest.collect()));
            }
            Arg::Value(word) if command.is_none() => {
                command = Some(word.to_string_lossy().into_owned());
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
    match command.as_deref() {
        None | Some("serve") => {
            if config.auth_enabled && config.auth.issuers.is_empty() {
                return Err(ConfigError("--auth-enabled needs --auth-issuer".to_owned()));
            }
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
            let is_in_the_clear = config.settings.tls.is_none() && !config.behind_proxy;
            if !config.listen.ip().is_loopback() && config.auth_enabled && is_in_the_clear {
                return Err(ConfigError(format!(
                    "tokens that come to {} from other machines could be read on their way: pass --tls-certificate \
                     and --tls-key, or --behind-proxy if a proxy in front speaks TLS",
                    config.listen
                )));
            }
            Ok(Invocation::Serve(Box::new(config)))
        }
        Some("verify") => match directory {
            Some(directory) => Ok(Invocation::Verify(directory, kept)),
            None => Err(ConfigError("verify needs a data directory".to_owned())),
        },
        Some(other) => Err(ConfigError(format!("unknown command {other:?}; see --help"))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ledger_core::schema::Enforcement;
    use ledger_core::{FirstId, PastDates, Runtime};

    use super::*;
    use crate::error::Profile;
    use crate::events::Topics;
    use crate::outbound::Outbound;
    use crate::settings::Compat;

    fn read(line: &str, variables: &[(&str, &str)]) -> Result<Invocation, ConfigError> {
        let variable = |name: &str| {
            variables.iter().find(|(have, _)| *have == name).map(|(_, value)| (*value).to_owned())
        };
        parse(line.split_whitespace().map(OsString::from), variable)
    }

    fn served(line: &str, variables: &[(&str, &str)]) -> Config {
        match read(line, variables) {
            Ok(Invocation::Serve(config)) => *config,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn flags_go_before_variables_and_variables_before_defaults() {
        assert_eq!(served("", &[]), Config::default());
        let variables = [("STACK_DATA", "/v"), ("MAX_PAGE_SIZE", "7"), ("EXPERIMENTAL_FEATURES", "true")];
        let config = served(
            "serve --data=/f --memory-budget 2GiB --free-space-floor 1GiB --profile 2.0 --compat 1.10 --commit-policy strict --first-id 1 \
             --http-threads 2 --schema-enforcement-mode strict --experimental-numscript-interpreter",
            &variables,
        );
        assert_eq!(config.data, PathBuf::from("/f"));
        assert_eq!(config.memory_budget, 2 << 30);
        assert_eq!(config.free_space_floor, Some(1 << 30));
        assert_eq!(config.settings.max_page_size, 7);
        assert!(config.settings.experimental_features);
        assert_eq!(config.settings.profile, Some(Profile::Stack));
        assert_eq!(config.settings.compat, Compat::V1_10);
        assert_eq!(config.settings.past_dates, PastDates::Refuse);
        assert_eq!(config.settings.first_id, Some(FirstId::One));
        assert_eq!(config.settings.http_threads, 2);
        assert_eq!(config.settings.schema_enforcement, Enforcement::Strict);
        assert_eq!(config.settings.runtime, Runtime::Interpreter);
    }

    #[test]
    fn events_and_pipelines_are_set_as_other_servers_of_this_api_are() {
        let variables = [
            ("PUBLISHER_TOPIC_MAPPING", "*:replaced"),
            ("PUBLISHER_NATS_ENABLED", "true"),
            ("PUBLISHER_KAFKA_ENABLED", "false"),
            ("WORKER_PIPELINES_PUSH_RETRY_PERIOD", "1m30s"),
            ("WORKER_BUCKET_CLEANUP_SCHEDULE", "0 */5 * * * *"),
            ("WORKER_BUCKET_CLEANUP_RETENTION_PERIOD", "24h"),
        ];
        let config = served(
            "--experimental-exporters --worker=false --worker-pipelines-pull-interval 100ms --publisher-http-enabled \
             --worker-pipelines-sync-period=1h --publisher-topic-mapping *:http://a:1/x \
             --publisher-topic-mapping=SAVED_METADATA:m,AUDIT:n --publisher-nats-url nats://a:1,nats://b \
             --publisher-nats-auto-provision=false --publisher-nats-max-reconnect=-1 --outbound public \
             --publisher-circuit-breaker-enabled --publisher-kafka-broker=k:9092 --otel-traces \
             --exporters-directory /e --publisher-queue-group q",
            &variables,
        );
        let settings = &config.settings;
        assert!(settings.experimental_exporters && !settings.worker);
        assert_eq!(settings.pipelines_pull_interval, Duration::from_millis(100));
        assert_eq!(settings.pipelines_retry_period, Duration::from_secs(90));
        assert_eq!(settings.pipelines_sync_period, Duration::from_hours(1));
        assert_eq!(settings.outbound, Some(Outbound::Public));
        assert_eq!(settings.exporters_directory, Some(PathBuf::from("/e")));
        let publishing = &config.publishing;
        assert!(publishing.http && publishing.nats && !publishing.nats_settings.auto_provision);
        assert_eq!(publishing.nats_settings.url, "nats://a:1,nats://b");
        let topics = Topics::parse("*:http://a:1/x,SAVED_METADATA:m,AUDIT:n").expect("pairs");
        assert_eq!(publishing.topics, topics, "flags replace the variable");
    }

    #[test]
    fn an_address_that_others_reach_must_be_allowed() {
        assert!(read("--listen 0.0.0.0:1", &[]).is_err());
        assert!(read("--listen [::1]:1", &[]).is_ok());
        assert!(read("--listen 0.0.0.0:1 --allow-unauthenticated", &[]).is_ok());
        assert!(read("--bind :1", &[]).is_err());
        assert!(read("--listen :1", &[]).is_err());
        assert_eq!(served("--listen localhost:1", &[]).listen.port(), 1);
        assert!(served("--bind localhost:1", &[]).listen.ip().is_loopback());
        let guarded = "--bind :1 --auth-enabled --auth-issuer http://i";
        let refused = read(guarded, &[]).expect_err("tokens in the clear");
        assert!(refused.to_string().contains("--behind-proxy"), "{refused}");
        assert!(read(&format!("{guarded} --behind-proxy"), &[]).is_ok());
        assert!(read(guarded, &[("STACK_BEHIND_PROXY", "1")]).is_ok());
        assert!(read(&format!("{guarded} --tls-certificate c --tls-key k"), &[]).is_ok());
        assert!(read("--auth-enabled --auth-issuer http://i", &[]).is_ok());
        // TLS does not ask who somebody is.
        assert!(read("--bind :1 --tls-certificate c --tls-key k", &[]).is_err());
        for half in ["--tls-certificate c", "--tls-key k", "--tls-client-authorities a"] {
            assert!(read(half, &[]).is_err(), "{half}");
        }
    }

    #[test]
    fn deployment_files_of_other_servers_are_understood() {
        let variables = [
            ("AUTH_ENABLED", "true"),
            ("AUTH_ISSUER", "http://a/api/auth"),
            // A flag goes before its variable: whom it names is not trusted.
            ("AUTH_ISSUERS", "http://c"),
            ("POSTGRES_MAX_OPEN_CONNS", "20"),
            ("READ_ONLY", "True"),
        ];
        let config = served(
            "serve --bind 127.0.0.1:3068 --auth-issuers=http://b,http://a/api/auth --auth-check-scopes \
             --auth-service books --debug=false --postgres-conn-max-idle-time 10m --auto-upgrade --bulk-parallel=4 \
             --experimental-numscript-interpreter",
            &variables,
        );
        assert_eq!(config.listen.port(), 3068);
        assert!(config.auth_enabled && config.settings.read_only && !config.settings.debug);
        assert_eq!(config.auth.issuers, ["http://a/api/auth", "http://b"]);
        assert!(config.auth.check_scopes);
        assert_eq!(config.auth.service, "books");
        assert_eq!(config.settings.runtime, Runtime::Interpreter);
        assert_eq!(
            config.ignored,
            ["POSTGRES_MAX_OPEN_CONNS", "--postgres-conn-max-idle-time", "--auto-upgrade", "--bulk-parallel"]
        );
    }

    #[test]
    fn variables_that_others_have_too_do_not_stop_the_start() {
        let variables =
            [("DEBUG", "foo,bar:*"), ("BIND", "0.0.0.0"), ("WORKER", "main-1"), ("MAX_PAGE_SIZE", "7")];
        let config = served("", &variables);
        assert_eq!(config.ignored.len(), 3, "{:?}", config.ignored);
        assert!(config.ignored.iter().any(|ignored| ignored.starts_with("DEBUG (\"foo,bar:*\" is")));
        let expected = Config::default();
        assert_eq!((config.listen, config.settings.worker), (expected.listen, expected.settings.worker));
        assert!(!config.settings.debug);
        assert_eq!(config.settings.max_page_size, 7);
        // What they say counts where it can be read, a flag is always meant, and what guards something is never passed
        // over.
        assert!(served("", &[("DEBUG", "1")]).settings.debug);
        assert_eq!(served("", &[("BIND", "127.0.0.1:9")]).listen.port(), 9);
        let both = [("BIND", "127.0.0.1:9"), ("STACK_LISTEN", "127.0.0.1:8")];
        assert_eq!(served("", &both).listen.port(), 8);
        assert_eq!(served("--bind 127.0.0.1:7", &both).listen.port(), 7);
        assert!(read("--debug=foo", &[]).is_err());
        for name in ["READ_ONLY", "AUTH_ENABLED", "AUTH_CHECK_SCOPES", "PUBLISHER_KAFKA_ENABLED"] {
            assert!(read("", &[(name, "foo")]).is_err(), "{name}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--nosuch",
            "nosuch",
            "serve extra",
            "verify",
            "verify a b",
            "--listen x",
            "--first-id 2",
            "--profile 3",
            "--compat 1",
            "--commit-policy any",
            "--schema-enforcement-mode lax",
            "--memory-budget 1XB",
            "--memory-budget MiB",
            "--max-page-size 0",
            "--data",
            "--data=",
            "--exporters-directory=",
            "--free-space-floor 5%",
            "--bulk-max-size -1",
            "--auth-enabled",
            "--auth-enabled=maybe",
            "--auth-issuer nonsense",
            "--bind :x",
            "--postgres-max-open-conns",
            "--memory-budget 99999999999999999999GiB",
            "--worker=maybe",
            "--worker-pipelines-pull-interval 0s",
            "--worker-pipelines-sync-period 5",
            "--outbound private",
            "--publisher-topic-mapping x",
            "--publisher-kafka-enabled",
            "--publisher-sns-enabled=true",
        ] {
            assert!(read(line, &[]).is_err(), "{line}");
        }
        let error = read("", &[("BULK_MAX_SIZE", "x")]).expect_err("no number");
        assert_eq!(error.to_string(), "BULK_MAX_SIZE: \"x\" is no number from 1 to 1000000");
        assert_eq!(read("verify d", &[]), Ok(Invocation::Verify(PathBuf::from("d"), None)));
        let hash = "0123456789abcdefABCDEF".repeat(3)[..64].to_owned();
        let kept = KeptHead { entries: 7, hash: hash.to_ascii_lowercase() };
        let line = format!("verify d --expect-head 7:{hash}");
        assert_eq!(read(&line, &[]), Ok(Invocation::Verify(PathBuf::from("d"), Some(kept))));
        let others = [format!("serve --expect-head 7:{hash}"), format!("verify d --expect-head {hash}")];
        for line in others
            .iter()
            .map(String::as_str)
            .chain(["verify d --expect-head 7:12", "verify d --expect-head x:"])
        {
            assert!(read(line, &[]).is_err(), "{line}");
        }
        assert_eq!(read("serve --help", &[]), Ok(Invocation::Help));
    }

    #[test]
    fn help_names_every_flag_and_each_has_a_name_of_its_own() {
        let help = help();
        for flag in flags::all() {
            assert!(help.contains(&format!("--{}", flag.name)) && help.contains(flag.variable));
            assert!(flag.variable.starts_with("STACK_") || flag.variable == variable_of(flag.name));
            let others =
                flags::all().filter(|other| other.name == flag.name || other.variable == flag.variable);
            assert_eq!(others.count(), 1, "--{}", flag.name);
            assert!(FOREIGN.iter().all(|foreign| foreign.name != flag.name));
        }
    }
}
