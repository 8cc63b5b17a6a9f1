//! Lists of a ledger: iterators that fetch pages, and single pages with cursors.

use std::fmt;
use std::sync::Arc;

use ledger_core::{FilterError, FilterOf, Operator, Selects, Timestamp};

use super::error::LedgerError;
use crate::error::ReadError;
use crate::query::{Direction, Explanation, Page, PageRequest, Start};
use crate::read::LedgerView;
use crate::readers::{ReadFuture, Readers};

/// Number of items that an iterator reads at once.
pub(super) const FETCHED_ITEMS: usize = 200;

/// A kind of list. See [`List`].
pub trait ListKind: Clone + fmt::Debug + Send + 'static + sealed::ListSpec {}

pub(super) mod sealed {
    use std::fmt::Debug;

    use super::{
        Direction, Explanation, FETCHED_ITEMS, FilterOf, LedgerView, Page, PageRequest, ReadError, Selects,
        Start,
    };

    /// Specifies one kind of list: its items, their keys, and how they are read.
    pub trait ListSpec {
        type Selected: Selects + Clone + Debug + Send + 'static;
        type Item: Send + 'static;
        type Key: Clone + Debug + Send + 'static;
        /// The first letter of cursors of this list.
        const LETTER: char;

        fn fetch(
            &self,
            view: &LedgerView,
            filter: FilterOf<Self::Selected>,
            page: PageRequest<Self::Key>,
        ) -> Result<Page<Self::Item>, ReadError>;

        /// Counts by reading pages, unless the kind has a better way.
        fn count(&self, view: &LedgerView, filter: &FilterOf<Self::Selected>) -> Result<u64, ReadError> {
            let (mut start, mut count) = (Start::First, 0);
            loop {
                let page = PageRequest { size: FETCHED_ITEMS, direction: Direction::Ascending, start };
                let page = self.fetch(view, filter.clone(), page)?;
                count += page.items.len() as u64;
                match page.items.last().filter(|_| page.has_next) {
                    Some(last) => start = Start::After(self.key(last)),
                    None => return Ok(count),
                }
            }
        }

        fn key(&self, item: &Self::Item) -> Self::Key;

        fn write_key(&self, key: &Self::Key) -> String;

        fn read_key(&self, text: &str) -> Option<Self::Key>;
    }

    /// Explains how one kind of list is read.
    pub trait Explained: ListSpec {
        fn explain(
            &self,
            view: &LedgerView,
            filter: FilterOf<Self::Selected>,
            page: PageRequest<Self::Key>,
        ) -> Result<Explanation, ReadError>;
    }
}

/// A list of a ledger in one snapshot: of [accounts](crate::AccountList), [transactions](crate::TransactionList) or
/// [logs](crate::LogList).
///
/// As an iterator it reads pages when they are needed, all from the same snapshot. [`List::page`] reads one page, and
/// returns cursors for the pages around it; a program that got a cursor back from its client continues with
/// [`List::from_cursor`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ledger = ledger_store::Store::in_memory().ledger("main")?;
/// for number in 1..=5 {
///     ledger.transaction().posting("world", format!("users:{number}"), 100, "USD/2").metadata("kind", "topup").commit()?;
/// }
/// for transaction in ledger.transactions().metadata("kind", "topup").newest_first() {
///     let transaction = transaction?;
///     println!("{} {}", transaction.id, transaction.timestamp);
/// }
/// let page = ledger.accounts().matching("users:*").page(3)?;
/// let cursor = page.next.expect("there are five");
/// let rest = ledger.accounts().matching("users:*").from_cursor(&cursor).page(3)?;
/// assert_eq!((page.items.len(), rest.items.len(), rest.next), (3, 2, None));
/// assert_eq!(ledger.transactions().filter_json(r#"{"$match": {"destination": "users:4"}}"#)?.count()?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is read before it is iterated, or a page of it asked for"]
pub struct List<K: ListKind> {
    view: Option<LedgerView>,
    pub(super) readers: Arc<Readers>,
    pub(super) kind: K,
    filter: FilterOf<K::Selected>,
    pub(super) direction: Direction,
    start: Option<Start<K::Key>>,
    fault: Option<LedgerError>,
}

/// One page of a [`List`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ListPage<T> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor of the next page: an opaque text of letters, digits, `-`, `_` and `:`. `None` on the last page.
    pub next: Option<String>,
    /// The cursor of the previous page. `None` on the first page.
    pub previous: Option<String>,
}

impl<K: ListKind> List<K> {
    pub(super) fn new(view: Option<LedgerView>, readers: Arc<Readers>, kind: K) -> Self {
        let (filter, direction) = (FilterOf::all(), Direction::Ascending);
        Self { view, readers, kind, filter, direction, start: None, fault: None }
    }

