//! Pages and cursors of v2 lists.

use crate::client::{TestServer, escape};

fn server() -> TestServer {
    let server = TestServer::with_main();
    for (destination, asset) in [("a", "USD"), ("b", "EUR"), ("c:1", "USD"), ("c:2", "USD"), ("d", "EUR")] {
        server.transfer("world", destination, 1, asset);
    }
    server.post("/v2/other", "").is(204);
    server.post("/v2/third", "").is(204);
    server
}

/// Each list with the member that identifies its rows.
const LISTS: [(&str, &str); 5] = [
    ("/v2/main/accounts", "address"),
    ("/v2/main/transactions", "id"),
    ("/v2/main/transactions?order=effective", "id"),
    ("/v2/main/logs", "id"),
    ("/v2", "name"),
];

#[test]
fn pages_of_any_size_make_up_the_same_list() {
    let server = server();
    for (list, field) in LISTS.into_iter().chain([("/v2/main/volumes", "account")]) {
        let (path, query) = list.split_once('?').unwrap_or((list, ""));
        let whole = server.get(&format!("{path}?{query}&pageSize=100")).is(200);
        assert_eq!(whole.json()["cursor"]["hasMore"], false);
        let whole = whole.column(field);
        for size in 1..=whole.len() {
            let mut pages = vec![server.get(&format!("{path}?{query}&pageSize={size}")).is(200)];
            while let Some(next) = pages[pages.len() - 1].json()["cursor"]["next"].as_str() {
                pages.push(server.get(&format!("{path}?cursor={next}")).is(200));
                assert!(pages.len() <= whole.len(), "{list} by {size} does not end");
            }
            let joined: Vec<_> = pages.iter().flat_map(|page| page.column(field)).collect();
            assert_eq!(joined, whole, "{list} by {size}");
            for (at, page) in pages.iter().enumerate() {
                let json = page.json();
                assert_eq!(json["cursor"]["hasMore"], at + 1 < pages.len(), "{list} by {size}, page {at}");
                assert_eq!(json["cursor"]["pageSize"], size);
                let Some(previous) = json["cursor"]["previous"].as_str() else {
                    assert_eq!(at, 0, "{list} by {size}: only the first page has none before it");
                    continue;
                };
                let back = server.get(&format!("{path}?cursor={previous}")).is(200);
                assert_eq!(back.column(field), pages[at - 1].column(field), "{list} by {size}, page {at}");
            }
        }
    }
}

#[test]
fn cursor_keeps_query_and_allows_new_page_size() {
    let server = server();
    let filter = escape(r#"{"$match":{"address":"c:"}}"#);
    let first = server.get(&format!("/v2/main/accounts?query={filter}&expand=volumes&pageSize=1")).is(200);
    assert_eq!(first.column("address"), ["c:1"]);
    let next = first.json()["cursor"]["next"].as_str().expect("a next page").to_owned();
    let other = escape(r#"{"$match":{"address":"d"}}"#);
    let second =
        server.get(&format!("/v2/main/accounts?cursor={next}&query={other}&sort=nosuch&pageSize=7")).is(200);
    assert_eq!(second.column("address"), ["c:2"]);
    assert_eq!(second.json()["cursor"]["pageSize"], 7);
    assert_eq!(second.json()["cursor"]["data"][0]["volumes"]["USD"]["input"], 1);
}

#[test]
fn refuses_foreign_and_forged_cursors() {
    let server = server();
    let first = server.get("/v2/main/accounts?pageSize=1").is(200).json();
    let cursor = first["cursor"]["next"].as_str().expect("a next page").to_owned();
    server.get(&format!("/api/ledger/v2/main/accounts?cursor={cursor}")).is(200);
    for path in ["/v2/main/logs", "/v2/other/accounts", "/v2"] {
        server.get(&format!("{path}?cursor={cursor}")).refused(400, "VALIDATION");
    }
    let mut tampered = cursor.clone().into_bytes();
    tampered[10] = if tampered[10] == b'A' { b'B' } else { b'A' };
    let tampered = String::from_utf8(tampered).expect("ASCII");
    for text in
        [tampered.as_str(), &cursor[..cursor.len() - 1], "x", "eyJvZmZzZXQiOjJ9", "%00", &"A".repeat(9_999)]
    {
        for (list, _) in LISTS {
            let path = list.split('?').next().expect("a path");
            server.get(&format!("{path}?cursor={text}")).refused(400, "VALIDATION");
        }
    }
}

#[test]
fn page_sizes_are_clamped_or_refused() {
    let server = server();
    for (text, size) in [("", 15), ("0", 15), ("1", 1), ("100", 100), ("101", 100), ("4294967295", 100)] {
        let page = server.get(&format!("/v2/main/accounts?pageSize={text}")).is(200).json();
        assert_eq!(page["cursor"]["pageSize"], size, "{text}");
    }
    for text in ["-1", "abc", "1.5", "4294967296", "99999999999999999999"] {
        for path in ["accounts", "transactions", "volumes", "logs"] {
            server.get(&format!("/v2/main/{path}?pageSize={text}")).refused(400, "VALIDATION");
        }
    }
}
