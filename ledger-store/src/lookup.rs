//! Looks up single records in the index: accounts by number or address, holdings by number, and versions of documents.
//!
//! Accounts and holdings have numbers within their ledger, under which the index stores them. A holding is one asset in
//! one account. A document holds the metadata of an account or transaction and other data that can change. Every change
//! writes a new version of it.

use ledger_codec::Corrupt;
use ledger_core::Timestamp;
use ledger_index::{IndexError, IndexSnapshot, KeyRow, TableView, VersionRow, tables};
use ledger_journal::JournalError;

use crate::cause::Cause;
use crate::documents::{AccountDocument, TransactionDocument};
use crate::error::ReadError;
use crate::fingerprint::{Fingerprints, KeyKind, Subject, key_space, subject_space};
use crate::projection::{AccountPage, HoldingPage, StoredAccount, StoredHolding, UsagePage};

impl From<IndexError> for ReadError {
    fn from(error: IndexError) -> Self {
        let is_of_the_disk = error.is_of_the_disk();
        let cause = Cause::within("index", error);
        if is_of_the_disk { Self::Io(cause) } else { Self::Damaged(cause) }
    }
}

impl From<JournalError> for ReadError {
    fn from(error: JournalError) -> Self {
        let is_of_the_disk = matches!(error, JournalError::Storage { .. });
        let cause = Cause::within("journal", error);
        if is_of_the_disk { Self::Io(cause) } else { Self::Damaged(cause) }
    }
}

impl From<Corrupt> for ReadError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Damaged(Cause::of(corrupt))
    }
}

/// Makes the error for a record that the index lacks although other records of it refer to it. Also notes the damage,
/// so that the store rebuilds the index.
pub(crate) fn missing_in(index: &IndexSnapshot, what: &'static str) -> ReadError {
    index.note_missing(what);
    missing(what)
}

/// Makes the error for a missing record without noting that the index is damaged. `what` names the record, for example
/// "an account".
pub(crate) fn missing(what: &'static str) -> ReadError {
    ReadError::Damaged(format!("index: {what} is missing").into())
}

/// Reads an account by its number.
pub(crate) fn stored_account(
    index: &IndexSnapshot,
    ledger: u32,
    account: u32,
) -> Result<Option<StoredAccount>, ReadError> {
    let found = index.read(tables::ACCOUNTS, &AccountPage::key(ledger, account), |page| {
        Ok(AccountPage::find(page, account))
    })?;
    Ok(found.transpose()?.flatten())
}

/// Reads the first usage of an account, the earliest effective date of its transactions or, without any, the date of
/// its first metadata. The index must hold the account.
pub(crate) fn stored_first_usage(
    index: &IndexSnapshot,
    ledger: u32,
    account: u32,
) -> Result<Timestamp, ReadError> {
    let key = UsagePage::key(ledger, account);
    let found = index.read(tables::USAGES, &key, |page| Ok(UsagePage::find(page, account)))?;
    found.transpose()?.ok_or_else(|| missing_in(index, "a first usage"))
}

/// Reads a holding by its number.
pub(crate) fn stored_holding(
    index: &IndexSnapshot,
    ledger: u32,
    holding: u32,
) -> Result<Option<StoredHolding>, ReadError> {
    let found = index.read(tables::HOLDINGS, &HoldingPage::key(ledger, holding), |page| {
        Ok(HoldingPage::find(page, holding))
    })?;
    Ok(found.transpose()?.flatten())
}

/// Finds an account by its address, and returns it with its number.
///
/// The table of keys maps the fingerprint of an address to account numbers. Its Bloom filters prove most absent
/// addresses absent without reading a block. Two addresses may share a fingerprint, so the stored address is compared
/// as well.
pub(crate) fn find_account(
    index: &IndexSnapshot,
    keys: &TableView<KeyRow>,
    fingerprints: &Fingerprints,
    ledger: u32,
    address: &str,
) -> Result<Option<(u32, StoredAccount)>, ReadError> {
    let space = key_space(ledger, KeyKind::Address);
    for account in keys.probe(space, fingerprints.of(space, address))? {
        let account = u32::try_from(account).map_err(|_| Corrupt { what: "account number" })?;
        let stored =
            stored_account(index, ledger, account)?.ok_or_else(|| missing_in(index, "an account"))?;
        if stored.address == address {
            return Ok(Some((account, stored)));
        }
    }
    Ok(None)
}

/// Reads the last version of a document that an entry at or before the journal position `until` wrote. `id` is the
/// account number or the transaction id.
pub(crate) fn version(
    versions: &TableView<VersionRow>,
    ledger: u32,
    subject: Subject,
    id: u64,
    until: u64,
) -> Result<Option<VersionRow>, ReadError> {
    let space = subject_space(ledger, subject);
    Ok(versions.last_in((space, id, 0), (space, id, until))?)
}

/// Reads the document of an account as of the journal position `until`. Returns `None` if there was none yet.
pub(crate) fn account_document(
    versions: &TableView<VersionRow>,
    ledger: u32,
    account: u32,
    until: u64,
) -> Result<Option<AccountDocument>, ReadError> {
    let row = version(versions, ledger, Subject::Account, u64::from(account), until)?;
    Ok(row.map(|row| AccountDocument::decode(&row.bytes)).transpose()?)
}

/// Reads the document of a transaction as of the journal position `until`. Returns `None` if the transaction had not
/// changed by then. Most transactions never change.
pub(crate) fn transaction_document(
    versions: &TableView<VersionRow>,
    ledger: u32,
    transaction: u64,
    until: u64,
) -> Result<Option<TransactionDocument>, ReadError> {
    let row = version(versions, ledger, Subject::Transaction, transaction, until)?;
    Ok(row.map(|row| TransactionDocument::decode(&row.bytes)).transpose()?)
}
