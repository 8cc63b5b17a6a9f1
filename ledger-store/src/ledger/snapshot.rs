//! Reads of one ledger that all answer from the same snapshot.

use std::sync::Arc;

use ledger_core::{
    AccountAddress, Asset, Balance, LedgerName, NameError, Reference, SchemaVersion, Timestamp, TransactionId,
};

use super::account_list::{AccountKind, AccountList};
use super::balance_sums::BalanceSums;
use super::error::LedgerError;
use super::list::List;
use super::log_list::{LogKind, LogList};
use super::schema_list::{SchemaKind, SchemaList};
use super::transaction_list::{TransactionKind, TransactionList};
use super::volume_list::{VolumeKind, VolumeList};
use crate::query::{Account, Expand, LedgerInfo, SchemaView, Stats, TransactionView};
use crate::read::LedgerView;
use crate::readers::Readers;

/// The state of a ledger at one time. It has the reading methods of [`Ledger`](crate::Ledger), and all of them answer
/// from this state. Cheap to clone. The snapshot of a ledger that did not exist has no accounts and no transactions.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ledger = ledger_store::Store::in_memory().ledger("main")?;
/// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// let before = ledger.snapshot();
/// ledger.transaction().posting("world", "users:1", 5, "USD").commit()?;
/// assert_eq!(before.balance("users:1", "USD")?, 5);
/// assert_eq!(before.transactions().count()?, 1);
/// assert_eq!(ledger.balance("users:1", "USD")?, 10);
/// assert_eq!((before.stats()?.transactions, ledger.stats()?.transactions), (1, 2));
/// assert_eq!(before.logs().page(10)?.items.len(), 1);
/// assert_eq!(before.transaction_at(2, ledger_store::prelude::Timestamp::MAX)?, None);
/// assert_eq!(before.info()?.name, *before.name());
/// assert!(before.schema("v1")?.is_none() && before.schemas().page(10)?.items.is_empty());
/// assert!(before.view().is_some());
/// # Ok(())
/// # }
/// ```
///
/// It cannot write:
///
/// ```compile_fail,E0599
/// let ledger = ledger_store::Store::in_memory().ledger("main").unwrap();
/// let _ = ledger.snapshot().transaction().posting("world", "users:1", 5, "USD");
/// ```
#[derive(Clone, Debug)]
pub struct LedgerSnapshot {
    name: LedgerName,
    /// `None` if the ledger did not exist.
    view: Option<LedgerView>,
    readers: Arc<Readers>,
}

impl LedgerSnapshot {
    pub(super) fn new(name: LedgerName, view: Option<LedgerView>, readers: Arc<Readers>) -> Self {
        Self { name, view, readers }
    }

    /// Returns the name of the ledger.
    pub fn name(&self) -> &LedgerName {
        &self.name
    }

    /// Returns the view for lower-level reads, or `None` if the ledger did not exist.
    pub fn view(&self) -> Option<&LedgerView> {
        self.view.as_ref()
    }

    pub(super) fn readers(&self) -> &Arc<Readers> {
        &self.readers
    }

    /// Returns the view for lower-level reads, or [`LedgerError::LedgerNotFound`] if the ledger did not exist.
    pub(crate) fn existing(&self) -> Result<&LedgerView, LedgerError> {
        self.view.as_ref().ok_or_else(|| LedgerError::LedgerNotFound { ledger: self.name.clone() })
    }

    /// Returns the balance of an asset in an account, in the asset's smallest unit: the total received minus the total
    /// sent. Zero for an account that was never used.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`] for a malformed address or asset; [`LedgerError::Read`].
    pub fn balance<A>(&self, account: impl AsRef<str>, asset: A) -> Result<Balance, LedgerError>
    where
        A: TryInto<Asset>,
        A::Error: Into<NameError>,
    {
        let account = AccountAddress::parse(account.as_ref())?;
        let asset = asset.try_into().map_err(Into::into)?;
        match &self.view {
            Some(view) => Ok(view.balance(&account, &asset)?),
            None => Ok(Balance::ZERO),
        }
    }

