//! Rotation of the key that encrypts secrets of connectors and of bank accounts.

use ledger_store::Expected;

use crate::connectors::engine::{Engine, purpose};
use crate::http::error::ApiError;
use crate::payments::bank_account::{self, BankAccount};
use crate::payments::installation::{self, Installation};
use crate::payments::record::{self, Versioned};
use crate::sealing::Sealer;

/// Decrypts a text with the key that encrypted it, and encrypts the result with the first key.
fn reencrypt(sealer: &Sealer, purpose: &[u8], sealed: &[u8]) -> Result<Vec<u8>, ApiError> {
    let text = sealer.open(purpose, sealed).map_err(|error| ApiError::fault(&error.to_string()))?;
    Ok(sealer.seal(purpose, &text)?)
}

impl Engine {
    /// Encrypts the secrets of earlier keys again with the first key. The earlier keys can then be removed from the key
    /// file.
    ///
    /// # Errors
    ///
    /// Fails if a secret does not decrypt, or if the store cannot be written.
    pub(crate) fn reseal(&self) -> Result<(), ApiError> {
        let payments = self.payments();
        let sealer = &payments.sealer;
        let snapshot = payments.snapshot();
        let installations = installation::all_even_removing(&snapshot)?.into_iter();
        for old in installations.filter(|one| !one.is_being_removed && sealer.is_outdated(&one.config)) {
            record::change(&payments.store, |snapshot| {
                let Some(Versioned { value, version }) = installation::find(snapshot, &old.id)? else {
                    return Ok((vec![], ()));
                };
                let config = reencrypt(sealer, &purpose(&value.id), &value.config)?;
                Ok((vec![record::put(&Installation { config, ..value }, Expected::Version(version))], ()))
            })?;
        }
        let accounts = record::with_prefix::<BankAccount>(&snapshot, None, &[])?.into_iter();
        for old in accounts.filter(|one| sealer.is_outdated(&one.value.numbers)) {
            record::change(&payments.store, |snapshot| {
                let Some(Versioned { value, version }) = bank_account::find(snapshot, &old.value.id)? else {
                    return Ok((vec![], ()));
                };
                let numbers = reencrypt(sealer, &BankAccount::purpose(&value.id), &value.numbers)?;
                Ok((vec![record::put(&BankAccount { numbers, ..value }, Expected::Version(version))], ()))
            })?;
        }
        Ok(())
    }
}
