//! Requests to the payments API that are refused, and leave what was there.

use serde_json::{Value, json};

use crate::client::TestServer;
use crate::payments::{install, rows, until};
use crate::provider::Provider;

#[test]
fn clock_ahead_of_ours_hides_no_balance() {
    let provider = Provider::start();
    let account =
        json!([{"id": "a", "accountName": "a", "createdAt": "2024-01-01T00:00:00Z", "metadata": {}}]);
    let empty: Value = json!([]);
    for path in ["/beneficiaries", "/transactions"] {
        provider.answer(path, &empty);
    }
    provider.handle(move |asked| {
        let rows = if asked.path.contains("page=1") { &account } else { &empty };
        let is_list = asked.path.starts_with("/accounts?");
        is_list.then(|| crate::provider::Reply::Whole(200, rows.to_string()))
    });
    provider.answer(
        "/accounts/a/balances",
        &json!({"id": "b", "accountID": "a", "at": "2999-01-01T00:00:00Z",
            "balances": [{"amount": "120", "currency": "EUR"}]}),
    );
    let server = TestServer::start();
    let config = json!({"name": "g", "apiKey": "k", "endpoint": provider.url(), "pollingPeriod": "50ms"});
    install(&server, "GENERIC", &config);
    until("the account is there", || rows(&server, "/accounts").len() == 1);
    let id = rows(&server, "/accounts")[0]["id"].as_str().expect("an id").to_owned();
    until("the balance is there", || {
        rows(&server, &format!("/accounts/{id}/balances")).iter().any(|row| row["balance"] == 120)
    });
}
