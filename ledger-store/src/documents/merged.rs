//! Changes of documents from sources of several ages, merged into one sequence.

use std::sync::Arc;

use ledger_index::{MergedSources, SharedBytes, Way};

use crate::error::ReadError;

/// A key and its new value; `None` if the key was removed.
pub(crate) type Change = (Arc<[u8]>, Option<SharedBytes>);

/// The changes of one source, in key order, each key once.
pub(crate) type Changes<'a> = Box<dyn Iterator<Item = Result<Change, ReadError>> + 'a>;

/// A key and its current value.
pub(crate) type KeyValue = (Arc<[u8]>, SharedBytes);

/// Merges changes of several ages into one sequence. The newest change of a key counts. Removed keys are skipped.
pub(crate) struct Merged<'a>(MergedSources<Changes<'a>, Change, Arc<[u8]>>);

impl<'a> Merged<'a> {
    /// Creates a merge. `sources` go from the newest to the oldest.
    pub(crate) fn new(sources: Vec<Changes<'a>>, way: Way) -> Self {
        Self(MergedSources::new(sources, way, |(key, _)| key.clone()))
    }

    /// Returns the next key and its current value.
    pub(crate) fn next(&mut self) -> Result<Option<KeyValue>, ReadError> {
        while let Some((key, value)) = self.0.next().transpose()? {
            if let Some(value) = value {
                return Ok(Some((key, value)));
            }
        }
        Ok(None)
    }
}
