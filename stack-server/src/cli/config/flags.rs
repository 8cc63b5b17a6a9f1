//! Every flag of `serve`, by subject: its name, its variable, what it does, and how its value is read.

use std::collections::BTreeMap;

use ledger_core::schema::Enforcement;
use ledger_core::{FirstId, PastDates, Runtime};

use super::invocation::{AuthMode, Config, key_file_of};
use super::values::{FlagError, address, choice, count, path, period, put, size, switch};
use crate::auth::authority::{AuthorizationSettings, check_base};
use crate::auth::grants::provider::ProviderSettings;
use crate::auth::guard;
use crate::auth::keys::master::KeySource;
use crate::auth::static_clients::StaticClient;
use crate::duration;
use crate::http::browsers::{HostName, Origin};
use crate::http::error::Profile;
use crate::http::mount_path::MountPath;
use crate::integrations::events::Topics;
use crate::limits::HTTP_THREADS_MAX;
use crate::log::{Format, Level};
use crate::outbound::{Outbound, Target};
use crate::schedule::Schedule;
use crate::sealing::EncryptionKey;
use crate::settings::Compat;

/// A flag of `serve`.
pub(super) struct Flag {
    pub(super) name: &'static str,
    /// The name of its value; empty for a switch.
    pub(super) value: &'static str,
    /// Its environment variable.
    pub(super) variable: &'static str,
    /// Its effect.
    pub(super) help: &'static str,
    /// Reads a value into the configuration, which stays as it was if it is none.
    pub(super) set: fn(&mut Config, &str) -> Result<(), FlagError>,
}

impl Flag {
    /// Whether other software has a variable of this name too: what it says may not be meant for this server, so what
    /// cannot be read is passed over with a warning. Of flags that guard something none is among them.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.variable, "BIND" | "DEBUG" | "WORKER")
    }
}

/// All flags.
pub(super) fn all() -> impl Iterator<Item = &'static Flag> {
    [SERVICE, API, WORKER, EVENTS, AUTH].into_iter().flatten()
}