    pub(super) fn select(mut self, filter: Result<FilterOf<K::Selected>, FilterError>) -> Self {
        match join(std::mem::take(&mut self.filter), filter) {
            Ok(filter) => self.filter = filter,
            Err(error) => {
                self.fault.get_or_insert(error);
            }
        }
        self
    }

    pub(super) fn compare(self, field: &str, operator: Operator, value: Timestamp) -> Self {
        self.select(FilterOf::field(field, operator, value))
    }

    /// Adds a filter to the conditions of the list. A malformed name in it is an error of [`List::page`], unlike in the
    /// HTTP API, where it selects nothing.
    ///
    /// ```
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// ledger.transaction().posting("world", "users:1", 5, "USD").posting("world", "users:2", 7, "USD").commit()?;
    /// let rich = FilterOf::field("balance[USD]", Operator::Gte, Balance::from(6))?;
    /// assert_eq!(ledger.accounts().filter(rich).page(10)?.items[0].address.as_str(), "users:2");
    /// # Ok::<(), LedgerError>(())
    /// ```
    pub fn filter(self, filter: FilterOf<K::Selected>) -> Self {
        self.select(Ok(filter))
    }

    /// Adds a filter in the JSON form of the HTTP API to the conditions of the list, like [`List::filter`].
    ///
    /// # Errors
    ///
    /// [`LedgerError::Filter`] with the defect of the text.
    pub fn filter_json(self, json: &str) -> Result<Self, LedgerError> {
        Ok(self.filter(FilterOf::parse(json)?))
    }

    /// Starts the list where a page ended. The list must have the same kind and order as the one that returned the
    /// cursor, which is checked, and should have the same conditions, which is not.
    pub fn from_cursor(mut self, cursor: &str) -> Self {
        match self.read_cursor(cursor) {
            Some(start) => self.start = Some(start),
            None => {
                self.fault.get_or_insert(LedgerError::Cursor { text: cursor.chars().take(100).collect() });
            }
        }
        self
    }

    fn read_cursor(&self, cursor: &str) -> Option<Start<K::Key>> {
        let rest = cursor.strip_prefix(K::LETTER)?.strip_prefix(letter(self.direction))?;
        let (way, key) = rest.split_once(':')?;
        let key = self.kind.read_key(key)?;
        match way {
            "n" => Some(Start::After(key)),
            "p" => Some(Start::Before(key)),
            _ => None,
        }
    }

    fn write_cursor(&self, way: char, item: &K::Item) -> String {
        let key = self.kind.write_key(&self.kind.key(item));
        format!("{}{}{way}:{key}", K::LETTER, letter(self.direction))
    }

    /// Reads a page of at most `size` items. A size of 0 counts as 1. Blocks the thread;
    /// [`page_async`](Self::page_async) does not.
    ///
    /// ```
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let misspelt = ledger.transactions().account("users 1").page(50);
    /// assert!(matches!(misspelt, Err(LedgerError::Name(_))));
    /// # Ok::<(), LedgerError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first malformed condition: [`LedgerError::Name`] for a name, such as an address pattern, an asset or a
    /// reference, else [`LedgerError::Filter`]. [`LedgerError::Cursor`], [`LedgerError::Read`].
    pub fn page(&self, size: usize) -> Result<ListPage<K::Item>, LedgerError> {
        let start = self.start.clone().unwrap_or(Start::First);
        let page = self.fetch(size, start)?;
        let cursor = |way, item: Option<&K::Item>| item.map(|item| self.write_cursor(way, item));
        let next = cursor('n', page.items.last().filter(|_| page.has_next));
        let previous = cursor('p', page.items.first().filter(|_| page.has_previous));
        Ok(ListPage { next, previous, items: page.items })
    }

    fn fetch(&self, size: usize, start: Start<K::Key>) -> Result<Page<K::Item>, LedgerError> {
        let Some(view) = self.readable()? else {
            return Ok(Page { items: Vec::new(), has_next: false, has_previous: false });
        };
        let page = PageRequest { size, direction: self.direction, start };
        Ok(self.kind.fetch(view, self.filter.clone(), page)?)
    }

    /// Returns the view, or `None` if the ledger did not exist.
    fn readable(&self) -> Result<Option<&LedgerView>, LedgerError> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(self.view.as_ref()),
        }
    }

    /// Counts the items of the whole list. Blocks the thread; [`count_async`](Self::count_async) does not.
    ///
    /// The store keeps the numbers of all accounts and of all transactions. With a condition or a date, counting reads
    /// about as much as reading the whole list: [`List::explain`] says which index it uses. The section
    /// [Counting](crate#counting) of the guide has a cheaper way for counts that are shown often.
    ///
    /// # Errors
    ///
    /// As [`List::page`].
    pub fn count(&self) -> Result<u64, LedgerError> {
        match self.readable()? {
            None => Ok(0),
            Some(view) => Ok(self.kind.count(view, &self.filter)?),
        }
    }
}

