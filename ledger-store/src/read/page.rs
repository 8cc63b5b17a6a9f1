//! Pages: which way a list is walked for one, and how it is put in order again.

use crate::index::Way;
use crate::query::{Direction, Page, PageRequest, Start};

impl Direction {
    /// The other one.
    pub(crate) const fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }

    /// The same for a cursor of the index.
    pub(crate) const fn way(self) -> Way {
        match self {
            Self::Ascending => Way::Ascending,
            Self::Descending => Way::Descending,
        }
    }
}

impl<K> PageRequest<K> {
    /// Which way to walk, and the key right before the first item of the walk.
    ///
    /// A page before an item is walked backwards from there.
    pub(crate) fn walk(&self) -> (Direction, Option<&K>) {
        match &self.start {
            Start::First => (self.direction, None),
            Start::After(key) => (self.direction, Some(key)),
            Start::Before(key) => (self.direction.reversed(), Some(key)),
        }
    }
}

/// Gathers the items of a page in the order in which they are walked.
pub(crate) struct PageBuilder<T> {
    items: Vec<T>,
    size: usize,
    more: bool,
}

impl<T> PageBuilder<T> {
    /// A page of the size that is asked for, at least one.
    pub(crate) fn new<K>(request: &PageRequest<K>) -> Self {
        Self { items: Vec::new(), size: request.size.max(1), more: false }
    }

    /// Whether the page is full: then the next item only shows that there are more.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= self.size
    }

    /// Adds an item.
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// Notes that there are items beyond the page.
    pub(crate) fn has_more(&mut self) {
        self.more = true;
    }

    /// The page in the order of its list. The item that it begins after, or ends before, is on its other side.
    pub(crate) fn finish<K>(self, request: &PageRequest<K>) -> Page<T> {
        let Self { mut items, more, .. } = self;
        match request.start {
            Start::First => Page { items, has_next: more, has_previous: false },
            Start::After(_) => Page { items, has_next: more, has_previous: true },
            Start::Before(_) => {
                items.reverse();
                Page { items, has_next: true, has_previous: more }
            }
        }
    }
}