#[rustfmt::skip]
static SERVICE: &[Flag] = &[
    // Before the next: `BIND` may be meant for other software, `STACK_LISTEN` is not.
    Flag { name: "bind", value: "ADDRESS", variable: "BIND", help: "the same as --listen, by the name that other servers have for it",
        set: |config, value| put(&mut config.listen, address(value)) },
    Flag { name: "listen", value: "ADDRESS", variable: "STACK_LISTEN", help: "address to listen on; :PORT is every address (127.0.0.1:8080)",
        set: |config, value| put(&mut config.listen, address(value)) },
    Flag { name: "data", value: "DIR", variable: "STACK_DATA", help: "data directory, made if absent (./data)",
        set: |config, value| put(&mut config.data, path(value)) },
    Flag { name: "memory-budget", value: "SIZE", variable: "STACK_MEMORY_BUDGET", help: "memory of the server, an eighth of it for requests and answers, with suffix KiB, MiB or GiB (512MiB)",
        set: |config, value| put(&mut config.memory_budget, size(value)) },
    Flag { name: "free-space-floor", value: "SIZE", variable: "STACK_FREE_SPACE_FLOOR", help: "with less free on the disk, writes are turned away; 0 is never (a twentieth, 4MiB to 256MiB)",
        set: |config, value| put(&mut config.free_space_floor, size(value).map(|bytes| Some(bytes as u64))) },
    Flag { name: "http-threads", value: "COUNT", variable: "STACK_HTTP_THREADS", help: "threads that serve HTTP (half of the processors)",
        set: |config, value| put(&mut config.settings.http_threads, count(value, HTTP_THREADS_MAX)) },
    Flag { name: "read-only", value: "", variable: "READ_ONLY", help: "refuse every request that is not GET, HEAD or OPTIONS",
        set: |config, value| put(&mut config.settings.read_only, switch(value)) },
    Flag { name: "log-format", value: "text|json", variable: "STACK_LOG_FORMAT", help: "form of the log on standard error (text)",
        set: |config, value| put(&mut config.log_format, choice(value, &[("text", Format::Text), ("json", Format::Json)])) },
    Flag { name: "json-formatting-logger", value: "", variable: "JSON_FORMATTING_LOGGER", help: "the same as --log-format json, by the name that other servers have for it",
        set: |config, value| put(&mut config.log_format, switch(value).map(|is_on| if is_on { Format::Json } else { Format::Text })) },
    Flag { name: "log-level", value: "debug|info|warning|error", variable: "STACK_LOG_LEVEL", help: "leave out log lines below this level; debug has a line for every request (info)",
        set: |config, value| put(&mut config.log_level, choice(value, &Level::WORDS)) },
    Flag { name: "debug", value: "", variable: "DEBUG", help: "the same as --log-level debug",
        set: |config, value| { if switch(value)? { config.log_level = Level::Debug } Ok(()) } },
    Flag { name: "tls-certificate", value: "FILE", variable: "STACK_TLS_CERTIFICATE", help: "speak TLS with this certificate, PEM; read again when it changes (no TLS)",
        set: |config, value| put(&mut config.settings.tls.get_or_insert_default().certificate, path(value)) },
    Flag { name: "tls-key", value: "FILE", variable: "STACK_TLS_KEY", help: "its private key, PEM",
        set: |config, value| put(&mut config.settings.tls.get_or_insert_default().key, path(value)) },
    Flag { name: "tls-client-authorities", value: "FILE", variable: "STACK_TLS_CLIENT_AUTHORITIES", help: "clients must show a certificate of one of these authorities, PEM",
        set: |config, value| put(&mut config.settings.tls.get_or_insert_default().client_authorities, path(value).map(Some)) },
    Flag { name: "encryption-key-file", value: "FILE", variable: "STACK_ENCRYPTION_KEY_FILE", help: "what encrypts secrets of connectors: a file with at least 32 characters; further lines are earlier keys (a secret of the data directory)",
        set: |config, value| put(&mut config.settings.encryption_key, encryption_key(value)) },
    Flag { name: "redact-config", value: "", variable: "STACK_REDACT_CONFIG", help: "mask secrets in configurations of connectors that the API shows",
        set: |config, value| put(&mut config.settings.redact_config, switch(value)) },
    Flag { name: "generic-mount", value: "PATH", variable: "STACK_GENERIC_MOUNT", help: "where the generic connector API answers (/api/generic)",
        set: |config, value| put(&mut config.settings.generic_mount, MountPath::parse(value)) },
    Flag { name: "provider-addresses", value: "CONNECTOR=URL,…", variable: "STACK_PROVIDER_ADDRESSES", help: "addresses of payment providers other than their own",
        set: |config, value| put(&mut config.settings.provider_addresses, provider_addresses(value)) },
    Flag { name: "public-url", value: "URL", variable: "STACK_PUBLIC_URL", help: "what links in events of payments begin with (http://localhost)",
        set: |config, value| { value.trim_end_matches('/').clone_into(&mut config.settings.public_url); Ok(()) } },
    Flag { name: "behind-proxy", value: "", variable: "STACK_BEHIND_PROXY", help: "a proxy in front speaks TLS: tokens may come in the clear from other machines",
        set: |config, value| put(&mut config.settings.behind_proxy, switch(value)) },
    Flag { name: "allowed-host", value: "NAME,…", variable: "STACK_ALLOWED_HOST", help: "more names by which clients reach a server that asks for no tokens; * is any (names of this machine)",
        set: |config, value| { config.settings.allowed_hosts.extend(HostName::parse_list(value)?); Ok(()) } },
    Flag { name: "cors-origin", value: "ORIGIN,…", variable: "STACK_CORS_ORIGIN", help: "pages of these origins may use a server that asks for no tokens (its own)",
        set: |config, value| { config.settings.cors_origins.extend(Origin::parse_list(value)?); Ok(()) } },
    Flag { name: "allow-shared-directory", value: "", variable: "STACK_ALLOW_SHARED_DIRECTORY", help: "use a data directory into which others may write",
        set: |config, value| put(&mut config.allow_shared_directory, switch(value)) },
    Flag { name: "allow-unauthenticated", value: "", variable: "STACK_ALLOW_UNAUTHENTICATED", help: "allow an address that other machines can reach",
        set: |config, value| put(&mut config.allow_unauthenticated, switch(value)) },
];

