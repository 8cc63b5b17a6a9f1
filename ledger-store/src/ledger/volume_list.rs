//! Lists of volumes: their conditions and cursors.

use ledger_core::schema::SchemaError;
use ledger_core::{Asset, FilterOf, Timestamp, VolumeRows};

use super::conditions;
use super::list::sealed::{Explained, ListSpec};
use super::list::{List, ListKind};
use crate::error::ReadError;
use crate::query::{Direction, Explanation, Page, PageRequest, TimeAxis, VolumesQuery, VolumesRow};
use crate::query_params::{QueryParams, parse_sort};
use crate::read::LedgerView;

/// A list of what accounts received and sent, by account and asset.
pub type VolumeList = List<VolumeKind>;

/// Lists volumes. See [`VolumeList`].
#[derive(Clone, Debug, Default)]
pub struct VolumeKind {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    axis: TimeAxis,
    group_by: usize,
}

impl ListKind for VolumeKind {}

/// The key of a row of volumes: the account and the asset.
type VolumeKey = (String, Asset);

impl VolumeKind {
    /// Returns the list with the parameters of a stored query.
    pub(super) fn of(params: &QueryParams) -> Result<(Self, Direction), SchemaError> {
        let sort = params.sort.as_deref().unwrap_or_default();
        let (_, direction) = parse_sort(sort, &VolumesQuery::SORT_FIELDS, Direction::Ascending)?;
        let group_by = params.group_by.unwrap_or_default() as usize;
        let axis = params.axis.unwrap_or_default();
        Ok((Self { from: params.start, to: params.end, axis, group_by }, direction))
    }

    fn query(&self, filter: FilterOf<VolumeRows>, page: PageRequest<VolumeKey>) -> VolumesQuery {
        let Self { from, to, axis, group_by } = *self;
        VolumesQuery { filter, from, to, axis, group_by, page }
    }
}

impl Explained for VolumeKind {
    fn explain(
        &self,
        view: &LedgerView,
        filter: FilterOf<VolumeRows>,
        page: PageRequest<VolumeKey>,
    ) -> Result<Explanation, ReadError> {
        view.explain_volumes(&self.query(filter, page))
    }
}

impl ListSpec for VolumeKind {
    type Selected = VolumeRows;
    type Item = VolumesRow;
    type Key = VolumeKey;
    const LETTER: char = 'v';

    fn fetch(
        &self,
        view: &LedgerView,
        filter: FilterOf<VolumeRows>,
        page: PageRequest<VolumeKey>,
    ) -> Result<Page<VolumesRow>, ReadError> {
        view.volumes(&self.query(filter, page))
    }

    fn key(&self, row: &VolumesRow) -> VolumeKey {
        (row.account.clone(), row.asset.clone())
    }

    /// Writes the slash of an asset as a hyphen. Assets contain no hyphens.
    fn write_key(&self, (account, asset): &VolumeKey) -> String {
        format!("{account}:{}", asset.as_str().replace('/', "-"))
    }

    fn read_key(&self, text: &str) -> Option<VolumeKey> {
        let (account, asset) = text.rsplit_once(':')?;
        Some((account.to_owned(), Asset::parse(&asset.replace('-', "/")).ok()?))
    }
}

/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ledger_store::prelude::*;
/// let ledger = Store::in_memory().ledger("main")?;
/// ledger.transaction().posting("world", "users:1:main", 7, "USD").posting("world", "users:1:save", 5, "USD").commit()?;
/// let rows: Vec<_> = ledger.volumes().matching("users:...").group_by(2).into_iter().collect::<Result<_, _>>()?;
/// assert_eq!((rows[0].account.as_str(), rows[0].volumes.balance()), ("users:1", Balance::from(12)));
/// let day: Timestamp = "2024-05-01T00:00:00Z".parse()?;
/// assert_eq!(ledger.volumes().before(day).count()?, 0);
/// assert_eq!(ledger.volumes().since(day).by_insertion_date().count()?, 3);
/// # Ok(())
/// # }
/// ```
impl List<VolumeKind> {
    /// Selects accounts by a pattern. Patterns are those of [`AccountList::matching`](List::matching).
    pub fn matching(self, address: impl AsRef<str>) -> Self {
        self.select(conditions::address("address", address.as_ref()))
    }

    /// Selects accounts with this value of a metadata key.
    pub fn metadata(self, key: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.select(conditions::metadata(key.as_ref(), value.as_ref()))
    }

    /// Counts only what moved at this date or later.
    pub fn since(mut self, from: Timestamp) -> Self {
        self.kind.from = Some(from);
        self
    }

    /// Counts only what moved before this date.
    pub fn before(mut self, to: Timestamp) -> Self {
        // The bound of the query is the last moment that counts.
        self.kind.to = Some(Timestamp::from_micros(to.as_micros().saturating_sub(1)));
        self
    }

    /// Compares dates with insertion dates, instead of effective dates.
    pub fn by_insertion_date(mut self) -> Self {
        self.kind.axis = TimeAxis::Inserted;
        self
    }

    /// Joins the accounts that share their first `segments` segments.
    pub fn group_by(mut self, segments: usize) -> Self {
        self.kind.group_by = segments;
        self
    }
}
