//! The catalogue of invalid input (`docs/api-compatibility.md`): the server refuses it as documented and changes
//! nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::client::TestServer;

/// Starts a server with some data of every kind, which a refused request could damage.
fn server() -> TestServer {
    let server = TestServer::with_main();
    server.post("/v2/other", "").is(204);
    let body = r#"{"postings":[{"source":"world","destination":"users:1","amount":100,"asset":"USD/2"}],"reference":"r"}"#;
    server.send("POST", "/v2/main/transactions", &[("Idempotency-Key", "k")], body).is(200);
    server.transfer("world", "users:2", 7, "EUR");
    server.post("/v2/main/accounts/users:1/metadata", r#"{"k":"v"}"#).is(204);
    server
}

/// Returns all visible state of the ledgers.
fn state(server: &TestServer) -> Vec<String> {
    let lists = [
        "/v2",
        "/v2/main/logs",
        "/v2/main/accounts?expand=volumes",
        "/v2/main/transactions",
        "/v2/other/logs",
    ];
    lists.map(|list| server.get(list).is(200).body).to_vec()
}

/// Sends each of the requests. Fails unless the server refuses it with this response and changes nothing.
#[track_caller]
fn all_refused<'a>(
    server: &TestServer,
    status: u16,
    code: &str,
    requests: impl IntoIterator<Item = (&'a str, String, &'a [u8])>,
) {
    let before = state(server);
    for (method, path, body) in requests {
        let answer = server.send_bytes(method, &path, &[], body);
        let shown = String::from_utf8_lossy(body);
        assert_eq!(answer.status, status, "{method} {path} {shown}: {answer:?}");
        if method != "HEAD" {
            assert_eq!(answer.json()["errorCode"], code, "{method} {path} {shown}: {answer:?}");
        }
        assert_eq!(state(server), before, "{method} {path} {shown} changed something");
    }
}

/// The writes that accept a body, for both profiles.
const WRITES: [(&str, &str); 7] = [
    ("POST", "/v2/main/transactions"),
    ("POST", "/api/ledger/v2/main/transactions"),
    ("POST", "/v2/main/_bulk"),
    ("POST", "/v2/main/accounts/users:1/metadata"),
    ("POST", "/v2/main/transactions/1/metadata"),
    ("PUT", "/v2/main/metadata"),
    ("POST", "/v2/fresh"),
];

const LISTS: [&str; 6] = ["/accounts", "/transactions", "/volumes", "/logs", "/aggregate/balances", ""];

#[test]
fn malformed_json_is_refused() {
    let server = server();
    let bodies: [&[u8]; 9] =
        [b"{", b"}", b"{\"a\":}", b"{a:1}", b"'x'", b"{\"\\ud800\":1}", b"{\"\xff\":1}", b"\x00", b"nul"];
    for (method, path) in WRITES {
        let requests = bodies.iter().map(|body| (method, path.to_owned(), *body));
        all_refused(&server, 400, "VALIDATION", requests);
    }
    for list in LISTS {
        let path = if list.is_empty() { "/v2".to_owned() } else { format!("/v2/main{list}") };
        let requests = bodies.iter().map(|body| ("GET", path.clone(), *body));
        all_refused(&server, 400, "VALIDATION", requests);
    }
}

#[test]
fn values_of_the_wrong_type_are_refused() {
    let server = server();
    for (method, path) in WRITES {
        let bodies: [&[u8]; 4] = [b"7", b"true", b"\"x\"", b"[7]"];
        let requests = bodies.iter().map(|body| (method, path.to_owned(), *body));
        all_refused(&server, 400, "VALIDATION", requests);
    }
    let posting = |field: &str, value: &str| {
        let all = [("source", "\"world\""), ("destination", "\"a\""), ("amount", "1"), ("asset", "\"USD\"")];
        let members =
            all.map(|(name, usual)| format!("\"{name}\":{}", if name == field { value } else { usual }));
        format!("{{\"postings\":[{{{}}}]}}", members.join(","))
    };
    let mut bodies = Vec::new();
    for field in ["source", "destination", "amount", "asset"] {
        for value in ["true", "{}", "[]", "[1]"] {
            bodies.push(posting(field, value));
        }
    }
    for value in ["7", "[]", "{}", "true"] {
        bodies.push(posting("source", value));
        bodies.push(
            posting("none", "").replace("{\"postings\"", &format!("{{\"reference\":{value},\"postings\"")),
        );
    }
    for (member, value) in [
        ("metadata", "[]"),
        ("metadata", "{\"k\":7}"),
        ("metadata", "{\"k\":{}}"),
        ("accountMetadata", "{\"a\":7}"),
        ("accountMetadata", "{\"a\":{\"k\":false}}"),
        ("timestamp", "7"),
        ("timestamp", "{}"),
        ("force", "\"yes\""),
        ("script", "[]"),
        ("postings", "{}"),
        ("postings", "[7]"),
    ] {
        bodies.push(posting("none", "").replace("}]}", &format!("}}],\"{member}\":{value}}}")));
    }
    let requests = bodies.iter().map(|body| ("POST", "/v2/main/transactions".to_owned(), body.as_bytes()));
    all_refused(&server, 400, "VALIDATION", requests);
}