impl<K: ListKind + sealed::Explained> List<K> {
    /// Reads a page of at most `size` items, and returns which index supplied them and how many rows were read: for a
    /// list that is slower than expected. Blocks the thread; [`explain_async`](Self::explain_async) does not.
    ///
    /// ```
    /// let ledger = ledger_store::Store::in_memory().ledger("main")?;
    /// for number in 1..=5 {
    ///     ledger.transaction().posting("world", format!("users:{number}"), 100, "USD/2").commit()?;
    /// }
    /// let explanation = ledger.transactions().destination("users:4").explain(10)?;
    /// assert_eq!((explanation.rows_returned, explanation.is_exact), (1, true));
    /// # Ok::<(), ledger_store::LedgerError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`List::page`].
    pub fn explain(&self, size: usize) -> Result<Explanation, LedgerError> {
        let Some(view) = self.readable()? else { return Ok(Explanation::default()) };
        let start = self.start.clone().unwrap_or(Start::First);
        let page = PageRequest { size, direction: self.direction, start };
        Ok(self.kind.explain(view, self.filter.clone(), page)?)
    }
}

/// Adds a filter to the conditions of a list, and checks its names.
pub(super) fn join<R: Selects>(
    conditions: FilterOf<R>,
    filter: Result<FilterOf<R>, FilterError>,
) -> Result<FilterOf<R>, LedgerError> {
    let filter = filter?;
    filter.check_names()?;
    Ok(conditions.and(filter)?)
}

const fn letter(direction: Direction) -> char {
    match direction {
        Direction::Ascending => 'a',
        Direction::Descending => 'd',
    }
}

impl<K: ListKind> IntoIterator for List<K> {
    type Item = Result<K::Item, LedgerError>;
    type IntoIter = ListIter<K>;

    fn into_iter(self) -> ListIter<K> {
        let next = Some(self.start.clone().unwrap_or(Start::First));
        ListIter { list: self, items: Vec::new().into_iter(), next }
    }
}

/// Iterates over a [`List`]. Ends after the first error.
///
/// ```
/// use ledger_store::{ListIter, TransactionKind, prelude::*};
/// /// Reads the next few transactions.
/// fn part(list: &mut ListIter<TransactionKind>, len: usize) -> Result<Vec<TransactionView>, LedgerError> {
///     list.take(len).collect()
/// }
/// let ledger = Store::in_memory().ledger("main")?;
/// for _ in 0..5 {
///     ledger.transaction().posting("world", "users:1", 100, "USD/2").commit()?;
/// }
/// let mut list = ledger.transactions().into_iter();
/// assert_eq!((part(&mut list, 3)?.len(), part(&mut list, 3)?.len()), (3, 2));
/// # Ok::<(), LedgerError>(())
/// ```
pub struct ListIter<K: ListKind> {
    list: List<K>,
    /// The remaining items of the current page.
    pub(super) items: std::vec::IntoIter<K::Item>,
    /// The start of the next page. `None` after the last one.
    next: Option<Start<K::Key>>,
}

impl<K: ListKind> ListIter<K> {
    /// Continues with the items of a page.
    pub(super) fn accept(&mut self, page: Page<K::Item>) {
        let last = page.items.last().filter(|_| page.has_next);
        self.next = last.map(|last| Start::After(self.list.kind.key(last)));
        self.items = page.items.into_iter();
    }

    /// Starts to read the next page on a thread of the store. Returns `None` after the last page.
    pub(super) fn read_page(&mut self) -> Option<PageFuture<K>> {
        let (list, start) = (self.list.clone(), self.next.take()?);
        Some(self.list.readers.run(move || list.fetch(FETCHED_ITEMS, start)))
    }
}

/// A page that is being read.
pub(super) type PageFuture<K> = ReadFuture<Result<Page<<K as sealed::ListSpec>::Item>, LedgerError>>;

impl<K: ListKind> Iterator for ListIter<K> {
    type Item = Result<K::Item, LedgerError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(item) = self.items.next() {
            return Some(Ok(item));
        }
        match self.list.fetch(FETCHED_ITEMS, self.next.take()?) {
            Ok(page) => self.accept(page),
            Err(error) => return Some(Err(error)),
        }
        self.items.next().map(Ok)
    }
}

impl<K: ListKind> fmt::Debug for ListIter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListIter").field("list", &self.list).finish_non_exhaustive()
    }
}
