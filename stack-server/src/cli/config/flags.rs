//! The flags of `serve`, grouped by subject. Each flag has a name, an environment variable, a help text and a parser.

use std::collections::BTreeMap;

use ledger_core::schema::Enforcement;
use ledger_core::{ErrorWording, FirstId, PastDates};

use super::invocation::{AuthMode, Config, key_file_of};
use super::values::{
    FlagError, address, choice, count, key_rotation, path, period, put, size, small_count, switch,
};
use crate::auth::authority::{AuthorizationSettings, check_base};
use crate::auth::grants::provider::ProviderSettings;
use crate::auth::guard::fetch::check_issuer;
use crate::auth::guard::fixed_keys::FixedKeys;
use crate::auth::keys::master::KeySource;
use crate::auth::static_clients::StaticClient;
use crate::duration;
use crate::http::browsers::{HostName, Origin};
use crate::http::error::Profile;
use crate::http::mount_path::MountPath;
use crate::integrations::events::Topics;
use crate::limits::HTTP_THREADS_MAX;
use crate::log::{Format, Level};
use crate::outbound::{OutboundPolicy, Target};
use crate::schedule::Schedule;
use crate::sealing::EncryptionKey;
use crate::settings::Compat;

/// A flag of `serve`.
pub(super) struct Flag {
    pub(super) name: &'static str,
    /// The placeholder for the value in the help text; empty for a switch.
    pub(super) value: &'static str,
    /// The environment variable.
    pub(super) variable: &'static str,
    /// The description in the help text.
    pub(super) help: &'static str,
    /// Parses a value and stores it in the configuration.
    pub(super) set: fn(&mut Config, &str) -> Result<(), FlagError>,
}

impl Flag {
    /// Returns whether other software also uses this name for a variable. The value may then be meant for that
    /// software, so the server ignores an invalid value with a warning. None of these flags protects anything.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.variable, "BIND" | "DEBUG" | "WORKER")
    }
}

/// Returns all flags.
pub(super) fn all() -> impl Iterator<Item = &'static Flag> {
    [SERVICE, API, WORKER, EVENTS, AUTH].into_iter().flatten()
}

