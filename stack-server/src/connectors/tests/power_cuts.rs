//! Tests power cuts at every sync while connectors are installed, fetch, are configured, reset and removed. A posting
//! rule creates a transaction for each payment.
//!
//! After each cut, an installation has exactly the payments that the state of its task counts, and the ledger has
//! exactly the transactions of these payments. Acknowledged changes are kept.

use ledger_core::{AccountAddress, Asset, LedgerName, LedgerOptions};
use ledger_store::Expected;
use ledger_testkit::{Faults, SimDisk};

use super::world::{Pages, World};
use super::*;
use crate::payments::postings::rule::{NewRule, PostingRule};

/// Number of payments at the provider.
const PAYMENTS: usize = 7;

/// Number of disk states to test after each power cut. They differ in which of the unsynced writes survived.
const PASTS: u64 = 2;

const SCRIPT: &str = "vars {\nmonetary $amount\n}\nsend $amount (\nsource = @world\ndestination = @till\n)";

/// The acknowledged changes, and the changes that were started.
#[derive(Default)]
struct Acknowledged {
    /// Names and ids of the installations that were acknowledged.
    installed: Vec<(&'static str, ConnectorId)>,
    /// Installations whose removal was started.
    going: Vec<ConnectorId>,
    /// Installations whose removal was acknowledged.
    gone: Vec<ConnectorId>,
    /// The installation with the posting rule.
    ruled: Option<ConnectorId>,
}

fn ledger() -> LedgerName {
    LedgerName::parse("main").expect("a name")
}

/// Creates the ledger and the posting rule of an installation. Returns `None` if the power failed.
fn set_rule(world: &World, id: &ConnectorId) -> Option<()> {
    world.store.create_ledger(ledger(), LedgerOptions::default()).ok()?;
    let new = NewRule {
        ledger: "main".to_owned(),
        script: SCRIPT.to_owned(),
        account_prefix: "payments".to_owned(),
        schema_version: String::new(),
    };
    let rule = PostingRule::new(id.clone(), new, Timestamp::from_micros(1)).expect("a rule");
    world.store.change_documents(vec![record::put(&rule, Expected::Absent)]).ok().map(drop)
}

/// Runs the workload. Returns `None` if the power failed before the end.
fn work(world: &World, pages: &Pages, acknowledged: &mut Acknowledged) -> Option<()> {
    let first = world.install("a")?;
    acknowledged.installed.push(("a", first.clone()));
    world.settle(1)?;
    set_rule(world, &first)?;
    acknowledged.ruled = Some(first.clone());
    pages.0.lock().expect("no panic").amounts = (1..=PAYMENTS as i64).map(|amount| vec![amount]).collect();
    world.poll(1)?;
    let definition = world.engine.definition("test").expect("the definition");
    world.run(world.engine.configure(definition, &first, b"{\"name\":\"a\"}"))?;
    world.settle(1)?;
    let second = world.install("b")?;
    acknowledged.installed.push(("b", second.clone()));
    world.settle(2)?;
    acknowledged.going.push(second.clone());
    let third = world.run(world.engine.reset(&second))?;
    acknowledged.gone.push(second);
    acknowledged.installed.push(("b", third.clone()));
    world.settle(2)?;
    acknowledged.going.push(third.clone());
    world.run(world.engine.uninstall(&third))?;
    acknowledged.gone.push(third);
    Some(())
}

fn till(world: &World) -> i64 {
    let Some(ledger) = world.store.snapshot().ledger(&ledger()) else { return 0 };
    let address = AccountAddress::parse("till").expect("an address");
    let balance = ledger.balance(&address, &Asset::parse("EUR/2").expect("an asset")).expect("no fault");
    balance.to_string().parse().expect("a small amount")
}

/// Checks the stored data before any task runs.
fn judge_stored(world: &World, acknowledged: &Acknowledged, place: &str) {
    let seen = world.installations();
    for (name, id) in acknowledged.installed.iter().filter(|(_, id)| !acknowledged.going.contains(id)) {
        assert!(seen.iter().any(|one| one.id == *id && one.name == *name), "{place}: {name} is lost");
    }
    for id in &acknowledged.gone {
        assert!(!seen.iter().any(|one| one.id == *id), "{place}: a removed one is back");
    }
    let is_replaced = acknowledged.going.len() == 1;
    assert!(!is_replaced || seen.iter().any(|one| one.name == "b"), "{place}: a reset lost both");
    for one in &seen {
        let [task] = &world.tasks(&one.id)[..] else { panic!("{place}: {} has not one task", one.name) };
        assert_eq!(task.status, TaskStatus::Active, "{place}");
        let state: serde_json::Value = serde_json::from_str(&task.state).expect("JSON");
        let read: usize = state["at"].as_str().map_or(0, |at| at.parse().expect("a number"));
        let expected = (0..read).map(|number| (number, vec![number as i64 + 1])).collect();
        assert_eq!(world.payments(&one.id), expected, "{place}: {} has read {read}", one.name);
        if acknowledged.ruled.as_ref() == Some(&one.id) {
            let total: i64 = (1..=read as i64).sum();
            assert_eq!(till(world), total, "{place}: the ledger does not follow");
        }
    }
}

/// Checks that all tasks continue and fetch everything.
fn judge_end(world: &World, pages: &Pages, acknowledged: &Acknowledged, place: &str) {
    let seen = world.installations();
    world.settle(seen.len()).expect("there is power");
    world.poll(seen.len()).expect("there is power");
    world.assert_no_leftovers(place);
    let amounts = pages.0.lock().expect("no panic").amounts.clone();
    for one in &seen {
        let expected = amounts.iter().cloned().enumerate().collect();
        assert_eq!(world.payments(&one.id), expected, "{place}: {}", one.name);
    }
    if acknowledged.ruled.is_some() {
        let total: i64 = amounts.iter().flatten().sum();
        assert_eq!(till(world), total, "{place}: the ledger does not follow");
    }
}

#[test]
fn payments_survive_a_power_cut_at_every_sync() {
    let empty = SimDisk::new();
    World::start(&empty, &Pages::default()).stop();
    let mut cuts = 0;
    loop {
        let (disk, pages, mut acknowledged) =
            (empty.synced_copy(), Pages::default(), Acknowledged::default());
        let world = World::start(&disk, &pages);
        disk.set_faults(Faults { cut_at_sync: Some(disk.syncs() + cuts + 1), ..Faults::default() });
        let is_done = work(&world, &pages, &mut acknowledged).is_some();
        let was_cut = disk.power_is_off();
        world.stop();
        for past in 0..PASTS {
            let place = format!("cut {}, past {past}", cuts + 1);
            let survivor = disk.after_power_cut(past);
            let stored = World::at_rest(&survivor.synced_copy(), &pages);
            judge_stored(&stored, &acknowledged, &place);
            stored.stop();
            let world = World::start(&survivor, &pages);
            judge_end(&world, &pages, &acknowledged, &place);
            world.stop();
        }
        if is_done && !was_cut {
            break;
        }
        cuts += 1;
    }
    println!("{cuts} cuts");
    assert!(cuts > 15, "{cuts}");
}
