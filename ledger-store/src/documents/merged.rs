//! Changes of documents from sources of several ages, merged into one sequence.

use std::sync::Arc;

use ledger_index::{SharedBytes, Way};

use crate::error::ReadError;

/// A key and its new value; `None` if the key was removed.
pub(crate) type Change = (Arc<[u8]>, Option<SharedBytes>);

/// The changes of one source, in key order, each key once.
pub(crate) type Changes<'a> = Box<dyn Iterator<Item = Result<Change, ReadError>> + 'a>;

/// A key and its current value.
pub(crate) type KeyValue = (Arc<[u8]>, SharedBytes);

/// Merges changes of several ages into one sequence. The newest change of a key counts. Removed keys are skipped.
pub(crate) struct Merged<'a> {
    /// Sources from the newest to the oldest, each with its next change.
    sources: Vec<(Change, Changes<'a>)>,
    way: Way,
}

impl<'a> Merged<'a> {
    /// Creates a merge. `sources` go from the newest to the oldest.
    pub(crate) fn new(sources: Vec<Changes<'a>>, way: Way) -> Result<Self, ReadError> {
        let mut open = Vec::with_capacity(sources.len());
        for mut source in sources {
            if let Some(first) = source.next().transpose()? {
                open.push((first, source));
            }
        }
        Ok(Self { sources: open, way })
    }

    /// Returns the next key and its current value.
    pub(crate) fn next(&mut self) -> Result<Option<KeyValue>, ReadError> {
        loop {
            let heads = self.sources.iter().map(|((key, _), _)| key);
            let next = match self.way {
                Way::Ascending => heads.min(),
                Way::Descending => heads.max(),
            };
            let Some(key) = next.cloned() else { return Ok(None) };
            let mut found = None;
            let mut at = 0;
            while at < self.sources.len() {
                let ((have, _), rest) = &mut self.sources[at];
                if *have != key {
                    at += 1;
                    continue;
                }
                let (_, value) = if let Some(next) = rest.next().transpose()? {
                    at += 1;
                    std::mem::replace(&mut self.sources[at - 1].0, next)
                } else {
                    self.sources.remove(at).0
                };
                found.get_or_insert(value);
            }
            if let Some(Some(value)) = found {
                return Ok(Some((key, value)));
            }
        }
    }
}
