//! Lists of log entries: their conditions and cursors.

use ledger_core::schema::SchemaError;
use ledger_core::{FilterOf, LogId, Logs, Operator, Timestamp};

use super::list::sealed::{Explained, ListSpec};
use super::list::{List, ListKind};
use crate::error::ReadError;
use crate::query::{Direction, Explanation, LogHashes, LogQuery, LogView, Page, PageRequest};
use crate::query_params::{QueryParams, parse_sort};
use crate::read::LedgerView;

/// A list of log entries, oldest first.
pub type LogList = List<LogKind>;

/// Lists log entries. See [`LogList`].
#[derive(Clone, Debug, Default)]
pub struct LogKind {
    hashes: LogHashes,
}

impl ListKind for LogKind {}

impl LogKind {
    /// Returns the list with the parameters of a stored query.
    pub(super) fn of(params: &QueryParams) -> Result<(Self, Direction), SchemaError> {
        let sort = params.sort.as_deref().unwrap_or_default();
        let (_, direction) = parse_sort(sort, &LogQuery::SORT_FIELDS, Direction::Descending)?;
        Ok((Self::default(), direction))
    }
}

impl Explained for LogKind {
    fn explain(
        &self,
        view: &LedgerView,
        filter: FilterOf<Logs>,
        page: PageRequest<LogId>,
    ) -> Result<Explanation, ReadError> {
        view.explain_logs(&LogQuery { filter, hashes: self.hashes, page })
    }
}

impl ListSpec for LogKind {
    type Selected = Logs;
    type Item = LogView;
    type Key = LogId;
    const LETTER: char = 'l';

    fn fetch(
        &self,
        view: &LedgerView,
        filter: FilterOf<Logs>,
        page: PageRequest<LogId>,
    ) -> Result<Page<LogView>, ReadError> {
        view.logs(&LogQuery { filter, hashes: self.hashes, page })
    }

    fn key(&self, log: &LogView) -> LogId {
        log.entry.id
    }

    fn write_key(&self, key: &LogId) -> String {
        key.to_string()
    }

    fn read_key(&self, text: &str) -> Option<LogId> {
        text.parse().ok()
    }
}

impl List<LogKind> {
    /// Selects entries that were recorded at this date or later.
    pub fn since(self, from: Timestamp) -> Self {
        self.compare("date", Operator::Gte, from)
    }

    /// Selects entries that were recorded before this date.
    pub fn before(self, to: Timestamp) -> Self {
        self.compare("date", Operator::Lt, to)
    }

    /// Lists the newest first, by id. Recording dates are in the same order.
    pub fn newest_first(mut self) -> Self {
        self.direction = Direction::Descending;
        self
    }
}
