//! The test kit of `ledger-store`: random work, an oracle that asks a store questions and compares the answers with the
//! model, and campaigns with power cuts, failed reads and flipped bits. Its binaries are the long runs of the
//! campaigns; the tests of `ledger-store` contain a short pass of each.
//!
//! This crate is not published. It enables the feature `testing` of the crates below it, which programs must not use:
//! it adds a disk of the caller's choice, and reads that fail on demand. A build of the whole workspace also enables
//! the feature for the server. `cargo build` without options, or with `-p stack-server`, does not.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "random numbers are drawn below small limits"
)]

mod campaign;
mod clock;
mod counters;
mod document_model;
mod failure;
mod filters;
mod fixtures;
mod flips;
mod harness;
mod journal_rate;
mod ledger_model;
mod model_run;
mod oracle;
mod questions;
mod rng;
mod sectors;
mod workload;
mod writers;

use ledger_journal::decode_untrusted;
use ledger_journal::entry::read_chunk;

pub use self::campaign::{Campaign, Scenario, power_cut};
pub use self::clock::SetClock;
pub use self::counters::Counters;
pub use self::document_model::DocumentStep;
pub use self::failure::Failure;
pub use self::flips::{DamagedFile, FlipCounts, FlipOutcome, ShutdownKind, flips};
pub use self::harness::WorkCounts;
pub use self::journal_rate::{bare_writes, journal_appends};
pub use self::model_run::{ModelRuns, model_run};
pub use self::oracle::Oracle;
pub use self::questions::DamagedAnswers;
pub use self::rng::Rng;
pub use self::sectors::{from_sectors, to_sectors};
pub use self::workload::{ImportStep, Step, Workload};
pub use self::writers::power_cut_under_writers;
pub use ledger_journal::disk::{
    Disk, DiskFile, DiskLock, DiskSpace, Faults, LockOutcome, OpenMode, RealDisk, SimDisk, Space,
};
pub use ledger_store::testing::{fail_decision_read, logs};

/// Decodes bytes as a chunk of the journal without checking its digest, and then as entries. Returns the number of
/// entries. Fuzzing uses this function: no bytes may cause a panic.
pub fn decode_chunk(bytes: &[u8]) -> Option<usize> {
    let chunk = decode_untrusted(bytes)?;
    let mut entries = 0;
    read_chunk(&chunk, |_| {
        entries += 1;
        Ok(())
    })
    .ok()?;
    Some(entries)
}
