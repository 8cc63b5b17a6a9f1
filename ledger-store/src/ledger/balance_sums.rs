//! Sums of balances: their conditions, and their computation as of now or of a date.

use std::sync::Arc;

use ledger_core::{AccountAddress, AggregatedBalances, FilterError, FilterOf, Operator, Timestamp};

use super::conditions;
use super::error::LedgerError;
use super::list::join;
use crate::query::{Balances, BalancesQuery, Explanation, TimeAxis};
use crate::read::LedgerView;
use crate::readers::Readers;

/// Sums of balances per asset, over all accounts or the selected ones.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ledger_store::prelude::*;
/// let ledger = Store::in_memory().ledger("main")?;
/// let noon: Timestamp = "2024-05-01T12:00:00Z".parse()?;
/// ledger.transaction().posting("world", "users:1", 5, "USD").timestamp(noon).commit()?;
/// ledger.transaction().posting("world", "users:2", 7, "USD").commit()?;
/// let now = ledger.balances().under("users:").now()?;
/// assert_eq!(now[0].1, 12);
/// assert_eq!(ledger.balances().under("users:").at(noon, TimeAxis::Effective)?[0].1, 5);
/// assert!(ledger.balances().under("users:").at(noon, TimeAxis::Inserted)?.is_empty());
/// let second = FilterOf::field("address", Operator::Match, "users:2")?;
/// assert_eq!(ledger.balances().under("users:").filter(second).now()?[0].1, 7);
/// assert_eq!(ledger.balances().explain()?.rows_returned, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is read before `now` or `at` is called"]
pub struct BalanceSums {
    view: Option<LedgerView>,
    pub(super) readers: Arc<Readers>,
    filter: Result<FilterOf<AggregatedBalances>, LedgerError>,
}

impl BalanceSums {
    pub(super) fn new(view: Option<LedgerView>, readers: Arc<Readers>) -> Self {
        Self { view, readers, filter: Ok(FilterOf::all()) }
    }

    /// Selects the accounts whose address begins with these segments, the account of just these segments included. A
    /// colon at the end makes no difference. `*` is no placeholder here but a malformed address: see
    /// [`BalanceSums::matching`].
    pub fn under(self, segments: impl AsRef<str>) -> Self {
        let segments = segments.as_ref();
        match AccountAddress::parse(segments.strip_suffix(':').unwrap_or(segments)) {
            Ok(first) => self.select(FilterOf::field("address", Operator::Match, format!("{first}:..."))),
            Err(error) => Self { filter: self.filter.and(Err(error.into())), ..self },
        }
    }

    /// Selects accounts by a pattern, or one account by its address. Patterns are those of
    /// [`AccountList::matching`](super::list::List::matching).
    pub fn matching(self, address: impl AsRef<str>) -> Self {
        self.select(conditions::address("address", address.as_ref()))
    }

    /// Selects accounts by a filter, in addition to the earlier conditions.
    pub fn filter(self, filter: FilterOf<AggregatedBalances>) -> Self {
        self.select(Ok(filter))
    }

    /// Selects accounts by a filter in the JSON form of the HTTP API, in addition to the earlier conditions.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Filter`] with the defect of the text.
    pub fn filter_json(self, json: &str) -> Result<Self, LedgerError> {
        Ok(self.filter(FilterOf::parse(json)?))
    }

    fn select(self, more: Result<FilterOf<AggregatedBalances>, FilterError>) -> Self {
        let filter = self.filter.and_then(|filter| join(filter, more));
        Self { filter, ..self }
    }

    /// Computes the sums as of the snapshot. Lists an asset if at least one of the accounts held it. Blocks the
    /// thread; [`now_async`](Self::now_async) does not.
    ///
    /// # Errors
    ///
    /// The first malformed condition, as for [`List::page`](super::list::List::page); [`LedgerError::Read`].
    pub fn now(self) -> Result<Balances, LedgerError> {
        self.sums(None, TimeAxis::Inserted)
    }

    /// Computes the sums as of a date, by effective or by insertion date. Blocks the thread;
    /// [`at_async`](Self::at_async) does not.
    ///
    /// # Errors
    ///
    /// As [`BalanceSums::now`].
    pub fn at(self, at: Timestamp, axis: TimeAxis) -> Result<Balances, LedgerError> {
        self.sums(Some(at), axis)
    }

    /// Computes the sums as of the snapshot, and returns which index supplied the accounts and how many rows were
    /// read. Blocks the thread; [`explain_async`](Self::explain_async) does not.
    ///
    /// # Errors
    ///
    /// As [`BalanceSums::now`].
    pub fn explain(self) -> Result<Explanation, LedgerError> {
        let (filter, at, axis) = (self.filter?, None, TimeAxis::Inserted);
        let Some(view) = self.view else { return Ok(Explanation::default()) };
        Ok(view.explain_balances(&BalancesQuery { filter, at, axis })?)
    }

    fn sums(self, at: Option<Timestamp>, axis: TimeAxis) -> Result<Balances, LedgerError> {
        let filter = self.filter?;
        let Some(view) = self.view else { return Ok(Vec::new()) };
        Ok(view.aggregated_balances(&BalancesQuery { filter, at, axis })?)
    }
}