#[rustfmt::skip]
static API: &[Flag] = &[
    Flag { name: "profile", value: "mount|2.0|2.x", variable: "STACK_PROFILE", help: "generation of clients to speak to; mount: by path (mount)",
        set: |config, value| put(&mut config.settings.profile, choice(value, &[("mount", None), ("2.0", Some(Profile::Stack)), ("2.x", Some(Profile::Ledger))])) },
    Flag { name: "compat", value: "1.10|2.0|2.4", variable: "STACK_COMPAT", help: "release whose v1 clients are answered unless they say their own (2.0)",
        set: |config, value| put(&mut config.settings.compat, choice(value, &[("1.10", Compat::V1_10), ("2.0", Compat::V2_0), ("2.4", Compat::V2_4)])) },
    Flag { name: "commit-policy", value: "past|strict", variable: "STACK_COMMIT_POLICY", help: "whether v1 transactions may be dated before the last one; strict: no (past)",
        set: |config, value| put(&mut config.settings.past_dates, choice(value, &[("past", PastDates::Accept), ("strict", PastDates::Refuse)])) },
    Flag { name: "first-id", value: "0|1", variable: "STACK_FIRST_ID", help: "first id of new ledgers (by profile: 0 in 2.0, 1 in 2.x)",
        set: |config, value| put(&mut config.settings.first_id, choice(value, &[("0", Some(FirstId::Zero)), ("1", Some(FirstId::One))])) },
    Flag { name: "bulk-max-size", value: "COUNT", variable: "BULK_MAX_SIZE", help: "most elements of a bulk (100)",
        set: |config, value| put(&mut config.settings.bulk_max_size, count(value, 1_000_000)) },
    Flag { name: "default-page-size", value: "COUNT", variable: "DEFAULT_PAGE_SIZE", help: "rows of a page unless asked (15)",
        set: |config, value| put(&mut config.settings.default_page_size, count(value, 100_000).map(|size| size as u32)) },
    Flag { name: "max-page-size", value: "COUNT", variable: "MAX_PAGE_SIZE", help: "most rows of a page (100)",
        set: |config, value| put(&mut config.settings.max_page_size, count(value, 100_000).map(|size| size as u32)) },
    Flag { name: "experimental-features", value: "", variable: "EXPERIMENTAL_FEATURES", help: "let callers choose the features of new ledgers",
        set: |config, value| put(&mut config.settings.experimental_features, switch(value)) },
    Flag { name: "schema-enforcement-mode", value: "audit|strict", variable: "SCHEMA_ENFORCEMENT_MODE", help: "what becomes of writes outside their ledger's schema; audit: they are logged (audit)",
        set: |config, value| put(&mut config.settings.schema_enforcement, choice(value, &[("audit", Enforcement::Audit), ("strict", Enforcement::Strict)])) },
    Flag { name: "experimental-numscript-interpreter", value: "", variable: "EXPERIMENTAL_NUMSCRIPT_INTERPRETER", help: "scripts that name no runtime fail in the words of the interpreter",
        set: |config, value| put(&mut config.settings.runtime, switch(value).map(|is_on| if is_on { Runtime::Interpreter } else { Runtime::Machine })) },
];

