//! Pages of documents, sorted by one or more secondary keys, from the position in a cursor.
//!
//! A page is read in the order of the index of the first sort key. Documents with the same first key form a group,
//! which is sorted by the other keys in memory. So a page only reads the groups that it contains. The key of the
//! document is the last sort key, so that the order is total.
//!
//! A dated key is a value followed by a date; see [`DATED`]. A dated index holds the documents of each value in the
//! order of their dates, so a filter by a value and a list in the order of dates read no other documents.

use std::cmp::Ordering;
use std::ops::Bound;

use ledger_store::{Collection, DOCUMENTS_PAGE_MAX, Direction, Document, DocumentRange, ReadError, Snapshot};

use crate::payments::codec::DATE_KEY_BYTES;
use crate::payments::record::{DATED, prefixed, secondary_key};

/// A sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortKey {
    /// The index with the values of the key.
    pub(crate) index: u32,
    pub(crate) direction: Direction,
}

/// The position of a document in an order: its sort keys, and the key of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) document: Vec<u8>,
}

/// The start or end of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PageBound {
    Start,
    After(Position),
    /// The page ends before this position.
    Before(Position),
}

/// The documents to list, with their order, the start of the page and its size.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(crate) collection: Collection,
    /// The common prefix of the secondary keys of all rows.
    pub(crate) prefix: Vec<u8>,
    /// The sort keys; at least one.
    pub(crate) order: Vec<SortKey>,
    pub(crate) from: PageBound,
    pub(crate) size: usize,
    /// True if some documents are skipped, so that a page may read many more than it contains.
    pub(crate) is_filtered: bool,
    /// A secondary key that a filter requires of all rows.
    pub(crate) index_filter: Option<IndexFilter>,
}

/// A secondary key that a filter requires of all rows: the number of its index, and the key or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexFilter {
    /// All rows have this key.
    Key(u32, Vec<u8>),
    /// All rows have this value in a dated index. Only for lists of a whole collection in the order of these dates.
    Value(u32, Vec<u8>),
    /// The filter matches no row.
    Nothing,
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// The position of the first row, if there are rows before it, and of the last row, if there are rows after it.
    pub(crate) previous: Option<Position>,
    pub(crate) next: Option<Position>,
}

fn reversed(direction: Direction) -> Direction {
    match direction {
        Direction::Ascending => Direction::Descending,
        Direction::Descending => Direction::Ascending,
    }
}

impl Listing {
    /// Reads the page. `accept` converts a document to a row, or returns `None` to skip it.
    pub(crate) fn page<T>(
        &self,
        snapshot: &Snapshot,
        accept: impl FnMut(&Document) -> Result<Option<T>, ReadError>,
    ) -> Result<Page<T>, ReadError> {
        let is_backward = matches!(self.from, PageBound::Before(_));
        let mut order = self.order.clone();
        if is_backward {
            for key in &mut order {
                key.direction = reversed(key.direction);
            }
        }
        let after = match &self.from {
            PageBound::Start => None,
            PageBound::After(position) | PageBound::Before(position) => Some(position.clone()),
        };
        let mut walk = PageReader { listing: self, order, after, accept, found: Vec::new() };
        walk.run(snapshot)?;
        let mut found = walk.found;
        let has_more = found.len() > self.size;
        found.truncate(self.size);
        if is_backward {
            found.reverse();
        }
        let first = found.first().map(|(position, _)| position.clone());
        let last = found.last().map(|(position, _)| position.clone());
        let (has_previous, has_next) = match self.from {
            PageBound::Start => (false, has_more),
            PageBound::After(_) => (true, has_more),
            PageBound::Before(_) => (has_more, true),
        };
        Ok(Page {
            rows: found.into_iter().map(|(_, row)| row).collect(),
            previous: first.filter(|_| has_previous),
            next: last.filter(|_| has_next),
        })
    }
}

/// Factor by which each read of the store is larger than the one before it. A page that skips few documents then reads
/// at most about twice as many as it needs. A page that skips many soon reads the maximum at once.
const READ_GROWTH: usize = 2;

/// Reads the documents of a listing, up to one row more than a page contains.
struct PageReader<'a, T, A> {
    listing: &'a Listing,
    order: Vec<SortKey>,
    after: Option<Position>,
    accept: A,
    found: Vec<(Position, T)>,
}