#[rustfmt::skip]
static SERVICE: &[Flag] = &[
    // This precedes `listen`, which overrides it: `BIND` may be meant for other software, `STACK_LISTEN` is not.
    Flag { name: "bind", value: "ADDRESS", variable: "BIND", help: "the same as --listen, under the name that other servers use",
        set: |config, value| put(&mut config.listen, address(value)) },
    Flag { name: "listen", value: "ADDRESS", variable: "STACK_LISTEN", help: "address and port to listen on; :PORT listens on all addresses (127.0.0.1:8080)",
        set: |config, value| put(&mut config.listen, address(value)) },
    Flag { name: "data", value: "DIR", variable: "STACK_DATA", help: "data directory, created if absent (./data)",
        set: |config, value| put(&mut config.data, path(value)) },
    Flag { name: "memory-budget", value: "SIZE", variable: "STACK_MEMORY_BUDGET", help: "memory for the whole server, an eighth of it for requests and responses; suffix KiB, MiB or GiB (512MiB)",
        set: |config, value| put(&mut config.memory_budget, size(value)) },
    Flag { name: "free-space-floor", value: "SIZE", variable: "STACK_FREE_SPACE_FLOOR", help: "refuse writes when less disk space is free; 0 disables this (a twentieth of the disk, from 4MiB to 256MiB)",
        set: |config, value| put(&mut config.free_space_floor, size(value).map(|bytes| Some(bytes as u64))) },
    Flag { name: "http-threads", value: "COUNT", variable: "STACK_HTTP_THREADS", help: "number of threads that serve HTTP (half of the processors)",
        set: |config, value| put(&mut config.settings.http_threads, count(value, HTTP_THREADS_MAX)) },
    Flag { name: "read-only", value: "", variable: "READ_ONLY", help: "refuse all requests except GET, HEAD and OPTIONS",
        set: |config, value| put(&mut config.settings.read_only, switch(value)) },
    Flag { name: "log-format", value: "text|json", variable: "STACK_LOG_FORMAT", help: "format of the log on standard error (text)",
        set: |config, value| put(&mut config.log_format, choice(value, &[("text", Format::Text), ("json", Format::Json)])) },
    Flag { name: "json-formatting-logger", value: "", variable: "JSON_FORMATTING_LOGGER", help: "the same as --log-format json, under the name that other servers use",
        set: |config, value| put(&mut config.log_format, switch(value).map(|is_on| if is_on { Format::Json } else { Format::Text })) },
    Flag { name: "log-level", value: "debug|info|warning|error", variable: "STACK_LOG_LEVEL", help: "minimum level of log lines; debug logs every request (info)",
        set: |config, value| put(&mut config.log_level, choice(value, &Level::WORDS)) },
    Flag { name: "debug", value: "", variable: "DEBUG", help: "the same as --log-level debug",
        set: |config, value| { if switch(value)? { config.log_level = Level::Debug } Ok(()) } },
    Flag { name: "tls-certificate", value: "FILE", variable: "STACK_TLS_CERTIFICATE", help: "PEM file with the TLS certificate; reloaded when it changes (no TLS)",
        set: |config, value| put(&mut config.settings.tls.get_or_insert_default().certificate, path(value)) },
    Flag { name: "tls-key", value: "FILE", variable: "STACK_TLS_KEY", help: "PEM file with the private key of the certificate",
        set: |config, value| put(&mut config.settings.tls.get_or_insert_default().key, path(value)) },
    Flag { name: "tls-client-authorities", value: "FILE", variable: "STACK_TLS_CLIENT_AUTHORITIES", help: "PEM file with authorities; every client must present a certificate of one of them (none)",
        set: |config, value| put(&mut config.settings.tls.get_or_insert_default().client_authorities, path(value).map(Some)) },
    Flag { name: "encryption-key-file", value: "FILE", variable: "STACK_ENCRYPTION_KEY_FILE", help: "file with the key that encrypts connector secrets, at least 32 characters; earlier keys on further lines (a secret in the data directory)",
        set: |config, value| put(&mut config.settings.encryption_key, encryption_key(value)) },
    Flag { name: "redact-config", value: "", variable: "STACK_REDACT_CONFIG", help: "mask secrets when the API shows connector configurations",
        set: |config, value| put(&mut config.settings.redact_config, switch(value)) },
    Flag { name: "generic-mount", value: "PATH", variable: "STACK_GENERIC_MOUNT", help: "path of the generic connector API (/api/generic)",
        set: |config, value| put(&mut config.settings.generic_mount, MountPath::parse(value)) },
    Flag { name: "generic-keys-file", value: "FILE", variable: "STACK_GENERIC_KEYS_FILE", help: "file with keys, one per line, at least 16 characters, of which a client of the generic connector API sends one as its bearer value",
        set: |config, value| put(&mut config.settings.generic_keys, generic_keys(value)) },
    Flag { name: "provider-addresses", value: "CONNECTOR=URL,…", variable: "STACK_PROVIDER_ADDRESSES", help: "addresses of payment providers, to use instead of the real ones",
        set: |config, value| put(&mut config.settings.provider_addresses, provider_addresses(value)) },
    Flag { name: "public-url", value: "URL", variable: "STACK_PUBLIC_URL", help: "address at the start of links in payment events (http://localhost)",
        set: |config, value| { value.trim_end_matches('/').clone_into(&mut config.settings.public_url); Ok(()) } },
    Flag { name: "behind-proxy", value: "", variable: "STACK_BEHIND_PROXY", help: "a proxy in front terminates TLS: accept tokens from other machines without TLS",
        set: |config, value| put(&mut config.settings.behind_proxy, switch(value)) },
    Flag { name: "allowed-host", value: "NAME,…", variable: "STACK_ALLOWED_HOST", help: "more host names that requests may use when no tokens are required; * allows all (names of this machine)",
        set: |config, value| { config.settings.allowed_hosts.extend(HostName::parse_list(value)?); Ok(()) } },
    Flag { name: "cors-origin", value: "ORIGIN,…", variable: "STACK_CORS_ORIGIN", help: "origins whose pages may use the server when no tokens are required (its own)",
        set: |config, value| { config.settings.cors_origins.extend(Origin::parse_list(value)?); Ok(()) } },
    Flag { name: "allow-shared-directory", value: "", variable: "STACK_ALLOW_SHARED_DIRECTORY", help: "allow a data directory that other users can write to",
        set: |config, value| put(&mut config.allow_shared_directory, switch(value)) },
    Flag { name: "allow-unauthenticated", value: "", variable: "STACK_ALLOW_UNAUTHENTICATED", help: "allow listening on an address that other machines can reach, without tokens",
        set: |config, value| put(&mut config.allow_unauthenticated, switch(value)) },
];