#[rustfmt::skip]
static WORKER: &[Flag] = &[
    Flag { name: "worker", value: "", variable: "WORKER", help: "run pipelines and remove deleted buckets in this process (true)",
        set: |config, value| put(&mut config.settings.worker, switch(value)) },
    Flag { name: "worker-bucket-cleanup-schedule", value: "CRON", variable: "WORKER_BUCKET_CLEANUP_SCHEDULE", help: "when to look for deleted buckets to be removed for good, with seconds, in UTC (0 0 * * * *)",
        set: |config, value| put(&mut config.settings.cleanup_schedule, Schedule::parse(value)) },
    Flag { name: "worker-bucket-cleanup-retention-period", value: "DURATION", variable: "WORKER_BUCKET_CLEANUP_RETENTION_PERIOD", help: "so long a deleted bucket can be restored (720h)",
        set: |config, value| put(&mut config.settings.cleanup_retention, duration::parse(value)) },
    Flag { name: "experimental-exporters", value: "", variable: "EXPERIMENTAL_EXPORTERS", help: "have exporters and pipelines",
        set: |config, value| put(&mut config.settings.experimental_exporters, switch(value)) },
    Flag { name: "worker-pipelines-pull-interval", value: "DURATION", variable: "WORKER_PIPELINES_PULL_INTERVAL", help: "a pipeline looks for logs so often, at least (5s)",
        set: |config, value| put(&mut config.settings.pipelines_pull_interval, period(value)) },
    Flag { name: "worker-pipelines-push-retry-period", value: "DURATION", variable: "WORKER_PIPELINES_PUSH_RETRY_PERIOD", help: "a push that failed is tried again after (10s)",
        set: |config, value| put(&mut config.settings.pipelines_retry_period, period(value)) },
    Flag { name: "worker-pipelines-sync-period", value: "DURATION", variable: "WORKER_PIPELINES_SYNC_PERIOD", help: "look so often which pipelines there are (1m)",
        set: |config, value| put(&mut config.settings.pipelines_sync_period, period(value)) },
    Flag { name: "exporters-directory", value: "DIR", variable: "STACK_EXPORTERS_DIRECTORY", help: "where exporters may write files (nowhere)",
        set: |config, value| put(&mut config.settings.exporters_directory, path(value).map(Some)) },
    Flag { name: "connectors-directory", value: "DIR", variable: "STACK_CONNECTORS_DIRECTORY", help: "where DUMMY-PAY may read and write files (the system's folder for temporary files)",
        set: |config, value| put(&mut config.settings.connectors_directory, path(value).map(Some)) },
    Flag { name: "outbound", value: "any|public", variable: "STACK_OUTBOUND", help: "where addresses given over the API may lead (any on loopback without tokens and proxy, else public)",
        set: |config, value| put(&mut config.settings.outbound, choice(value, &[("any", Some(Outbound::Any)), ("public", Some(Outbound::Public))])) },
];