impl<T, A: FnMut(&Document) -> Result<Option<T>, ReadError>> PageReader<'_, T, A> {
    fn run(&mut self, snapshot: &Snapshot) -> Result<(), ReadError> {
        let (index, prefix) = match &self.listing.index_filter {
            Some(IndexFilter::Key(index, key)) => return self.read_one_key(snapshot, *index, key),
            Some(IndexFilter::Value(index, value)) => (*index, value),
            Some(IndexFilter::Nothing) => return Ok(()),
            None => (self.order[0].index, &self.listing.prefix),
        };
        let wanted = self.listing.size + 1;
        let mut range = prefixed(prefix, self.order[0].direction);
        let is_grouped = self.order.len() > 1;
        self.begin(&mut range, is_grouped);
        range.limit = wanted.min(DOCUMENTS_PAGE_MAX);
        // The rows of the current group with their positions.
        let mut group: Vec<(Position, T)> = Vec::new();
        loop {
            let documents = snapshot.documents_by(self.listing.collection, index, &range)?;
            for document in &documents {
                let position = self.position(document);
                if group.first().is_some_and(|(first, _)| first.keys[0] != position.keys[0]) {
                    self.end_group(&mut group);
                    if self.found.len() >= wanted {
                        return Ok(());
                    }
                }
                if self.after.as_ref().is_some_and(|after| self.compare(&position, after).is_le()) {
                    continue;
                }
                if let Some(row) = (self.accept)(document)? {
                    if is_grouped {
                        group.push((position, row));
                        self.trim_group(&mut group);
                    } else {
                        self.found.push((position, row));
                    }
                }
                if self.found.len() >= wanted {
                    return Ok(());
                }
            }
            let Some(last) = documents.last().filter(|_| documents.len() == range.limit) else {
                self.end_group(&mut group);
                return Ok(());
            };
            let secondary = secondary_key(last, index).unwrap_or_default();
            range.beyond = Some((secondary, last.key.clone()));
            range.limit = (range.limit * READ_GROWTH).min(DOCUMENTS_PAGE_MAX);
        }
    }

    /// Reads the documents with this key in an index as one group.
    fn read_one_key(&mut self, snapshot: &Snapshot, index: u32, key: &[u8]) -> Result<(), ReadError> {
        let mut range = DocumentRange {
            from: Bound::Included(key.to_vec()),
            to: Bound::Included(key.to_vec()),
            ..DocumentRange::default()
        };
        let mut group: Vec<(Position, T)> = Vec::new();
        loop {
            let documents = snapshot.documents_by(self.listing.collection, index, &range)?;
            for document in &documents {
                let position = self.position(document);
                let is_after = self.after.as_ref().is_none_or(|after| self.compare(&position, after).is_gt());
                if is_after && let Some(row) = (self.accept)(document)? {
                    group.push((position, row));
                    self.trim_group(&mut group);
                }
            }
            match documents.last() {
                Some(last) if documents.len() == range.limit => {
                    range.beyond = Some((key.to_vec(), last.key.clone()));
                }
                _ => {
                    self.end_group(&mut group);
                    return Ok(());
                }
            }
        }
    }

    /// Starts a range at the position of the cursor, or at the start of its group.
    fn begin(&self, range: &mut DocumentRange, is_grouped: bool) {
        let Some(after) = &self.after else { return };
        if !is_grouped {
            let value = match &self.listing.index_filter {
                Some(IndexFilter::Value(_, value)) => &value[..],
                _ => &[],
            };
            range.beyond = Some(([value, &after.keys[0]].concat(), after.document.clone()));
            return;
        }
        let SortKey { index, direction } = self.order[0];
        let group = if index >= DATED {
            prefixed(&after.keys[0], direction)
        } else {
            let key = Bound::Included(after.keys[0].clone());
            DocumentRange { from: key.clone(), to: key, ..DocumentRange::default() }
        };
        match direction {
            Direction::Ascending => range.from = group.from,
            Direction::Descending => range.to = group.to,
        }
    }

    fn position(&self, document: &Document) -> Position {
        let key = |key: &SortKey| {
            let mut found = secondary_key(document, key.index).unwrap_or_default();
            // The next key of the order sorts equal values, not the date.
            if self.order.len() > 1 && key.index >= DATED {
                found.truncate(found.len().saturating_sub(DATE_KEY_BYTES));
            }
            found
        };
        Position { keys: self.order.iter().map(key).collect(), document: document.key.clone() }
    }

    fn compare(&self, one: &Position, other: &Position) -> Ordering {
        let turned = |ordering: Ordering, direction: Direction| match direction {
            Direction::Ascending => ordering,
            Direction::Descending => ordering.reverse(),
        };
        let keys = self.order.iter().zip(one.keys.iter().zip(&other.keys));
        keys.map(|(key, (one, other))| turned(one.cmp(other), key.direction))
            .find(|ordering| ordering.is_ne())
            .unwrap_or_else(|| turned(one.document.cmp(&other.document), self.order[0].direction))
    }

    /// Removes the rows of a large group that cannot be on the page.
    fn trim_group(&self, group: &mut Vec<(Position, T)>) {
        let wanted = self.listing.size + 1;
        if group.len() >= 2 * wanted {
            group.sort_by(|(one, _), (other, _)| self.compare(one, other));
            group.truncate(wanted);
        }
    }

    fn end_group(&mut self, group: &mut Vec<(Position, T)>) {
        group.sort_by(|(one, _), (other, _)| self.compare(one, other));
        let room = (self.listing.size + 1).saturating_sub(self.found.len());
        self.found.extend(group.drain(..).take(room));
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::Timestamp;
    use ledger_store::{DocumentAction, DocumentChange, DocumentKey, Expected, Store};

    use super::*;
    use crate::payments::codec::date_key;
    use crate::payments::record::{dated, ordered};

    const COLLECTION: Collection = Collection::new(999).expect("not the store's own");

    const BY_DATE: u32 = 2;

    /// Returns the date of a document. Some documents have the same.
    fn date(number: u8) -> Timestamp {
        Timestamp::from_micros(i64::from(number.wrapping_mul(91) / 2))
    }

    /// Returns a store with documents that have few different keys in index 0, many in index 1, and four values in the
    /// dated index.
    fn filled() -> Store {
        let store = Store::in_memory();
        for number in 0..200_u8 {
            let keys = vec![
                ordered(0, [7, number % 3]),
                ordered(1, [7, number.wrapping_mul(37)]),
                ordered(BY_DATE, date_key(date(number))),
                dated(DATED, &[7, number % 4], date(number)),
            ];
            let change = DocumentChange {
                collection: COLLECTION,
                key: vec![number],
                expected: Expected::Absent,
                action: DocumentAction::Put { value: vec![], keys },
            };
            store.change_documents(vec![change]).expect("room");
        }
        store
    }

    fn listing(order: &[(u32, Direction)], size: usize) -> Listing {
        let order = order.iter().map(|(index, direction)| SortKey { index: *index, direction: *direction });
        Listing {
            collection: COLLECTION,
            prefix: vec![7],
            order: order.collect(),
            from: PageBound::Start,
            size,
            is_filtered: true,
            index_filter: None,
        }
    }

    #[test]
    fn a_page_can_be_as_long_as_one_read_of_the_store() {
        let store = Store::in_memory();
        let change = |number: u32| DocumentChange {
            collection: COLLECTION,
            key: number.to_be_bytes().to_vec(),
            expected: Expected::Absent,
            action: DocumentAction::Put {
                value: vec![],
                keys: vec![DocumentKey { index: 0, key: vec![7], unique: false }],
            },
        };
        for part in 0..3 {
            store.change_documents((part * 500..part * 500 + 500).map(change).collect()).expect("room");
        }
        let mut listing = listing(&[(0, Direction::Ascending)], DOCUMENTS_PAGE_MAX);
        listing.is_filtered = false;
        let row = |document: &Document| Ok(Some(document.key.clone()));
        let first = listing.page(&store.snapshot(), row).expect("a page");
        listing.from = PageBound::After(first.next.expect("there are more"));
        let second = listing.page(&store.snapshot(), row).expect("a page");
        assert_eq!((first.rows.len(), second.rows.len()), (1_000, 500));
        assert!(second.next.is_none());
    }

    /// Returns all rows of a list: read page by page to the end, and then back from the last page.
    fn read(listing: &mut Listing, snapshot: &Snapshot) -> (Vec<u8>, Vec<u8>) {
        let row = |document: &Document| Ok(Some(document.key[0]));
        let (mut forward, mut backward) = (Vec::new(), Vec::new());
        listing.from = loop {
            let page = listing.page(snapshot, row).expect("a page");
            forward.extend(page.rows);
            match page.next {
                Some(next) => listing.from = PageBound::After(next),
                None => break PageBound::Before(page.previous.expect("several pages")),
            }
        };
        loop {
            let page = listing.page(snapshot, row).expect("a page");
            backward.splice(..0, page.rows);
            match page.previous {
                Some(previous) => listing.from = PageBound::Before(previous),
                None => return (forward, backward),
            }
        }
    }

    #[test]
    fn lists_rows_of_a_value_by_date() {
        let store = filled();
        for direction in [Direction::Ascending, Direction::Descending] {
            let mut listing = listing(&[(BY_DATE, direction)], 7);
            listing.prefix = vec![];
            listing.index_filter = Some(IndexFilter::Value(DATED, vec![7, 2]));
            let (forward, backward) = read(&mut listing, &store.snapshot());
            let mut expected: Vec<u8> = (0..200).filter(|number| number % 4 == 2).collect();
            expected.sort_by_key(|number| (date(*number), *number));
            if direction == Direction::Descending {
                expected.reverse();
            }
            assert_eq!(forward, expected);
            assert_eq!(backward, expected[..49]);
        }
    }

    #[test]
    fn dates_order_equal_values_unless_other_keys_do() {
        use Direction::{Ascending, Descending};
        let store = filled();
        for value_direction in [Ascending, Descending] {
            for second in [None, Some(Ascending), Some(Descending)] {
                let order = [Some((DATED, value_direction)), second.map(|direction| (1, direction))];
                let order: Vec<_> = order.into_iter().flatten().collect();
                let (forward, backward) = read(&mut listing(&order, 7), &store.snapshot());
                let key = |number: u8| {
                    let other = i64::from(number.wrapping_mul(37));
                    match second {
                        None => date(number).as_micros(),
                        // The whole order is turned around below.
                        Some(direction) if direction == value_direction => other,
                        Some(_) => -other,
                    }
                };
                let mut expected: Vec<u8> = (0..200).collect();
                expected.sort_by_key(|number| (number % 4, key(*number), *number));
                if value_direction == Descending {
                    expected.reverse();
                }
                assert_eq!(forward, expected, "{order:?}");
                assert_eq!(backward, expected[..196], "{order:?}");
            }
        }
    }

    #[test]
    fn narrowed_pages_have_the_rows_with_the_key() {
        let store = filled();
        let mut listing = listing(&[(1, Direction::Ascending)], 50);
        listing.index_filter = Some(IndexFilter::Key(0, vec![7, 2]));
        let row = |document: &Document| Ok(Some(document.key[0]));
        let first = listing.page(&store.snapshot(), row).expect("a page");
        listing.from = PageBound::After(first.next.expect("there are more"));
        let second = listing.page(&store.snapshot(), row).expect("a page");
        let all = [first.rows, second.rows].concat();
        assert!(all.iter().all(|number| number % 3 == 2) && all.len() == 66);
        assert!(all.is_sorted_by_key(|number| number.wrapping_mul(37)) && second.next.is_none());
    }

    #[test]
    fn page_of_nothing_reads_no_document() {
        let mut listing = listing(&[(1, Direction::Ascending)], 5);
        listing.index_filter = Some(IndexFilter::Nothing);
        let page = listing.page::<()>(&filled().snapshot(), |document| panic!("{document:?} is read"));
        assert!(page.is_ok_and(|page| page.rows.is_empty() && page.next.is_none()));
    }

    #[test]
    fn pages_in_any_order_are_the_sorted_whole() {
        use Direction::{Ascending, Descending};
        let store = filled();
        let snapshot = store.snapshot();
        for order in [
            &[(0, Ascending)][..],
            &[(1, Descending)],
            &[(0, Ascending), (1, Descending)],
            &[(0, Descending), (1, Ascending)],
            &[(1, Ascending), (0, Ascending)],
        ] {
            let row =
                |document: &Document| Ok((!document.key[0].is_multiple_of(5)).then_some(document.key[0]));
            let mut expected: Vec<u8> = (0..200).filter(|number: &u8| !number.is_multiple_of(5)).collect();
            let key = |number: u8, index: u32| if index == 0 { number % 3 } else { number.wrapping_mul(37) };
            expected.sort_by(|one, other| {
                let by = |(index, direction): &(u32, Direction)| {
                    let ordering = key(*one, *index).cmp(&key(*other, *index));
                    if *direction == Ascending { ordering } else { ordering.reverse() }
                };
                let last = if order[0].1 == Ascending { one.cmp(other) } else { other.cmp(one) };
                order.iter().map(by).find(|ordering| ordering.is_ne()).unwrap_or(last)
            });
            let mut listing = listing(order, 7);
            let (mut forward, mut pages) = (Vec::new(), Vec::new());
            loop {
                let page = listing.page(&snapshot, row).expect("a page");
                assert_eq!(page.previous.is_some(), !forward.is_empty());
                forward.extend(page.rows.clone());
                pages.push(page.rows);
                let Some(next) = page.next else {
                    listing.from = PageBound::Before(page.previous.expect("many pages"));
                    break;
                };
                listing.from = PageBound::After(next);
            }
            assert_eq!(forward, expected, "{order:?}");
            pages.pop();
            while let Some(expected) = pages.pop() {
                let page = listing.page(&snapshot, row).expect("a page");
                assert_eq!((page.rows, page.next.is_some()), (expected, true), "{order:?}");
                assert_eq!(page.previous.is_none(), pages.is_empty());
                if let Some(previous) = page.previous {
                    listing.from = PageBound::Before(previous);
                }
            }
        }
    }
}
