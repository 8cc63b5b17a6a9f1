//! Lets filters and scripts read the reference model.

use std::borrow::Cow;
use std::convert::Infallible;

use smol_str::SmolStr;

use super::book::Book;
use super::question::ModelAccount;
use crate::condition::{AddressRole, DateField};
use crate::filter::{Filter, FilterSubject};
use ledger_numscript::{Reads, colored_asset};
use ledger_values::{AccountAddress, Asset, Balance, HoldingVolumes, MetadataValue, Timestamp, Volumes};

pub(super) fn selects<S: FilterSubject<Error = Infallible>>(filter: &Filter, subject: &S) -> bool {
    match filter.matches(subject) {
        Ok(selected) => selected,
        Err(never) => match never {},
    }
}

impl FilterSubject for ModelAccount {
    type Error = Infallible;

    fn any_address(&self, role: AddressRole, test: &dyn Fn(&str) -> bool) -> Result<bool, Infallible> {
        Ok(role == AddressRole::Own && test(self.address.as_str()))
    }

    fn metadata(&self, key: &str) -> Result<Option<Cow<'_, str>>, Infallible> {
        Ok(self.metadata.get(key).map(MetadataValue::as_shown))
    }

    fn balance(&self, asset: &str) -> Result<Option<Balance>, Infallible> {
        let of_asset = |(have, _): &(&Asset, &Volumes)| have.as_str() == asset;
        Ok(self.effective_volumes.iter().find(of_asset).map(|(_, volumes)| volumes.balance()))
    }

    fn any_balance(&self, test: &dyn Fn(&Balance) -> bool) -> Result<Option<bool>, Infallible> {
        let held = !self.effective_volumes.is_empty();
        Ok(held.then(|| self.effective_volumes.values().any(|volumes| test(&volumes.balance()))))
    }

    fn date(&self, field: DateField) -> Result<Option<Timestamp>, Infallible> {
        Ok(match field {
            DateField::FirstUsage => Some(self.first_usage),
            DateField::InsertionDate => Some(self.insertion_date),
            DateField::UpdatedAt => Some(self.updated_at),
            _ => None,
        })
    }
}

/// A row of volumes with its account, as a filter sees it.
pub(super) struct Row<'a> {
    pub(super) row: &'a HoldingVolumes,
    pub(super) account: &'a ModelAccount,
}

impl FilterSubject for Row<'_> {
    type Error = Infallible;

    fn any_address(&self, role: AddressRole, test: &dyn Fn(&str) -> bool) -> Result<bool, Infallible> {
        self.account.any_address(role, test)
    }

    fn metadata(&self, key: &str) -> Result<Option<Cow<'_, str>>, Infallible> {
        self.account.metadata(key)
    }

    fn balance(&self, asset: &str) -> Result<Option<Balance>, Infallible> {
        Ok((self.row.asset.as_str() == asset).then(|| self.row.volumes.balance()))
    }

    fn date(&self, field: DateField) -> Result<Option<Timestamp>, Infallible> {
        self.account.date(field)
    }
}

/// Access of a script to a ledger of the model.
pub(super) struct BookReads<'a>(pub(super) &'a Book);

impl Reads for BookReads<'_> {
    type Error = Infallible;

    fn balance(&mut self, account: &AccountAddress, asset: &str, color: &str) -> Result<Balance, Infallible> {
        let Some(asset) = colored_asset(asset, color) else { return Ok(Balance::ZERO) };
        let totals = self.0.totals(|_, _| true);
        Ok(totals.get(&(account.clone(), asset)).map_or(Balance::ZERO, Volumes::balance))
    }

    fn scales(
        &mut self,
        account: &AccountAddress,
        base: &str,
    ) -> Result<Vec<(SmolStr, Balance)>, Infallible> {
        let totals = self.0.totals(|_, _| true);
        let of_base = |asset: &str| asset.split('/').next() == Some(base);
        Ok(totals
            .iter()
            .filter(|((have, asset), _)| have == account && of_base(asset.as_str()))
            .map(|((_, asset), volumes)| (asset.as_str().into(), volumes.balance()))
            .collect())
    }

    fn metadata(&mut self, account: &AccountAddress, key: &str) -> Result<Option<MetadataValue>, Infallible> {
        Ok(self
            .0
            .account_without_volumes(account, None)
            .and_then(|account| account.metadata.get(key).cloned()))
    }
}