#[rustfmt::skip]
static API: &[Flag] = &[
    Flag { name: "profile", value: "mount|2.0|2.x", variable: "STACK_PROFILE", help: "response format of API v2; mount: chosen by the path (mount)",
        set: |config, value| put(&mut config.settings.profile, choice(value, &[("mount", None), ("2.0", Some(Profile::Stack)), ("2.x", Some(Profile::Ledger))])) },
    Flag { name: "compat", value: "1.10|2.0|2.4", variable: "STACK_COMPAT", help: "response format for v1 clients that do not state their release (2.0)",
        set: |config, value| put(&mut config.settings.compat, choice(value, &[("1.10", Compat::V1_10), ("2.0", Compat::V2_0), ("2.4", Compat::V2_4)])) },
    Flag { name: "commit-policy", value: "past|strict", variable: "STACK_COMMIT_POLICY", help: "whether v1 transactions may be dated before the last one; strict: they may not (past)",
        set: |config, value| put(&mut config.settings.past_dates, choice(value, &[("past", PastDates::Accept), ("strict", PastDates::Refuse)])) },
    Flag { name: "first-id", value: "0|1", variable: "STACK_FIRST_ID", help: "first transaction id of new ledgers (by profile: 0 in 2.0, 1 in 2.x)",
        set: |config, value| put(&mut config.settings.first_id, choice(value, &[("0", Some(FirstId::Zero)), ("1", Some(FirstId::One))])) },
    Flag { name: "bulk-max-size", value: "COUNT", variable: "BULK_MAX_SIZE", help: "maximum number of elements in a bulk (100)",
        set: |config, value| put(&mut config.settings.bulk_max_size, count(value, 1_000_000)) },
    Flag { name: "default-page-size", value: "COUNT", variable: "DEFAULT_PAGE_SIZE", help: "number of rows in a page if the request names none (15)",
        set: |config, value| put(&mut config.settings.default_page_size, small_count(value, 100_000)) },
    Flag { name: "max-page-size", value: "COUNT", variable: "MAX_PAGE_SIZE", help: "maximum number of rows in a page (100)",
        set: |config, value| put(&mut config.settings.max_page_size, small_count(value, 100_000)) },
    Flag { name: "experimental-features", value: "", variable: "EXPERIMENTAL_FEATURES", help: "allow clients to choose the features of new ledgers",
        set: |config, value| put(&mut config.settings.experimental_features, switch(value)) },
    Flag { name: "schema-enforcement-mode", value: "audit|strict", variable: "SCHEMA_ENFORCEMENT_MODE", help: "what happens to writes that break the schema of their ledger; audit: they are logged, strict: refused (audit)",
        set: |config, value| put(&mut config.settings.schema_enforcement, choice(value, &[("audit", Enforcement::Audit), ("strict", Enforcement::Strict)])) },
    Flag { name: "experimental-numscript-interpreter", value: "", variable: "EXPERIMENTAL_NUMSCRIPT_INTERPRETER", help: "report errors of scripts without a runtime with the codes of the interpreter",
        set: |config, value| put(&mut config.settings.script_wording, switch(value).map(|is_on| if is_on { ErrorWording::Interpreter } else { ErrorWording::Machine })) },
];

