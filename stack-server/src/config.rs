//! The command line and its environment variables.
//!
//! Every flag has a variable; the flag goes first. Flags of this server's own have variables that begin with
//! `STACK_`, those that servers of this API already have keep their bare names.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ledger_core::schema::Enforcement;
use ledger_core::{FirstId, PastDates, Runtime};

use crate::duration;
use crate::error::Profile;
use crate::events::{Publishing, Topics};
use crate::guard;
use crate::guard::AuthSettings;
use crate::limits::HTTP_THREADS_MAX;
use crate::outbound::Outbound;
use crate::schedule::Schedule;
use crate::settings::{Compat, Settings};

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Serve until a signal.
    Serve(Box<Config>),
    /// Check a closed data directory.
    Verify(PathBuf),
    /// Work with scripts, as these arguments say.
    Script(Vec<OsString>),
    /// Print the release.
    Version,
    /// Print [`help`].
    Help,
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
    /// Whether an address that others can reach may be listened on without authentication.
    pub allow_unauthenticated: bool,
    /// Whether requests need tokens.
    pub auth_enabled: bool,
    /// Whose tokens, and what they must allow.
    pub auth: AuthSettings,
    /// What there is to choose about answers.
    pub settings: Settings,
    /// Which events are published where.
    pub publishing: Publishing,
    /// Flags that were given and have no meaning here.
    pub ignored: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            data: PathBuf::from("./data"),
            memory_budget: 512 * 1_024 * 1_024,
            allow_unauthenticated: false,
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

/// A flag: its name, what its value is called (empty for a switch), its variable, what it does.
struct Flag {
    name: &'static str,
    value: &'static str,
    variable: &'static str,
    help: &'static str,
}

