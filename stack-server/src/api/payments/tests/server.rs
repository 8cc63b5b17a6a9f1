//! A server on a simulated disk, and the state that its clients see.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use ledger_store::Snapshot;
use ledger_testkit::SimDisk;
use serde_json::Value;
use tokio::sync::watch;

use crate::api::app::App;
use crate::api::context::Context;
use crate::api::operations::Payments as P;
use crate::api::payments::handle;
use crate::connectors::OrderState;
use crate::connectors::clock::Clock as _;
use crate::connectors::tests::world::{Pages, World};
use crate::http::error::{ApiError, Profile};
use crate::http::request::Query;
use crate::integrations::pipelines::exporter::ExporterPolicy;
use crate::outbound::OutboundPolicy;
use crate::payments::account::Account;
use crate::payments::enumerations::TaskStatus;
use crate::payments::ids::{AccountId, ConnectorId, InitiationId};
use crate::payments::pool::{Member, Pool};
use crate::payments::record;
use crate::payments::task::{Schedule, Task};
use crate::settings::Settings;

/// All records that clients see: a line that identifies the record, and its contents. Lines of records that belong to an
/// installation begin with its name and a slash.
pub(super) type State = BTreeMap<String, String>;

/// A server on a disk.
pub(super) struct Server {
    pub(super) world: World,
    app: App,
}

impl Server {
    pub(super) fn start(disk: &SimDisk, pages: &Pages) -> Self {
        let world = World::start(disk, pages);
        let policy = ExporterPolicy { outbound: OutboundPolicy::Public, folder: None };
        let (_, stopping) = watch::channel(false);
        let address = (Ipv4Addr::LOCALHOST, 80).into();
        let app = App::new(world.store.clone(), Settings::default(), None, address, None, stopping, policy);
        let app = app.with_connectors(world.engine.clone());
        Self { world, app }
    }

    pub(super) fn stop(self) {
        drop(self.app);
        self.world.stop();
    }

    /// Handles a request.
    pub(super) fn call(&self, operation: P, variables: &[&str], body: &str) -> Result<Value, ApiError> {
        let headers = HeaderMap::new();
        let context = Context {
            app: &self.app,
            profile: Profile::Stack,
            variables: variables.iter().map(|text| (*text).into()).collect(),
            query: Query::parse("pageSize=1000"),
            target: "/",
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            token: None,
            headers: &headers,
            body: Bytes::copy_from_slice(body.as_bytes()),
            stream: Mutex::new(None),
        };
        self.world.runtime.block_on(async {
            let body = handle(operation, &context).await?.into_body().collect().await;
            let bytes = body.unwrap_or_else(|_| panic!("the body of {operation:?}")).to_bytes();
            Ok(serde_json::from_slice(&bytes).unwrap_or_default())
        })
    }

    /// Returns all elements of a list.
    fn list(&self, operation: P, variables: &[&str]) -> Vec<Value> {
        let mut answer = self.call(operation, variables, "").expect("a list");
        let data =
            if answer["cursor"].is_object() { &mut answer["cursor"]["data"] } else { &mut answer["data"] };
        data.as_array().cloned().expect("a list has data")
    }

