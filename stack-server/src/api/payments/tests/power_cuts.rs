//! Tests power cuts at every sync while clients create and change accounts, payments, metadata, bank accounts, pools,
//! transfer initiations and transfers, and remove an installation.
//!
//! After each cut, clients see exactly the acknowledged changes, or these and the change in progress. The provider moves
//! the money of each order once. The newest event of each record describes it.

use std::time::Duration;

use ledger_testkit::{Faults, SimDisk};
use serde_json::{Value, json};

use super::server::{Server, State, account_id, assert_members_have_pools, initiation_id, plain};
use crate::api::operations::Payments as P;
use crate::connectors::tests::world::{Pages, REFUSED_ONCE, SLOW, World};
use crate::payments::ids::ConnectorId;

/// A client that knows what the server must have stored.
#[derive(Default)]
struct Client {
    /// The acknowledged state.
    known: State,
    /// The state after the change in progress.
    next: Option<State>,
    /// All acknowledged installations, also those that were removed later.
    installations: Vec<ConnectorId>,
}

impl Client {
    /// Sends a request whose effect is `edit`. Returns `None` if the power failed before the response.
    fn send(
        &mut self,
        server: &Server,
        (operation, variables): (P, &[&str]),
        body: &Value,
        edit: impl FnOnce(&mut State),
    ) -> Option<Value> {
        let mut next = self.known.clone();
        edit(&mut next);
        self.next = Some(next.clone());
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = match server.call(operation, variables, &body) {
            Ok(answer) => answer,
            Err(error) => {
                assert!(server.world.power_is_off(), "{operation:?} {body}: {}", error.message);
                return None;
            }
        };
        (self.known, self.next) = (next, None);
        Some(answer)
    }

    /// Sends a request that creates or changes one record.
    fn put(
        &mut self,
        server: &Server,
        request: (P, &[&str]),
        body: &Value,
        (key, contents): (&str, &str),
    ) -> Option<Value> {
        self.send(server, request, body, |state| drop(state.insert(key.to_owned(), contents.to_owned())))
    }

    /// Installs a connector, which fetches payments with these amounts.
    fn install(&mut self, server: &Server, name: &str, amounts: &[i64]) -> Option<ConnectorId> {
        let added = |state: &mut State| {
            state.insert(format!("{name}/installation"), String::new());
            let payments = amounts.iter().enumerate();
            state.extend(
                payments
                    .map(|(number, amount)| (format!("{name}/payment {number}"), format!("{amount} {{}}"))),
            );
        };
        let answer = self.send(server, (P::Install, &["TEST"]), &json!({"name": name}), added)?;
        let id = ConnectorId::parse(&plain(&answer["data"]["connectorID"])).expect("an id");
        self.installations.push(id.clone());
        server.settle()?;
        Some(id)
    }

    fn account(&mut self, server: &Server, of: (&str, &ConnectorId), name: &str, kind: &str) -> Option<()> {
        let body = json!({"reference": name, "connectorID": of.1.text(), "createdAt": "2020-01-01T00:00:00Z",
            "accountName": name, "type": kind, "metadata": {"k": "v"}});
        let key = format!("{}/account {name}", of.0);
        let contents = format!("{name} {{\"k\":\"v\"}}");
        self.put(server, (P::CreateAccount, &[]), &body, (&key, &contents)).map(drop)
    }

    /// Creates a transfer initiation whose status is `status` after its order, if any, has ended.
    fn initiate(
        &mut self,
        server: &Server,
        of: &ConnectorId,
        mut body: Value,
        status: &str,
    ) -> Option<String> {
        let reference = plain(&body["reference"]);
        body["connectorID"] = of.text().into();
        body["sourceAccountID"] = account_id(of, "own").into();
        let destination = if body["type"] == "PAYOUT" { "theirs" } else { "till" };
        body["destinationAccountID"] = account_id(of, destination).into();
        body["asset"] = "EUR/2".into();
        let key = format!("a/initiation {reference}");
        let contents = format!("{status} {{}}");
        self.put(server, (P::CreateInitiation, &[]), &body, (&key, &contents))?;
        server.settle()?;
        Some(initiation_id(of, &reference))
    }

    /// Changes the status of a transfer initiation. Its status is `status` after its order, if any, has ended.
    fn advance(
        &mut self,
        server: &Server,
        (operation, id): (P, &str),
        body: &Value,
        (reference, status): (&str, &str),
    ) -> Option<()> {
        let key = format!("a/initiation {reference}");
        self.put(server, (operation, &[id]), body, (&key, &format!("{status} {{}}")))?;
        server.settle()
    }
}

