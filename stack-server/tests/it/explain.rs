//! The route that explains which index a list uses.

use crate::client::TestServer;

#[test]
fn explains_index_and_cost_of_a_list() {
    let server = TestServer::with_main();
    for at in 0..40 {
        server.transfer("world", &format!("users:{}", at % 4), 1, "USD");
    }
    server.post("/v2/main/accounts/users:1/metadata", r#"{"tier":"gold"}"#).is(204);
    let explained = |path: &str, filter: &str| {
        let answer = server.send("GET", &format!("/v2/main/_explain/{path}"), &[], filter).is(200).json();
        let data = &answer["data"];
        let number = |field: &str| data[field].as_u64().expect("a number");
        (
            data["index"].as_str().expect("a text").to_owned(),
            data["exact"].as_bool().expect("a boolean"),
            number("rowsScanned"),
            number("rowsReturned"),
        )
    };
    let (index, _, scanned, returned) =
        explained("transactions?pageSize=3", r#"{"$match":{"account":"users:2"}}"#);
    assert_eq!(index, "histories of 1 holdings with 10 rows");
    assert!(returned == 3 && scanned < 10, "{scanned} {returned}");
    let (index, _, scanned, returned) = explained("transactions?pageSize=3&sort=updatedAt", "");
    assert_eq!(index, "transactions by id");
    assert!(returned == 3 && scanned >= 40, "{scanned} {returned}");
    let (index, ..) = explained("transactions?order=effective", "");
    assert_eq!(index, "transactions by effective date");
    let (index, _, _, returned) = explained("transactions", r#"{"$match":{"id":7}}"#);
    assert_eq!((index.as_str(), returned), ("1 transactions by id or reference", 1));
    let (index, _, _, returned) = explained("accounts", r#"{"$match":{"metadata[tier]":"gold"}}"#);
    assert_eq!((index.as_str(), returned), ("metadata, then addresses", 1));
    let (index, _, _, returned) = explained("accounts", r#"{"$match":{"address":"users:"}}"#);
    assert_eq!((index.as_str(), returned), ("addresses from users: on", 4));
    let (index, exact, scanned, returned) = explained("accounts?pageSize=2", "");
    assert_eq!((index.as_str(), exact, returned), ("addresses", true, 2));
    assert!(scanned <= 3, "{scanned}");
    let (index, exact, scanned, returned) = explained("volumes?pageSize=2", "");
    assert_eq!((index.as_str(), exact, returned), ("addresses", true, 2));
    assert!((2..10).contains(&scanned), "{scanned}");
    let (index, _, scanned, returned) = explained("volumes?groupBy=1", r#"{"$match":{"account":"users:"}}"#);
    assert_eq!((index.as_str(), returned), ("addresses from users: on", 1));
    assert!(scanned >= 4, "{scanned}");
    let (index, exact, _, returned) = explained("aggregate/balances", "");
    assert_eq!((index.as_str(), exact, returned), ("assets: the balances of all accounts cancel", true, 1));
    let (index, _, scanned, _) = explained("aggregate/balances", r#"{"$match":{"metadata[tier]":"gold"}}"#);
    assert_eq!(index, "metadata, then addresses");
    assert!(scanned < 10, "{scanned}");
    let (index, exact, scanned, returned) = explained("logs?pageSize=5", "");
    assert_eq!((index.as_str(), exact, returned), ("logs by id", true, 5));
    // The hashes of a page are computed from the entries after the last stored hash.
    assert!((6..=6 + 42).contains(&scanned), "{scanned}");
    let (index, ..) = explained("logs", r#"{"$and":[{"$gte":{"id":7}},{"$lt":{"id":10}}]}"#);
    assert_eq!(index, "logs by id from 7 to 9");
    let (index, _, scanned, returned) = explained("logs", r#"{"$match":{"type":"SET_METADATA"}}"#);
    assert_eq!((index.as_str(), returned), ("logs by id", 1));
    assert!(scanned >= 41, "{scanned}");
    for (path, filter) in [("transactions", r#"{"$match":{"nosuch":1}}"#), ("accounts?sort=nosuch", "")] {
        server.send("GET", &format!("/v2/main/_explain/{path}"), &[], filter).refused(400, "VALIDATION");
    }
    server.get("/v2/nosuch/_explain/accounts").refused(404, "LEDGER_NOT_FOUND");
}