#[rustfmt::skip]
static WORKER: &[Flag] = &[
    Flag { name: "worker", value: "", variable: "WORKER", help: "run pipelines and connectors and remove deleted buckets in this process (true)",
        set: |config, value| put(&mut config.settings.worker, switch(value)) },
    Flag { name: "worker-bucket-cleanup-schedule", value: "CRON", variable: "WORKER_BUCKET_CLEANUP_SCHEDULE", help: "schedule for removing deleted buckets permanently: cron with seconds, in UTC (0 0 * * * *)",
        set: |config, value| put(&mut config.settings.cleanup_schedule, Schedule::parse(value)) },
    Flag { name: "worker-bucket-cleanup-retention-period", value: "DURATION", variable: "WORKER_BUCKET_CLEANUP_RETENTION_PERIOD", help: "how long a deleted bucket can be restored (720h)",
        set: |config, value| put(&mut config.settings.cleanup_retention, duration::parse(value)) },
    Flag { name: "experimental-exporters", value: "", variable: "EXPERIMENTAL_EXPORTERS", help: "enable exporters and pipelines",
        set: |config, value| put(&mut config.settings.experimental_exporters, switch(value)) },
    Flag { name: "worker-pipelines-pull-interval", value: "DURATION", variable: "WORKER_PIPELINES_PULL_INTERVAL", help: "maximum time until a pipeline looks for new logs (5s)",
        set: |config, value| put(&mut config.settings.pipelines_pull_interval, period(value)) },
    Flag { name: "worker-pipelines-push-retry-period", value: "DURATION", variable: "WORKER_PIPELINES_PUSH_RETRY_PERIOD", help: "pause before a failed push is tried again (10s)",
        set: |config, value| put(&mut config.settings.pipelines_retry_period, period(value)) },
    Flag { name: "worker-pipelines-sync-period", value: "DURATION", variable: "WORKER_PIPELINES_SYNC_PERIOD", help: "time between two checks of which pipelines should run (1m)",
        set: |config, value| put(&mut config.settings.pipelines_sync_period, period(value)) },
    Flag { name: "exporters-directory", value: "DIR", variable: "STACK_EXPORTERS_DIRECTORY", help: "the only directory that file exporters may write to (none)",
        set: |config, value| put(&mut config.settings.exporters_directory, path(value).map(Some)) },
    Flag { name: "connectors-directory", value: "DIR", variable: "STACK_CONNECTORS_DIRECTORY", help: "the only directory that DUMMY-PAY may read and write (the system's directory for temporary files)",
        set: |config, value| put(&mut config.settings.connectors_directory, path(value).map(Some)) },
    Flag { name: "outbound", value: "any|public", variable: "STACK_OUTBOUND", help: "targets allowed for addresses that come through the API (any on loopback without tokens and proxy, else public)",
        set: |config, value| put(&mut config.settings.outbound, choice(value, &[("any", Some(OutboundPolicy::Any)), ("public", Some(OutboundPolicy::Public))])) },
];

