//! The typical use of a client: one sequence of v2 requests at `/v2` in plain HTTP. Compares every response. `sdk.rs`
//! runs the sequences of older clients.

use serde_json::{Value, json};

use crate::client::{TestServer, escape};

/// Removes these members from a JSON value at any depth.
fn without(value: &Value, names: &[&str]) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !names.contains(&name.as_str()));
            Value::Object(kept.map(|(name, member)| (name.clone(), without(member, names))).collect())
        }
        Value::Array(items) => items.iter().map(|item| without(item, names)).collect(),
        other => other.clone(),
    }
}

/// Members whose values depend on the clock.
const CLOCKED: [&str; 6] =
    ["insertedAt", "updatedAt", "insertionDate", "firstUsage", "timestamp", "revertedAt"];

#[test]
fn typical_day_of_a_v2_client() {
    let server = TestServer::start();
    ledgers(&server);
    first_transaction(&server);
    scripted_transaction(&server);
    metadata(&server);
    lists(&server);
    revert_and_bulk(&server);
    let export = copy(&server);
    rules(&server);
    whole_buckets(&server);
    // Writes to other ledgers must not change this ledger.
    assert_eq!(server.post("/v2/main/logs/export", "").is(200).body, export);
}

/// The first transaction of the ledger `main`.
const TOPUP: &str = r#"{"postings":[{"source":"world","destination":"users:001","amount":10000,"asset":"USD/2"}],
    "reference":"topup-1","metadata":{"kind":"topup"},"timestamp":"2024-05-01T12:00:00.12+02:00",
    "accountMetadata":{"users:001":{"tier":"gold"}}}"#;

fn volumes(input: u64, output: u64) -> Value {
    json!({"input": input, "output": output, "balance": input as i64 - output as i64})
}

/// Creates a ledger, changes its metadata and finds it in lists.
fn ledgers(server: &TestServer) {
    let get = |path: &str| server.get(path).is(200).json();
    let body = r#"{"bucket":"eu","metadata":{"env":"test"}}"#;
    server.post("/v2/main", body).is(204);
    server.post("/v2/main", body).refused(400, "LEDGER_ALREADY_EXISTS");
    server.send("PUT", "/v2/main/metadata", &[], r#"{"owner":"me","env":"walk"}"#).is(204);
    server.send("DELETE", "/v2/main/metadata/owner", &[], "").is(204);
    let ledger = get("/v2/main")["data"].clone();
    assert_eq!(ledger["name"], "main");
    assert_eq!((&ledger["bucket"], &ledger["metadata"]), (&json!("eu"), &json!({"env": "walk"})));
    assert_eq!(ledger["features"]["MOVES_HISTORY"], "ON");
    let by_bucket = escape(r#"{"$match":{"bucket":"eu"}}"#);
    assert_eq!(get(&format!("/v2?query={by_bucket}"))["cursor"]["data"], json!([ledger]));
    assert_eq!(get("/v2/main/_info")["data"], json!({"name": "main", "storage": {"migrations": []}}));
    assert_eq!(get("/v2/_info")["data"]["config"]["storage"]["ledgers"], json!(["main"]));
}

/// Creates a transaction. Ids begin at 1, and the answer has the volumes before and after.
fn first_transaction(server: &TestServer) {
    let dry = server.post("/v2/main/transactions?dryRun=true", TOPUP).is(200).json();
    let made = server.post("/v2/main/transactions", TOPUP).is(200).json();
    assert_eq!(without(&dry, &CLOCKED), without(&made, &CLOCKED));
    assert_eq!(
        without(&made["data"], &["insertedAt", "updatedAt"]),
        json!({
            "postings": [{"source": "world", "destination": "users:001", "amount": 10_000, "asset": "USD/2"}],
            "metadata": {"kind": "topup"},
            "timestamp": "2024-05-01T10:00:00.12Z",
            "reference": "topup-1",
            "id": 1,
            "reverted": false,
            "preCommitVolumes": {"users:001": {"USD/2": volumes(0, 0)}, "world": {"USD/2": volumes(0, 0)}},
            "postCommitVolumes":
                {"users:001": {"USD/2": volumes(10_000, 0)}, "world": {"USD/2": volumes(0, 10_000)}},
            "preCommitEffectiveVolumes":
                {"users:001": {"USD/2": volumes(0, 0)}, "world": {"USD/2": volumes(0, 0)}},
            "postCommitEffectiveVolumes":
                {"users:001": {"USD/2": volumes(10_000, 0)}, "world": {"USD/2": volumes(0, 10_000)}},
        })
    );
    server.post("/v2/main/transactions", TOPUP).refused(409, "CONFLICT");
}

/// Creates a transaction by a script, twice under one idempotency key.
fn scripted_transaction(server: &TestServer) {
    let script = r#"{"script":{"plain":"vars { account $to\n monetary $sum }\nsend $sum (source = @users:001 destination = $to)",
        "vars":{"to":"shops:1","sum":{"asset":"USD/2","amount":2500}}}}"#;
    let key = [("Idempotency-Key", "once")];
    let first = server.send("POST", "/v2/main/transactions", &key, script).is(200);
    let again = server.send("POST", "/v2/main/transactions", &key, script).is(200);
    assert_eq!((first.header("idempotency-hit"), again.header("idempotency-hit")), (None, Some("true")));
    assert_eq!(first.json(), again.json());
    server.send("POST", "/v2/main/transactions", &key, TOPUP).refused(400, "VALIDATION");
    let quoted = server.send("GET", "/v2/main/transactions/2", &[("Formance-Bigint-As-String", "true")], "");
    assert_eq!(quoted.is(200).json()["data"]["postings"][0]["amount"], "2500");
}