    /// Returns the balance of an asset in an account as of an effective date. Includes the transactions with this date
    /// or an earlier one. Zero if there are none.
    ///
    /// # Errors
    ///
    /// As [`LedgerSnapshot::balance`]. [`LedgerError::Read`] also if the ledger does not keep effective volumes.
    pub fn balance_at<A>(
        &self,
        account: impl AsRef<str>,
        asset: A,
        at: Timestamp,
    ) -> Result<Balance, LedgerError>
    where
        A: TryInto<Asset>,
        A::Error: Into<NameError>,
    {
        let account = AccountAddress::parse(account.as_ref())?;
        let asset = asset.try_into().map_err(Into::into)?;
        let Some(view) = &self.view else { return Ok(Balance::ZERO) };
        let expand = Expand { volumes: false, effective_volumes: true };
        let found = view.account(&account, Some(at), expand)?;
        let volumes = found.and_then(|account| account.effective_volumes).unwrap_or_default();
        let held = volumes.into_iter().find(|(have, _)| *have == asset);
        Ok(held.map_or(Balance::ZERO, |(_, volumes)| volumes.balance()))
    }

    /// Returns an account with its volumes, which are never `None`. Returns `None` if no transaction and no metadata ever
    /// named the account.
    ///
    /// # Errors
    ///
    /// As [`LedgerSnapshot::balance`].
    pub fn account(&self, account: impl AsRef<str>) -> Result<Option<Account>, LedgerError> {
        let account = AccountAddress::parse(account.as_ref())?;
        let Some(view) = &self.view else { return Ok(None) };
        Ok(view.account(&account, None, Expand { volumes: true, effective_volumes: false })?)
    }