#[rustfmt::skip]
static EVENTS: &[Flag] = &[
    Flag { name: "events-heartbeat", value: "DURATION", variable: "STACK_EVENTS_HEARTBEAT", help: "a stream of events shows so often that it is alive (15s)",
        set: |config, value| put(&mut config.settings.events_heartbeat, period(value)) },
    Flag { name: "publisher-topic-mapping", value: "TYPE:TOPIC,…", variable: "PUBLISHER_TOPIC_MAPPING", help: "topics of events by type, * for all others (the type)",
        set: |config, value| put(&mut config.publishing.topics, Topics::parse(value)) },
    Flag { name: "publisher-http-enabled", value: "", variable: "PUBLISHER_HTTP_ENABLED", help: "post events; the topic is the address",
        set: |config, value| put(&mut config.publishing.http, switch(value)) },
    Flag { name: "publisher-http-secrets-file", value: "FILE", variable: "STACK_PUBLISHER_HTTP_SECRETS_FILE", help: "secrets that sign posted events, one a line (unsigned)",
        set: |config, value| put(&mut config.publishing.http_secrets, path(value).map(Some)) },
    Flag { name: "publisher-nats-enabled", value: "", variable: "PUBLISHER_NATS_ENABLED", help: "publish events to NATS JetStream; the topic is the subject",
        set: |config, value| put(&mut config.publishing.nats, switch(value)) },
    Flag { name: "publisher-nats-url", value: "URL,…", variable: "PUBLISHER_NATS_URL", help: "its servers (nats://127.0.0.1:4222)",
        set: |config, value| { value.clone_into(&mut config.publishing.nats_settings.url); Ok(()) } },
    Flag { name: "publisher-nats-client-id", value: "NAME", variable: "PUBLISHER_NATS_CLIENT_ID", help: "what it shows of this client",
        set: |config, value| { config.publishing.nats_settings.client_id = Some(value.to_owned()); Ok(()) } },
    Flag { name: "publisher-nats-reconnect-wait", value: "DURATION", variable: "PUBLISHER_NATS_RECONNECT_WAIT", help: "pause between attempts to connect (2s)",
        set: |config, value| put(&mut config.publishing.nats_settings.reconnect_wait, period(value)) },
    Flag { name: "publisher-nats-auto-provision", value: "", variable: "PUBLISHER_NATS_AUTO_PROVISION", help: "make a stream for a topic that none has (true)",
        set: |config, value| put(&mut config.publishing.nats_settings.auto_provision, switch(value)) },
    Flag { name: "publisher-kafka-enabled", value: "", variable: "PUBLISHER_KAFKA_ENABLED", help: "refused: use NATS or HTTP",
        set: |_, value| unknown_broker(value) },
    Flag { name: "publisher-sns-enabled", value: "", variable: "PUBLISHER_SNS_ENABLED", help: "refused: use NATS or HTTP",
        set: |_, value| unknown_broker(value) },
];

#[rustfmt::skip]
static AUTH: &[Flag] = &[
    Flag { name: "auth-enabled", value: "", variable: "AUTH_ENABLED", help: "ask for a token with every request but those about the service",
        set: |config, value| put(&mut config.auth_enabled, switch(value)) },
    Flag { name: "auth-issuer", value: "URL", variable: "AUTH_ISSUER", help: "whose tokens are taken: the address where its discovery document is",
        set: add_issuers },
    Flag { name: "auth-issuers", value: "URL,…", variable: "AUTH_ISSUERS", help: "more of them",
        set: add_issuers },
    Flag { name: "auth-audience", value: "NAME,…", variable: "STACK_AUTH_AUDIENCE", help: "tokens of issuers elsewhere must be made for one of these (for anybody)",
        set: |config, value| { config.auth.audiences.extend(value.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned)); Ok(()) } },
    Flag { name: "auth-check-scopes", value: "", variable: "AUTH_CHECK_SCOPES", help: "tokens must allow what is asked: SERVICE:read or SERVICE:write",
        set: |config, value| put(&mut config.auth.check_scopes, switch(value)) },
    Flag { name: "auth-check-management-scopes", value: "", variable: "STACK_AUTH_CHECK_MANAGEMENT_SCOPES", help: "the same of who manages clients: auth:read or auth:write",
        set: |config, value| put(&mut config.auth.check_management_scopes, switch(value)) },
    Flag { name: "auth-mode", value: "off|own|foreign|both", variable: "STACK_AUTH_MODE", help: "whose tokens are taken (own without --auth-issuer, else foreign)",
        set: |config, value| put(&mut config.auth_mode, choice(value, &[("off", Some(AuthMode::Off)), ("own", Some(AuthMode::Own)), ("foreign", Some(AuthMode::Foreign)), ("both", Some(AuthMode::Both))])) },
    Flag { name: "auth-public-url", value: "URL", variable: "STACK_AUTH_PUBLIC_URL", help: "the address by which clients reach this server; its tokens name it (the address to listen on)",
        set: |config, value| put(&mut own(config).public_url, check_base(value).map(|()| Some(value.to_owned()))) },
    Flag { name: "auth-key-file", value: "FILE", variable: "STACK_AUTH_KEY_FILE", help: "the key that seals what the authorization server keeps, made if absent (DATA.auth-key); STACK_AUTH_KEY has it itself",
        set: |config, value| put(&mut config.auth_key_file, path(value).map(Some)) },
    Flag { name: "auth-key-rotation", value: "DURATION", variable: "STACK_AUTH_KEY_ROTATION", help: "so long a key signs tokens (720h)",
        set: |config, value| put(&mut own(config).key_rotation, period(value)) },
    Flag { name: "auth-client", value: "FILE", variable: "STACK_AUTH_CLIENT", help: "clients that are not stored, as YAML (none)",
        set: |config, value| put(&mut own(config).clients, StaticClient::load(&path(value)?)) },
    Flag { name: "auth-wrong-secrets", value: "COUNT", variable: "STACK_AUTH_WRONG_SECRETS", help: "wrong secrets a minute before a client or an address has to wait (60)",
        set: |config, value| put(&mut own(config).wrong_secrets_per_minute, count(value, 1_000_000).map(|count| count as u32)) },
    Flag { name: "delegated-issuer", value: "URL", variable: "DELEGATED_ISSUER", help: "the OpenID provider that lets people log in (nobody logs in)",
        set: |config, value| put(&mut provider(config).issuer, guard::check_issuer(value).map(|()| value.to_owned())) },
    Flag { name: "delegated-client-id", value: "ID", variable: "DELEGATED_CLIENT_ID", help: "the id of this server there",
        set: |config, value| { value.clone_into(&mut provider(config).client_id); Ok(()) } },
    Flag { name: "delegated-client-secret", value: "SECRET", variable: "DELEGATED_CLIENT_SECRET", help: "its secret there; others on the machine do not see the variable",
        set: |config, value| { value.clone_into(&mut provider(config).client_secret); Ok(()) } },
    Flag { name: "trusted-proxies", value: "ADDRESS,…", variable: "STACK_TRUSTED_PROXIES", help: "proxies whose X-Forwarded-For is believed (none)",
        set: add_proxies },
    Flag { name: "auth-service", value: "SERVICE", variable: "AUTH_SERVICE", help: "the word before the colon (ledger)",
        set: |config, value| { value.clone_into(&mut config.auth.service); Ok(()) } },
];

