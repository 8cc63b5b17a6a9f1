//! What changed since the index was last flushed, over what stands in the index.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use crate::error::ReadError;
use crate::index::{IndexSnapshot, Way};
use crate::lookup::tables;

/// A key, and what stands under it; `None` where it was removed.
pub(crate) type Change = (Box<[u8]>, Option<Box<[u8]>>);

/// Changes of one age in order, each key once.
pub(crate) type Changes<'a> = Box<dyn Iterator<Item = Result<Change, ReadError>> + 'a>;

/// What one flush will hold.
type Generation = BTreeMap<Box<[u8]>, Option<Box<[u8]>>>;

/// What a flush had of a key before it was changed.
pub(crate) enum Before {
    /// Nothing: what older flushes have counts.
    Unchanged,
    /// This.
    Changed(Option<Box<[u8]>>),
}

/// A key and what stands under it.
pub(crate) type Standing = (Box<[u8]>, Box<[u8]>);

/// What the writer changed, by the flush that will hold it.
pub(crate) struct Overlay(VecDeque<(u64, Generation)>);

impl Overlay {
    /// Empty; what is put first belongs to `flush`.
    pub(crate) fn new(flush: u64) -> Self {
        Self(VecDeque::from([(flush, BTreeMap::new())]))
    }

    /// From now on what is put belongs to `flush`.
    pub(crate) fn begin(&mut self, flush: u64) {
        self.0.push_back((flush, BTreeMap::new()));
    }

    /// Drops what flushes up to `flushed` hold.
    pub(crate) fn release(&mut self, flushed: u64) {
        while self.0.len() > 1 && self.0.front().is_some_and(|(flush, _)| *flush <= flushed) {
            self.0.pop_front();
        }
    }

    /// Puts or removes what stands under a key. Says what this flush had of it before, to [undo](Self::undo) it.
    pub(crate) fn put(&mut self, key: Box<[u8]>, value: Option<Box<[u8]>>) -> Before {
        match self.youngest().insert(key, value) {
            Some(value) => Before::Changed(value),
            None => Before::Unchanged,
        }
    }

    /// Takes a change back: what [`Overlay::put`] returned stands there again.
    pub(crate) fn undo(&mut self, key: &[u8], before: Before) {
        match before {
            Before::Changed(value) => self.youngest().insert(key.into(), value),
            Before::Unchanged => self.youngest().remove(key),
        };
    }

    fn youngest(&mut self) -> &mut Generation {
        &mut self.0.back_mut().expect("there is always a generation").1
    }

    /// What stands under a key.
    pub(crate) fn get(&self, index: &IndexSnapshot, key: &[u8]) -> Result<Option<Box<[u8]>>, ReadError> {
        for (_, changes) in self.0.iter().rev() {
            if let Some(value) = changes.get(key) {
                return Ok(value.clone());
            }
        }
        Ok(index.get(tables::DOCUMENTS, key)?.map(Into::into))
    }

    /// What stands from one key up to another.
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

/// What the index has from one key up to another.
pub(crate) fn stored<'a>(
    index: &'a IndexSnapshot,
    from: &[u8],
    to: &[u8],
    way: Way,
) -> Result<Changes<'a>, ReadError> {
    let range = index.range(tables::DOCUMENTS, Bound::Included(from), Bound::Excluded(to))?;
    let change = |entry: Result<(Vec<u8>, Vec<u8>), _>| {
        let (key, value) = entry.map_err(ReadError::from)?;
        Ok((key.into_boxed_slice(), Some(value.into_boxed_slice())))
    };
    Ok(match way {
        Way::Ascending => Box::new(range.map(change)),
        Way::Descending => Box::new(range.rev().map(change)),
    })
}

/// Changes of several ages as one sequence: the youngest counts, and what was removed is passed over.
pub(crate) struct Merged<'a> {
    /// The youngest first, each with its next change.
    sources: Vec<(Change, Changes<'a>)>,
    way: Way,
}

impl<'a> Merged<'a> {
    /// `sources` are in order of age, the youngest first.
    pub(crate) fn new(sources: Vec<Changes<'a>>, way: Way) -> Result<Self, ReadError> {
        let mut open = Vec::with_capacity(sources.len());
        for mut source in sources {
            if let Some(first) = source.next().transpose()? {
                open.push((first, source));
            }
        }
        Ok(Self { sources: open, way })
    }

    /// The next key and what stands under it.
    pub(crate) fn next(&mut self) -> Result<Option<Standing>, ReadError> {
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
