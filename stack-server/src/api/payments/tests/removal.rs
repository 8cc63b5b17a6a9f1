//! Tests the removal of pools, and requests that name an account of an installation which is being removed.

use ledger_store::Expected;
use ledger_testkit::SimDisk;
use serde_json::json;

use super::server::{Server, account_id, all, plain};
use crate::api::operations::Payments as P;
use crate::connectors::tests::world::Pages;
use crate::payments::ids::{AccountId, ConnectorId};
use crate::payments::installation::Installation;
use crate::payments::pool::{MEMBERS_MAX, Member};
use crate::payments::record;
use crate::uuid::Uuid;

#[test]
fn account_of_a_removed_installation_joins_no_pool() {
    let server = Server::start(&SimDisk::new(), &Pages::default());
    let install = |name: &str| {
        let answer =
            server.call(P::Install, &["TEST"], &json!({"name": name}).to_string()).expect("installed");
        let id = ConnectorId::parse(&plain(&answer["data"]["connectorID"])).expect("an id");
        let account = json!({"reference": name, "connectorID": id.text(), "createdAt": "2020-01-01T00:00:00Z",
            "type": "INTERNAL"});
        server.call(P::CreateAccount, &[], &account.to_string()).expect("created");
        id
    };
    let (kept, removed) = (install("kept"), install("removed"));
    let (kept, removed_account) = (account_id(&kept, "kept"), account_id(&removed, "removed"));
    let body = json!({"name": "first", "accountIDs": [kept]}).to_string();
    let pool = plain(&server.call(P::CreatePool, &[], &body).expect("created")["data"]["id"]);
    // The removal has begun: it marks the installation first.
    let found = record::find::<Installation>(&server.world.store.snapshot(), removed.installation.bytes());
    let leaving =
        Installation { is_being_removed: true, ..found.expect("no fault").expect("installed").value };
    server.world.store.change_documents(vec![record::put(&leaving, Expected::Anything)]).expect("marked");
    let add = json!({"accountID": removed_account}).to_string();
    server.call(P::AddPoolAccount, &[&*pool], &add).expect_err("the account goes");
    let second = json!({"name": "second", "accountIDs": [removed_account]}).to_string();
    server.call(P::CreatePool, &[], &second).expect_err("the account goes");
    let payment = json!({"reference": "p", "connectorID": removed.text(), "createdAt": "2020-01-01T00:00:00Z",
        "amount": 1, "type": "PAY-IN", "status": "SUCCEEDED", "scheme": "other", "asset": "EUR/2"});
    server.call(P::CreatePayment, &[], &payment.to_string()).expect_err("the installation goes");
    server.stop();
}

#[test]
fn pool_of_many_members_is_deleted_whole() {
    let server = Server::start(&SimDisk::new(), &Pages::default());
    let store = &server.world.store;
    let connector = server.world.install("a").expect("installed");
    let account = |number: usize| AccountId { connector: connector.clone(), reference: number.to_string() };
    let body = json!({"reference": "0", "connectorID": connector.text(), "createdAt": "2020-01-01T00:00:00Z",
        "type": "INTERNAL"});
    server.call(P::CreateAccount, &[], &body.to_string()).expect("created");
    let body = json!({"name": "large", "accountIDs": [account(0).text()]}).to_string();
    let id = plain(&server.call(P::CreatePool, &[], &body).expect("created")["data"]["id"]);
    let pool = Uuid::parse(&id).expect("a UUID");
    let added: Vec<_> = (1..=MEMBERS_MAX + 5)
        .map(|number| record::put(&Member { pool, account: account(number) }, Expected::Absent))
        .collect();
    for part in added.chunks(record::CHANGES_MAX / 2) {
        store.change_documents(part.to_vec()).expect("added");
    }
    server.call(P::DeletePool, &[&*id], "").expect("deleted");
    server.call(P::ReadPool, &[&*id], "").expect_err("the pool is deleted");
    assert!(all::<Member>(&store.snapshot()).is_empty());
    let shown = server.call(P::ReadAccount, &[&*account(0).text()], "").expect("an account");
    assert_eq!(shown["data"]["pools"], json!([]));
    server.stop();
}
