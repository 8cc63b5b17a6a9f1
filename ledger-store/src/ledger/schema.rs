//! Adding versions of a ledger's schema.

use ledger_core::schema::Schema;
use ledger_core::{Command, InsertSchema, SchemaVersion};

use super::commit_future::CommitFuture;
use super::error::LedgerError;
use super::handle::Ledger;
use super::stored_list::check_queries;
use crate::submission::{Detail, Request};

impl Ledger {
    /// Adds a version of the ledger's schema: a chart of accounts with rules, script templates and queries, as the
    /// JSON of the HTTP API. Versions never change. [`TransactionBuilder::schema_version`] names the one that judges
    /// a write, and [`Options::schema_enforcement`] says what happens to a write that breaks its rules. Blocks the
    /// thread; [`insert_schema_async`](Self::insert_schema_async) does not.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ledger_store::ledger_core::schema::Enforcement;
    /// use ledger_store::prelude::*;
    /// let store = Store::in_memory_with(&Options::new().schema_enforcement(Enforcement::Strict));
    /// let ledger = store.ledger("main")?;
    /// let chart = r#"{"users": {"$user": {}}}"#;
    /// ledger.insert_schema("v1", &format!(r#"{{"chart": {chart}}}"#))?;
    /// let pay = |to: &str| ledger.transaction().posting("world", to, 5, "USD").schema_version("v1").commit();
    /// assert!(pay("users:1").is_ok());
    /// assert!(pay("shops:1").is_err());
    /// assert_eq!(ledger.schemas().count()?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`TransactionBuilder::schema_version`]: crate::TransactionBuilder::schema_version
    /// [`Options::schema_enforcement`]: crate::Options::schema_enforcement
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`] for a malformed version, [`LedgerError::Schema`] for a malformed schema or a query that
    /// cannot run, [`LedgerError::Refused`] if the ledger has the version already, and the errors of every write.
    pub fn insert_schema(&self, version: impl AsRef<str>, schema: &str) -> Result<(), LedgerError> {
        self.execute(schema_request(version.as_ref(), schema)?, Detail::Ids).map(drop)
    }

    /// As [`Ledger::insert_schema`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Ledger::insert_schema`].
    pub fn insert_schema_async(&self, version: impl AsRef<str>, schema: &str) -> CommitFuture<()> {
        self.execute_async(schema_request(version.as_ref(), schema), Detail::Ids, drop)
    }
}

fn schema_request(version: &str, schema: &str) -> Result<Request, LedgerError> {
    let version = SchemaVersion::parse(version)?;
    let schema = Box::new(Schema::parse(schema)?);
    check_queries(&schema)?;
    Ok(Command::InsertSchema(InsertSchema { version, schema }).into())
}
