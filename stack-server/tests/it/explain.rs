//! How lists are found.

use crate::client::TestServer;

#[test]
fn a_list_says_by_which_index_it_was_found_and_what_that_took() {
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
    for (path, filter) in [("transactions", r#"{"$match":{"nosuch":1}}"#), ("accounts?sort=nosuch", "")] {
        server.send("GET", &format!("/v2/main/_explain/{path}"), &[], filter).refused(400, "VALIDATION");
    }
    server.get("/v2/nosuch/_explain/accounts").refused(404, "LEDGER_NOT_FOUND");
}