/// Creates records by hand, and changes their metadata.
fn records(server: &Server, client: &mut Client, a: &ConnectorId) -> Option<()> {
    for (name, kind) in [("own", "INTERNAL"), ("till", "INTERNAL"), ("theirs", "EXTERNAL")] {
        client.account(server, ("a", a), name, kind)?;
    }
    let payment = json!({"reference": "m", "connectorID": a.text(), "createdAt": "2020-01-01T00:00:00Z",
        "amount": 12, "type": "PAY-IN", "status": "SUCCEEDED", "scheme": "other", "asset": "EUR/2",
        "destinationAccountID": account_id(a, "own")});
    let answer = client.put(server, (P::CreatePayment, &[]), &payment, ("a/payment m", "12 {}"))?;
    let id = plain(&answer["data"]["id"]);
    let named = ("a/payment m", "12 {\"order\":\"77\"}");
    client.put(server, (P::SetPaymentMetadata, &[&*id]), &json!({"order": "77"}), named)?;
    for name in ["plain", "used"] {
        let key = format!("bank account {name}");
        let body = json!({"name": name, "country": "FR", "iban": "FR7630001007941234567890185"});
        let answer = client.put(server, (P::CreateBankAccount, &[]), &body, (&key, "{} "))?;
        let id = plain(&answer["data"]["id"]);
        let related = if name == "used" { "a" } else { "" };
        if name == "used" {
            let forwarded = |state: &mut State| {
                state.insert(key.clone(), "{} a".to_owned());
                state.insert(format!("a/account {id}"), "used {}".to_owned());
            };
            let body = json!({"connectorID": a.text()});
            client.send(server, (P::ForwardBankAccount, &[&*id]), &body, forwarded)?;
        }
        let named = format!("{{\"owner\":\"ops\"}} {related}");
        let body = json!({"metadata": {"owner": "ops"}});
        client.put(server, (P::SetBankAccountMetadata, &[&*id]), &body, (&key, &named))?;
    }
    Some(())
}

fn pools(server: &Server, client: &mut Client, a: &ConnectorId) -> Option<()> {
    let ids = |names: &[&str]| names.iter().map(|name| account_id(a, name)).collect::<Vec<_>>();
    let create = |client: &mut Client, name: &str, accounts: &[&str]| {
        let body = json!({"name": name, "accountIDs": ids(accounts)});
        let pool = (&*format!("pool {name}"), &*accounts.join(" "));
        let answer = client.put(server, (P::CreatePool, &[]), &body, pool)?;
        Some(plain(&answer["data"]["id"]))
    };
    let treasury = create(client, "treasury", &["own", "till"])?;
    let added = ("pool treasury", "own theirs till");
    let body = json!({"accountID": account_id(a, "theirs")});
    client.put(server, (P::AddPoolAccount, &[&*treasury]), &body, added)?;
    let left = ("pool treasury", "theirs till");
    let own = account_id(a, "own");
    client.put(server, (P::RemovePoolAccount, &[&*treasury, &*own]), &Value::Null, left)?;
    let short = create(client, "short", &["own", "theirs"])?;
    client
        .send(server, (P::DeletePool, &[&*short]), &Value::Null, |state| drop(state.remove("pool short")))?;
    Some(())
}

/// Moves money: orders that succeed, that fail first, that take some time, that are never validated, and that are reversed.
fn orders(server: &Server, client: &mut Client, a: &ConnectorId) -> Option<()> {
    let plain_one = json!({"reference": "t", "type": "TRANSFER", "amount": 9, "validated": false});
    let t = client.initiate(server, a, plain_one, "WAITING_FOR_VALIDATION")?;
    let validate = json!({"status": "VALIDATED"});
    client.advance(server, (P::SetInitiationStatus, &t), &validate, ("t", "PROCESSED"))?;
    let part = json!({"reference": "r", "amount": 4, "asset": "EUR/2"});
    client.advance(server, (P::ReverseInitiation, &t), &part, ("t", "PARTIALLY_REVERSED"))?;
    let slow =
        json!({"reference": "slow", "type": "PAYOUT", "amount": 5, "validated": true, "description": SLOW});
    client.initiate(server, a, slow, "PROCESSED")?;
    let once = json!({"reference": "once", "type": "PAYOUT", "amount": 6, "validated": true,
        "description": REFUSED_ONCE});
    let once = client.initiate(server, a, once, "FAILED")?;
    client.advance(server, (P::RetryInitiation, &once), &Value::Null, ("once", "PROCESSED"))?;
    let no = json!({"reference": "no", "type": "PAYOUT", "amount": 7, "validated": false});
    let no = client.initiate(server, a, no, "WAITING_FOR_VALIDATION")?;
    let reject = json!({"status": "REJECTED"});
    client.advance(server, (P::SetInitiationStatus, &no), &reject, ("no", "REJECTED"))?;
    let gone = json!({"reference": "gone", "type": "PAYOUT", "amount": 8, "validated": false});
    let gone = client.initiate(server, a, gone, "WAITING_FOR_VALIDATION")?;
    let delete = (P::DeleteInitiation, &[&*gone] as &[_]);
    client.send(server, delete, &Value::Null, |state| drop(state.remove("a/initiation gone")))?;
    let later = json!({"reference": "later", "type": "PAYOUT", "amount": 3, "validated": true,
        "scheduledAt": "1970-01-01T12:00:00Z"});
    client.initiate(server, a, later, "VALIDATED")?;
    let old = json!({"amount": 21, "asset": "EUR/2", "source": "own", "destination": "till"});
    let id = a.text();
    client.put(server, (P::CreateTransfer, &["TEST", &*id]), &old, ("a/transfer 21", "SUCCEEDED"))?;
    server.settle()
}

