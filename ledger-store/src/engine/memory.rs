//! Engines whose index is in memory. The journal of a store in memory is in memory as well; tests provide their own.

use std::sync::Arc;

use ledger_index::{IndexFile, IndexOptions};
use ledger_journal::{Identity, Journal, JournalReader, MemoryJournal, Position};

use super::Engine;
use crate::options::Options;
use crate::recovery;

impl Engine {
    /// Creates the engine of a store in memory. Its threads are not started.
    pub(crate) fn in_memory(options: &Options) -> Self {
        let identity = Identity::random().expect("the system has random numbers");
        let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new(identity.clone()));
        Self::over(journal, identity, options)
    }

    /// Creates an engine over an empty journal, with an index in memory. Its threads are not started.
    pub(crate) fn over(journal: Arc<dyn Journal>, identity: Identity, options: &Options) -> Self {
        let shares = options.shares();
        let index_options = IndexOptions { cache_bytes: shares.index_cache, filter_bytes: shares.filters };
        let index = IndexFile::in_memory(index_options).expect("an index in memory can be created and read");
        let reader: Arc<dyn JournalReader> = journal.clone();
        let recovered = recovery::recover(&reader, &index, &identity, shares, Position::FIRST)
            .expect("an empty journal needs no recovery");
        Self::new(journal, index, identity, options, recovered)
    }
}