#[rustfmt::skip]
static FLAGS: &[Flag] = &[
    Flag { name: "listen", value: "ADDRESS", variable: "STACK_LISTEN", help: "address to listen on (127.0.0.1:8080)" },
    Flag { name: "bind", value: "ADDRESS", variable: "BIND", help: "the same, as other servers call it; :PORT listens on every address" },
    Flag { name: "data", value: "DIR", variable: "STACK_DATA", help: "data directory, made if absent (./data)" },
    Flag { name: "memory-budget", value: "SIZE", variable: "STACK_MEMORY_BUDGET", help: "memory for the store, with suffix KiB, MiB or GiB (512MiB)" },
    Flag { name: "http-threads", value: "COUNT", variable: "STACK_HTTP_THREADS", help: "threads that speak HTTP (1)" },
    Flag { name: "profile", value: "mount|2.0|2.x", variable: "STACK_PROFILE", help: "generation of clients to speak to; mount: by path (mount)" },
    Flag { name: "compat", value: "1.10|2.0", variable: "STACK_COMPAT", help: "release whose v1 clients are answered unless they say their own (2.0)" },
    Flag { name: "commit-policy", value: "past|strict", variable: "STACK_COMMIT_POLICY", help: "whether v1 transactions may be dated before the last one; strict: no (past)" },
    Flag { name: "first-id", value: "0|1", variable: "STACK_FIRST_ID", help: "first id of new ledgers (by profile: 0 in 2.0, 1 in 2.x)" },
    Flag { name: "bulk-max-size", value: "COUNT", variable: "BULK_MAX_SIZE", help: "most elements of a bulk (100)" },
    Flag { name: "default-page-size", value: "COUNT", variable: "DEFAULT_PAGE_SIZE", help: "rows of a page unless asked (15)" },
    Flag { name: "max-page-size", value: "COUNT", variable: "MAX_PAGE_SIZE", help: "most rows of a page (100)" },
    Flag { name: "experimental-features", value: "", variable: "EXPERIMENTAL_FEATURES", help: "let callers choose the features of new ledgers" },
    Flag { name: "experimental-exporters", value: "", variable: "EXPERIMENTAL_EXPORTERS", help: "have exporters and pipelines" },
    Flag { name: "worker", value: "", variable: "WORKER", help: "run pipelines and remove deleted buckets in this process (true)" },
    Flag { name: "worker-bucket-cleanup-schedule", value: "CRON", variable: "WORKER_BUCKET_CLEANUP_SCHEDULE", help: "when to look for deleted buckets to be removed for good, with seconds, in UTC (0 0 * * * *)" },
    Flag { name: "worker-bucket-cleanup-retention-period", value: "DURATION", variable: "WORKER_BUCKET_CLEANUP_RETENTION_PERIOD", help: "so long a deleted bucket can be restored (720h)" },
    Flag { name: "worker-pipelines-pull-interval", value: "DURATION", variable: "WORKER_PIPELINES_PULL_INTERVAL", help: "a pipeline looks for logs so often, at least (5s)" },
    Flag { name: "worker-pipelines-push-retry-period", value: "DURATION", variable: "WORKER_PIPELINES_PUSH_RETRY_PERIOD", help: "a push that failed is tried again after (10s)" },
    Flag { name: "worker-pipelines-sync-period", value: "DURATION", variable: "WORKER_PIPELINES_SYNC_PERIOD", help: "look so often which pipelines there are (1m)" },
    Flag { name: "exporters-directory", value: "DIR", variable: "STACK_EXPORTERS_DIRECTORY", help: "where exporters may write files (nowhere)" },
    Flag { name: "outbound", value: "any|public", variable: "STACK_OUTBOUND", help: "where addresses given over the API may lead (any on loopback, else public)" },
    Flag { name: "events-heartbeat", value: "DURATION", variable: "STACK_EVENTS_HEARTBEAT", help: "a stream of events shows so often that it is alive (15s)" },
    Flag { name: "publisher-topic-mapping", value: "TYPE:TOPIC,…", variable: "PUBLISHER_TOPIC_MAPPING", help: "topics of events by type, * for all others (the type)" },
    Flag { name: "publisher-http-enabled", value: "", variable: "PUBLISHER_HTTP_ENABLED", help: "post events; the topic is the address" },
    Flag { name: "publisher-http-secrets-file", value: "FILE", variable: "STACK_PUBLISHER_HTTP_SECRETS_FILE", help: "secrets that sign posted events, one a line (unsigned)" },
    Flag { name: "publisher-nats-enabled", value: "", variable: "PUBLISHER_NATS_ENABLED", help: "publish events to NATS JetStream; the topic is the subject" },
    Flag { name: "publisher-nats-url", value: "URL,…", variable: "PUBLISHER_NATS_URL", help: "its servers (nats://127.0.0.1:4222)" },
    Flag { name: "publisher-nats-client-id", value: "NAME", variable: "PUBLISHER_NATS_CLIENT_ID", help: "what it shows of this client" },
    Flag { name: "publisher-nats-reconnect-wait", value: "DURATION", variable: "PUBLISHER_NATS_RECONNECT_WAIT", help: "pause between attempts to connect (2s)" },
    Flag { name: "publisher-nats-auto-provision", value: "", variable: "PUBLISHER_NATS_AUTO_PROVISION", help: "make a stream for a topic that none has (true)" },
    Flag { name: "publisher-kafka-enabled", value: "", variable: "PUBLISHER_KAFKA_ENABLED", help: "refused: use NATS or HTTP" },
    Flag { name: "publisher-sns-enabled", value: "", variable: "PUBLISHER_SNS_ENABLED", help: "refused: use NATS or HTTP" },
    Flag { name: "schema-enforcement-mode", value: "audit|strict", variable: "SCHEMA_ENFORCEMENT_MODE", help: "what becomes of writes outside their ledger's schema; audit: they are logged (audit)" },
    Flag { name: "experimental-numscript-interpreter", value: "", variable: "EXPERIMENTAL_NUMSCRIPT_INTERPRETER", help: "scripts that name no runtime fail in the words of the interpreter" },
    Flag { name: "read-only", value: "", variable: "READ_ONLY", help: "refuse every request that is not GET, HEAD or OPTIONS" },
    Flag { name: "debug", value: "", variable: "DEBUG", help: "a line in the log for every request" },
    Flag { name: "auth-enabled", value: "", variable: "AUTH_ENABLED", help: "ask for a token with every request but those about the service" },
    Flag { name: "auth-issuer", value: "URL", variable: "AUTH_ISSUER", help: "whose tokens are taken: the address where its discovery document is" },
    Flag { name: "auth-issuers", value: "URL,…", variable: "AUTH_ISSUERS", help: "more of them" },
    Flag { name: "auth-check-scopes", value: "", variable: "AUTH_CHECK_SCOPES", help: "tokens must allow what is asked: SERVICE:read or SERVICE:write" },
    Flag { name: "auth-service", value: "SERVICE", variable: "AUTH_SERVICE", help: "the word before the colon (ledger)" },
    Flag { name: "allow-unauthenticated", value: "", variable: "STACK_ALLOW_UNAUTHENTICATED", help: "allow an address that other machines can reach" },
];

