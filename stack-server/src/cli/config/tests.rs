//! Tests how command lines and variables become a configuration.

use std::path::PathBuf;
use std::time::Duration;

use ledger_core::schema::Enforcement;
use ledger_core::{ErrorWording, FirstId, PastDates};

use super::*;
use crate::auth::keys::master::KeySource;
use crate::http::browsers::{HostName, Origin};
use crate::http::error::Profile;
use crate::integrations::events::Topics;
use crate::log::{self, Level};
use crate::outbound::OutboundPolicy;
use crate::settings::Compat;

fn read(line: &str, variables: &[(&str, &str)]) -> Result<Invocation, ConfigError> {
    let variable =
        |name: &str| variables.iter().find(|(have, _)| *have == name).map(|(_, value)| (*value).to_owned());
    parse(line.split_whitespace().map(OsString::from), variable)
}

fn served(line: &str, variables: &[(&str, &str)]) -> Config {
    match read(line, variables) {
        Ok(Invocation::Serve(config)) => *config,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn flags_precede_variables_and_variables_defaults() {
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
    assert_eq!(config.settings.script_wording, ErrorWording::Interpreter);
}

#[test]
fn accepts_event_and_pipeline_settings_of_others() {
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
    assert_eq!(settings.outbound, Some(OutboundPolicy::Public));
    assert_eq!(settings.exporters_directory, Some(PathBuf::from("/e")));
    let publishing = &config.publishing;
    assert!(publishing.http && publishing.nats && !publishing.nats_settings.auto_provision);
    assert_eq!(publishing.nats_settings.url, "nats://a:1,nats://b");
    let topics = Topics::parse("*:http://a:1/x,SAVED_METADATA:m,AUDIT:n").expect("pairs");
    assert_eq!(publishing.topics, topics, "flags replace the variable");
}

#[test]
fn the_mode_says_whose_tokens_are_taken() {
    let mode = |line: &str| {
        let config = served(line, &[]);
        (config.auth_enabled, config.auth.own, config.auth.issuers.len())
    };
    assert_eq!(mode(""), (false, false, 0));
    assert_eq!(mode("--auth-enabled"), (true, true, 0));
    assert_eq!(mode("--auth-mode own"), (true, true, 0));
    assert_eq!(mode("--auth-enabled --auth-issuer http://i"), (true, false, 1));
    assert_eq!(mode("--auth-mode both --auth-issuer http://i"), (true, true, 1));
    assert_eq!(mode("--auth-mode off --auth-issuer http://i"), (false, false, 1));
    let key = |config: Config| config.settings.authorization.map(|settings| settings.key);
    let file = |path: &str| Some(KeySource::File(PathBuf::from(path)));
    assert_eq!(key(served("--data /d", &[])), file("/d.auth-key"));
    assert_eq!(key(served("--data /d --auth-key-file /k", &[])), file("/k"));
    let given = "07".repeat(32);
    assert!(matches!(key(served("", &[("STACK_AUTH_KEY", &given)])), Some(KeySource::Given(_))));
    assert!(read("", &[("STACK_AUTH_KEY", "short")]).is_err());
    // Without authentication, remote clients must not be able to manage clients.
    assert_eq!(key(served("--bind :1 --allow-unauthenticated", &[])), None);
}

#[test]
fn warns_of_tokens_that_are_good_for_everything() {
    let warning = |line: &str| served(line, &[]).token_warning();
    assert_eq!(warning(""), None);
    let foreign = "--auth-enabled --auth-issuer http://i";
    assert!(warning(foreign).is_some_and(|text| text.contains("--auth-audience")));
    assert!(warning(&format!("{foreign} --auth-mode both")).is_some());
    assert!(warning("--auth-enabled").is_some_and(|text| text.contains("--auth-check-scopes")));
    let audience = format!("{foreign} --auth-audience stack,books");
    assert_eq!(served(&audience, &[]).auth.audiences, ["stack", "books"]);
    for line in
        [audience, format!("{foreign} --auth-check-scopes"), "--auth-enabled --auth-check-scopes".to_owned()]
    {
        assert_eq!(warning(&line), None, "{line}");
    }
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
    // Tokens of this server contain its address, which must be valid.
    assert!(read("--bind :1 --auth-enabled --behind-proxy", &[]).is_err());
    let public = "--bind :1 --auth-enabled --behind-proxy --auth-public-url https://stack.example";
    assert!(served(public, &[]).auth.own);
    // TLS does not authenticate clients.
    assert!(read("--bind :1 --tls-certificate c --tls-key k", &[]).is_err());
    for half in ["--tls-certificate c", "--tls-key k", "--tls-client-authorities a"] {
        assert!(read(half, &[]).is_err(), "{half}");
    }
}

#[test]
fn reads_names_and_origins_of_browsers() {
    let variables = [("STACK_CORS_ORIGIN", "https://a.example")];
    let settings = |line: &str| served(line, &variables).settings;
    assert_eq!(settings("").cors_origins, Origin::parse_list("https://a.example").expect("an origin"));
    let flags = "--cors-origin https://b.example --cors-origin=https://c.example --allowed-host a,b";
    let found = settings(flags);
    assert_eq!(
        found.cors_origins,
        Origin::parse_list("https://b.example,https://c.example").expect("origins")
    );
    assert_eq!(found.allowed_hosts, HostName::parse_list("a,b").expect("names"));
    assert!(!served("", &[]).allow_shared_directory);
    assert!(served("--allow-shared-directory", &[]).allow_shared_directory);
}

#[test]
fn deployment_files_of_other_servers_are_understood() {
    let variables = [
        ("AUTH_ENABLED", "true"),
        ("AUTH_ISSUER", "http://a/api/auth"),
        // A flag takes precedence over its variable: the issuer in the variable is not trusted.
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
    assert!(config.auth_enabled && config.settings.read_only && config.log_level == Level::Info);
    assert_eq!(config.auth.issuers, ["http://a/api/auth", "http://b"]);
    assert!(config.auth.check_scopes);
    assert_eq!(config.auth.service, "books");
    assert_eq!(config.settings.script_wording, ErrorWording::Interpreter);
    assert_eq!(
        config.ignored,
        ["POSTGRES_MAX_OPEN_CONNS", "--postgres-conn-max-idle-time", "--auto-upgrade", "--bulk-parallel"]
    );
}

#[test]
fn ignores_unfit_variables_of_other_software() {
    let variables =
        [("DEBUG", "foo,bar:*"), ("BIND", "0.0.0.0"), ("WORKER", "main-1"), ("MAX_PAGE_SIZE", "7")];
    let config = served("", &variables);
    assert_eq!(config.ignored.len(), 3, "{:?}", config.ignored);
    assert!(config.ignored.iter().any(|ignored| ignored.starts_with("DEBUG (\"foo,bar:*\" is")));
    let expected = Config::default();
    assert_eq!((config.listen, config.settings.worker), (expected.listen, expected.settings.worker));
    assert_eq!(config.log_level, Level::Info);
    assert_eq!(config.settings.max_page_size, 7);
    // Readable values of shared variables count. Flags are always strict, and so are variables that protect something.
    assert_eq!(served("", &[("DEBUG", "1")]).log_level, Level::Debug);
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
fn refuses_invalid_command_lines() {
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
        "--auth-enabled --auth-mode off",
        "--auth-enabled --auth-mode foreign",
        "--auth-mode both",
        "--auth-mode own --auth-issuer http://i",
        "--auth-mode nonsense",
        "--auth-public-url nonsense",
        "--auth-public-url http://a/?b",
        "--auth-client /nosuch",
        "--trusted-proxies nonsense",
        "--auth-key-rotation 0s",
        "--auth-key-rotation 9m59s",
        "--auth-public-url https://stack.example/path",
        "--auth-enabled=maybe",
        "--auth-issuer nonsense",
        "--bind :x",
        "--postgres-max-open-conns",
        "--memory-budget 99999999999999999999GiB",
        "--worker=maybe",
        "--worker-pipelines-pull-interval 0s",
        "--worker-pipelines-sync-period 5",
        "--outbound private",
        "--cors-origin *",
        "--cors-origin app.example",
        "--allowed-host https://app.example",
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
    let kept = ExpectedHead { entries: 7, hash: hash.to_ascii_lowercase() };
    let line = format!("verify d --expect-head 7:{hash}");
    assert_eq!(read(&line, &[]), Ok(Invocation::Verify(PathBuf::from("d"), Some(kept))));
    let others = [format!("serve --expect-head 7:{hash}"), format!("verify d --expect-head {hash}")];
    for line in
        others.iter().map(String::as_str).chain(["verify d --expect-head 7:12", "verify d --expect-head x:"])
    {
        assert!(read(line, &[]).is_err(), "{line}");
    }
    assert_eq!(read("serve --help", &[]), Ok(Invocation::HelpOf(Topic::Serve)));
}

#[test]
fn help_names_every_flag_once() {
    let help = help();
    for flag in flags::all() {
        assert!(help.contains(&format!("--{}", flag.name)) && help.contains(flag.variable));
        assert!(flag.variable.starts_with("STACK_") || flag.variable == variable_of(flag.name));
        let others = flags::all().filter(|other| other.name == flag.name || other.variable == flag.variable);
        assert_eq!(others.count(), 1, "--{}", flag.name);
        assert!(IGNORED_FLAGS.iter().all(|foreign| foreign.name != flag.name));
    }
}

#[test]
fn accepts_a_worker_as_deployments_start_it() {
    let line = "worker --worker-grpc-address :8081 --worker-grpc-tls-enabled --worker-pipelines-pull-interval 5s --debug";
    assert_eq!(
        read(line, &[("WORKER_GRPC_ADDRESS", ":8081")]),
        Ok(Invocation::Worker(
            ["WORKER_GRPC_ADDRESS", "--worker-grpc-address", "--worker-grpc-tls-enabled"]
                .map(str::to_owned)
                .to_vec()
        ))
    );
    let served = served("serve --worker=false --worker-grpc-address worker:8081", &[]);
    assert_eq!(served.ignored, ["--worker-grpc-address"]);
    assert!(served.names_worker && served.settings.worker, "nobody else would do the work");
    assert!(read("worker --nosuch", &[]).is_err());
}

#[test]
fn database_address_is_ignored_and_not_shown() {
    let uri = "postgres://ledger:secret@db/ledger";
    for command in ["serve", "worker"] {
        assert!(read(&format!("{command} --postgres-uri {uri}"), &[]).is_ok(), "{command}");
        assert!(read(&format!("{command} --postgres-uri={uri}"), &[]).is_ok(), "{command}");
        assert!(read(&format!("{command} --postgres-uri"), &[]).is_err(), "{command}");
    }
    assert_eq!(served(&format!("--postgres-uri {uri}"), &[]).ignored, ["--postgres-uri"]);
    assert_eq!(served("", &[("POSTGRES_URI", uri)]).ignored, ["POSTGRES_URI"]);
    let ignored = Invocation::Worker(vec!["--postgres-uri".to_owned()]);
    assert_eq!(read(&format!("worker --postgres-uri {uri}"), &[]), Ok(ignored));
}

#[test]
fn reads_addresses_of_providers() {
    let config = served("--provider-addresses stripe=http://a:1,WISE=https://b --public-url https://c/", &[]);
    let addresses: Vec<_> = config.settings.provider_addresses.into_iter().collect();
    let expected = [("STRIPE", "http://a:1"), ("WISE", "https://b")];
    assert_eq!(addresses, expected.map(|(name, url)| (name.to_owned(), url.to_owned())));
    assert_eq!(config.settings.public_url, "https://c");
}

#[test]
fn unknown_words_come_with_a_suggestion() {
    for (line, expected) in [
        ("serev", "unknown command \"serev\", did you mean \"serve\"?; see stack-server help"),
        ("help verfy", "unknown command \"verfy\", did you mean \"verify\"?; see stack-server help"),
        ("xyzzy", "unknown command \"xyzzy\"; see stack-server help"),
        ("--lisen :80", "unknown flag \"--lisen\", did you mean \"--listen\"?; see stack-server help"),
        ("--hlep", "unknown flag \"--hlep\", did you mean \"--help\"?; see stack-server help"),
        ("exprot d main", "unknown command \"exprot\", did you mean \"export\"?; see stack-server help"),
        (
            "verify d --expect-haed 1:x",
            "unknown flag \"--expect-haed\", did you mean \"--expect-head\"?; see stack-server help",
        ),
        ("serve --qqq", "unknown flag \"--qqq\"; see stack-server help"),
    ] {
        assert_eq!(read(line, &[]).expect_err(line).to_string(), expected);
    }
}

#[test]
fn help_explains_a_command() {
    for line in ["help", "--help", "help help"] {
        assert_eq!(read(line, &[]), Ok(Invocation::Help), "{line}");
    }
    for (line, topic, usage) in [
        ("help serve", Topic::Serve, "[serve] [FLAGS]"),
        ("serve -h", Topic::Serve, "--listen ADDRESS"),
        ("help verify", Topic::Verify, "verify DIR [--expect-head ENTRIES:HASH]"),
        ("verify d --help", Topic::Verify, "Exit status"),
        ("help worker", Topic::Worker, "worker [FLAGS]"),
    ] {
        assert_eq!(read(line, &[]), Ok(Invocation::HelpOf(topic)), "{line}");
        assert!(help_of(topic).contains(usage), "{line}");
    }
    assert_ne!(help_of(Topic::Verify), help());
    assert_eq!(read("help script", &[]), Ok(Invocation::Script(vec!["--help".into()])));
    assert_eq!(read("help auth token", &[]), Ok(Invocation::Auth(vec!["--help".into(), "token".into()])));
}

#[test]
fn the_log_has_a_form_and_a_level() {
    let config = served("", &[]);
    assert_eq!((config.log_format, config.log_level), (log::Format::Text, Level::Info));
    assert_eq!(served("--log-format json", &[]).log_format, log::Format::Json);
    assert_eq!(served("--json-formatting-logger", &[]).log_format, log::Format::Json);
    assert_eq!(served("", &[("STACK_LOG_LEVEL", "error")]).log_level, Level::Error);
    assert!(read("--log-level loud", &[]).is_err());
}
