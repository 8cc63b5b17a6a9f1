//! Acknowledged writes survive power cuts, and no refused write appears. Thousands of power cuts:
//!
//! `cargo run --release -p ledger-testkit --bin power_cuts -- --runs 2000`.

use std::process::Command;

use ledger_testkit::{Campaign, FlipOutcome, Scenario, flips};

#[test]
fn power_cuts_lose_nothing_that_was_acknowledged() {
    let campaign =
        Campaign { first_seed: 0, runs: 150, lying_syncs: false, scenario: Scenario::Steps, threads: 8 };
    let (mut cuts, mut failed) = (0, Vec::new());
    campaign.run(|seed, result| match result {
        Ok(cut) => cuts += cut.cuts,
        Err(reason) => failed.push(format!("seed {seed}: {reason}")),
    });
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(cuts > campaign.runs, "some fail twice");
}

#[test]
fn a_disk_that_does_not_sync_is_noticed() {
    let campaign =
        Campaign { first_seed: 0, runs: 20, lying_syncs: true, scenario: Scenario::Steps, threads: 4 };
    let mut noticed = 0;
    campaign.run(|_, result| noticed += u64::from(result.is_err()));
    assert!(noticed >= 5, "noticed in {noticed} of {} runs", campaign.runs);
}

#[test]
fn power_cuts_under_several_writers_lose_nothing() {
    let campaign =
        Campaign { first_seed: 0, runs: 60, lying_syncs: false, scenario: Scenario::Writers, threads: 4 };
    let (mut unknown_kept, mut failed) = (0, Vec::new());
    campaign.run(|seed, result| match result {
        Ok(cut) => unknown_kept += cut.unknown_kept,
        Err(reason) => failed.push(format!("seed {seed}: {reason}")),
    });
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(unknown_kept > 0, "the third outcome is met");
}

#[test]
fn lying_syncs_under_several_writers_are_noticed() {
    let campaign =
        Campaign { first_seed: 0, runs: 20, lying_syncs: true, scenario: Scenario::Writers, threads: 4 };
    let mut noticed = 0;
    campaign.run(|_, result| noticed += u64::from(result.is_err()));
    assert!(noticed >= 5, "noticed in {noticed} of {} runs", campaign.runs);
}

/// Maximum number of consecutive processes that damage may abort.
const ABORTS_MAX: usize = 4;

/// redb can panic twice when it writes to damaged pages, which aborts the process. An operator notices the abort, and
/// the next opening repairs the index. The flips run in a separate process, so that they do not abort the other tests.
#[test]
fn no_flipped_bit_is_silent() {
    let program = std::env::current_exe().expect("this program has a path");
    for _ in 0..ABORTS_MAX {
        let arguments = ["--exact", "crash::flips_in_their_own_process", "--ignored", "--nocapture"];
        let child = Command::new(&program).args(arguments).output().expect("this program starts");
        let (printed, said) =
            (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
        if child.status.success() {
            assert!(printed.contains("1 passed"), "{printed}");
            return;
        }
        assert!(said.contains("panic in a destructor during cleanup"), "{printed}{said}");
    }
    panic!("{ABORTS_MAX} processes were aborted");
}

#[test]
#[ignore = "no_flipped_bit_is_silent runs it"]
fn flips_in_their_own_process() {
    let (mut noticed, mut silent) = (0, Vec::new());
    flips(0, 400, 4, |_, _, flipped| match flipped {
        FlipOutcome::Silent(reason) => silent.push(reason),
        FlipOutcome::Harmless => {}
        FlipOutcome::Refused | FlipOutcome::Repaired | FlipOutcome::Dropped | FlipOutcome::Reported => {
            noticed += 1;
        }
    });
    assert!(silent.is_empty(), "{silent:#?}");
    assert!(noticed > 100, "{noticed} of 400 were noticed");
}