/// A flag of other servers of this API that has no meaning here, and whether it is a switch.
struct Foreign {
    name: &'static str,
    is_switch: bool,
}

/// Deployment files have them; with this server they change nothing.
static FOREIGN: &[Foreign] = &[
    // Elements of a bulk run in order.
    Foreign { name: "bulk-parallel", is_switch: false },
    // No database to connect to.
    Foreign { name: "postgres-max-idle-conns", is_switch: false },
    Foreign { name: "postgres-max-open-conns", is_switch: false },
    Foreign { name: "postgres-conn-max-idle-time", is_switch: false },
    Foreign { name: "postgres-aws-enable-iam", is_switch: true },
    Foreign { name: "auto-upgrade", is_switch: true },
    // Memory is bounded as a whole.
    Foreign { name: "ballast-size", is_switch: false },
    Foreign { name: "numscript-cache-max-count", is_switch: false },
    Foreign { name: "json-formatting-logger", is_switch: true },
    // Events are never given up, and nothing is subscribed to.
    Foreign { name: "publisher-nats-max-reconnect", is_switch: false },
    Foreign { name: "publisher-queue-group", is_switch: false },
    // Keys are asked for again until they are there.
    Foreign { name: "auth-read-key-set-max-retries", is_switch: false },
];

/// The environment variable of a flag that servers of this API have in common.
fn variable_of(flag: &str) -> String {
    flag.to_ascii_uppercase().replace('-', "_")
}

