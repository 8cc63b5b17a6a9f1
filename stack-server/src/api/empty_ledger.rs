//! Dry runs of commands on a ledger that does not exist.
//!
//! In v1 the first write creates a ledger. If the first write is refused or is a dry run, it must get the response of
//! an empty ledger and must not create one. So the server tries it on a ledger in memory, to which nothing is ever
//! written.

use std::sync::OnceLock;

use ledger_core::{LedgerName, LedgerOptions};
use ledger_store::{Atomicity, Detail, Mode, Options, Outcome, Request, Store, Submission, WriteError};

/// The in-memory store. The first dry run creates it.
#[derive(Default)]
pub(crate) struct EmptyLedger(OnceLock<Store>);

/// Memory budget of the store. It needs little, because nothing is stored.
const MEMORY_BUDGET: usize = 16 << 20;

impl EmptyLedger {
    /// Tries commands atomically on an empty ledger with these options, and returns their outcomes.
    ///
    /// # Errors
    ///
    /// Fails like a write.
    pub(crate) fn try_out(
        &self,
        options: LedgerOptions,
        requests: Vec<Request>,
        detail: Detail,
    ) -> Result<Vec<Outcome>, WriteError> {
        let ledger = LedgerName::parse("empty").expect("a name");
        let store = self.0.get_or_init(|| {
            let mut memory = Options::default();
            memory.memory_budget = MEMORY_BUDGET;
            let store = Store::in_memory_with(&memory);
            // Ignore the error: either the ledger exists already, or the store is broken, and the submission reports
            // that.
            let _ = store.create_ledger(ledger.clone(), options);
            store
        });
        let atomicity = Atomicity::AsOne;
        store.apply(Submission { ledger, requests, atomicity, mode: Mode::DryRun, detail })
    }
}
