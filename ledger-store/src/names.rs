//! Names that a ledger has numbered: its assets and its metadata keys.

use std::sync::Arc;

use compact_str::CompactString;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::RwLock;

/// Most numbered names of a kind in a ledger: clients choose them, so their number must be bounded.
pub(crate) const NAMES_MAX: usize = 65_536;

/// Texts with numbers, dense from 0. Numbers only grow, but for what a dry run takes back.
#[derive(Default)]
struct Table {
    by_text: HashMap<CompactString, u32, RandomState>,
    texts: Vec<CompactString>,
}

/// A table of names that the writer fills and readers read. A reader meets only numbers that were given
/// before what it reads was published.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<RwLock<Table>>);

impl Names {
    /// The number of a text.
    pub(crate) fn id(&self, text: &str) -> Option<u32> {
        self.0.read().by_text.get(text).copied()
    }

    /// The text of a number.
    pub(crate) fn text(&self, id: u32) -> Option<CompactString> {
        self.0.read().texts.get(id as usize).cloned()
    }

    /// Gives a text the next number, if there is one left. The text must have none yet.
    pub(crate) fn add(&self, text: &str) -> Option<u32> {
        let mut table = self.0.write();
        if table.texts.len() >= NAMES_MAX {
            return None;
        }
        let id = table.texts.len() as u32;
        table.texts.push(text.into());
        table.by_text.insert(text.into(), id);
        Some(id)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.read().texts.len()
    }

    /// Takes back all numbers from `len` on.
    pub(crate) fn truncate(&self, len: usize) {
        let mut table = self.0.write();
        while table.texts.len() > len {
            if let Some(text) = table.texts.pop() {
                table.by_text.remove(&text);
            }
        }
    }
}