/// The text of `--help`.
pub fn help() -> String {
    let mut text = String::from(
        "stack-server: the Payments Stack API from an embedded ledger\n\n\
         Usage: stack-server [serve] [FLAGS]     serve until SIGTERM or SIGINT\n\
         \x20      stack-server verify DIR         check a data directory that no server has open\n\
         \x20      stack-server script …           work with scripts; see stack-server script --help\n\
         \x20      stack-server --version | --help\n\nFlags of serve, each with its environment variable:\n",
    );
    for flag in FLAGS {
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
    let mut given: Vec<(&Flag, String)> = Vec::new();
    while let Some(argument) = parser.next().map_err(refused)? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => return Ok(Invocation::Help),
            Arg::Long("version") | Arg::Short('V') => return Ok(Invocation::Version),
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
                let Some(flag) = FLAGS.iter().find(|flag| flag.name == name) else {
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
    for flag in FLAGS.iter().filter(|flag| given.iter().all(|(have, _)| have.name != flag.name)) {
        if let Some(value) = variable(flag.variable).filter(|value| !value.is_empty()) {
            set(&mut config, flag.name, &value)
                .map_err(|error| ConfigError(format!("{}: {error}", flag.variable)))?;
        }
    }
    for (flag, value) in given {
        set(&mut config, flag.name, &value)
            .map_err(|error| ConfigError(format!("--{}: {error}", flag.name)))?;
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
            Ok(Invocation::Serve(Box::new(config)))
        }
        Some("verify") => match directory {
            Some(directory) => Ok(Invocation::Verify(directory)),
            None => Err(ConfigError("verify needs a data directory".to_owned())),
        },
        Some(other) => Err(ConfigError(format!("unknown command {other:?}; see --help"))),
    }
}

fn set(config: &mut Config, flag: &str, value: &str) -> Result<(), String> {
    let (settings, publishing) = (&mut config.settings, &mut config.publishing);
    match flag {
        "bind" => {
            let value = if value.starts_with(':') { format!("0.0.0.0{value}") } else { value.to_owned() };
            config.listen = value.parse().map_err(|_| format!("{value:?} is no address"))?;
        }
        "listen" => config.listen = value.parse().map_err(|_| format!("{value:?} is no address"))?,
        "data" => config.data = PathBuf::from(value),
        "memory-budget" => config.memory_budget = size(value)?,
        "http-threads" => settings.http_threads = count(value, HTTP_THREADS_MAX)?,
        "profile" => {
            settings.profile = match value {
                "mount" => None,
                "2.0" => Some(Profile::Stack),
                "2.x" => Some(Profile::Ledger),
                _ => return Err(format!("{value:?} is none of mount, 2.0, 2.x")),
            }
        }
        "compat" => {
            settings.compat = match value {
                "1.10" => Compat::V1_10,
                "2.0" => Compat::V2_0,
                _ => return Err(format!("{value:?} is neither 1.10 nor 2.0")),
            }
        }
        "commit-policy" => {
            settings.past_dates = match value {
                "past" => PastDates::Accept,
                "strict" => PastDates::Refuse,
                _ => return Err(format!("{value:?} is neither past nor strict")),
            }
        }
        "first-id" => {
            settings.first_id = match value {
                "0" => Some(FirstId::Zero),
                "1" => Some(FirstId::One),
                _ => return Err(format!("{value:?} is neither 0 nor 1")),
            }
        }
        "bulk-max-size" => settings.bulk_max_size = count(value, 1_000_000)?,
        "default-page-size" => settings.default_page_size = count(value, 100_000)? as u32,
        "max-page-size" => settings.max_page_size = count(value, 100_000)? as u32,
        "experimental-features" => settings.experimental_features = switch(value)?,
        "experimental-exporters" => settings.experimental_exporters = switch(value)?,
        "worker" => settings.worker = switch(value)?,
        "worker-bucket-cleanup-schedule" => settings.cleanup_schedule = Schedule::parse(value)?,
        "worker-bucket-cleanup-retention-period" => settings.cleanup_retention = duration::parse(value)?,
        "worker-pipelines-pull-interval" => settings.pipelines_pull_interval = period(value)?,
        "worker-pipelines-push-retry-period" => settings.pipelines_retry_period = period(value)?,
        "worker-pipelines-sync-period" => settings.pipelines_sync_period = period(value)?,
        "exporters-directory" => settings.exporters_directory = Some(PathBuf::from(value)),
        "outbound" => {
            settings.outbound = match value {
                "any" => Some(Outbound::Any),
                "public" => Some(Outbound::Public),
                _ => return Err(format!("{value:?} is neither any nor public")),
            }
        }
        "events-heartbeat" => settings.events_heartbeat = period(value)?,
        "publisher-topic-mapping" => publishing.topics = Topics::parse(value)?,
        "publisher-http-enabled" => publishing.http = switch(value)?,
        "publisher-http-secrets-file" => publishing.http_secrets = Some(PathBuf::from(value)),
        "publisher-nats-enabled" => publishing.nats = switch(value)?,
        "publisher-nats-url" => value.clone_into(&mut publishing.nats_settings.url),
        "publisher-nats-client-id" => publishing.nats_settings.client_id = Some(value.to_owned()),
        "publisher-nats-reconnect-wait" => publishing.nats_settings.reconnect_wait = period(value)?,
        "publisher-nats-auto-provision" => publishing.nats_settings.auto_provision = switch(value)?,
        // To go without events unnoticed would be worse than not to start.
        "publisher-kafka-enabled" | "publisher-sns-enabled" => {
            if switch(value)? {
                return Err("this server does not speak it: publish to NATS or over HTTP".to_owned());
            }
        }
        "schema-enforcement-mode" => {
            settings.schema_enforcement = match value {
                "audit" => Enforcement::Audit,
                "strict" => Enforcement::Strict,
                _ => return Err(format!("{value:?} is neither audit nor strict")),
            }
        }
        "experimental-numscript-interpreter" => {
            settings.runtime = if switch(value)? { Runtime::Interpreter } else { Runtime::Machine };
        }
        "read-only" => settings.read_only = switch(value)?,
        "debug" => settings.debug = switch(value)?,
        "auth-enabled" => config.auth_enabled = switch(value)?,
        "auth-issuer" | "auth-issuers" => {
            for issuer in value.split([',', ' ']).filter(|issuer| !issuer.is_empty()) {
                guard::check_issuer(issuer)?;
                if !config.auth.issuers.iter().any(|have| have == issuer) {
                    config.auth.issuers.push(issuer.to_owned());
                }
            }
        }
        "auth-check-scopes" => config.auth.check_scopes = switch(value)?,
        "auth-service" => value.clone_into(&mut config.auth.service),
        "allow-unauthenticated" => config.allow_unauthenticated = switch(value)?,
        other => unreachable!("--{other} stands in the table and nowhere else"),
    }
    Ok(())
}

fn switch(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" => Ok(true),
        "0" | "f" | "false" => Ok(false),
        _ => Err(format!("{value:?} is neither true nor false")),
    }
}

