//! Compares the journal with a bare loop of the fastest durable write of the machine, in one run:
//!
//! ```text
//! cargo run --release -p ledger-testkit --bin journal_rate -- [DIR] [ROUNDS]
//! ```
//!
//! `DIR` (default `.`) should be on a real disk. Prints each round of small appends and of appends of a megabyte. The
//! bare loop writes into space that was prepared before. The journal prepares its own space while it runs, and in a
//! separate measurement its space is also prepared before. Compare only neighbouring rounds, because the speed of
//! shared disks changes within seconds.

#![allow(clippy::cast_precision_loss, reason = "rates are reported with few digits")]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use ledger_testkit::{bare_writes, journal_appends};

const SMALL_WRITES: u64 = 2_000;
const LARGE_BYTES: usize = 1 << 20;
const LARGE_WRITES: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().unwrap_or_else(|| ".".to_owned());
    let rounds = arguments.next().map_or(Ok(5), |rounds| rounds.parse::<u32>())?;
    for _ in 0..rounds {
        let rate = |took: Duration| SMALL_WRITES as f64 / took.as_secs_f64();
        let bare = rate(bare_writes(home(&parent)?.path(), 4096, SMALL_WRITES)?);
        let journal = rate(journal_appends(home(&parent)?.path(), 60, SMALL_WRITES, false)?);
        println!("small:  bare {bare:.0}/s, journal {journal:.0}/s ({:.2})", journal / bare);
        let rate = |took: Duration| LARGE_BYTES as f64 * LARGE_WRITES as f64 / took.as_secs_f64() / 1e6;
        let bare = rate(bare_writes(home(&parent)?.path(), LARGE_BYTES, LARGE_WRITES)?);
        let [prepared, journal] = [true, false].map(|is_prepared| {
            let took = journal_appends(home(&parent)?.path(), LARGE_BYTES, LARGE_WRITES, is_prepared)?;
            Ok::<_, Box<dyn Error>>(rate(took))
        });
        let (prepared, journal) = (prepared?, journal?);
        println!(
            "1 MiB:  bare {bare:.0} MB/s, journal {prepared:.0} MB/s in prepared space ({:.2}), {journal:.0} MB/s in \
             its own ({:.2})",
            prepared / bare,
            journal / bare
        );
    }
    Ok(())
}

/// Creates a directory that is removed when the value is dropped.
fn home(parent: &str) -> std::io::Result<tempfile::TempDir> {
    tempfile::tempdir_in(Path::new(parent))
}