/// To go without events unnoticed would be worse than not to start.
fn unknown_broker(value: &str) -> Result<(), FlagError> {
    if switch(value)? {
        return Err("this server does not speak it: publish to NATS or over HTTP".into());
    }
    Ok(())
}

fn encryption_key(path: &str) -> Result<Option<EncryptionKey>, FlagError> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(Some(EncryptionKey::parse(&text)?))
}

fn provider_addresses(value: &str) -> Result<BTreeMap<String, String>, FlagError> {
    let pairs = value.split(',').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, address) = pair.split_once('=').ok_or_else(|| format!("{pair:?} is not CONNECTOR=URL"))?;
        Target::parse(address)?;
        Ok((name.to_ascii_uppercase(), address.to_owned()))
    });
    pairs.collect()
}

fn add_issuers(config: &mut Config, value: &str) -> Result<(), FlagError> {
    for issuer in value.split([',', ' ']).filter(|issuer| !issuer.is_empty()) {
        guard::check_issuer(issuer)?;
        if !config.auth.issuers.iter().any(|have| have == issuer) {
            config.auth.issuers.push(issuer.to_owned());
        }
    }
    Ok(())
}

/// The options of the authorization server.
fn own(config: &mut Config) -> &mut AuthorizationSettings {
    let source = KeySource::File(key_file_of(&config.data));
    config.settings.authorization.get_or_insert_with(|| AuthorizationSettings::new(source))
}

fn provider(config: &mut Config) -> &mut ProviderSettings {
    let empty =
        || ProviderSettings { issuer: String::new(), client_id: String::new(), client_secret: String::new() };
    own(config).provider.get_or_insert_with(empty)
}

fn add_proxies(config: &mut Config, value: &str) -> Result<(), FlagError> {
    for address in value.split([',', ' ']).filter(|address| !address.is_empty()) {
        let address = address.parse().map_err(|_| format!("{address:?} is no IP address"))?;
        own(config).trusted_proxies.push(address);
    }
    Ok(())
}

