//! Writes of documents and ledgers that are recorded together.

use ledger_core::LedgerName;

use crate::documents::DocumentChange;
use crate::submission::Request;

/// Changes of documents and commands on ledgers that are recorded together, or not at all. Their entries are in one
/// commit, so a crash never parts them.
///
/// [`Store::write_atomically`](crate::Store::write_atomically) accepts and records it, or refuses it.
#[derive(Clone, Debug, Default)]
pub struct AtomicWrite {
    /// The changes of documents.
    pub documents: Vec<DocumentChange>,
    /// The commands. The store checks and executes them in this order, so each sees the effects of those before it. If
    /// one is refused, nothing of the write is recorded.
    pub commands: Vec<LedgerCommand>,
}

/// A command and its ledger.
#[derive(Clone, Debug)]
pub struct LedgerCommand {
    /// The ledger. It must exist.
    pub ledger: LedgerName,
    /// The command, with its idempotency key and schema version.
    pub request: Request,
}

impl AtomicWrite {
    /// Estimates the memory of the write in bytes, for the bound of the queue.
    pub(crate) fn bytes(&self) -> usize {
        let documents: usize = self.documents.iter().map(DocumentChange::bytes).sum();
        let commands: usize = self.commands.iter().map(|command| command.request.bytes()).sum();
        documents + commands
    }
}
