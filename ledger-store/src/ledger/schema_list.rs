//! Lists of schema versions: their orders and cursors.

use ledger_core::{FilterOf, SchemaVersion, Schemas};

use super::list::sealed::ListSpec;
use super::list::{List, ListKind};
use crate::error::ReadError;
use crate::query::{Direction, Page, PageRequest, SchemaKey, SchemaOrder, SchemaQuery, SchemaView};
use crate::read::LedgerView;

/// A list of schema versions, oldest first.
pub type SchemaList = List<SchemaKind>;

/// Lists schema versions. See [`SchemaList`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SchemaKind {
    order: SchemaOrder,
}

impl ListKind for SchemaKind {}

impl ListSpec for SchemaKind {
    type Selected = Schemas;
    type Item = SchemaView;
    type Key = SchemaKey;
    const LETTER: char = 's';

    fn fetch(
        &self,
        view: &LedgerView,
        filter: FilterOf<Schemas>,
        page: PageRequest<SchemaKey>,
    ) -> Result<Page<SchemaView>, ReadError> {
        view.schemas(&SchemaQuery { filter, order: self.order, page })
    }

    fn key(&self, schema: &SchemaView) -> SchemaKey {
        schema.key.clone()
    }

    /// The version may contain any character, so its bytes are written as numbers.
    fn write_key(&self, key: &SchemaKey) -> String {
        let bytes = key.version.as_str().bytes().map(|byte| format!(":{byte}"));
        std::iter::once(key.position.to_string()).chain(bytes).collect()
    }

    fn read_key(&self, text: &str) -> Option<SchemaKey> {
        let (position, bytes) = text.split_once(':')?;
        let bytes: Option<Vec<u8>> = bytes.split(':').map(|byte| byte.parse().ok()).collect();
        let version = SchemaVersion::parse(std::str::from_utf8(&bytes?).ok()?).ok()?;
        Some(SchemaKey { position: position.parse().ok()?, version })
    }
}

impl List<SchemaKind> {
    /// Orders by the names of the versions instead of by the dates when they were added.
    ///
    /// ```
    /// let ledger = ledger_store::Store::in_memory().ledger("main")?;
    /// for version in ["v2", "v1"] {
    ///     ledger.insert_schema(version, r#"{"chart": {}}"#)?;
    /// }
    /// assert_eq!(ledger.schemas().by_version().page(1)?.items[0].version.as_str(), "v1");
    /// assert_eq!(ledger.schemas().page(1)?.items[0].version.as_str(), "v2");
    /// # Ok::<(), ledger_store::LedgerError>(())
    /// ```
    pub fn by_version(mut self) -> Self {
        self.kind.order = SchemaOrder::Version;
        self
    }

    /// Lists the newest, or the last name, first.
    pub fn newest_first(mut self) -> Self {
        self.direction = Direction::Descending;
        self
    }
}