#[test]
fn amounts_are_whole_numbers_of_any_size() {
    let server = server();
    let body = |amount: &str| {
        format!(r#"{{"postings":[{{"source":"world","destination":"a","amount":{amount},"asset":"USD"}}]}}"#)
    };
    let long = "9".repeat(1_001);
    let bodies =
        ["1.0", "1.5", "1e2", "1E2", "\"1\"", "-1", "-0.0", "null", "01", "+1", "0x1", &long].map(body);
    let requests = bodies.iter().map(|body| ("POST", "/v2/main/transactions".to_owned(), body.as_bytes()));
    all_refused(&server, 400, "VALIDATION", requests);
    let large = format!("{}1", "9".repeat(86));
    let answer = server.post("/v2/main/transactions", &body(&large)).is(200);
    assert!(answer.body.contains(&format!("\"amount\":{large}")), "{answer:?}");
    let account = server.get("/v2/main/accounts/a?expand=volumes").is(200);
    assert!(
        account.body.contains(&format!("\"input\":{large},\"output\":0,\"balance\":{large}")),
        "{account:?}"
    );
    server.post("/v2/main/transactions", &body("0")).is(200);
}

#[test]
fn ids_that_are_none_are_refused() {
    let server = server();
    let mut requests: Vec<(&str, String, &[u8])> = Vec::new();
    for id in [
        "abc",
        "1.0",
        "1e3",
        "%2B1",
        "0x1",
        "18446744073709551616",
        &"9".repeat(87),
        "1%20",
        "%00",
        "-",
        "--1",
    ] {
        requests.push(("GET", format!("/v2/main/transactions/{id}"), b""));
        requests.push(("POST", format!("/v2/main/transactions/{id}/revert"), b""));
        requests.push(("POST", format!("/v2/main/transactions/{id}/metadata"), b"{}"));
        requests.push(("DELETE", format!("/v2/main/transactions/{id}/metadata/k"), b""));
    }
    all_refused(&server, 400, "VALIDATION", requests);
    let absent: [(&str, String, &[u8]); 4] = [
        ("GET", "/v2/main/transactions/99".into(), b""),
        ("GET", "/v2/main/transactions/-1".into(), b""),
        ("POST", "/v2/main/transactions/99/revert".into(), b""),
        ("POST", "/v2/main/transactions/18446744073709551615/metadata".into(), b"{}"),
    ];
    all_refused(&server, 404, "NOT_FOUND", absent);
}

#[test]
fn refuses_duplicates_without_a_change() {
    let server = server();
    let before = state(&server);
    let posting = r#"{"source":"world","destination":"b","amount":1,"asset":"USD"}"#;
    let again = format!(r#"{{"postings":[{posting}],"reference":"r"}}"#);
    server.post("/v2/main/transactions", &again).refused(409, "CONFLICT");
    server.post("/api/ledger/v2/main/transactions", &again).refused(400, "CONFLICT");
    let other = format!(r#"{{"postings":[{posting}]}}"#);
    let key = [("Idempotency-Key", "k")];
    server.send("POST", "/v2/main/transactions", &key, &other).refused(400, "VALIDATION");
    server.send("POST", "/v2/main/accounts/a/metadata", &key, "{}").refused(400, "VALIDATION");
    let long = "k".repeat(256);
    server
        .send("POST", "/v2/main/transactions", &[("Idempotency-Key", &long)], &other)
        .refused(400, "VALIDATION");
    server.post("/v2/main", "").refused(400, "LEDGER_ALREADY_EXISTS");
    server.post("/api/ledger/v2/main", "").refused(400, "VALIDATION");
    assert_eq!(state(&server), before);
}

#[test]
fn unknown_members_are_ignored_the_last_counts() {
    let server = server();
    let body = r#"{"nosuch":{"a":[1]},"Postings":[{"source":"x y","destination":"b","amount":1,"asset":"USD"}],
        "postings":[{"source":"world","destination":"b","amount":1,"AMOUNT":2,"asset":"USD","color":"red"}]} trailing"#;
    let made = server.post("/v2/main/transactions", body).is(200).json();
    assert_eq!(made["data"]["postings"][0]["amount"], 2);
    server.get("/v2/main/accounts?nosuch=1&dryRun=maybe").is(200);
    for filter in [
        r#"{"$match":{"address":"world","address":"b"}}"#,
        r#"{"$match":{"address":"world"},"$match":{"address":"b"}}"#,
    ] {
        let found = server.send("GET", "/v2/main/accounts", &[], filter).is(200);
        assert_eq!(found.column("address"), ["b"], "{filter}");
    }
}

#[test]
fn bad_dates_are_refused() {
    let server = server();
    let dates = [
        "yesterday",
        "2024-05-01",
        "2024-05-01T10:00:00",
        "2024-13-01T10:00:00Z",
        "2024-02-30T10:00:00Z",
        "2024-05-01T25:00:00Z",
        "2024-05-01T10:00:00.Z",
        "10000-01-01T00:00:00Z",
        "2024-05-01T10:00:00%2B25:00",
        "-1-01-01T00:00:00Z",
        "1714557600",
    ];
    let mut requests: Vec<(&str, String, &[u8])> = Vec::new();
    for date in dates {
        for (list, name) in [
            ("accounts", "pit"),
            ("accounts", "oot"),
            ("accounts/users:1", "pit"),
            ("transactions", "pit"),
            ("transactions/1", "pit"),
            ("aggregate/balances", "pit"),
            ("volumes", "startTime"),
            ("volumes", "endTime"),
        ] {
            requests.push(("GET", format!("/v2/main/{list}?{name}={date}"), b""));
        }
        requests.push(("HEAD", format!("/v2/main/accounts?pit={date}"), b""));
    }
    all_refused(&server, 400, "VALIDATION", requests);
    let bodies = dates.map(|date| {
        let date = date.replace("%2B", "+");
        format!(
            r#"{{"postings":[{{"source":"world","destination":"a","amount":1,"asset":"USD"}}],"timestamp":"{date}"}}"#
        )
    });
    let requests = bodies.iter().map(|body| ("POST", "/v2/main/transactions".to_owned(), body.as_bytes()));
    all_refused(&server, 400, "VALIDATION", requests);
}

#[test]
fn a_cursor_with_any_bit_flipped_is_refused() {
    let server = server();
    let page = server.get("/v2/main/accounts?pageSize=1").is(200).json();
    let cursor = page["cursor"]["next"].as_str().expect("a next page").to_owned();
    let bytes = URL_SAFE_NO_PAD.decode(&cursor).expect("base64");
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let flipped = URL_SAFE_NO_PAD.encode(flipped);
        server.get(&format!("/v2/main/accounts?cursor={flipped}")).refused(400, "VALIDATION");
    }
    for length in 0..cursor.len() {
        let path = format!("/v2/main/accounts?cursor={}", &cursor[..length]);
        // Without a cursor, the response is the first page.
        if length > 0 {
            server.get(&path).refused(400, "VALIDATION");
        }
    }
    for elsewhere in ["/v2/other/accounts", "/v2/main/transactions", "/v2/main/volumes", "/v2"] {
        server.get(&format!("{elsewhere}?cursor={cursor}")).refused(400, "VALIDATION");
    }
}

#[test]
fn malformed_names_and_addresses_are_refused() {
    let server = server();
    let ledgers = ["a%20b", "a.b", "a%2Fb", "%C3%A9", "a%00", "a:b", &"a".repeat(64)];
    let requests = ledgers.iter().map(|name| ("POST", format!("/v2/{name}"), &b""[..]));
    all_refused(&server, 400, "VALIDATION", requests);
    let requests = ledgers.iter().map(|name| ("GET", format!("/v2/{name}/stats"), &b""[..]));
    all_refused(&server, 404, "LEDGER_NOT_FOUND", requests);
    let buckets = ["{\"bucket\":\"a b\"}", "{\"bucket\":\"a.b\"}", "{\"bucket\":\"\u{e9}\"}"];
    let requests = buckets.iter().map(|body| ("POST", "/v2/fresh".to_owned(), body.as_bytes()));
    all_refused(&server, 400, "VALIDATION", requests);
    let long = "a".repeat(1_025);
    let addresses = ["a b", ":a", "a:", "a::b", "a/b", "\u{e9}", "a.b", "@a", "a\\u0000", &long];
    let mut bodies: Vec<String> = Vec::new();
    for address in addresses {
        bodies.push(format!(
            r#"{{"postings":[{{"source":"{address}","destination":"b","amount":0,"asset":"USD"}}]}}"#
        ));
        bodies.push(format!(
            r#"{{"postings":[{{"source":"world","destination":"{address}","amount":0,"asset":"USD"}}]}}"#
        ));
        bodies.push(format!(
            r#"{{"postings":[{{"source":"world","destination":"b","amount":0,"asset":"USD"}}],
                "accountMetadata":{{"{address}":{{}}}}}}"#
        ));
    }
    for asset in
        ["", "usd", "US D", "USD/", "USD/1234567", "USD/-1", "1USD", "USDUSDUSDUSDUSDUSD", "\u{20ac}"]
    {
        bodies.push(format!(
            r#"{{"postings":[{{"source":"world","destination":"b","amount":0,"asset":"{asset}"}}]}}"#
        ));
    }
    let requests = bodies.iter().map(|body| ("POST", "/v2/main/transactions".to_owned(), body.as_bytes()));
    all_refused(&server, 400, "VALIDATION", requests);
    let paths = ["a%20b", ":a", "a::b", "a%2Fb", "%C3%A9", &long];
    let requests =
        paths.iter().map(|address| ("POST", format!("/v2/main/accounts/{address}/metadata"), &b"{}"[..]));
    all_refused(&server, 400, "VALIDATION", requests);
    let requests = paths.iter().map(|address| ("GET", format!("/v2/main/accounts/{address}"), &b""[..]));
    all_refused(&server, 404, "NOT_FOUND", requests);
}