    /// Returns an account as of a date, or `None` if it was not used until then. It shows what was true by both kinds of
    /// dates:
    ///
    /// - `effective_volumes` count the transactions that took effect by then, whenever they were recorded, like
    ///   [`balance_at`](Self::balance_at). Most programs want these.
    /// - `volumes` count the transactions that were recorded by then. `metadata` is that which was recorded by then.
    ///
    /// ```
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let noon: Timestamp = "2024-05-01T12:00:00Z".parse()?;
    /// ledger.transaction().posting("world", "users:1", 5, "USD").timestamp(noon).commit()?; // recorded today
    /// let then = ledger.account_at("users:1", noon)?.expect("it took effect at noon");
    /// let balances = then.effective_volumes.unwrap_or_default();
    /// assert_eq!(balances[0].1.balance(), 5);
    /// assert_eq!(then.volumes, Some(vec![])); // at noon, nobody knew
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`LedgerSnapshot::balance_at`].
    pub fn account_at(
        &self,
        account: impl AsRef<str>,
        at: Timestamp,
    ) -> Result<Option<Account>, LedgerError> {
        let account = AccountAddress::parse(account.as_ref())?;
        let Some(view) = &self.view else { return Ok(None) };
        Ok(view.account(&account, Some(at), Expand { volumes: true, effective_volumes: true })?)
    }

    /// Returns an account with its volumes, like [`account`](Self::account). An account that was never used is an error.
    ///
    /// # Errors
    ///
    /// [`LedgerError::AccountNotFound`] if no transaction and no metadata ever named it, and the errors of
    /// [`LedgerSnapshot::balance`].
    pub fn get_account(&self, account: impl AsRef<str>) -> Result<Account, LedgerError> {
        let account = AccountAddress::parse(account.as_ref())?;
        let found = self.account(account.as_str())?;
        found.ok_or_else(|| LedgerError::AccountNotFound { ledger: self.name.clone(), account })
    }

    /// Returns a transaction with its metadata as of the snapshot. An unknown id is an error.
    ///
    /// # Errors
    ///
    /// [`LedgerError::TransactionNotFound`], [`LedgerError::Read`].
    pub fn get_transaction(&self, id: impl Into<TransactionId>) -> Result<TransactionView, LedgerError> {
        let id = id.into();
        let found = match &self.view {
            Some(view) => view.transaction(id, None, false)?,
            None => None,
        };
        found.ok_or_else(|| LedgerError::TransactionNotFound { ledger: self.name.clone(), id })
    }

    /// Returns a transaction with the metadata that was recorded by a date. Returns `None` if its effective date is later,
    /// or the ledger has no transaction with this id.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Read`].
    pub fn transaction_at(
        &self,
        id: impl Into<TransactionId>,
        at: Timestamp,
    ) -> Result<Option<TransactionView>, LedgerError> {
        let Some(view) = &self.view else { return Ok(None) };
        Ok(view.transaction(id.into(), Some(at), false)?)
    }

    /// The transaction with a reference. `None` if no transaction has it.
    ///
    /// ```
    /// let ledger = ledger_store::Store::in_memory().ledger("main")?;
    /// ledger.transaction().posting("world", "users:1", 5, "USD").reference("order-1").commit()?;
    /// assert_eq!(ledger.transaction_by_reference("order-1")?.map(|found| found.id.get()), Some(1));
    /// assert_eq!(ledger.transaction_by_reference("order-2")?, None);
    /// # Ok::<(), ledger_store::LedgerError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`] for a malformed reference; [`LedgerError::Read`].
    pub fn transaction_by_reference(
        &self,
        reference: impl AsRef<str>,
    ) -> Result<Option<TransactionView>, LedgerError> {
        let reference = Reference::parse(reference.as_ref())?;
        let page = self.transactions().reference(reference.as_str()).page(1)?;
        Ok(page.items.into_iter().next())
    }

    /// Returns the list of accounts. This list and the others are empty for a ledger that does not exist.
    pub fn accounts(&self) -> AccountList {
        List::new(self.view.clone(), self.readers.clone(), AccountKind::default())
    }

    /// Returns the list of transactions.
    pub fn transactions(&self) -> TransactionList {
        List::new(self.view.clone(), self.readers.clone(), TransactionKind::default())
    }

    /// Returns the list of log entries.
    pub fn logs(&self) -> LogList {
        List::new(self.view.clone(), self.readers.clone(), LogKind::default())
    }

    /// The list of what accounts received and sent.
    pub fn volumes(&self) -> VolumeList {
        List::new(self.view.clone(), self.readers.clone(), VolumeKind::default())
    }

    /// The list of schema versions.
    pub fn schemas(&self) -> SchemaList {
        List::new(self.view.clone(), self.readers.clone(), SchemaKind::default())
    }

    /// A version of the schema. `None` if the ledger does not have it.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`] for a malformed version; [`LedgerError::Read`].
    pub fn schema(&self, version: impl AsRef<str>) -> Result<Option<SchemaView>, LedgerError> {
        let version = SchemaVersion::parse(version.as_ref())?;
        let Some(view) = &self.view else { return Ok(None) };
        Ok(view.schema(&version)?)
    }

    /// The ledger itself: its options, its metadata, when it was created.
    ///
    /// # Errors
    ///
    /// [`LedgerError::LedgerNotFound`] if the ledger did not exist.
    pub fn info(&self) -> Result<&LedgerInfo, LedgerError> {
        Ok(self.existing()?.info())
    }

    /// Returns sums of balances over accounts. There are none for a ledger that does not exist.
    pub fn balances(&self) -> BalanceSums {
        BalanceSums::new(self.view.clone(), self.readers.clone())
    }

    /// Returns the numbers of transactions and accounts. Both are zero for a ledger that does not exist.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Read`].
    pub fn stats(&self) -> Result<Stats, LedgerError> {
        match &self.view {
            Some(view) => Ok(view.stats()?),
            None => Ok(Stats { transactions: 0, accounts: 0 }),
        }
    }
}