#[rustfmt::skip]
static EVENTS: &[Flag] = &[
    Flag { name: "events-heartbeat", value: "DURATION", variable: "STACK_EVENTS_HEARTBEAT", help: "interval of keep-alive messages on event streams (15s)",
        set: |config, value| put(&mut config.settings.events_heartbeat, period(value)) },
    Flag { name: "publisher-topic-mapping", value: "TYPE:TOPIC,…", variable: "PUBLISHER_TOPIC_MAPPING", help: "topics by event type; * stands for all other types (the type itself)",
        set: |config, value| put(&mut config.publishing.topics, Topics::parse(value)) },
    Flag { name: "publisher-http-enabled", value: "", variable: "PUBLISHER_HTTP_ENABLED", help: "publish events over HTTP; topics are addresses",
        set: |config, value| put(&mut config.publishing.http, switch(value)) },
    Flag { name: "publisher-http-secrets-file", value: "FILE", variable: "STACK_PUBLISHER_HTTP_SECRETS_FILE", help: "file with secrets that sign published events, one per line (unsigned)",
        set: |config, value| put(&mut config.publishing.http_secrets, path(value).map(Some)) },
    Flag { name: "publisher-nats-enabled", value: "", variable: "PUBLISHER_NATS_ENABLED", help: "publish events to NATS JetStream; topics are subjects",
        set: |config, value| put(&mut config.publishing.nats, switch(value)) },
    Flag { name: "publisher-nats-url", value: "URL,…", variable: "PUBLISHER_NATS_URL", help: "addresses of the NATS servers (nats://127.0.0.1:4222)",
        set: |config, value| { value.clone_into(&mut config.publishing.nats_settings.url); Ok(()) } },
    Flag { name: "publisher-nats-client-id", value: "NAME", variable: "PUBLISHER_NATS_CLIENT_ID", help: "name of this client in NATS (none)",
        set: |config, value| { config.publishing.nats_settings.client_id = Some(value.to_owned()); Ok(()) } },
    Flag { name: "publisher-nats-reconnect-wait", value: "DURATION", variable: "PUBLISHER_NATS_RECONNECT_WAIT", help: "pause between two attempts to connect (2s)",
        set: |config, value| put(&mut config.publishing.nats_settings.reconnect_wait, period(value)) },
    Flag { name: "publisher-nats-auto-provision", value: "", variable: "PUBLISHER_NATS_AUTO_PROVISION", help: "create streams for topics that have none (true)",
        set: |config, value| put(&mut config.publishing.nats_settings.auto_provision, switch(value)) },
    Flag { name: "publisher-kafka-enabled", value: "", variable: "PUBLISHER_KAFKA_ENABLED", help: "not supported: use NATS or HTTP",
        set: |_, value| unknown_broker(value) },
    Flag { name: "publisher-sns-enabled", value: "", variable: "PUBLISHER_SNS_ENABLED", help: "not supported: use NATS or HTTP",
        set: |_, value| unknown_broker(value) },
];

