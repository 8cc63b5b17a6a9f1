//! Creates a small store in the current format, to be kept for tests:
//!
//! ```text
//! cargo run -p ledger-testkit --bin format_store -- DIR
//! ```
//!
//! `DIR/store` is the store, with its sparse files as sectors, and `DIR/expected.txt` describes its content. A release
//! that changes the format adds a store to `tests/data`, and never changes existing ones.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ledger_store::{Options, Store};
use ledger_testkit::{Oracle, Rng, SetClock, Step, Workload, logs, to_sectors};

fn main() -> Result<(), Box<dyn Error>> {
    let home = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: format_store DIR")?);
    fs::create_dir_all(&home)?;
    let data = home.join("store");
    let clock = Arc::<SetClock>::default();
    let mut options = Options::default();
    options.clock = clock.clone();
    let store = Store::open_with(&data, &options)?;
    let mut work = Workload::new(Rng::from_seed(1));
    let mut oracle = Oracle::default();
    for _ in 0..40 {
        let (now, step) = (work.tick(), work.step());
        clock.set(now);
        if !matches!(step, Step::Reopen) {
            oracle.step(&store, &step, now)?;
        }
    }
    oracle.compare(&store)?;
    let status = store.status();
    let mut text = format!("entries {}\nchain {}\n", status.entries, status.chain);
    for (ledger, log) in logs(&store)? {
        text.push_str(&format!("{ledger} {}\n", log.len()));
    }
    fs::write(home.join("expected.txt"), text)?;
    store.close()?;
    drop(store);
    fs::remove_file(data.join("LOCK"))?;
    for path in ["index/index.redb", "journal/HEAD"].map(|name| data.join(name)) {
        let mut kept = path.clone().into_os_string();
        kept.push(".sectors");
        fs::write(kept, to_sectors(&fs::read(&path)?))?;
        fs::remove_file(path)?;
    }
    Ok(())
}