#[test]
fn bad_escapes_in_a_path_are_refused() {
    let server = server();
    let paths = ["/v2/%", "/v2/main/accounts/%zz", "/v2/main/accounts/%4", "/v2/main/accounts/%ff/metadata"];
    let requests = paths
        .iter()
        .flat_map(|path| ["GET", "POST", "DELETE"].map(|method| (method, (*path).to_owned(), &b""[..])));
    all_refused(&server, 400, "VALIDATION", requests);
}

#[test]
fn bad_filters_and_parameters_are_refused() {
    let server = server();
    let filters = [
        r#"{"$match":{"nosuch":"a"}}"#,
        r#"{"$nosuch":{"address":"a"}}"#,
        r#"{"$match":{"address":"a","metadata[k]":"b"}}"#,
        r#"{"$match":{"address":7}}"#,
        r#"{"$lt":{"address":"a"}}"#,
        r#"{"$exists":{"balance":true}}"#,
        r#"{"$exists":{"balance":"USD"}}"#,
        r#"{"$exists":{"balance[USD]":true}}"#,
        r#"{"$match":{"balance[USD]":1.5}}"#,
        r#"{"$match":{"balance[USD]":"1"}}"#,
        r#"{"$and":{"$match":{"address":"a"}}}"#,
        r#"{"$and":null}"#,
        r#"{"$or":[null]}"#,
        r#"{"$match":null}"#,
        r#"{"$not":[]}"#,
        r#"{"$not":null}"#,
        "[]",
        "7",
        "\"x\"",
    ];
    let requests = filters.iter().map(|filter| ("GET", "/v2/main/accounts".to_owned(), filter.as_bytes()));
    all_refused(&server, 400, "VALIDATION", requests);
    let requests = filters.iter().map(|filter| ("HEAD", "/v2/main/accounts".to_owned(), filter.as_bytes()));
    all_refused(&server, 400, "VALIDATION", requests);
    let parameters = [
        "accounts?pageSize=-1",
        "accounts?pageSize=x",
        "accounts?pageSize=4294967296",
        "accounts?sort=nosuch:asc",
        "accounts?sort=address:sideways",
        "accounts?sort=address:",
        "transactions?sort=id:",
        "logs?sort=id%3A",
        "volumes?groupBy=x",
        "volumes?groupBy=1.5",
        "accounts?query=%7B",
        "accounts?cursor=x",
    ];
    let requests = parameters.iter().map(|tail| ("GET", format!("/v2/main/{tail}"), &b""[..]));
    all_refused(&server, 400, "VALIDATION", requests);
}