#[rustfmt::skip]
static AUTH: &[Flag] = &[
    Flag { name: "auth-enabled", value: "", variable: "AUTH_ENABLED", help: "require a token for all requests except health checks and information about the service",
        set: |config, value| put(&mut config.auth_enabled, switch(value)) },
    Flag { name: "auth-issuer", value: "URL", variable: "AUTH_ISSUER", help: "issuer whose tokens are accepted: the address of its discovery document",
        set: add_issuers },
    Flag { name: "auth-issuers", value: "URL,…", variable: "AUTH_ISSUERS", help: "more issuers whose tokens are accepted",
        set: add_issuers },
    Flag { name: "auth-audience", value: "NAME,…", variable: "STACK_AUTH_AUDIENCE", help: "audiences, one of which tokens of other issuers must have (any)",
        set: |config, value| { config.auth.audiences.extend(value.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned)); Ok(()) } },
    Flag { name: "auth-check-scopes", value: "", variable: "AUTH_CHECK_SCOPES", help: "check scopes of tokens: SERVICE:read or SERVICE:write",
        set: |config, value| put(&mut config.auth.check_scopes, switch(value)) },
    Flag { name: "auth-check-management-scopes", value: "", variable: "STACK_AUTH_CHECK_MANAGEMENT_SCOPES", help: "check scopes of tokens that manage clients: auth:read or auth:write",
        set: |config, value| put(&mut config.auth.check_management_scopes, switch(value)) },
    Flag { name: "auth-mode", value: "off|own|foreign|both", variable: "STACK_AUTH_MODE", help: "issuers whose tokens are accepted (own without --auth-issuer, else foreign)",
        set: |config, value| put(&mut config.auth_mode, choice(value, &[("off", Some(AuthMode::Off)), ("own", Some(AuthMode::Own)), ("foreign", Some(AuthMode::Foreign)), ("both", Some(AuthMode::Both))])) },
    Flag { name: "auth-public-url", value: "URL", variable: "STACK_AUTH_PUBLIC_URL", help: "address by which clients reach this server, which is the issuer of its tokens (the address to listen on)",
        set: |config, value| put(&mut own(config).public_url, check_base(value).map(|()| Some(value.to_owned()))) },
    Flag { name: "auth-key-file", value: "FILE", variable: "STACK_AUTH_KEY_FILE", help: "file with the key that encrypts secrets of the authorization server, created if absent (DATA.auth-key); STACK_AUTH_KEY can contain the key itself",
        set: |config, value| put(&mut config.auth_key_file, path(value).map(Some)) },
    Flag { name: "auth-key-rotation", value: "DURATION", variable: "STACK_AUTH_KEY_ROTATION", help: "how long a key signs tokens (720h; at least 10m)",
        set: |config, value| put(&mut own(config).key_rotation, key_rotation(value)) },
    Flag { name: "auth-client", value: "FILE", variable: "STACK_AUTH_CLIENT", help: "YAML file with clients that are not stored (none)",
        set: |config, value| put(&mut own(config).clients, StaticClient::load(&path(value)?)) },
    Flag { name: "auth-wrong-secrets", value: "COUNT", variable: "STACK_AUTH_WRONG_SECRETS", help: "wrong secrets per minute until a client or an address must wait (60)",
        set: |config, value| put(&mut own(config).wrong_secrets_per_minute, small_count(value, 1_000_000)) },
    Flag { name: "delegated-issuer", value: "URL", variable: "DELEGATED_ISSUER", help: "OpenID provider where users log in (no logins)",
        set: |config, value| put(&mut provider(config).issuer, check_issuer(value).map(|()| value.to_owned())) },
    Flag { name: "delegated-client-id", value: "ID", variable: "DELEGATED_CLIENT_ID", help: "client id of this server at the provider",
        set: |config, value| { value.clone_into(&mut provider(config).client_id); Ok(()) } },
    Flag { name: "delegated-client-secret", value: "SECRET", variable: "DELEGATED_CLIENT_SECRET", help: "client secret of this server at the provider; better set by the variable, which other users cannot see",
        set: |config, value| { value.clone_into(&mut provider(config).client_secret); Ok(()) } },
    Flag { name: "trusted-proxies", value: "ADDRESS,…", variable: "STACK_TRUSTED_PROXIES", help: "proxies whose X-Forwarded-For header is trusted (none)",
        set: add_proxies },
    Flag { name: "auth-service", value: "SERVICE", variable: "AUTH_SERVICE", help: "service name in scopes, before the colon (ledger)",
        set: |config, value| { value.clone_into(&mut config.auth.service); Ok(()) } },
];

/// Refuses to enable an unsupported broker. An error at the start is better than events that are missing unnoticed.
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

fn generic_keys(path: &str) -> Result<Option<FixedKeys>, FlagError> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(Some(FixedKeys::parse(&text)?))
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
        check_issuer(issuer)?;
        if !config.auth.issuers.iter().any(|have| have == issuer) {
            config.auth.issuers.push(issuer.to_owned());
        }
    }
    Ok(())
}

/// Returns the settings of the authorization server, and creates them if there are none.
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
pub(super) struct IgnoredFlag {
    pub(super) name: &'static str,
    pub(super) is_switch: bool,
}

