//! Lists of v1: pages, cursors and filters.

use serde_json::Value;

use crate::client::{TestServer, escape};

fn server() -> TestServer {
    let server = TestServer::start();
    for (at, to) in ["shops:1", "shops:2", "shops:1:till", "users-7", "zoo"].into_iter().enumerate() {
        let body = format!(
            r#"{{"postings":[{{"source":"world","destination":"{to}","amount":{},"asset":"CHF"}}],
                "metadata":{{"at":{at},"o":{{"in":"{to}"}}}},"timestamp":"2030-02-0{}T00:00:00Z"}}"#,
            10 * (at + 1),
            at + 1
        );
        server.post("/old/transactions", &body).is(200);
    }
    server
        .post("/old/accounts/empty/metadata", r#"{"n":null,"o":{"in":{"deep":true}},"a.b":"dotted"}"#)
        .is(204);
    server
}

/// Returns the keys that identify the rows of a page.
fn keys(page: &Value) -> Vec<String> {
    let rows = page["cursor"]["data"].as_array().expect("a list").iter();
    let key = |row: &Value| {
        let named = ["address", "txid", "id"].iter().find_map(|name| row.get(*name).map(ToString::to_string));
        named
            .unwrap_or_else(|| row.as_object().and_then(|row| row.keys().next().cloned()).unwrap_or_default())
    };
    rows.map(key).map(|key| key.trim_matches('"').to_owned()).collect()
}

const LISTS: [&str; 5] =
    ["/old/accounts", "/old/balances", "/old/transactions", "/old/logs", "/old/accounts?balance=0"];

#[test]
fn pages_of_any_size_make_up_the_same_list() {
    let server = server();
    for list in LISTS {
        let (path, query) = list.split_once('?').unwrap_or((list, ""));
        let whole = keys(&server.get(&format!("{path}?{query}")).is(200).json());
        assert!(whole.len() > 4, "{whole:?}");
        let mut descending = whole.clone();
        descending.sort_by(|one, other| other.cmp(one));
        assert_eq!(whole, descending, "{list}");
        for size in 1..=whole.len() {
            let mut pages = vec![server.get(&format!("{path}?{query}&pageSize={size}")).is(200).json()];
            // A refused write between two pages changes no list.
            server.post("/old/accounts/~/metadata", "{}").is(400);
            while let Some(next) = pages[pages.len() - 1]["cursor"]["next"].as_str() {
                pages.push(server.get(&format!("{path}?cursor={next}")).is(200).json());
                assert!(pages.len() <= whole.len(), "{list} by {size} does not end");
            }
            assert_eq!(pages.iter().flat_map(keys).collect::<Vec<_>>(), whole, "{list} by {size}");
            for (at, page) in pages.iter().enumerate() {
                let cursor = &page["cursor"];
                assert_eq!(cursor["hasMore"], at + 1 < pages.len(), "{list} by {size}, page {at}");
                assert_eq!(cursor["has_more"], cursor["hasMore"]);
                assert_eq!(cursor["pageSize"], size);
                assert_eq!(cursor["page_size"], size);
                let Some(previous) = cursor["previous"].as_str() else {
                    assert_eq!(at, 0, "{list} by {size}: only the first page has none before it");
                    continue;
                };
                // The page size is ignored if there is a cursor.
                let back =
                    server.get(&format!("{path}?pagination_token={previous}&pageSize=15")).is(200).json();
                assert_eq!(keys(&back), keys(&pages[at - 1]), "{list} by {size}, page {at}");
            }
        }
    }
}

/// Returns the rows of all pages from `page` on, following the cursor with the name `link`. Also returns the last
/// page.
fn follow(server: &TestServer, path: &str, mut page: Value, link: &str) -> (Vec<Vec<String>>, Value) {
    let mut pages = vec![keys(&page)];
    while let Some(cursor) = page["cursor"][link].as_str() {
        page = server.get(&format!("{path}?cursor={cursor}")).is(200).json();
        pages.push(keys(&page));
    }
    (pages, page)
}