/// Changes a fetched payment, at the provider and by a client.
fn fetched(server: &Server, client: &mut Client, pages: &Pages) -> Option<()> {
    let ids = server.call(P::ListPayments, &[], "").ok()?;
    let found = ids["cursor"]["data"].as_array()?.iter().find(|one| one["reference"] == "0").cloned()?;
    let id = plain(&found["id"]);
    let named = ("a/payment 0", "1 {\"k\":\"v\"}");
    client.put(server, (P::SetPaymentMetadata, &[&*id]), &json!({"k": "v"}), named)?;
    pages.0.lock().expect("no panic").amounts[0].push(0);
    client.known.insert("a/payment 0".to_owned(), "0 {\"k\":\"v\"}".to_owned());
    server.world.clock.advance(Duration::from_mins(1));
    server.settle()
}

/// Removes an installation whose account is in a pool and belongs to a bank account.
fn removal(server: &Server, client: &mut Client, a: &ConnectorId) -> Option<()> {
    let b = client.install(server, "b", &[0, 2])?;
    client.account(server, ("b", &b), "b-own", "INTERNAL")?;
    let mixed = json!({"name": "mixed", "accountIDs": [account_id(a, "own"), account_id(&b, "b-own")]});
    client.put(server, (P::CreatePool, &[]), &mixed, ("pool mixed", "b-own own"))?;
    let id = b.text();
    client.send(server, (P::Uninstall, &["TEST", &*id]), &Value::Null, |state| {
        state.retain(|key, _| !key.starts_with("b/"));
        state.insert("pool mixed".to_owned(), "own".to_owned());
    })?;
    Some(())
}

/// Runs the workload. Returns `None` if the power failed before the end.
fn work(server: &Server, client: &mut Client, pages: &Pages) -> Option<()> {
    let a = client.install(server, "a", &[1, 2])?;
    records(server, client, &a)?;
    pools(server, client, &a)?;
    orders(server, client, &a)?;
    fetched(server, client, pages)?;
    removal(server, client, &a)
}

fn judge(server: &Server, client: &Client, pages: &Pages, place: &str) {
    server.settle().expect("there is power");
    let state = server.state();
    let is_next = client.next.as_ref() == Some(&state);
    if !is_next {
        assert_eq!(state, client.known, "{place}: and in progress was {:?}", client.next);
    }
    server.assert_no_leftovers(place);
    server.assert_moved_once(pages, place);
    server.assert_told(&client.installations, place);
    // The scheduled order is executed when its time comes.
    server.world.clock.advance(Duration::from_hours(13));
    server.settle().expect("there is power");
    let later = server.state().get("a/initiation later").cloned();
    assert!(later.is_none_or(|later| later == "PROCESSED {}"), "{place}");
    server.assert_moved_once(pages, place);
}

fn provider() -> Pages {
    let pages = Pages::default();
    let mut book = pages.0.lock().expect("no panic");
    (book.walks_again, book.amounts) = (true, vec![vec![1], vec![2]]);
    drop(book);
    pages
}

/// Number of states of the disk that are checked after each cut.
const CASES: u64 = 8;

#[test]
fn records_survive_a_power_cut_at_every_sync() {
    let empty = SimDisk::new();
    Server::start(&empty, &provider()).stop();
    let mut cuts = 0;
    loop {
        let (disk, pages, mut client) = (empty.synced_copy(), provider(), Client::default());
        let server = Server::start(&disk, &pages);
        disk.set_faults(Faults { cut_at_sync: Some(disk.syncs() + cuts + 1), ..Faults::default() });
        let is_done = work(&server, &mut client, &pages).is_some();
        let was_cut = disk.power_is_off();
        server.stop();
        // Bytes that were not synced may be on disk or not. One case is judged whole, others before any task runs.
        for seed in 0..CASES {
            let world = World::at_rest(&disk.after_power_cut(seed), &pages);
            assert_members_have_pools(&world, &format!("cut {}, case {seed}", cuts + 1));
            world.stop();
        }
        let server = Server::start(&disk.after_power_cut(cuts), &pages);
        judge(&server, &client, &pages, &format!("cut {}", cuts + 1));
        server.stop();
        if is_done && !was_cut {
            break;
        }
        cuts += 1;
    }
    println!("{cuts} cuts");
    assert!(cuts > 50, "{cuts}");
}
