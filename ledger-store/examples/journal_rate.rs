//! Compares the journal with a bare loop of the fastest durable write of the machine, in one run:
//!
//! ```text
//! cargo run --release -p ledger-store --features testing --example journal_rate -- [DIR] [ROUNDS]
//! ```
//!
//! `DIR` (default `.`) should be on a real disk. Prints each round, small appends and appends of a megabyte.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use ledger_store::testing::{bare_writes, journal_appends};

const SMALL_WRITES: u64 = 4_000;
const LARGE_BYTES: usize = 1 << 20;
const LARGE_WRITES: u64 = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().unwrap_or_else(|| ".".to_owned());
    let rounds = arguments.next().map_or(Ok(5), |rounds| rounds.parse::<u32>())?;
    for _ in 0..rounds {
        let small = [
            bare_writes(home(&parent)?.path(), 4096, SMALL_WRITES)?,
            journal_appends(home(&parent)?.path(), 60, SMALL_WRITES)?,
        ]
        .map(|took| SMALL_WRITES as f64 / took.as_secs_f64());
        let large = [
            bare_writes(home(&parent)?.path(), LARGE_BYTES, LARGE_WRITES)?,
            journal_appends(home(&parent)?.path(), LARGE_BYTES, LARGE_WRITES)?,
        ]
        .map(megabytes);
        println!(
            "small: bare {:.0}/s, journal {:.0}/s, ratio {:.2}; 1 MiB: bare {:.0} MB/s, journal {:.0} MB/s, ratio {:.2}",
            small[0],
            small[1],
            small[1] / small[0],
            large[0],
            large[1],
            large[1] / large[0]
        );
    }
    Ok(())
}

fn megabytes(took: Duration) -> f64 {
    LARGE_BYTES as f64 * LARGE_WRITES as f64 / took.as_secs_f64() / 1e6
}

/// A fresh directory that is removed when it is dropped.
fn home(parent: &str) -> std::io::Result<tempfile::TempDir> {
    tempfile::tempdir_in(Path::new(parent))
}