#[test]
fn a_bulk_that_cannot_be_read_is_refused_as_a_whole() {
    let server = server();
    let good = r#"{"action":"ADD_METADATA","data":{"targetType":"ACCOUNT","targetId":"a","metadata":{}}}"#;
    let bodies = [
        "{}".to_owned(),
        format!("[{good},7]"),
        format!("[{good},{{\"action\":\"NOSUCH\",\"data\":{{}}}}]"),
        format!("[{good},{{\"data\":{{}}}}]"),
        format!("[{good},{{\"action\":\"ADD_METADATA\",\"data\":{{\"metadata\":7}}}}]"),
        format!("[{good},{{\"action\":\"CREATE_TRANSACTION\"}}]"),
        format!("[{good},{{\"action\":\"REVERT_TRANSACTION\"}}]"),
        format!("[{good},{{\"action\":\"REVERT_TRANSACTION\",\"data\":{{\"id\":\"x\"}}}}]"),
        format!("[{good},"),
    ];
    let requests = bodies.iter().map(|body| ("POST", "/v2/main/_bulk".to_owned(), body.as_bytes()));
    all_refused(&server, 400, "VALIDATION", requests);
    let atomic = "/v2/main/_bulk?atomic=true&parallel=true".to_owned();
    all_refused(&server, 412, "VALIDATION", [("POST", atomic, &b"[]"[..])]);
    let many = format!("[{}]", vec![good; 101].join(","));
    let path = || "/v2/main/_bulk".to_owned();
    all_refused(&server, 413, "BULK_SIZE_EXCEEDED", [("POST", path(), many.as_bytes())]);
    let before = state(&server);
    let failing = format!("[{good},{}]", good.replace("\"a\"", "\"a b\""));
    server.post("/v2/main/_bulk?atomic=true", &failing).is(400);
    assert_eq!(state(&server), before);
}

