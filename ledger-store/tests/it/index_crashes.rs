//! Failed syncs of the index, and kills and power cuts while it is rebuilt.

use std::sync::mpsc::channel;

use ledger_store::{IndexEvent, IndexStatus, Store};
use ledger_testkit::Faults;

use super::running_store::{Running, wait_for, wait_until_rebuilt, watch};

#[test]
fn a_failed_sync_of_the_index_rebuilds_it() {
    let sound = Running::new(36, 80);
    let mut rebuilt = 0;
    for (nth, is_cut) in (1..=4).flat_map(|nth| [(nth, false), (nth, true)]) {
        let mut running = sound.copy();
        running.memory = 8 << 20;
        let store = running.open();
        let events = watch(&store);
        running.work(&store, 30);
        let sync = running.disk.syncs() + nth;
        running.disk.set_faults(Faults { fail_sync: Some(sync), ..Faults::default() });
        store.flush();
        if store.status().index == IndexStatus::default() {
            assert!(running.disk.syncs() < sync + 4, "sync {nth} did not count");
            continue;
        }
        wait_until_rebuilt(&events);
        rebuilt += 1;
        running.work(&store, 20);
        if !is_cut {
            running.check(store, 1);
            continue;
        }
        for seed in 0..4 {
            let mut found = running.copy();
            found.disk = running.disk.after_power_cut(seed);
            assert_eq!(found.oracle.compare(&found.open()), Ok(()));
        }
    }
    assert!(rebuilt > 0, "no sync of the index failed");
}

/// After a failed sync, the page cache has bytes that are not on the disk. The next process opens this index.
#[test]
fn a_kill_after_a_failed_sync_loses_nothing() {
    let sound = Running::new(51, 60);
    let mut killed = 0;
    for nth in 1..=4 {
        let mut running = sound.copy();
        running.memory = 8 << 20;
        let store = running.open();
        let (tell, told) = channel();
        let disk = running.disk.clone();
        store.watch_index(move |event| {
            let _ = tell.send((event.clone(), disk.synced_copy()));
        });
        running.work(&store, 30);
        let fail_sync = Some(running.disk.syncs() + nth);
        running.disk.set_faults(Faults { fail_sync, ..Faults::default() });
        store.flush();
        drop(store);
        for (event, disk) in told {
            killed += usize::from(matches!(event, IndexEvent::Rebuilding { .. }));
            for seed in 0..4 {
                let mut found = running.copy();
                found.disk = disk.synced_copy();
                let store = found.open();
                assert_eq!(found.oracle.compare(&store), Ok(()), "{event:?}");
                found.work(&store, 10);
                store.flush();
                drop(store);
                found.disk = found.disk.after_power_cut(seed);
                let store = found.open();
                let events = watch(&store);
                if found.oracle.compare(&store).is_err() {
                    wait_until_rebuilt(&events);
                }
                assert_eq!(found.oracle.compare(&store), Ok(()), "{event:?}, seed {seed}");
            }
        }
    }
    assert!(killed > 0, "no process ended while the index was rebuilt");
}

/// Cuts the power at each sync of a rebuild in turn. `spoil` damages the index so that it is rebuilt, and requests a
/// power cut after the given number of syncs.
fn cut_while_rebuilding(sound: &Running, spoil: impl Fn(&mut Running, &Store, u64)) {
    for cut in 1..200 {
        let mut running = sound.copy();
        let store = running.open();
        let events = watch(&store);
        spoil(&mut running, &store, cut);
        let ended = wait_for(&events, |event| {
            matches!(event, IndexEvent::Rebuilt { .. } | IndexEvent::RebuildFailed { .. })
        });
        let is_rebuilt = matches!(ended, IndexEvent::Rebuilt { .. }) && !running.disk.power_is_off();
        drop(store);
        for seed in 0..3 {
            let mut found = running.copy();
            found.disk = running.disk.after_power_cut(seed);
            let store = found.open();
            let events = watch(&store);
            if found.oracle.compare(&store).is_err() {
                wait_until_rebuilt(&events);
            }
            assert_eq!(found.oracle.compare(&store), Ok(()), "cut {cut}, seed {seed}");
        }
        if is_rebuilt {
            assert!(cut > 3, "the rebuild was never cut");
            return;
        }
    }
    panic!("the rebuild did not end");
}

#[test]
fn a_power_cut_during_a_rebuild_loses_nothing() {
    cut_while_rebuilding(&Running::new(38, 60), |running, store, cut| {
        running.damage();
        let at = running.disk.syncs() + cut;
        running.disk.set_faults(Faults { cut_at_sync: Some(at), ..Faults::default() });
        let _ = running.oracle.compare(store);
    });
}

#[test]
fn a_power_cut_after_a_failed_sync_loses_nothing() {
    let mut sound = Running::new(50, 60);
    sound.memory = 8 << 20;
    cut_while_rebuilding(&sound, |running, store, cut| {
        running.work(store, 20);
        let failed = running.disk.syncs() + 1;
        let (fail_sync, cut_at_sync) = (Some(failed), Some(failed + cut));
        running.disk.set_faults(Faults { fail_sync, cut_at_sync, ..Faults::default() });
        store.flush();
    });
}