/// Ignored flags. Deployment files contain them, but they have no effect on this server.
pub(super) static IGNORED_FLAGS: &[IgnoredFlag] = &[
    // Elements of a bulk run in order.
    IgnoredFlag { name: "bulk-parallel", is_switch: false },
    // The server does not connect to a database.
    IgnoredFlag { name: "postgres-uri", is_switch: false },
    IgnoredFlag { name: "postgres-max-idle-conns", is_switch: false },
    IgnoredFlag { name: "postgres-max-open-conns", is_switch: false },
    IgnoredFlag { name: "postgres-conn-max-idle-time", is_switch: false },
    IgnoredFlag { name: "postgres-aws-enable-iam", is_switch: true },
    IgnoredFlag { name: "auto-upgrade", is_switch: true },
    // `memory-budget` limits the memory of the whole server.
    IgnoredFlag { name: "ballast-size", is_switch: false },
    IgnoredFlag { name: "numscript-cache-max-count", is_switch: false },
    // The server never gives up on an event, and does not subscribe to anything.
    IgnoredFlag { name: "publisher-nats-max-reconnect", is_switch: false },
    IgnoredFlag { name: "publisher-queue-group", is_switch: false },
    // Undelivered events wait in the journal.
    IgnoredFlag { name: "publisher-circuit-breaker-enabled", is_switch: true },
    IgnoredFlag { name: "publisher-circuit-breaker-open-interval-duration", is_switch: false },
    IgnoredFlag { name: "publisher-circuit-breaker-schema", is_switch: false },
    IgnoredFlag { name: "publisher-circuit-breaker-list-storage-limit", is_switch: false },
    // Settings of Kafka, which the server refuses to enable.
    IgnoredFlag { name: "publisher-kafka-broker", is_switch: false },
    IgnoredFlag { name: "publisher-kafka-sasl-enabled", is_switch: true },
    IgnoredFlag { name: "publisher-kafka-sasl-iam-enabled", is_switch: true },
    IgnoredFlag { name: "publisher-kafka-sasl-mechanism", is_switch: false },
    IgnoredFlag { name: "publisher-kafka-sasl-password", is_switch: false },
    IgnoredFlag { name: "publisher-kafka-sasl-scram-sha-size", is_switch: false },
    IgnoredFlag { name: "publisher-kafka-sasl-session-name", is_switch: false },
    IgnoredFlag { name: "publisher-kafka-sasl-username", is_switch: false },
    IgnoredFlag { name: "publisher-kafka-tls-enabled", is_switch: true },
    // The server does the work of a worker itself.
    IgnoredFlag { name: "worker-grpc-address", is_switch: false },
    IgnoredFlag { name: "worker-grpc-port", is_switch: false },
    IgnoredFlag { name: "worker-grpc-tls-enabled", is_switch: true },
    IgnoredFlag { name: "worker-grpc-tls-insecure-skip-verify", is_switch: true },
    IgnoredFlag { name: "worker-grpc-tls-ca-cert", is_switch: false },
    IgnoredFlag { name: "worker-grpc-tls-cert", is_switch: false },
    IgnoredFlag { name: "worker-grpc-tls-key", is_switch: false },
    IgnoredFlag { name: "worker-grpc-auth-token", is_switch: false },
    // The server computes the hash of a log when it writes the log.
    IgnoredFlag { name: "worker-async-block-hasher-max-block-size", is_switch: false },
    IgnoredFlag { name: "worker-async-block-hasher-schedule", is_switch: false },
    // The server writes a log, and exports neither traces nor metrics.
    IgnoredFlag { name: "otel-service-name", is_switch: false },
    IgnoredFlag { name: "otel-resource-attributes", is_switch: false },
    IgnoredFlag { name: "otel-traces", is_switch: true },
    IgnoredFlag { name: "otel-traces-batch", is_switch: true },
    IgnoredFlag { name: "otel-traces-exporter", is_switch: false },
    IgnoredFlag { name: "otel-traces-exporter-otlp-endpoint", is_switch: false },
    IgnoredFlag { name: "otel-traces-exporter-otlp-insecure", is_switch: true },
    IgnoredFlag { name: "otel-traces-exporter-otlp-mode", is_switch: false },
    IgnoredFlag { name: "otel-metrics", is_switch: true },
    IgnoredFlag { name: "otel-metrics-exporter", is_switch: false },
    IgnoredFlag { name: "otel-metrics-exporter-otlp-endpoint", is_switch: false },
    IgnoredFlag { name: "otel-metrics-exporter-otlp-insecure", is_switch: true },
    IgnoredFlag { name: "otel-metrics-exporter-otlp-mode", is_switch: false },
    IgnoredFlag { name: "otel-metrics-exporter-push-interval", is_switch: false },
    IgnoredFlag { name: "otel-metrics-keep-in-memory", is_switch: true },
    IgnoredFlag { name: "otel-metrics-runtime", is_switch: true },
    // The server retries without limit to fetch keys.
    IgnoredFlag { name: "auth-read-key-set-max-retries", is_switch: false },
];
