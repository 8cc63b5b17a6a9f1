//! Bulks: order, failures, atomicity, the forms of the body.

use serde_json::{Value, json};
use stack_server::Settings;

use crate::client::{Answer, TestServer};

const JSON_STREAM: &str = "application/vnd.formance.ledger.api.v2.bulk+json-stream";
const SCRIPT_STREAM: &str = "application/vnd.formance.ledger.api.v2.bulk+script-stream";

fn create(source: &str, destination: &str, amount: u64) -> Value {
    json!({"action":"CREATE_TRANSACTION","data":{
        "postings":[{"source":source,"destination":destination,"amount":amount,"asset":"USD"}]}})
}

fn bulk(server: &TestServer, query: &str, elements: &Value) -> Answer {
    server.post(&format!("/v2/main/_bulk{query}"), &elements.to_string())
}

/// Returns the result of each element: its error code, or else its response type.
#[track_caller]
fn results(answer: &Answer) -> String {
    let json = answer.json();
    let rows = json["data"].as_array().expect("a list of results");
    let words = rows.iter().map(|row| row["errorCode"].as_str().or(row["responseType"].as_str()));
    words.map(|word| word.expect("a word")).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn transactions(server: &TestServer) -> u64 {
    server.get("/v2/main/stats").is(200).json()["data"]["transactions"].as_u64().expect("a count")
}

#[test]
fn every_action_sees_what_those_before_it_did() {
    let server = TestServer::with_main();
    let answer = bulk(
        &server,
        "",
        &json!([
            create("world", "a", 10),
            create("a", "b", 10),
            {"action":"ADD_METADATA","data":{"targetType":"ACCOUNT","targetId":"a","metadata":{"k":"v"}}},
            {"action":"ADD_METADATA","data":{"targetType":"TRANSACTION","targetId":1,"metadata":{"x":"y"}}},
            {"action":"DELETE_METADATA","data":{"targetType":"TRANSACTION","targetId":1,"key":"x"}},
            {"action":"REVERT_TRANSACTION","data":{"id":2}},
        ]),
    )
    .is(200);
    assert_eq!(
        results(&answer),
        "CREATE_TRANSACTION CREATE_TRANSACTION ADD_METADATA ADD_METADATA DELETE_METADATA REVERT_TRANSACTION"
    );
    let json = answer.json();
    assert_eq!(json["data"][2], json!({"responseType":"ADD_METADATA","logID":3}));
    assert_eq!(json["data"][5]["data"]["metadata"], json!({"com.formance.spec/state/reverts":"2"}));
    assert_eq!(json["data"][5]["logID"], 6);
    assert_eq!(bulk(&server, "", &json!([])).is(200).body, "{\"data\":[]}\n");
}

#[test]
fn a_failure_stops_the_rest_or_not() {
    let elements = json!([
        create("world", "a", 1),
        create("nobody", "a", 1),
        create("a b", "a", 1),
        {"action":"ADD_METADATA","data":{"targetType":"PLANET","targetId":"a","metadata":{}}},
        create("world", "a", 1),
    ]);
    let server = TestServer::with_main();
    let stopped = bulk(&server, "", &elements).is(400);
    assert_eq!(results(&stopped), "CREATE_TRANSACTION INSUFFICIENT_FUND INTERNAL INTERNAL INTERNAL");
    assert_eq!(stopped.json()["data"][4]["errorDescription"], "context canceled");
    assert_eq!(stopped.json()["data"][1]["logID"], 0);
    assert_eq!(transactions(&server), 1);
    let went_on = bulk(&server, "?continueOnFailure=true", &elements).is(400);
    assert_eq!(
        results(&went_on),
        "CREATE_TRANSACTION INSUFFICIENT_FUND VALIDATION INTERNAL CREATE_TRANSACTION"
    );
    assert_eq!(transactions(&server), 3);
}

#[test]
fn an_element_without_command_fails_in_place() {
    let server = TestServer::with_main();
    let elements = json!([create("world", "a", 1), create("a b", "a", 1), create("world", "a", 1)]);
    let answer = bulk(&server, "", &elements).is(400);
    assert_eq!(results(&answer), "CREATE_TRANSACTION VALIDATION INTERNAL");
    assert_eq!(transactions(&server), 1);
    let first = json!([create("a b", "a", 1), create("world", "a", 1)]);
    assert_eq!(results(&bulk(&server, "", &first).is(400)), "VALIDATION INTERNAL");
    assert_eq!(transactions(&server), 1);
}

#[test]
fn an_atomic_bulk_happens_whole_or_not_at_all() {
    let server = TestServer::with_main();
    let elements = json!([create("world", "a", 1), create("a", "b", 1)]);
    bulk(&server, "?atomic=true", &elements).is(200);
    assert_eq!(transactions(&server), 2);
    bulk(&server, "?atomic=true&parallel=true", &elements).refused(412, "VALIDATION");
    bulk(&server, "?parallel=true", &elements).is(200);
}

#[test]
fn stack_2_0_clients_get_known_members_only() {
    let server = TestServer::with_main();
    let elements = json!([create("world", "a", 1), create("nobody", "a", 1), create("world", "a", 1)]);
    let answer = server.post("/api/ledger/v2/main/_bulk", &elements.to_string()).is(400);
    assert_eq!(results(&answer), "CREATE_TRANSACTION INSUFFICIENT_FUND");
    for row in answer.json()["data"].as_array().expect("results") {
        assert_eq!(row["logID"], json!(null));
    }
    let agent =
        [("User-Agent", "speakeasy-sdk/go 3.8.1 2.866.2 v0.0.0 github.com/formancehq/formance-sdk-go/v3")];
    let later = server.send("POST", "/api/ledger/v2/main/_bulk", &agent, &elements.to_string()).is(400);
    assert_eq!(later.json()["data"][1]["logID"], 0);
}

#[test]
fn a_malformed_body_does_nothing() {
    let server = TestServer::with_main();
    let good = create("world", "a", 1);
    for body in [
        String::new(),
        "[".into(),
        "{}".into(),
        "\"x\"".into(),
        "[1]".into(),
        format!("[{good},{{\"action\":\"NOSUCH\",\"data\":{{}}}}]"),
        format!("[{good},{{\"data\":{{}}}}]"),
        format!("[{good},{{\"action\":\"CREATE_TRANSACTION\",\"data\":{{\"postings\":7}}}}]"),
        format!("[{good},{}]", good.to_string().replace("\"amount\":1", "\"amount\":\"1\"")),
    ] {
        server.post("/v2/main/_bulk", &body).refused(400, "VALIDATION");
        server.post("/api/ledger/v2/main/_bulk", &body).refused(400, "VALIDATION");
    }
    assert_eq!(transactions(&server), 0);
}

#[test]
fn a_bulk_has_a_largest_size() {
    let mut settings = Settings::default();
    settings.bulk_max_size = 2;
    let server = TestServer::with(settings);
    server.post("/v2/main", "").is(204);
    let three = json!([create("world", "a", 1), create("world", "a", 1), create("world", "a", 1)]);
    bulk(&server, "", &three).refused(413, "BULK_SIZE_EXCEEDED");
    server.post("/api/ledger/v2/main/_bulk", &three.to_string()).refused(413, "VALIDATION");
    assert_eq!(transactions(&server), 0);
    let stream = three.as_array().expect("three").iter().map(Value::to_string).collect::<String>();
    server.send("POST", "/v2/main/_bulk", &[("Content-Type", JSON_STREAM)], &stream).is(200);
    assert_eq!(transactions(&server), 3);
}

#[test]
fn keys_of_elements_are_answered_once() {
    let server = TestServer::with_main();
    let mut element = create("world", "a", 1);
    element["ik"] = json!("k");
    let first = bulk(&server, "", &json!([element, element])).is(200).json();
    assert_eq!(first["data"][0], first["data"][1]);
    element["data"]["postings"][0]["amount"] = json!(2);
    assert_eq!(results(&bulk(&server, "", &json!([element])).is(400)), "VALIDATION");
    assert_eq!(transactions(&server), 1);
}

#[test]
fn streams_end_at_the_first_malformed_element() {
    let server = TestServer::with_main();
    let stream = format!("{}\n{} {{\"action\":\"NOSUCH\"}}", create("world", "a", 1), create("a", "b", 1));
    let answer = server.send("POST", "/v2/main/_bulk", &[("Content-Type", JSON_STREAM)], &stream).is(400);
    assert_eq!(results(&answer), "CREATE_TRANSACTION CREATE_TRANSACTION");
    assert_eq!(answer.json()["errorCode"], "VALIDATION");
    assert_eq!(transactions(&server), 2);
    let scripts =
        "//script ik=a\nsend [USD 1] (source=@world destination=@a)\n//end\n//script\nsned\n//end\n";
    let answer = server.send("POST", "/v2/main/_bulk", &[("Content-Type", SCRIPT_STREAM)], scripts).is(400);
    assert_eq!(results(&answer), "CREATE_TRANSACTION COMPILATION_FAILED");
    assert_eq!(transactions(&server), 3);
    let typed = |content_type| server.send("POST", "/v2/main/_bulk", &[("Content-Type", content_type)], "[]");
    typed("application/json; charset=utf-8").is(200);
    typed("text/plain").refused(400, "VALIDATION");
    // `curl -d` sends this content type.
    typed("application/x-www-form-urlencoded").is(200);
    server.send("POST", "/api/ledger/v2/main/_bulk", &[("Content-Type", "text/plain")], "[]").is(200);
}

#[test]
fn a_failed_atomic_bulk_does_nothing() {
    let server = TestServer::with_main();
    let refused = json!([create("world", "a", 1), create("b", "a", 1), create("a", "c", 1)]);
    let nonsense = json!([create("world", "a", 1), create("no address", "a", 1), create("a", "c", 1)]);
    for (elements, code) in [(refused, "INSUFFICIENT_FUND"), (nonsense, "VALIDATION")] {
        let answer = bulk(&server, "?atomic=true", &elements).is(400);
        assert_eq!(results(&answer), format!("CREATE_TRANSACTION {code} INTERNAL"));
        let answer = bulk(&server, "?atomic=true&continueOnFailure=true", &elements).is(400);
        assert_eq!(results(&answer), format!("CREATE_TRANSACTION {code} CREATE_TRANSACTION"));
        assert_eq!(answer.json()["data"][2]["data"]["id"], 2);
        assert_eq!(transactions(&server), 0);
    }
    let funded = json!([create("world", "a", 1), create("a", "c", 1)]);
    bulk(&server, "?atomic=true&continueOnFailure=true", &funded).is(200);
    assert_eq!(transactions(&server), 2);
}

#[test]
fn an_atomic_stream_that_breaks_off_does_nothing() {
    let server = TestServer::with_main();
    let elements = format!("{}{}", create("world", "a", 1), create("a", "b", 1));
    let script = "//script\nsend [USD 1] (source=@world destination=@a)\n//end\n";
    for (content_type, stream, shown) in [
        (JSON_STREAM, format!("{elements}{{\"action\":"), "CREATE_TRANSACTION CREATE_TRANSACTION"),
        (JSON_STREAM, format!("{}[]", create("b", "a", 1)), "INSUFFICIENT_FUND"),
        (SCRIPT_STREAM, format!("{script}nonsense\n"), "CREATE_TRANSACTION"),
    ] {
        let typed = [("Content-Type", content_type)];
        let answer = server.send("POST", "/v2/main/_bulk?atomic=true", &typed, &stream).is(400);
        assert_eq!(results(&answer), shown);
        assert_eq!(answer.json()["errorCode"], "VALIDATION");
        assert_eq!(transactions(&server), 0);
    }
    let typed = [("Content-Type", JSON_STREAM)];
    server.send("POST", "/v2/main/_bulk?atomic=true", &typed, &elements).is(200);
    assert_eq!(transactions(&server), 2);
}

#[test]
fn streams_are_known_by_their_names_on_both_mounts() {
    let server = TestServer::with_main();
    let elements = format!("{} {}", create("world", "a", 1), create("a", "b", 1));
    let typed = [("Content-Type", JSON_STREAM)];
    let answer = server.send("POST", "/api/ledger/v2/main/_bulk", &typed, &elements).is(200);
    assert_eq!(results(&answer), "CREATE_TRANSACTION CREATE_TRANSACTION");
    let script = "//script\nsend [USD 1] (source=@world destination=@a)\n//end\n";
    server.send("POST", "/api/ledger/v2/main/_bulk", &[("Content-Type", SCRIPT_STREAM)], script).is(200);
    assert_eq!(transactions(&server), 3);
}

#[test]
fn failed_bulk_shows_volumes_in_effective_order() {
    let server = TestServer::with_main();
    server.post("/v2/other", "").is(204);
    let pay = |destination: &str, amount: u64, date: &str| {
        json!({"action": "CREATE_TRANSACTION", "data": {
            "timestamp": format!("{date}T00:00:00Z"),
            "postings": [{"source":"world","destination":destination,"amount":amount,"asset":"USD"}],
        }})
    };
    let failing = json!({"action": "CREATE_TRANSACTION", "data": {
        "postings": [{"source":"empty","destination":"a","amount":1,"asset":"USD"}],
    }});
    let revert = json!({"action": "REVERT_TRANSACTION", "data": {"id": 2, "atEffectiveDate": true}});
    let later = pay("a", 1_000, "2090-01-01");
    server.post("/v2/main/_bulk", &json!([later]).to_string()).is(200);
    server.post("/v2/other/_bulk", &json!([later]).to_string()).is(200);
    let done = [
        pay("a", 100, "2024-03-01"),
        pay("a", 50, "2024-01-01"),
        pay("b", 7, "2024-02-01"),
        pay("a", 5, "2024-02-01"),
        revert,
        pay("a", 1, "2024-03-01"),
    ];
    let shown = |path: &str, elements: &[Value], status: u16| -> Vec<Value> {
        let answer = server.post(path, &json!(elements).to_string()).is(status).json();
        let elements = answer["data"].as_array().expect("a list").iter();
        let volumes = elements.filter(|element| element["responseType"] != "ERROR").map(|element| {
            let data = &element["data"];
            json!([
                data["postCommitEffectiveVolumes"],
                data["preCommitEffectiveVolumes"],
                data["postCommitVolumes"]
            ])
        });
        volumes.collect()
    };
    let mut elements = done.to_vec();
    elements.insert(3, failing);
    let path = "/v2/main/_bulk?atomic=true&continueOnFailure=true";
    let failed = shown(path, &elements, 400);
    let succeeded = shown("/v2/other/_bulk?atomic=true", &done, 200);
    assert_eq!(failed.len(), done.len());
    assert_eq!(failed, succeeded);
    assert_eq!(failed[1][0]["a"]["USD"]["input"], 50);
    assert_eq!(failed[3][0]["a"]["USD"]["input"], 55);
    assert_eq!(server.get("/v2/main/stats").json()["data"]["transactions"], 1, "nothing was done");
}

/// Returns a JSON stream of `count` transactions. The transaction at `refused` has no funds.
fn long_stream(count: usize, refused: Option<usize>) -> String {
    let elements = (0..count).map(|at| {
        let source = if refused == Some(at) { "empty" } else { "world" };
        create(source, "a", 1).to_string()
    });
    elements.collect()
}

fn send_stream(server: &TestServer, query: &str, stream: &str) -> Answer {
    server.send("POST", &format!("/v2/main/_bulk{query}"), &[("Content-Type", JSON_STREAM)], stream)
}

#[test]
fn long_streams_keep_order_and_failures() {
    let server = TestServer::with_main();
    let answer = send_stream(&server, "", &long_stream(1_600, Some(700))).is(400);
    let expected =
        [vec!["CREATE_TRANSACTION"; 700], vec!["INSUFFICIENT_FUND"], vec!["INTERNAL"; 899]].concat();
    assert_eq!(results(&answer), expected.join(" "));
    assert_eq!(transactions(&server), 700);
    let answer = send_stream(&server, "?continueOnFailure=true", &long_stream(1_600, Some(700))).is(400);
    let expected =
        [vec!["CREATE_TRANSACTION"; 700], vec!["INSUFFICIENT_FUND"], vec!["CREATE_TRANSACTION"; 899]]
            .concat();
    assert_eq!(results(&answer), expected.join(" "));
    assert_eq!(transactions(&server), 700 + 1_599);
}

#[test]
fn other_writes_get_in_between_a_long_stream() {
    let server = TestServer::with_main();
    let stream = long_stream(5_000, None);
    let ids: Vec<u64> = std::thread::scope(|scope| {
        let streaming = scope.spawn(|| {
            let answer = send_stream(&server, "", &stream).is(200).json();
            let rows = answer["data"].as_array().expect("a list of results");
            rows.iter().map(|row| row["data"]["id"].as_u64().expect("an id")).collect()
        });
        while !streaming.is_finished() {
            server.transfer("world", "b", 1, "USD");
        }
        streaming.join().expect("no panic")
    });
    let between = ids.last().expect("an id") - ids[0] + 1 - 5_000;
    assert!(between > 0, "the stream entered as a whole");
}

#[test]
fn refuses_long_atomic_groups() {
    let server = TestServer::with_main();
    let refused = send_stream(&server, "?atomic=true", &long_stream(10_001, None));
    assert_eq!(refused.refused(413, "BULK_SIZE_EXCEEDED"), "bulk size exceeded, max size is 10000");
    let one = json!({"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]});
    let batch = json!({ "transactions": vec![one; 10_001] });
    server.post("/main/transactions/batch", &batch.to_string()).refused(413, "VALIDATION");
    assert_eq!(transactions(&server), 0);
}
