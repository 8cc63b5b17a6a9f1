//! Numbers for the names in a ledger: its assets and its metadata keys.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::RwLock;
use smol_str::SmolStr;

/// Maximum number of names of each kind in a ledger. Clients choose the names, so their number must be bounded.
pub(crate) const NAMES_MAX: usize = 65_536;

/// Texts numbered from 0 without gaps. A number never changes; only a dry run takes its numbers back.
#[derive(Default)]
struct Table {
    by_text: HashMap<SmolStr, u32, RandomState>,
    texts: Vec<SmolStr>,
}

/// A table of names that the writer fills and readers share. A reader only meets numbers that were assigned before the
/// data that contains them was published.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<RwLock<Table>>);

impl Names {
    /// Returns the number of a text.
    pub(crate) fn id(&self, text: &str) -> Option<u32> {
        self.0.read().by_text.get(text).copied()
    }

    /// Returns the text of a number.
    pub(crate) fn text(&self, id: u32) -> Option<SmolStr> {
        self.0.read().texts.get(id as usize).cloned()
    }

    /// Assigns the next number to a text, if one is left. The text must not have a number yet.
    pub(crate) fn add(&self, text: &str) -> Option<u32> {
        let mut table = self.0.write();
        if table.texts.len() >= NAMES_MAX {
            return None;
        }
        let id = u32::try_from(table.texts.len()).expect("`NAMES_MAX` is far below 2^32");
        table.texts.push(text.into());
        table.by_text.insert(text.into(), id);
        Some(id)
    }

    /// Returns the number of names.
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
