//! The release, health and description of the service, and its headers for browsers.

use ledger_core::ErrorWording;
use serde_json::json;
use stack_server::Settings;

use crate::client::TestServer;

#[test]
fn clients_find_the_form_of_their_release() {
    let server = TestServer::with_main();
    let wrapped = json!({"server":"ledger","version":"v2.0.0",
        "config":{"storage":{"driver":"redb","ledgers":["main"]}}});
    for path in ["/v2/_info", "/api/ledger/v2/_info"] {
        let mut data = wrapped.clone();
        data["config"]["schemaEnforcementMode"] = json!("audit");
        data["experimentalFeatures"] = json!(null);
        let info = server.get(path).is(200).json();
        assert_eq!(info, json!({"server":"ledger","version":"v2.0.0","data":data}), "{path}");
    }
    for path in ["/_info", "/api/ledger/_info"] {
        assert_eq!(server.get(path).is(200).json(), json!({"data":wrapped}), "{path}");
    }
    for path in ["/_/info", "/api/ledger/_/info"] {
        assert_eq!(
            server.get(path).is(200).body,
            "{\"server\":\"ledger\",\"version\":\"v2.0.0\"}\n",
            "{path}"
        );
    }
    let ledger = server.get("/v2/main/_info").is(200);
    assert_eq!(ledger.body, "{\"data\":{\"name\":\"main\",\"storage\":{\"migrations\":[]}}}\n");
}

#[test]
fn lists_the_experimental_flags_that_are_on() {
    let mut settings = Settings::default();
    settings.experimental_features = true;
    settings.script_wording = ErrorWording::Interpreter;
    let server = TestServer::with(settings.clone());
    let on =
        |server: &TestServer| server.get("/v2/_info").is(200).json()["data"]["experimentalFeatures"].clone();
    assert_eq!(on(&server), json!(["experimental-features", "experimental-numscript-interpreter"]));
    settings.experimental_exporters = true;
    let all = ["experimental-features", "experimental-exporters", "experimental-numscript-interpreter"];
    assert_eq!(on(&TestServer::with(settings)), json!(all));
}

#[test]
fn health_is_told_in_the_form_of_each_path() {
    let server = TestServer::start();
    for (path, body) in [
        ("/v2/_healthcheck", "{}\n"),
        ("/_healthcheck", "{\"storage-driver-up-to-date\":\"OK\"}\n"),
        ("/_/healthcheck", "{\"storage-driver-up-to-date\":\"OK\"}\n"),
        ("/healthz", "{\"storage\":\"OK\"}\n"),
    ] {
        assert_eq!(server.get(path).is(200).body, body, "{path}");
    }
    let versions = server.get("/versions").is(200).json();
    assert_eq!(
        versions["versions"],
        json!([
            {"name":"ledger","version":"v2.0.0","health":true},
            {"name":"payments","version":"v2.0.0","health":true}
        ])
    );
}
