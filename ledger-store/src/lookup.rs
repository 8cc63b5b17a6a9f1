//! Single things in the index: accounts, holdings, documents, by number or by name.

use ledger_codec::Corrupt;
use ledger_core::Timestamp;
use ledger_index::{IndexError, IndexSnapshot, KeyRow, TableView, VersionRow, tables};
use ledger_journal::JournalError;

use crate::documents::{AccountDocument, TransactionDocument};
use crate::error::ReadError;
use crate::fingerprint::{Fingerprints, KeyKind, Subject, key_space, subject_space};
use crate::projection::{AccountPage, HoldingPage, StoredAccount, StoredHolding, UsagePage};

impl From<IndexError> for ReadError {
    fn from(error: IndexError) -> Self {
        let reason = format!("index: {error}");
        if error.is_of_the_disk() { Self::Io { reason } } else { Self::Damaged { reason } }
    }
}

impl From<JournalError> for ReadError {
    fn from(error: JournalError) -> Self {
        let reason = format!("journal: {error}");
        match error {
            JournalError::Storage { .. } => Self::Io { reason },
            _ => Self::Damaged { reason },
        }
    }
}

impl From<Corrupt> for ReadError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Damaged { reason: corrupt.to_string() }
    }
}

/// A value that the rest of this index says must be there, and the index is damaged.
pub(crate) fn missing_in(index: &IndexSnapshot, what: &'static str) -> ReadError {
    index.note_missing(what);
    missing(what)
}

/// A value that must be there.
pub(crate) fn missing(what: &'static str) -> ReadError {
    ReadError::Damaged { reason: format!("index: {what} is missing") }
}

/// An account by number.
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

/// The first usage of an account that is in the index.
pub(crate) fn stored_first_usage(
    index: &IndexSnapshot,
    ledger: u32,
    account: u32,
) -> Result<Timestamp, ReadError> {
    let key = UsagePage::key(ledger, account);
    let found = index.read(tables::USAGES, &key, |page| Ok(UsagePage::find(page, account)))?;
    found.transpose()?.ok_or_else(|| missing_in(index, "a first usage"))
}

/// A holding by number.
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

/// The account with an address, by the filters and runs of fingerprints: absence is proved without a search.
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

/// The last version of a document at or before a position.
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

/// An account's document as of a position.
pub(crate) fn account_document(
    versions: &TableView<VersionRow>,
    ledger: u32,
    account: u32,
    until: u64,
) -> Result<Option<AccountDocument>, ReadError> {
    let row = version(versions, ledger, Subject::Account, u64::from(account), until)?;
    Ok(row.map(|row| AccountDocument::decode(&row.bytes)).transpose()?)
}

/// A transaction's document as of a position; most have none.
pub(crate) fn transaction_document(
    versions: &TableView<VersionRow>,
    ledger: u32,
    transaction: u64,
    until: u64,
) -> Result<Option<TransactionDocument>, ReadError> {
    let row = version(versions, ledger, Subject::Transaction, transaction, until)?;
    Ok(row.map(|row| TransactionDocument::decode(&row.bytes)).transpose()?)
}
