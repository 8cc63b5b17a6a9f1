//! Tests with disks that fail or lose power.

use super::*;
use crate::disk::Faults;

#[test]
fn a_failed_commit_ends_the_appending() {
    let (mut unknown, mut refused) = (0, 0);
    for nth in 1..40 {
        let disk = new_disk();
        let journal = open(&disk).unwrap();
        let mut acknowledged = fill(&journal, 2);
        disk.set_faults(Faults { fail_sync: Some(disk.syncs() + nth), ..Faults::default() });
        let mut failed = Vec::new();
        let mut stopped = false;
        for i in 2..12 {
            let head = journal.head();
            let drafts = script_append(i, head.next.get());
            match journal.make_room().and_then(|()| journal.append(head.next, &drafts)) {
                Ok(_) => {
                    assert!(!stopped, "an append after a failed one");
                    acknowledged.extend(drafts);
                }
                Err(JournalError::Poisoned) => stopped = true,
                Err(JournalError::OutcomeUnknown { position, .. }) => {
                    assert!(!stopped && position == head.next);
                    unknown += 1;
                    stopped = true;
                    failed = drafts;
                }
                // Starting a new segment failed, so the append certainly did not take place. It may be repeated as
                // long as no new segment had its name.
                Err(JournalError::Storage { .. }) => {
                    assert!(!stopped);
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
            if stopped {
                assert_eq!(journal.head(), head, "the head shows what is certain");
            }
        }
        drop(journal);
        for seed in 0..4 {
            let found = contents(&open(&disk.after_power_cut(seed)).unwrap());
            let with_failed = [&acknowledged[..], &failed[..]].concat();
            assert!(found == acknowledged || found == with_failed, "sync {nth}, seed {seed}");
        }
    }
    assert!(unknown > 5 && refused > 5, "{unknown} unknown, {refused} refused");
}

#[test]
fn segment_that_cannot_be_opened_is_tried_again() {
    let mut refused = 0;
    for nth in 1..20 {
        let disk = new_disk();
        let journal = open(&disk).unwrap();
        disk.set_faults(Faults { fail_open: Some(disk.opens() + nth), ..Faults::default() });
        let mut acknowledged = Vec::new();
        for i in 0..12 {
            let head = journal.head();
            let drafts = script_append(i, head.next.get());
            if let Err(error) = journal.make_room() {
                assert!(matches!(error, JournalError::Storage { .. }), "opening {nth}: {error}");
                refused += 1;
                journal.make_room().unwrap_or_else(|error| panic!("opening {nth}: {error}"));
            }
            journal.append(head.next, &drafts).unwrap_or_else(|error| panic!("opening {nth}: {error}"));
            acknowledged.extend(drafts);
        }
        drop(journal);
        assert_eq!(contents(&open(&disk.after_power_cut(nth)).unwrap()), acknowledged, "opening {nth}");
    }
    assert!(refused > 5, "{refused} refused");
}

#[test]
fn a_failed_write_loses_nothing_that_was_acknowledged() {
    for nth in (1..120).step_by(3) {
        let disk = new_disk();
        let journal = open(&disk).unwrap();
        disk.set_faults(Faults { fail_write: Some(disk.writes() + nth), ..Faults::default() });
        let (acknowledged, pending) = run_script(&journal, 12);
        drop(journal);
        check_survivor(&disk.after_power_cut(nth), &acknowledged, &pending, "failed write").unwrap();
    }
}

/// Appends until the script ends or an append fails. Returns the acknowledged chunks, and those whose append was
/// running.
fn run_script(journal: &dyn Journal, appends: u64) -> (Vec<ChunkDraft>, Vec<ChunkDraft>) {
    let mut acknowledged = Vec::new();
    for i in 0..appends {
        let head = journal.head();
        let drafts = script_append(i, head.next.get());
        match journal.make_room().and_then(|()| journal.append(head.next, &drafts)) {
            Ok(_) => acknowledged.extend(drafts),
            Err(_) => return (acknowledged, drafts),
        }
    }
    (acknowledged, Vec::new())
}

/// The guarantee that a disk broke.
type Failure = Box<dyn std::error::Error>;

/// Checks the content of a disk after a power cut.
fn check_survivor(
    disk: &SimDisk,
    acknowledged: &[ChunkDraft],
    pending: &[ChunkDraft],
    context: &str,
) -> Result<(), Failure> {
    let journal = open(disk).map_err(|error| format!("{context}: {error}"))?;
    let found = try_contents(&journal).map_err(|error| format!("{context}: {error}"))?;
    if found != acknowledged && found != [acknowledged, pending].concat() {
        return Err(format!(
            "{context}: {} chunks acknowledged, {} pending, {} found",
            acknowledged.len(),
            pending.len(),
            found.len()
        )
        .into());
    }
    // The journal accepts appends again, even after it was closed.
    let head = journal.head();
    let drafts = script_append(50, head.next.get());
    let appended = journal.append(head.next, &drafts).map_err(|error| format!("{context}: {error}"))?;
    drop(journal);
    let journal = open(disk).map_err(|error| format!("{context}, reopened: {error}"))?;
    if journal.head() != appended {
        return Err(format!("{context}: the head moved when the journal was closed").into());
    }
    Ok(())
}

/// Cuts the power at every sync of a script, checks the results for several seeds, and cuts the power a second time
/// during the reopening. Returns the number of cuts.
fn power_cuts(lying_syncs: bool, appends: u64, seeds: u64) -> Result<u64, Failure> {
    let mut cuts = 0;
    for cut in 1.. {
        let disk = new_disk();
        let at_sync = disk.syncs() + cut;
        disk.set_faults(Faults { cut_at_sync: Some(at_sync), lying_syncs, ..Faults::default() });
        let (acknowledged, pending) = match open(&disk) {
            Ok(journal) => run_script(&journal, appends),
            Err(_) => (Vec::new(), Vec::new()),
        };
        let finished = !disk.power_is_off();
        for seed in 0..seeds {
            let found = disk.after_power_cut(cut * 1000 + seed);
            let context = format!("sync {cut}, seed {seed}");
            let second = found.synced_copy();
            check_survivor(&found, &acknowledged, &pending, &context)?;
            cuts += 1;
            // The second cut happens while the opening repairs the effects of the first.
            second.set_faults(Faults { cut_at_sync: Some(1 + seed % 8), lying_syncs, ..Faults::default() });
            drop(open(&second));
            let found = second.after_power_cut(seed);
            check_survivor(&found, &acknowledged, &pending, &format!("{context}, cut again"))?;
            cuts += 1;
        }
        if finished {
            return Ok(cuts);
        }
    }
    unreachable!("the script ends")
}

#[test]
fn power_cuts_lose_nothing_that_was_acknowledged() {
    let cuts = power_cuts(false, 20, 3).unwrap();
    assert!(cuts > 200, "{cuts}");
}

#[test]
fn power_cuts_notice_a_disk_without_sync() {
    power_cuts(true, 12, 3).unwrap_err();
}

#[test]
fn power_cuts_at_the_start_leave_no_segment() {
    for cut in 1.. {
        let disk = SimDisk::with_faults(Faults { cut_at_sync: Some(cut), ..Faults::default() });
        let done = initialise(&disk).is_ok();
        for seed in 0..8 {
            let found = disk.after_power_cut(seed);
            if done {
                assert_eq!(contents(&open(&found).unwrap()), []);
                continue;
            }
            let names = found.list(&dir()).unwrap_or_default();
            let is_unfinished = |name: &str| SegmentedJournal::is_unfinished_name(name);
            assert!(names.iter().all(|name| is_unfinished(name.to_str().unwrap())), "{names:?}");
        }
        if done {
            break;
        }
    }
}