/// A duration that is not zero.
fn period(value: &str) -> Result<Duration, String> {
    match duration::parse(value)? {
        Duration::ZERO => Err(format!("{value:?} is no time at all")),
        period => Ok(period),
    }
}

fn count(value: &str, max: usize) -> Result<usize, String> {
    match value.parse() {
        Ok(count) if (1..=max).contains(&count) => Ok(count),
        _ => Err(format!("{value:?} is no number from 1 to {max}")),
    }
}

fn size(value: &str) -> Result<usize, String> {
    let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, suffix) = value.split_at(digits);
    let unit: usize = match suffix {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return Err(format!("{value:?} has none of the suffixes KiB, MiB, GiB")),
    };
    let bytes = number.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| format!("{value:?} is no size"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "serve --data=/f --memory-budget 2GiB --profile 2.0 --compat 1.10 --commit-policy strict --first-id 1 \
             --http-threads 2 --schema-enforcement-mode strict --experimental-numscript-interpreter",
            &variables,
        );
        assert_eq!(config.data, PathBuf::from("/f"));
        assert_eq!(config.memory_budget, 2 << 30);
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
        assert!(read("--bind :1 --auth-enabled --auth-issuer http://i", &[]).is_ok());
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
        assert_eq!(read("verify d", &[]), Ok(Invocation::Verify(PathBuf::from("d"))));
        assert_eq!(read("serve --help", &[]), Ok(Invocation::Help));
    }

    #[test]
    fn help_names_every_flag_and_every_flag_can_be_set() {
        let help = help();
        for flag in FLAGS {
            assert!(help.contains(&format!("--{}", flag.name)) && help.contains(flag.variable));
            assert!(flag.variable.starts_with("STACK_") || flag.variable == variable_of(flag.name));
            // A value that no flag takes: the point is that `set` knows the name.
            let _ = set(&mut Config::default(), flag.name, "?");
        }
    }
}
