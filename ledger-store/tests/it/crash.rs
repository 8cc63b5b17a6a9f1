//! What was acknowledged survives power cuts, and nothing else does. Thousands of them:
//! `cargo run --release -p ledger-store --features testing --example power_cuts -- --runs 2000`.

use ledger_store::testing::Campaign;

#[track_caller]
fn check(first_seed: u64, runs: u64) {
    let mut cuts = 0;
    Campaign { first_seed, runs, lying_syncs: false }.run(|seed, result| match result {
        Ok(cut) => cuts += cut.cuts,
        Err(reason) => panic!("seed {seed}: {reason}"),
    });
    assert!(cuts >= runs);
}

// Two, so that they run beside each other.

#[test]
fn power_cuts_lose_nothing_that_was_acknowledged() {
    check(0, 50);
}

#[test]
fn more_power_cuts_lose_nothing_that_was_acknowledged() {
    check(1_000, 50);
}

#[test]
fn a_disk_that_does_not_sync_is_noticed() {
    let mut noticed = 0;
    Campaign { first_seed: 0, runs: 20, lying_syncs: true }
        .run(|_, result| noticed += u64::from(result.is_err()));
    assert!(noticed >= 5, "noticed in {noticed} of 20 runs");
}
