//! The overlay of documents: changes since the last flush, on top of the values in the index.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use ledger_index::{IndexSnapshot, Way, tables};

use crate::error::ReadError;

/// A key and its new value; `None` if the key was removed.
pub(crate) type Change = (Arc<[u8]>, Option<Box<[u8]>>);

/// Changes of the same age in key order, each key once.
pub(crate) type Changes<'a> = Box<dyn Iterator<Item = Result<Change, ReadError>> + 'a>;

/// The changes that one flush will write.
type FlushChanges = BTreeMap<Arc<[u8]>, Option<Box<[u8]>>>;

/// State of a key in the current flush before a change.
pub(crate) enum Before {
    /// The current flush had no change of the key, so the value of older flushes applied.
    Unchanged,
    /// The current flush had this change of the key.
    Changed(Option<Box<[u8]>>),
}

/// A key and its current value.
pub(crate) type KeyValue = (Arc<[u8]>, Box<[u8]>);

/// Document changes by the writer, grouped by the flush that will write them.
pub(crate) struct Overlay(VecDeque<(u64, FlushChanges)>);

impl Overlay {
    /// Creates an empty overlay. The first changes belong to `flush`.
    pub(crate) fn new(flush: u64) -> Self {
        Self(VecDeque::from([(flush, BTreeMap::new())]))
    }

    /// Starts a new group. From now on, changes belong to `flush`.
    pub(crate) fn begin(&mut self, flush: u64) {
        self.0.push_back((flush, BTreeMap::new()));
    }

    /// Drops the changes that flushes up to `flushed` have written.
    pub(crate) fn release(&mut self, flushed: u64) {
        while self.0.len() > 1 && self.0.front().is_some_and(|(flush, _)| *flush <= flushed) {
            self.0.pop_front();
        }
    }

    /// Sets or removes the value of a key. Returns what [`Overlay::undo`] needs to take the change back.
    pub(crate) fn put(&mut self, key: Arc<[u8]>, value: Option<Box<[u8]>>) -> Before {
        match self.newest().insert(key, value) {
            Some(value) => Before::Changed(value),
            None => Before::Unchanged,
        }
    }

    /// Takes a change back. `before` comes from [`Overlay::put`].
    pub(crate) fn undo(&mut self, key: &[u8], before: Before) {
        match before {
            Before::Changed(value) => self.newest().insert(key.into(), value),
            Before::Unchanged => self.newest().remove(key),
        };
    }

    fn newest(&mut self) -> &mut FlushChanges {
        &mut self.0.back_mut().expect("an overlay always has a current flush").1
    }

    /// Returns the current value of a key.
    pub(crate) fn get(&self, index: &IndexSnapshot, key: &[u8]) -> Result<Option<Box<[u8]>>, ReadError> {
        for (_, changes) in self.0.iter().rev() {
            if let Some(value) = changes.get(key) {
                return Ok(value.clone());
            }
        }
        Ok(index.get(tables::DOCUMENTS, key)?.map(Into::into))
    }

    /// Returns the current values from one key up to another.
    pub(crate) fn scan<'a>(
        &'a self,
        index: &'a IndexSnapshot,
        from: &'a [u8],
        to: &'a [u8],
    ) -> Result<Merged<'a>, ReadError> {
        let bounds = (Bound::Included(from), Bound::Excluded(to));
        let mut sources: Vec<Changes<'a>> = Vec::new();
        for (_, changes) in self.0.iter().rev() {
            let changes = changes.range::<[u8], _>(bounds);
            sources.push(Box::new(changes.map(|(key, value)| Ok((key.clone(), value.clone())))));
        }
        sources.push(stored(index, from, to, Way::Ascending)?);
        Merged::new(sources, Way::Ascending)
    }
}

/// Returns the values in the index from one key up to another, as changes.
pub(crate) fn stored<'a>(
    index: &'a IndexSnapshot,
    from: &[u8],
    to: &[u8],
    way: Way,
) -> Result<Changes<'a>, ReadError> {
    let range = index.range(tables::DOCUMENTS, Bound::Included(from), Bound::Excluded(to))?;
    let change = |entry: Result<(Vec<u8>, Vec<u8>), _>| {
        let (key, value) = entry.map_err(ReadError::from)?;
        Ok((key.into(), Some(value.into_boxed_slice())))
    };
    Ok(match way {
        Way::Ascending => Box::new(range.map(change)),
        Way::Descending => Box::new(range.rev().map(change)),
    })
}

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
