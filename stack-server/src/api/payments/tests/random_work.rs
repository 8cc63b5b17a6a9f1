//! Compares random requests with a model that predicts each response and the state that clients see. Some of the requests
//! must be refused, and then change nothing. The server restarts at times, also after power cuts.

use std::collections::{BTreeMap, BTreeSet};

use ledger_testkit::{Rng, SimDisk};
use serde_json::{Value, json};

use super::server::{Server, State, account_id, initiation_id, members, plain};
use crate::api::operations::Payments as P;
use crate::connectors::tests::world::{Pages, REFUSED_ONCE};
use crate::payments::ids::ConnectorId;

/// Accounts that can be members of pools. The last one does not exist.
const ACCOUNTS: [&str; 4] = ["own", "till", "theirs", "absent"];

/// A transfer initiation in the model.
struct Initiation {
    id: String,
    status: &'static str,
    is_transfer: bool,
    /// If set, the provider refuses the first attempt.
    is_refused_once: bool,
    amount: i64,
}

/// A server with one installation, and the model of its records.
struct RandomRun {
    server: Server,
    disk: SimDisk,
    pages: Pages,
    connector: ConnectorId,
    /// The ids and members of the pools, by name.
    pools: BTreeMap<String, (String, BTreeSet<String>)>,
    /// The ids and metadata of the bank accounts, by name, and whether each was forwarded.
    bank_accounts: BTreeMap<String, (String, BTreeMap<String, String>, bool)>,
    initiations: BTreeMap<String, Initiation>,
    /// The metadata of the only payment.
    metadata: BTreeMap<String, String>,
    names: usize,
}