/// A flag of other servers of this API that has no meaning here, and whether it is a switch.
pub(super) struct Foreign {
    pub(super) name: &'static str,
    pub(super) is_switch: bool,
}

/// Deployment files have them; with this server they change nothing.
pub(super) static FOREIGN: &[Foreign] = &[
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
    // Events are never given up, and nothing is subscribed to.
    Foreign { name: "publisher-nats-max-reconnect", is_switch: false },
    Foreign { name: "publisher-queue-group", is_switch: false },
    // What is not delivered waits in the journal.
    Foreign { name: "publisher-circuit-breaker-enabled", is_switch: true },
    Foreign { name: "publisher-circuit-breaker-open-interval-duration", is_switch: false },
    Foreign { name: "publisher-circuit-breaker-schema", is_switch: false },
    Foreign { name: "publisher-circuit-breaker-list-storage-limit", is_switch: false },
    // Of a broker that is refused if it is switched on.
    Foreign { name: "publisher-kafka-broker", is_switch: false },
    Foreign { name: "publisher-kafka-sasl-enabled", is_switch: true },
    Foreign { name: "publisher-kafka-sasl-iam-enabled", is_switch: true },
    Foreign { name: "publisher-kafka-sasl-mechanism", is_switch: false },
    Foreign { name: "publisher-kafka-sasl-password", is_switch: false },
    Foreign { name: "publisher-kafka-sasl-scram-sha-size", is_switch: false },
    Foreign { name: "publisher-kafka-sasl-session-name", is_switch: false },
    Foreign { name: "publisher-kafka-sasl-username", is_switch: false },
    Foreign { name: "publisher-kafka-tls-enabled", is_switch: true },
    // The server does the work of a worker itself.
    Foreign { name: "worker-grpc-address", is_switch: false },
    Foreign { name: "worker-grpc-port", is_switch: false },
    Foreign { name: "worker-grpc-tls-enabled", is_switch: true },
    Foreign { name: "worker-grpc-tls-insecure-skip-verify", is_switch: true },
    Foreign { name: "worker-grpc-tls-ca-cert", is_switch: false },
    Foreign { name: "worker-grpc-tls-cert", is_switch: false },
    Foreign { name: "worker-grpc-tls-key", is_switch: false },
    Foreign { name: "worker-grpc-auth-token", is_switch: false },
    // Hashes are made as logs are.
    Foreign { name: "worker-async-block-hasher-max-block-size", is_switch: false },
    Foreign { name: "worker-async-block-hasher-schedule", is_switch: false },
    // What there is to know of the process is in its log.
    Foreign { name: "otel-service-name", is_switch: false },
    Foreign { name: "otel-resource-attributes", is_switch: false },
    Foreign { name: "otel-traces", is_switch: true },
    Foreign { name: "otel-traces-batch", is_switch: true },
    Foreign { name: "otel-traces-exporter", is_switch: false },
    Foreign { name: "otel-traces-exporter-otlp-endpoint", is_switch: false },
    Foreign { name: "otel-traces-exporter-otlp-insecure", is_switch: true },
    Foreign { name: "otel-traces-exporter-otlp-mode", is_switch: false },
    Foreign { name: "otel-metrics", is_switch: true },
    Foreign { name: "otel-metrics-exporter", is_switch: false },
    Foreign { name: "otel-metrics-exporter-otlp-endpoint", is_switch: false },
    Foreign { name: "otel-metrics-exporter-otlp-insecure", is_switch: true },
    Foreign { name: "otel-metrics-exporter-otlp-mode", is_switch: false },
    Foreign { name: "otel-metrics-exporter-push-interval", is_switch: false },
    Foreign { name: "otel-metrics-keep-in-memory", is_switch: true },
    Foreign { name: "otel-metrics-runtime", is_switch: true },
    // Keys are asked for again until they are there.
    Foreign { name: "auth-read-key-set-max-retries", is_switch: false },
];
