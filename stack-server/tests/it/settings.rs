//! Settings of the operator that are visible in responses.

use ledger_core::ErrorWording;
use stack_server::Settings;

use crate::client::TestServer;

#[test]
fn read_only_server_refuses_every_write_first() {
    let mut settings = Settings::default();
    settings.read_only = true;
    let server = TestServer::with(settings);
    for (method, path) in [
        ("POST", "/v2/main"),
        ("POST", "/api/ledger/v2/main/transactions"),
        ("DELETE", "/v2/main/metadata/k"),
        ("POST", "/main/transactions"),
        ("PUT", "/api/ledger/main/mapping"),
    ] {
        let message = server.send(method, path, &[], "{").refused(400, "READ_ONLY");
        assert_eq!(message, "Read only mode");
    }
    server.get("/v2").is(200);
    server.send("HEAD", "/main/accounts", &[], "").is(200);
    server.send("OPTIONS", "/v2", &[("Access-Control-Request-Method", "POST")], "").is(204);
    server.post("/v2/_", "").is(404);
}

#[test]
fn scripts_use_default_runtime_of_server() {
    let mut settings = Settings::default();
    settings.script_wording = ErrorWording::Interpreter;
    let server = TestServer::with(settings);
    server.post("/v2/main", "").is(204);
    let script = |runtime: &str| format!(r#"{{"script":{{"plain":"send"}}{runtime}}}"#);
    server.post("/v2/main/transactions", &script("")).refused(400, "INTERPRETER_PARSE");
    let machine = script(r#","runtime":"machine""#);
    server.post("/v2/main/transactions", &machine).refused(400, "COMPILATION_FAILED");
    let element = format!(r#"[{{"action":"CREATE_TRANSACTION","data":{}}}]"#, script(""));
    let bulk = server.post("/v2/main/_bulk", &element).is(400).json();
    assert_eq!(bulk["data"][0]["errorCode"], "INTERPRETER_PARSE");
}

#[test]
fn pages_have_the_size_that_the_operator_chose() {
    let mut settings = Settings::default();
    (settings.default_page_size, settings.max_page_size) = (2, 3);
    let server = TestServer::with(settings);
    for (asked, size) in [("", 2), ("?pageSize=1", 1), ("?pageSize=9", 3)] {
        assert_eq!(server.get(&format!("/v2{asked}")).is(200).json()["cursor"]["pageSize"], size);
    }
}
