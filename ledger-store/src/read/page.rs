//! Builds the pages of a list: the direction in which to walk the list, and the final order of the items.

use ledger_index::Way;

use super::weight::Weight;
use crate::query::{Direction, Page, PageRequest, Start};

impl Direction {
    /// Returns the opposite direction.
    pub(crate) const fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }

    /// Returns the same direction for a cursor of the index.
    pub(crate) const fn way(self) -> Way {
        match self {
            Self::Ascending => Way::Ascending,
            Self::Descending => Way::Descending,
        }
    }
}

impl<K> PageRequest<K> {
    /// Returns the direction of the walk that fills this page, and the key after which the walk starts.
    ///
    /// For a page that ends before an item, the walk goes backwards from that item.
    pub(crate) fn walk(&self) -> (Direction, Option<&K>) {
        match &self.start {
            Start::First => (self.direction, None),
            Start::After(key) => (self.direction, Some(key)),
            Start::Before(key) => (self.direction.reversed(), Some(key)),
        }
    }
}

/// Collects the items of a page in the order of the walk.
pub(crate) struct PageBuilder<T> {
    items: Vec<T>,
    size: usize,
    /// Estimated size of the items in bytes, and the size at which the page ends.
    bytes: usize,
    bytes_max: usize,
    more: bool,
}

impl<T: Weight> PageBuilder<T> {
    /// Creates an empty page of the requested size, which is at least one. It ends early once its items have this many
    /// bytes, so it always has at least one item.
    pub(crate) fn new<K>(request: &PageRequest<K>, bytes_max: usize) -> Self {
        Self { items: Vec::new(), size: request.size.max(1), bytes: 0, bytes_max, more: false }
    }

    /// Returns whether the page is full. The next item then only shows that more items exist.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= self.size || (self.bytes >= self.bytes_max && !self.items.is_empty())
    }

    /// Adds an item.
    pub(crate) fn push(&mut self, item: T) {
        // Without a limit, weighing the items would be wasted work.
        if self.bytes_max < usize::MAX {
            self.bytes += item.weight();
        }
        self.items.push(item);
    }

    /// Records that more items exist beyond the page.
    pub(crate) fn has_more(&mut self) {
        self.more = true;
    }

    /// Returns the page in list order. A page after or before an item has that item on its other side, so both flags
    /// can be set.
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