/// Writes and deletes metadata.
fn metadata(server: &TestServer) {
    let get = |path: &str| server.get(path).is(200).json();
    server.post("/v2/main/transactions/1/metadata", r#"{"checked":"yes"}"#).is(204);
    server.send("DELETE", "/v2/main/transactions/1/metadata/kind", &[], "").is(204);
    server.send("DELETE", "/v2/main/transactions/1/metadata/kind", &[], "").refused(404, "NOT_FOUND");
    server.post("/v2/main/accounts/shops:1/metadata", r#"{"vat":"yes"}"#).is(204);
    server.send("DELETE", "/v2/main/accounts/users:001/metadata/tier", &[], "").is(204);
    assert_eq!(get("/v2/main/transactions/1")["data"]["metadata"], json!({"checked": "yes"}));
    let account = get("/v2/main/accounts/users%3A001?expand=volumes,effectiveVolumes")["data"].clone();
    assert_eq!(account["volumes"], json!({"USD/2": volumes(10_000, 2_500)}));
    assert_eq!((&account["effectiveVolumes"], &account["metadata"]), (&account["volumes"], &json!({})));
}

/// Lists, counts and sums.
fn lists(server: &TestServer) {
    let get = |path: &str| server.get(path).is(200).json();
    assert_eq!(
        server.get("/v2/main/accounts?sort=address:desc").column("address"),
        ["world", "users:001", "shops:1"]
    );
    let filter = r#"{"$match":{"account":"shops:..."}}"#;
    assert_eq!(server.send("GET", "/v2/main/transactions", &[], filter).column("id"), ["2"]);
    assert_eq!(server.get("/v2/main/transactions?order=effective&reverse=true").column("id"), ["1", "2"]);
    let counted = server.send("HEAD", "/v2/main/transactions", &[], filter).is(204);
    assert_eq!(counted.header("count"), Some("1"));
    assert_eq!(server.send("HEAD", "/v2/main/accounts", &[], "").is(204).header("count"), Some("3"));
    let past = "pit=2024-05-01T10:00:00.12Z";
    assert_eq!(
        get(&format!(
            "/v2/main/aggregate/balances?{past}&query={}",
            escape(r#"{"$match":{"address":"users:"}}"#)
        ))["data"],
        json!({"USD/2": 10_000})
    );
    let rows = get("/v2/main/volumes?groupBy=1")["cursor"]["data"].clone();
    assert_eq!(
        rows[1],
        json!({"account": "users", "asset": "USD/2", "input": 10_000, "output": 2_500, "balance": 7_500})
    );
}

/// Reverts a transaction, and sends a bulk in which commands fail.
fn revert_and_bulk(server: &TestServer) {
    let get = |path: &str| server.get(path).is(200).json();
    let reverted =
        server.post("/v2/main/transactions/2/revert", r#"{"metadata":{"why":"refund"}}"#).is(201).json();
    assert_eq!(
        reverted["data"]["metadata"],
        json!({"com.formance.spec/state/reverts": "2", "why": "refund"})
    );
    server.post("/v2/main/transactions/2/revert", "").refused(400, "ALREADY_REVERT");
    let bulk = r#"[{"action":"CREATE_TRANSACTION","ik":"b-1","data":{"postings":
          [{"source":"world","destination":"users:002","amount":1,"asset":"USD/2"}]}},
        {"action":"ADD_METADATA","data":{"targetType":"TRANSACTION","targetId":4,"metadata":{"a":"b"}}},
        {"action":"DELETE_METADATA","data":{"targetType":"TRANSACTION","targetId":4,"key":"a"}},
        {"action":"REVERT_TRANSACTION","data":{"id":2}},
        {"action":"REVERT_TRANSACTION","data":{"id":4}}]"#;
    let results = server.post("/v2/main/_bulk", bulk).is(400).json()["data"].clone();
    let shown: Vec<_> = results.as_array().expect("results").iter().map(|one| &one["responseType"]).collect();
    assert_eq!(shown, ["CREATE_TRANSACTION", "ADD_METADATA", "DELETE_METADATA", "ERROR", "ERROR"]);
    assert_eq!(
        (&results[3]["errorCode"], &results[4]["errorDescription"]),
        (&json!("ALREADY_REVERT"), &json!("context canceled"))
    );
    assert_eq!(get("/v2/main/stats")["data"], json!({"transactions": 4, "accounts": 4}));
}

/// Copies the whole log into another ledger, which is then equal. Returns the log.
fn copy(server: &TestServer) -> String {
    let get = |path: &str| server.get(path).is(200).json();
    let export = server.post("/v2/main/logs/export", "").is(200).body;
    server.post("/v2/copy", "").is(204);
    server.post("/v2/copy/logs/import", &export).is(204);
    assert_eq!(server.post("/v2/copy/logs/export", "").is(200).body, export);
    for list in ["accounts?expand=volumes", "transactions?expand=volumes", "volumes", "logs", "stats"] {
        let [main, copy] = ["main", "copy"].map(|ledger| get(&format!("/v2/{ledger}/{list}")));
        assert_eq!(without(&main, &["updatedAt"]), without(&copy, &["updatedAt"]), "{list}");
    }
    server.post("/v2/main/logs/import", &export).refused(400, "IMPORT");
    export
}

/// Uses schemas: versions, a template, a stored query, and their logs in an export and an import.
fn rules(server: &TestServer) {
    server.post("/v2/ruled", "").is(204);
    let schema = r#"{"chart":{"world":{},"users":{"$userID":{".pattern":"^[0-9]{3}$",".self":{},
          ".metadata":{"tier":{"default":"basic"}},"main":{}}}},
        "transactions":{"topup":{"description":"Money in",
          "script":"vars { account $user }\nsend [USD/2 100] (source = @world destination = $user)"}},
        "queries":{"ofUser":{"resource":"transactions","vars":{"user":"string"},
          "body":{"$match":{"account":"users:${user}"}}}}}"#;
    server.post("/v2/ruled/schemas/v1?dryRun=true", schema).is(204);
    server.get("/v2/ruled/schemas/v1").refused(404, "NOT_FOUND");
    server.post("/v2/ruled/schemas/v1", schema).is(204);
    server.post("/v2/ruled/schemas/v1", schema).refused(409, "SCHEMA_ALREADY_EXISTS");
    server.post("/v2/ruled/schemas/v2", r#"{"chart":{"users":{"$":{}}}}"#).refused(400, "VALIDATION");
    let shown = server.get("/v2/ruled/schemas/v1").is(200).json()["data"].clone();
    let written: Value = serde_json::from_str(schema).expect("JSON");
    assert_eq!((&shown["version"], &shown["chart"]), (&json!("v1"), &written["chart"]));
    assert!(shown["createdAt"].is_string());
    assert_eq!(server.get("/v2/ruled/schemas").column("version"), ["v1"]);

    let topup = r#"{"script":{"template":"topup","vars":{"user":"users:001"}}}"#;
    let made = server.post("/v2/ruled/transactions?schemaVersion=v1", topup).is(200).json();
    assert_eq!(made["data"]["postings"][0]["destination"], "users:001");
    server.post("/v2/ruled/transactions", topup).refused(400, "VALIDATION");
    server.post("/v2/ruled/transactions?schemaVersion=v9", topup).refused(404, "NOT_FOUND");
    let unknown = topup.replace("topup", "nosuch");
    server.post("/v2/ruled/transactions?schemaVersion=v1", &unknown).refused(400, "VALIDATION");
    let account = server.get("/v2/ruled/accounts/users:001").is(200).json();
    assert_eq!(account["data"]["metadata"], json!({"tier": "basic"}));

    let run = "/v2/ruled/queries/ofUser/run?schemaVersion=v1";
    let found = server.post(run, r#"{"vars":{"user":"001"}}"#).is(200).json();
    assert_eq!(found["resource"], "transactions");
    assert_eq!(found["cursor"]["data"][0]["id"], 1);
    assert_eq!(server.post(run, r#"{"vars":{"user":"002"}}"#).is(200).json()["cursor"]["data"], json!([]));
    server.post(&run.replace("ofUser", "nosuch"), "{}").refused(400, "VALIDATION");

    let logs = server.get("/v2/ruled/logs").is(200);
    assert_eq!(logs.column("type"), ["NEW_TRANSACTION", "INSERTED_SCHEMA"]);
    assert_eq!(logs.json()["cursor"]["data"][0]["schemaVersion"], "v1");
    let export = server.post("/v2/ruled/logs/export", "").is(200).body;
    server.post("/v2/ruled-too", "").is(204);
    server.post("/v2/ruled-too/logs/import", &export).is(204);
    assert_eq!(server.post("/v2/ruled-too/logs/export", "").is(200).body, export);
    let copied = server.get("/v2/ruled-too/schemas/v1").is(200).json();
    assert_eq!(copied["data"], shown);
}

/// Deletes and restores buckets, and checks what is visible in between.
fn whole_buckets(server: &TestServer) {
    let names = |query: &str| server.get(&format!("/v2{query}")).is(200).column("name");
    let before = names("");
    for ledger in ["far-1", "far-2"] {
        server.post(&format!("/v2/{ledger}"), r#"{"bucket":"far"}"#).is(204);
        let pay = r#"{"postings":[{"source":"world","destination":"users:001","amount":7,"asset":"EUR/2"}]}"#;
        server.post(&format!("/v2/{ledger}/transactions"), pay).is(200);
    }
    server.send("DELETE", "/v2/_/buckets/nosuch", &[], "").is(204);
    server.send("DELETE", "/v2/_/buckets/far", &[], "").is(204);
    assert_eq!(names(""), before);
    assert_eq!(names("?includeDeleted=true"), [&before[..], &["far-1".into(), "far-2".into()]].concat());
    let of_bucket = escape(r#"{"$match":{"bucket":"far"}}"#);
    let deleted = server.get(&format!("/v2?includeDeleted=true&query={of_bucket}")).is(200).json();
    assert!(deleted["cursor"]["data"][0]["deletedAt"].is_string());
    server.get("/v2/far-1/accounts").refused(404, "LEDGER_NOT_FOUND");
    server.post("/v2/far-1/logs/export", "").refused(404, "LEDGER_NOT_FOUND");
    server.post("/v2/far-1", "").refused(400, "LEDGER_ALREADY_EXISTS");
    server.post("/v2/_/buckets/far/restore", "").is(204);
    let account = server.get("/v2/far-2/accounts/users:001?expand=volumes").is(200).json();
    assert_eq!(account["data"]["volumes"]["EUR/2"]["input"], 7);
    assert!(server.get("/v2/far-1").is(200).json()["data"]["deletedAt"].is_null());
}