impl RandomRun {
    fn new() -> Self {
        let (disk, pages) = (SimDisk::new(), Pages::default());
        pages.0.lock().expect("no panic").amounts = vec![vec![1]];
        let server = Server::start(&disk, &pages);
        let answer = server.call(P::Install, &["TEST"], r#"{"name":"a"}"#).expect("installed");
        let connector = ConnectorId::parse(&plain(&answer["data"]["connectorID"])).expect("an id");
        server.settle().expect("there is power");
        for (name, kind) in [("own", "INTERNAL"), ("till", "INTERNAL"), ("theirs", "EXTERNAL")] {
            let body = json!({"reference": name, "connectorID": connector.text(), "accountName": name,
                "createdAt": "2020-01-01T00:00:00Z", "type": kind});
            server.call(P::CreateAccount, &[], &body.to_string()).expect("created");
        }
        Self {
            server,
            disk,
            pages,
            connector,
            pools: BTreeMap::new(),
            bank_accounts: BTreeMap::new(),
            initiations: BTreeMap::new(),
            metadata: BTreeMap::new(),
            names: 0,
        }
    }

    /// Sends a request, and checks whether it is refused. Returns the response of an accepted request.
    #[track_caller]
    fn send(&self, (operation, variables): (P, &[&str]), body: &Value, is_accepted: bool) -> Option<Value> {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.server.call(operation, variables, &text);
        let refusal = answer.as_ref().err().map(|error| &error.message);
        assert_eq!(answer.is_ok(), is_accepted, "{operation:?} {variables:?} {body}: {refusal:?}");
        self.server.settle().expect("there is power");
        answer.ok()
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    fn account(&self, reference: &str) -> String {
        account_id(&self.connector, reference)
    }

    fn step(&mut self, rng: &mut Rng<'_>) {
        match rng.below(16) {
            0 | 1 => self.create_pool(rng),
            2 | 3 => self.change_pool(rng),
            4 => self.create_bank_account(),
            5 | 6 => self.change_bank_account(rng),
            7 | 8 => self.initiate(rng),
            9..=13 => self.advance(rng),
            14 => self.set_metadata(rng),
            _ => self.restart(rng.one_in(2).then(|| rng.below(1_000))),
        }
    }

    fn create_pool(&mut self, rng: &mut Rng<'_>) {
        let taken: Vec<_> = self.pools.keys().cloned().collect();
        let is_taken = !taken.is_empty() && rng.one_in(4);
        let name = if is_taken { rng.pick(&taken) } else { self.name() };
        let references: BTreeSet<String> =
            (0..rng.below(3)).map(|_| rng.pick(&ACCOUNTS).to_owned()).collect();
        let accounts: Vec<_> = references.iter().map(|reference| self.account(reference)).collect();
        let is_accepted = !is_taken && !references.is_empty() && !references.contains("absent");
        let body = json!({"name": name, "accountIDs": accounts});
        if let Some(answer) = self.send((P::CreatePool, &[]), &body, is_accepted) {
            self.pools.insert(name, (plain(&answer["data"]["id"]), references));
        }
    }

    /// Adds an account to a pool, removes one, or deletes the pool.
    fn change_pool(&mut self, rng: &mut Rng<'_>) {
        let Some(name) = picked(&self.pools, rng) else { return };
        let (id, mut references) = self.pools[&name].clone();
        let reference = rng.pick(&ACCOUNTS);
        let account = self.account(reference);
        match rng.below(4) {
            0 | 1 => {
                let is_accepted = reference != "absent" && references.insert(reference.to_owned());
                let body = json!({"accountID": account});
                self.send((P::AddPoolAccount, &[&*id]), &body, is_accepted);
            }
            2 => {
                references.remove(reference);
                self.send((P::RemovePoolAccount, &[&*id, &*account]), &Value::Null, true);
            }
            _ => {
                self.send((P::DeletePool, &[&*id]), &Value::Null, true);
                self.send((P::DeletePool, &[&*id]), &Value::Null, false);
                self.pools.remove(&name);
                return;
            }
        }
        self.pools.insert(name, (id, references));
    }

    fn create_bank_account(&mut self) {
        let name = self.name();
        let mut body = json!({"name": name, "country": "FR"});
        self.send((P::CreateBankAccount, &[]), &body, false);
        body["accountNumber"] = "12345678".into();
        let answer = self.send((P::CreateBankAccount, &[]), &body, true).expect("accepted");
        self.bank_accounts.insert(name, (plain(&answer["data"]["id"]), BTreeMap::new(), false));
    }

    /// Forwards a bank account, or changes its metadata.
    fn change_bank_account(&mut self, rng: &mut Rng<'_>) {
        let Some(name) = picked(&self.bank_accounts, rng) else { return };
        let (id, mut metadata, mut is_forwarded) = self.bank_accounts[&name].clone();
        if rng.one_in(2) {
            let (key, value) = (format!("k{}", rng.below(3)), rng.below(3).to_string());
            let body = json!({"metadata": {key.clone(): value.clone()}});
            self.send((P::SetBankAccountMetadata, &[&*id]), &body, true);
            metadata.insert(key, value);
        } else {
            let body = json!({"connectorID": self.connector.text()});
            self.send((P::ForwardBankAccount, &[&*id]), &body, !is_forwarded);
            is_forwarded = true;
        }
        self.bank_accounts.insert(name, (id, metadata, is_forwarded));
    }

    fn initiate(&mut self, rng: &mut Rng<'_>) {
        let known: Vec<_> = self.initiations.keys().cloned().collect();
        let is_taken = !known.is_empty() && rng.one_in(4);
        let reference = if is_taken { rng.pick(&known) } else { self.name() };
        let (is_transfer, is_refused_once) = (rng.one_in(2), rng.one_in(3));
        let destination = rng.pick(&ACCOUNTS[1..]);
        let amount = rng.below(5) as i64;
        let wanted = if is_transfer { "till" } else { "theirs" };
        let is_validated = rng.one_in(2);
        let body = json!({"reference": reference, "connectorID": self.connector.text(), "amount": amount,
            "type": if is_transfer { "TRANSFER" } else { "PAYOUT" }, "asset": "EUR/2",
            "sourceAccountID": self.account("own"), "destinationAccountID": self.account(destination),
            "description": if is_refused_once { REFUSED_ONCE } else { "" }, "validated": is_validated});
        let is_accepted = !is_taken && destination == wanted && amount > 0;
        if self.send((P::CreateInitiation, &[]), &body, is_accepted).is_some() {
            let status = match (is_validated, is_refused_once) {
                (false, _) => "WAITING_FOR_VALIDATION",
                (true, false) => "PROCESSED",
                (true, true) => "FAILED",
            };
            let id = initiation_id(&self.connector, &reference);
            let initiation = Initiation { id, status, is_transfer, is_refused_once, amount };
            self.initiations.insert(reference, initiation);
        }
    }

    /// Validates, rejects, retries, reverses or deletes an initiation in any status.
    fn advance(&mut self, rng: &mut Rng<'_>) {
        let Some(reference) = picked(&self.initiations, rng) else { return };
        let Initiation { id, status, is_transfer, is_refused_once, amount } = &self.initiations[&reference];
        let variables: &[&str] = &[id];
        let waits = *status == "WAITING_FOR_VALIDATION";
        let after = match rng.below(5) {
            0 => {
                let validated = if *is_refused_once { "FAILED" } else { "PROCESSED" };
                let body = json!({"status": "VALIDATED"});
                self.send((P::SetInitiationStatus, variables), &body, waits).map(|_| validated)
            }
            1 => {
                let body = json!({"status": "REJECTED"});
                self.send((P::SetInitiationStatus, variables), &body, waits).map(|_| "REJECTED")
            }
            2 => {
                let has_failed = *status == "FAILED";
                self.send((P::RetryInitiation, variables), &Value::Null, has_failed).map(|_| "PROCESSED")
            }
            3 => {
                let part = rng.below(*amount as u64 + 2) as i64;
                let fits = part > 0 && part <= *amount;
                let is_accepted = *is_transfer && *status == "PROCESSED" && fits;
                let body = json!({"reference": format!("r-{reference}"), "amount": part, "asset": "EUR/2"});
                let reversed = if part == *amount { "REVERSED" } else { "PARTIALLY_REVERSED" };
                self.send((P::ReverseInitiation, variables), &body, is_accepted).map(|_| reversed)
            }
            _ => {
                if self.send((P::DeleteInitiation, variables), &Value::Null, waits).is_some() {
                    self.initiations.remove(&reference);
                }
                None
            }
        };
        if let (Some(status), Some(initiation)) = (after, self.initiations.get_mut(&reference)) {
            initiation.status = status;
        }
    }

    fn set_metadata(&mut self, rng: &mut Rng<'_>) {
        let found = self.server.call(P::ListPayments, &[], "").expect("a list");
        let id = plain(&found["cursor"]["data"][0]["id"]);
        let (key, value) = (format!("k{}", rng.below(3)), rng.below(3).to_string());
        self.send((P::SetPaymentMetadata, &[&*id]), &json!({key.clone(): value.clone()}), true);
        self.metadata.insert(key, value);
    }

    /// Restarts the server, after a power cut if `past` is given.
    fn restart(&mut self, past: Option<u64>) {
        let next = past.map_or_else(|| self.disk.clone(), |past| self.disk.after_power_cut(past));
        let nothing = Server::start(&SimDisk::new(), &self.pages);
        std::mem::replace(&mut self.server, nothing).stop();
        self.disk = next;
        let stopped = std::mem::replace(&mut self.server, Server::start(&self.disk, &self.pages));
        stopped.stop();
        self.server.settle().expect("there is power");
    }

    /// Returns the state that clients must see.
    fn expected(&self) -> State {
        let mut state = State::new();
        state.insert("a/installation".to_owned(), String::new());
        state.insert("a/payment 0".to_owned(), format!("1 {}", json!(self.metadata)));
        for name in ["own", "till", "theirs"] {
            state.insert(format!("a/account {name}"), format!("{name} {{}}"));
        }
        for (name, (_, references)) in &self.pools {
            state.insert(format!("pool {name}"), members(references));
        }
        for (name, (id, metadata, is_forwarded)) in &self.bank_accounts {
            let related = if *is_forwarded { "a" } else { "" };
            state.insert(format!("bank account {name}"), format!("{} {related}", json!(metadata)));
            if *is_forwarded {
                let account = &self.server.state()[&format!("a/account {id}")];
                assert!(account.starts_with(&format!("{name} ")), "{account}");
                state.insert(format!("a/account {id}"), account.clone());
            }
        }
        for (reference, initiation) in &self.initiations {
            state.insert(format!("a/initiation {reference}"), format!("{} {{}}", initiation.status));
        }
        state
    }

    fn compare(&self, place: &str) {
        assert_eq!(self.server.state(), self.expected(), "{place}");
        self.server.assert_no_leftovers(place);
        self.server.assert_moved_once(&self.pages, place);
        self.server.assert_told(std::slice::from_ref(&self.connector), place);
    }
}

fn picked<T>(all: &BTreeMap<String, T>, rng: &mut Rng<'_>) -> Option<String> {
    let names: Vec<_> = all.keys().cloned().collect();
    (!names.is_empty()).then(|| rng.pick(&names))
}

#[test]
fn random_requests_match_the_model() {
    // Set this variable for longer runs.
    let seeds = std::env::var("PAYMENT_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    for seed in 0..seeds {
        let (mut run, mut rng) = (RandomRun::new(), Rng::from_seed(seed));
        for step in 0..60 {
            run.step(&mut rng);
            run.compare(&format!("seed {seed}, step {step}"));
        }
        run.server.stop();
    }
}