/// Checks that rows are in the order of the list and without repetitions. Ids must also have no gaps down to the
/// first.
#[track_caller]
fn check_order(path: &str, rows: &[String]) {
    let has_ids = path.ends_with("transactions") || path.ends_with("logs");
    if has_ids {
        let ids: Vec<usize> = rows.iter().map(|id| id.parse().expect("an id")).collect();
        assert!(ids.iter().copied().eq((0..ids.len()).rev()), "{path}: {ids:?}");
    } else {
        assert!(rows.is_sorted_by(|one, other| one > other), "{path}: {rows:?}");
    }
}

#[test]
fn pages_stay_consistent_while_writers_append() {
    const WRITES: u64 = 200;
    let server = server();
    let write = |writer: u64| {
        for n in 0..WRITES {
            // New accounts appear everywhere in the list, before and after the position of the reader.
            let account = (writer * WRITES + n).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let posting =
                format!(r#"{{"source":"world","destination":"w{account:06x}","amount":1,"asset":"CHF"}}"#);
            server.post("/old/transactions", &format!(r#"{{"postings":[{posting}]}}"#)).is(200);
            if n % 8 == 0 {
                server.post(&format!("/old/accounts/m{account:06x}/metadata"), "{}").is(204);
            }
        }
    };
    std::thread::scope(|scope| {
        let writers = [scope.spawn(|| write(0)), scope.spawn(|| write(1))];
        let mut size = 1;
        loop {
            let is_last = writers.iter().all(std::thread::ScopedJoinHandle::is_finished);
            for path in ["/old/transactions", "/old/accounts", "/old/logs", "/old/balances"] {
                size = size % 43 + 6;
                let before = keys(&server.get(&format!("{path}?pageSize=1000")).is(200).json());
                let first = server.get(&format!("{path}?pageSize={size}")).is(200).json();
                let (pages, last) = follow(&server, path, first, "next");
                let forwards = pages.concat();
                check_order(path, &forwards);
                assert!(before.iter().all(|row| forwards.contains(row)), "{path} by {size}");
                assert!(pages.iter().rev().skip(1).all(|page| page.len() == size), "{path} by {size}");

                let (pages, _) = follow(&server, path, last, "previous");
                let backwards: Vec<String> = pages.into_iter().rev().flatten().collect();
                check_order(path, &backwards);
                assert!(forwards.iter().all(|row| backwards.contains(row)), "{path} by {size}, backwards");
                if is_last {
                    assert_eq!(forwards, backwards, "{path} by {size}: nobody writes any more");
                }
            }
            if is_last {
                break;
            }
        }
    });
    let stats = server.get("/old/stats").json();
    assert_eq!(stats["data"]["transactions"], 5 + 2 * WRITES);
}

#[test]
fn refuses_foreign_and_forged_cursors() {
    let server = server();
    server.post("/other/accounts/a/metadata", "{}").is(204);
    let first = server.get("/old/accounts?pageSize=1").is(200).json();
    let cursor = first["cursor"]["next"].as_str().expect("a next page").to_owned();
    server.get(&format!("/api/ledger/old/accounts?cursor={cursor}")).is(200);
    for path in ["/old/balances", "/old/logs", "/old/transactions", "/other/accounts", "/v2/old/accounts"] {
        server.get(&format!("{path}?cursor={cursor}")).refused(400, "VALIDATION");
    }
    for at in [3, 20, cursor.len() - 1] {
        let mut tampered = cursor.clone().into_bytes();
        tampered[at] = if tampered[at] == b'A' { b'B' } else { b'A' };
        let tampered = String::from_utf8(tampered).expect("ASCII");
        server.get(&format!("/old/accounts?cursor={tampered}")).refused(400, "VALIDATION");
    }
    for conflict in ["address=a", "after=a", "metadata[k]=v", "balance=1", "balance_operator=gt"] {
        server.get(&format!("/old/accounts?cursor={cursor}&{conflict}")).refused(400, "VALIDATION");
    }
    // Empty and unknown parameters are ignored.
    server.get(&format!("/old/accounts?cursor={cursor}&address=&metadata[k]=&colour=red")).is(200);
    server.get("/old/accounts?cursor=e30").is(200);
}

#[test]
fn page_sizes_are_clamped() {
    let server = server();
    for (query, size) in [
        ("", 15),
        ("pageSize=0", 15),
        ("pageSize=1000", 1_000),
        ("pageSize=1001", 1_000),
        ("page_size=3", 3),
        ("pageSize=2&page_size=x", 2),
    ] {
        for path in ["accounts", "balances", "transactions", "logs"] {
            let page = server.get(&format!("/old/{path}?{query}")).is(200).json();
            assert_eq!(page["cursor"]["pageSize"], size, "{path}?{query}");
        }
    }
}

#[track_caller]
fn check(server: &TestServer, path: &str, query: &[(&str, &str)], expected: &[&str]) {
    // As on servers of 1.10, counts ignore `after` and filters by balance, so they would not match the list.
    let is_counted = |name: &str| name != "after" && !name.starts_with("balance");
    let counts = query.iter().all(|(name, _)| is_counted(name));
    let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
    let query = query.join("&");
    let page = server.get(&format!("/old/{path}?{query}")).is(200).json();
    assert_eq!(keys(&page), expected, "{path}?{query}");
    if counts && matches!(path, "accounts" | "transactions") {
        let counted = server.send("HEAD", &format!("/old/{path}?{query}"), &[], "").is(200);
        assert_eq!(counted.header("count"), Some(expected.len().to_string().as_str()), "{path}?{query}");
    }
}

#[test]
fn filters_select_the_same_rows_for_lists_and_counts() {
    let server = server();
    let (till, both, one) = ("shops:1:till", ["shops:2", "shops:1"], ["shops:1"]);
    check(&server, "accounts", &[("address", "shops:*")], &both);
    check(&server, "accounts", &[("address", "shops:[0-9]")], &both);
    check(&server, "accounts", &[("address", "shops:.*")], &["shops:2", till, "shops:1"]);
    check(&server, "accounts", &[("address", "users-7")], &["users-7"]);
    check(&server, "accounts", &[("address", "SHOPS:1")], &[]);
    check(&server, "accounts", &[("after", "shops:2")], &[till, "shops:1", "empty"]);
    check(&server, "accounts", &[("after", "!")], &[]);
    check(&server, "accounts", &[("metadata[n]", "null")], &[]);
    check(&server, "accounts", &[("metadata[o.in.deep]", "true")], &["empty"]);
    check(&server, "accounts", &[("metadata[a.b]", "dotted")], &["empty"]);
    check(&server, "accounts", &[("balance", "10"), ("balanceOperator", "e")], &one);
    check(&server, "accounts", &[("balance", "10"), ("balanceOperator", "lte")], &["world", "shops:1"]);
    check(&server, "accounts", &[("balance", "40"), ("balanceOperator", "ne"), ("address", "z.*")], &["zoo"]);
    check(&server, "balances", &[("address", "shops:1,zoo,no such")], &["zoo", "shops:1"]);
    check(&server, "balances", &[("address", "zoo"), ("address", "empty")], &["zoo"]);
    check(&server, "transactions", &[("account", "shops:.*")], &["2", "1", "0"]);
    check(&server, "transactions", &[("source", "shops:.*")], &[]);
    check(&server, "transactions", &[("destination", "shops:")], &["1", "0"]);
    check(&server, "transactions", &[("account", "world"), ("destination", "zoo")], &["4"]);
    check(&server, "transactions", &[("metadata[at]", "3")], &["3"]);
    check(&server, "transactions", &[("metadata[o.in]", "zoo")], &["4"]);
    check(&server, "transactions", &[("metadata[o]", "{\"in\":\"zoo\"}")], &[]);
    check(&server, "transactions", &[("after", "2")], &["1", "0"]);
    check(&server, "transactions", &[("after", "0")], &[]);
    let (from, to) = ("2030-02-02T00:00:00Z", "2030-02-04T00:00:00Z");
    check(&server, "transactions", &[("startTime", from), ("endTime", to)], &["2", "1"]);
    check(&server, "transactions", &[("startTime", to), ("start_time", from)], &["4", "3"]);
    // A log has the date of its transaction.
    check(&server, "logs", &[("start_time", from), ("end_time", to)], &["2", "1"]);
}

#[test]
fn counts_ignore_positions_and_balances() {
    let server = server();
    for (query, count) in [
        ("accounts?after=shops:2", "7"),
        ("accounts?balance=x", "7"),
        ("accounts?balance=10&balanceOperator=e&address=shops:.*", "3"),
        ("transactions?after=2", "5"),
        ("transactions?after=x&destination=zoo", "1"),
    ] {
        let counted = server.send("HEAD", &format!("/old/{query}"), &[], "").is(200);
        assert_eq!(counted.header("count"), Some(count), "{query}");
    }
}

#[test]
fn page_size_beside_a_cursor_is_ignored() {
    let server = server();
    for list in ["accounts", "balances", "transactions", "logs"] {
        let page = server.get(&format!("/old/{list}?pageSize=1")).is(200).json();
        let next = page["cursor"]["next"].as_str().expect("there is more");
        for size in ["pageSize=3", "pageSize=x", "page_size=-1"] {
            let page = server.get(&format!("/old/{list}?cursor={next}&{size}")).is(200).json();
            assert_eq!(page["cursor"]["pageSize"], 1, "{list} {size}");
        }
    }
}

#[test]
fn metadata_may_be_asked_for_an_empty_text() {
    let server = server();
    check(&server, "accounts", &[("metadata[nosuch]", "")], &[]);
    server.post("/old/accounts/blank/metadata", r#"{"nosuch":""}"#).is(204);
    check(&server, "accounts", &[("metadata[nosuch]", "")], &["blank"]);
}

#[test]
fn account_and_source_match_the_same_posting() {
    let server = server();
    let posting = |from: &str, to: &str| {
        format!(r#"{{"source":"{from}","destination":"{to}","amount":1,"asset":"CHF"}}"#)
    };
    for pairs in [[("zoo", "x"), ("users-7", "y")], [("zoo", "y"), ("users-7", "x")]] {
        let postings: Vec<String> = pairs.iter().map(|(from, to)| posting(from, to)).collect();
        let body = format!(r#"{{"postings":[{}]}}"#, postings.join(","));
        server.post("/old/transactions", &body).is(200);
    }
    check(&server, "transactions", &[("source", "zoo"), ("account", "y")], &["6"]);
    check(&server, "transactions", &[("destination", "x"), ("account", "zoo")], &["5"]);
    // Source and destination may belong to different postings.
    check(&server, "transactions", &[("source", "zoo"), ("destination", "x")], &["6", "5"]);
    check(&server, "transactions", &[("source", "users.*"), ("account", "[xy]")], &["6", "5"]);
}

#[test]
fn answers_clients_of_2_4_on_the_stand_alone_mount() {
    let mut settings = stack_server::Settings::default();
    settings.compat = stack_server::Compat::V2_4;
    let by_setting = TestServer::with(settings);
    let by_agent = TestServer::start();
    let agent =
        [("User-Agent", "speakeasy-sdk/go 0.10.20 2.384.1 v2 github.com/formancehq/ledger/pkg/client")];
    for (server, headers) in [(&by_setting, &[][..]), (&by_agent, &agent[..])] {
        let send = |method: &str, path: &str, body: &str| server.send(method, path, headers, body);
        for account in ["b", "a", "c"] {
            let body = format!(
                r#"{{"postings":[{{"source":"world","destination":"{account}","amount":1,"asset":"USD"}}]}}"#
            );
            send("POST", "/main/transactions", &body).is(200);
        }
        for counted in ["accounts", "transactions"] {
            send("HEAD", &format!("/main/{counted}"), "").is(204);
        }
        let first = send("GET", "/main/accounts?pageSize=1", "").is(200);
        assert_eq!(first.column("address"), ["a"]);
        let next = first.json()["cursor"]["next"].as_str().expect("a cursor").to_owned();
        let rest =
            send("GET", &format!("/main/accounts?cursor={next}&pageSize=2&address=nobody"), "").is(200);
        assert_eq!(rest.column("address"), ["b", "c"]);
        assert_eq!(rest.json()["cursor"]["pageSize"], 2);
        let balances = send("GET", "/main/balances", "").is(200).json();
        assert_eq!(balances["cursor"]["data"][0], serde_json::json!({"a": {"USD": 1}}));
        send("POST", "/main/transactions/1/revert", "").is(201);
        send("POST", "/main/accounts/a/metadata", r#"{"k":"v"}"#).is(204);
        let logs = send("GET", "/main/logs", "").is(200);
        assert_eq!(logs.column("id"), ["5", "4", "3", "2", "1"]);
        let logs = logs.json()["cursor"]["data"].clone();
        for (at, id) in [(4, 1), (1, 4)] {
            assert_eq!(logs[at]["type"], "NEW_TRANSACTION");
            assert_eq!(logs[at]["data"]["transaction"]["id"], id);
            assert!(logs[at]["data"]["transaction"]["metadata"].is_object());
            assert_eq!(logs[at]["data"]["accountMetadata"], serde_json::json!({}));
        }
        assert_eq!(logs[0]["data"]["metadata"], serde_json::json!({"k": "v"}));
        // Below the mount of the stack, neither the setting nor the header selects the responses of 2.4.
        server.send("HEAD", "/api/ledger/main/accounts", headers, "").is(200);
        let stack = server.send("GET", "/api/ledger/main/accounts", headers, "").is(200);
        assert_eq!(stack.column("address"), ["world", "c", "b", "a"]);
        let stack = server.send("GET", "/api/ledger/main/logs", headers, "").is(200).json();
        assert_eq!(stack["cursor"]["data"][4]["data"]["txid"], 1);
    }
    let plain = TestServer::start();
    plain.send("HEAD", "/main/accounts", &[], "").is(200);
}

/// Counts the members `metadata` in an answer. Each must be an object.
fn count_metadata(answer: &Value) -> usize {
    match answer {
        Value::Array(items) => items.iter().map(count_metadata).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                assert!(name != "metadata" || value.is_object(), "{answer}");
                usize::from(name == "metadata") + count_metadata(value)
            })
            .sum(),
        _ => 0,
    }
}

#[test]
fn metadata_of_2_4_is_never_null() {
    let mut settings = stack_server::Settings::default();
    settings.compat = stack_server::Compat::V2_4;
    let server = TestServer::with(settings);
    let body = r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]}"#;
    let created = server.post("/main/transactions", body).is(200).json();
    let id = created["data"][0]["txid"].as_u64().expect("an id");
    let reverted = server.post(&format!("/main/transactions/{id}/revert"), "").is(201).json();
    assert_eq!((count_metadata(&created), count_metadata(&reverted)), (1, 1));
    for (path, rows) in [
        ("/main/transactions", 2),
        (&format!("/main/transactions/{id}"), 1),
        ("/main/accounts", 2),
        ("/main/accounts/a", 1),
        ("/main/accounts/nobody", 1),
        ("/main/logs", 2),
    ] {
        let answer = server.get(path).is(200).json();
        assert_eq!(count_metadata(&answer), rows, "{path}: {answer}");
    }
}