#[test]
fn a_script_that_cannot_run_is_refused() {
    let server = server();
    let scripts = [
        ("COMPILATION_FAILED", r#"{"plain":"send"}"#),
        (
            "COMPILATION_FAILED",
            r#"{"plain":"vars { account $a } send [USD 1] (source=@world destination=$a)"}"#,
        ),
        ("COMPILATION_FAILED", r#"{"plain":"send [USD 1] (source=@world destination=@a)","vars":{"b":"c"}}"#),
        ("COMPILATION_FAILED", r#"{"plain":"fail"}"#),
        ("INSUFFICIENT_FUND", r#"{"plain":"send [USD 1] (source=@poor destination=@a)"}"#),
        ("NO_POSTINGS", r#"{"plain":""}"#),
    ];
    for (code, script) in scripts {
        let body = format!(r#"{{"script":{script}}}"#);
        all_refused(&server, 400, code, [("POST", "/v2/main/transactions".to_owned(), body.as_bytes())]);
    }
    let both = r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}],"script":{"plain":"x"}}"#;
    all_refused(&server, 400, "VALIDATION", [("POST", "/v2/main/transactions".to_owned(), both.as_bytes())]);
}

#[test]
fn unreadable_and_misplaced_imports_are_refused() {
    let server = server();
    for path in ["/v2/main/logs/import", "/v2/other/logs/import"] {
        let bodies: [&[u8]; 5] =
            [b"{", b"7", b"{\"id\":1}", b"\xff", b"{\"id\":1,\"type\":\"NOSUCH\",\"data\":{}}"];
        let requests = bodies.iter().map(|body| ("POST", path.to_owned(), *body));
        all_refused(&server, 400, "IMPORT", requests);
    }
    let export = server.post("/v2/main/logs/export", "").is(200).body;
    all_refused(&server, 400, "IMPORT", [("POST", "/v2/main/logs/import".to_owned(), export.as_bytes())]);
    let forged = export.replacen("\"amount\":100", "\"amount\":101", 1);
    all_refused(&server, 400, "IMPORT", [("POST", "/v2/other/logs/import".to_owned(), forged.as_bytes())]);
}

#[test]
fn an_error_names_the_field_that_cannot_be_read() {
    let server = TestServer::with_main();
    for (body, start) in [
        (
            r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"},{"amount":1.5}]}"#,
            "invalid transaction format: postings[1].amount: expected a whole number at line 1 column ",
        ),
        (r#"{"Postings":3}"#, "invalid transaction format: Postings: invalid type: integer `3`"),
        (r#"{"script":{"plain":[]}}"#, "invalid transaction format: script.plain: invalid type: sequence"),
        ("[]", "invalid transaction format: invalid type: sequence"),
        ("{", "invalid transaction format: EOF while parsing an object at line 1 column 1"),
    ] {
        let message = server.post("/v2/main/transactions", body).refused(400, "VALIDATION");
        assert!(message.starts_with(start), "{body}: {message}");
    }
}