    /// Waits until all due orders have ended and all other tasks wait. Returns `None` if the power fails first.
    pub(super) fn settle(&self) -> Option<()> {
        let began = Instant::now();
        while !self.world.power_is_off() {
            let now = self.world.clock.now();
            let active = self.tasks().into_iter().filter(|task| task.status == TaskStatus::Active);
            let (mut waiting, mut busy) = (0, 0);
            for task in active {
                match task.schedule {
                    Schedule::Once(None) => busy += 1,
                    Schedule::Once(Some(at)) if at <= now => busy += 1,
                    _ => waiting += 1,
                }
            }
            if busy == 0 && self.world.clock.waiting() == waiting {
                return Some(());
            }
            if busy > 0 && self.world.clock.waiting() == waiting + busy {
                // The task of a slow order waits for a period before it asks again.
                self.world.clock.advance(Duration::from_mins(1));
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{busy} of {:?} do not end", self.tasks());
            std::thread::yield_now();
        }
        None
    }

    fn tasks(&self) -> Vec<Task> {
        let found = record::with_prefix::<Task>(&self.world.store.snapshot(), None, &[]).expect("tasks");
        found.into_iter().map(|found| found.value).collect()
    }

    /// Returns the names of the installations by their ids.
    fn names(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let all = self.list(P::ListConnectors, &[]);
        all.iter().map(|one| (text(&one["connectorID"]), text(&one["name"]))).collect()
    }

    /// Returns all records as clients see them.
    pub(super) fn state(&self) -> State {
        let (mut state, names) = (State::new(), self.names());
        let name = |value: &Value| {
            let id = value.as_str().expect("an id");
            names.get(id).unwrap_or_else(|| panic!("a record of a removed installation is left"))
        };
        state.extend(names.values().map(|name| (format!("{name}/installation"), String::new())));
        let shown = [
            (P::ListAccounts, "account", "accountName"),
            (P::ListPayments, "payment", "amount"),
            (P::ListInitiations, "initiation", "status"),
        ];
        for (operation, kind, member) in shown {
            for one in self.list(operation, &[]) {
                let key = format!("{}/{kind} {}", name(&one["connectorID"]), plain(&one["reference"]));
                state.insert(key, format!("{} {}", plain(&one[member]), one["metadata"]));
            }
        }
        for one in self.list(P::ListBankAccounts, &[]) {
            let related = one["relatedAccounts"].as_array().expect("accounts");
            let related: Vec<_> = related.iter().map(|one| name(&one["connectorID"]).as_str()).collect();
            let contents = format!("{} {}", one["metadata"], related.join(" "));
            state.insert(format!("bank account {}", plain(&one["name"])), contents);
        }
        for one in self.list(P::ListPools, &[]) {
            state.insert(format!("pool {}", plain(&one["name"])), members(&references(&one["accounts"])));
        }
        for (id, name) in &names {
            for one in self.list(P::ListTransfers, &["TEST", id]) {
                let key = format!("{name}/transfer {}", plain(&one["amount"]));
                state.insert(key, plain(&one["status"]));
            }
        }
        state
    }

    /// Checks that no record refers to another one that does not exist.
    pub(super) fn assert_no_leftovers(&self, place: &str) {
        self.world.assert_no_leftovers(place);
        assert_members_have_pools(&self.world, place);
        let snapshot = self.world.store.snapshot();
        for member in all::<Member>(&snapshot) {
            let account = record::find::<Account>(&snapshot, &member.account.key()).expect("no fault");
            assert!(account.is_some(), "{place}: a pool has an account that is not there");
        }
    }

    /// Checks that the provider has moved the money of each executed initiation once, and of the others never.
    pub(super) fn assert_moved_once(&self, pages: &Pages, place: &str) {
        let book = pages.0.lock().expect("no panic");
        for one in self.list(P::ListInitiations, &[]) {
            let reference = plain(&one["reference"]);
            let results = book.results_of(&format!("{reference}_"));
            let moved = results.iter().filter(|outcome| **outcome == OrderState::Done).count();
            let status = plain(&one["status"]);
            let is_moved = ["PROCESSED", "REVERSED", "PARTIALLY_REVERSED"].contains(&status.as_str());
            assert_eq!(moved, usize::from(is_moved), "{place}: {reference} is {status}: {results:?}");
        }
    }
}

/// Returns all records of a kind.
pub(super) fn all<R: record::Record>(snapshot: &Snapshot) -> Vec<R> {
    let found = record::with_prefix::<R>(snapshot, None, &[]).expect("records");
    found.into_iter().map(|found| found.value).collect()
}

/// Returns a text without its quotes, and other values as JSON.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the references of a list of account ids.
pub(super) fn references(ids: &Value) -> BTreeSet<String> {
    let ids = ids.as_array().expect("a list of ids").iter();
    ids.map(|id| AccountId::parse(&plain(id)).expect("an id").reference).collect()
}

/// Checks that no member of a deleted pool is left. This holds after every commit.
pub(super) fn assert_members_have_pools(world: &World, place: &str) {
    let snapshot = world.store.snapshot();
    for member in all::<Member>(&snapshot) {
        let pool = record::find::<Pool>(&snapshot, member.pool.bytes()).expect("no fault");
        assert!(pool.is_some(), "{place}: a member of a deleted pool is left");
    }
}

/// Returns the contents of a pool in [`State`].
pub(super) fn members(references: &BTreeSet<String>) -> String {
    references.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Returns the id of an account or a transfer initiation.
pub(super) fn account_id(connector: &ConnectorId, reference: &str) -> String {
    AccountId { connector: connector.clone(), reference: reference.to_owned() }.text()
}

pub(super) fn initiation_id(connector: &ConnectorId, reference: &str) -> String {
    InitiationId { connector: connector.clone(), reference: reference.to_owned() }.text()
}
