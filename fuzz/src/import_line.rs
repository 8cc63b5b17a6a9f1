//! Fuzz target: an import of any lines succeeds or is refused without a panic, and its entries are readable.

use ledger_core::{FilterOf, LedgerName, LedgerOptions};
use ledger_store::json::read_log;
use ledger_store::{Direction, LogHashes, LogQuery, PageRequest, Start, Store};

/// Maximum number of lines of one input. Bounds the time of a run.
const LINES_MAX: usize = 8;

/// Reads lines, each a log entry.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let logs: Vec<_> = text.lines().take(LINES_MAX).map_while(|line| read_log(line).ok()).collect();
    if logs.is_empty() {
        return;
    }
    let store = Store::in_memory();
    let name = LedgerName::parse("main").expect("a name");
    store.create_ledger(name.clone(), LedgerOptions::default()).expect("a new ledger");
    let imported = store.import(&name, &logs);
    let ledger = store.snapshot().ledger(&name).expect("it was made");
    let page = PageRequest { size: LINES_MAX, direction: Direction::Ascending, start: Start::First };
    let query = LogQuery { filter: FilterOf::all(), hashes: LogHashes::Wire, page };
    let kept = ledger.logs(&query).expect("what was taken can be read").items.len();
    assert!(
        kept <= logs.len() && (imported.is_err() || kept == logs.len()),
        "{imported:?}: {kept} of {}",
        logs.len()
    );
    let _ = store.close();
}
