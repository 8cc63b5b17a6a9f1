//! What commands would do to a ledger that is not there.
//!
//! The first generation of the API makes a ledger by writing to it. A first write that is refused, or is only a
//! preview, has to be answered as an empty ledger answers it, and must not make one. So it is tried on a ledger in
//! memory, to which nothing is ever written.

use std::sync::OnceLock;

use ledger_core::{LedgerName, LedgerOptions};
use ledger_store::{Atomicity, Detail, Mode, Options, Outcome, Request, Store, Submission, WriteError};

/// The ledger in memory, made when it is first asked.
#[derive(Default)]
pub(crate) struct Rehearsal(OnceLock<Store>);

/// Commands pass through the store and none stays, so it needs next to nothing.
const MEMORY_BUDGET: usize = 16 << 20;

impl Rehearsal {
    /// What commands would do, as one, to an empty ledger that is made with these options.
    ///
    /// # Errors
    ///
    /// As of a write.
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
            // It can only be there already, or the store be broken, which the submission will say.
            let _ = store.create_ledger(ledger.clone(), options);
            store
        });
        let atomicity = Atomicity::AsOne;
        store.apply(Submission { ledger, requests, atomicity, mode: Mode::DryRun, detail })
    }
}
