//! Reads and writes documents in the index.
//!
//! Documents with secondary keys, and the entries of their indexes, are rows of runs: most of their keys come in random
//! order, and one by one each would change a page of a B-tree of its own. The other documents are in a plain table.
//! Among them are queues, where a reader would have to skip the removed rows of runs until they are merged, and the
//! documents of the store itself, which a purge deletes by key ranges.

use std::borrow::Cow;
use std::ops::Bound;

use ledger_codec::Reader;
use ledger_index::{
    DocumentRow, IndexError, IndexSnapshot, IndexWrite, Row, SharedBytes, TableView, Way, tables, write_run,
};

use super::Collection;
use super::keys::is_document;
use super::merged::{Changes, Merged};
use crate::error::ReadError;

/// Returns whether a full key is of the store itself.
fn is_own(full: &[u8]) -> bool {
    full < &Collection::FIRST.to_be_bytes()[..]
}

/// Returns whether a document has secondary keys. `stored` is its stored value.
fn has_keys(stored: &[u8]) -> bool {
    let mut reader = Reader::new(stored);
    reader.u64().is_ok() && reader.varint().is_ok_and(|count| count > 0)
}

fn rows(index: &IndexSnapshot) -> TableView<DocumentRow> {
    TableView::new(Vec::new(), index.clone())
}

/// Returns the newest row of a full key.
fn row(index: &IndexSnapshot, full: &[u8]) -> Result<Option<DocumentRow>, IndexError> {
    rows(index).last_in((full.into(), 0), (full.into(), u64::MAX))
}

/// Returns the value of a document's full key.
pub(crate) fn value(index: &IndexSnapshot, full: &[u8]) -> Result<Option<SharedBytes>, ReadError> {
    if !is_own(full)
        && let Some(DocumentRow { value: Some(value), .. }) = row(index, full)?
    {
        return Ok(Some(value));
    }
    Ok(index.get(tables::DOCUMENTS, full)?.map(Into::into))
}

/// Returns the values from one full key up to another of the same part, as changes.
pub(crate) fn between<'a>(
    index: &'a IndexSnapshot,
    from: &[u8],
    to: &[u8],
    way: Way,
) -> Result<Changes<'a>, ReadError> {
    if is_own(from) {
        return plain_between(index, from, to, way);
    }
    // Versions begin at 1, so no row has the upper bound.
    let rows = rows(index).cursor((from.into(), 0), (to.into(), 0), way).current();
    let rows = rows.map(|row| row.map(|row| (row.key, row.value)).map_err(ReadError::from));
    if !is_document(from) {
        return Ok(Box::new(rows));
    }
    let mut all = Merged::new(vec![Box::new(rows), plain_between(index, from, to, way)?], way);
    let next = move || all.next().transpose();
    Ok(Box::new(std::iter::from_fn(next).map(|found| found.map(|(key, value)| (key, Some(value))))))
}

fn plain_between<'a>(
    index: &'a IndexSnapshot,
    from: &[u8],
    to: &[u8],
    way: Way,
) -> Result<Changes<'a>, ReadError> {
    let range = index.range(tables::DOCUMENTS, Bound::Included(from), Bound::Excluded(to))?;
    let change = |entry: Result<(Vec<u8>, Vec<u8>), _>| {
        let (key, value) = entry.map_err(ReadError::from)?;
        Ok((key.into(), Some(value.into())))
    };
    Ok(match way {
        Way::Ascending => Box::new(range.map(change)),
        Way::Descending => Box::new(range.rev().map(change)),
    })
}

/// Writes changes, which ascend by key and have each key once. `before` is the index before them.
pub(crate) fn write<'a>(
    write: &IndexWrite,
    before: &IndexSnapshot,
    changes: impl Iterator<Item = &'a DocumentRow>,
) -> Result<(), IndexError> {
    let (mut rows, mut plain, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes {
        let is_row = !is_own(&change.key)
            && (!is_document(&change.key) || change.value.as_deref().is_some_and(has_keys));
        if is_row {
            rows.push(Cow::Borrowed(change));
        } else if !is_own(&change.key) && row(before, &change.key)?.is_some_and(|row| !row.is_removal()) {
            rows.push(Cow::Owned(DocumentRow { value: None, ..change.clone() }));
        }
        match &change.value {
            Some(value) if !is_row => plain.push((&*change.key, &**value)),
            _ if is_own(&change.key) || is_document(&change.key) => removed.push(&*change.key),
            _ => {}
        }
    }
    write_run::<DocumentRow, _>(write, rows)?;
    let mut table = write.table(tables::DOCUMENTS)?;
    for key in removed {
        table.delete(key)?;
    }
    table.put_ascending(plain)
}
