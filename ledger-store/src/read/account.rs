//! One account as of a date, and its properties for filters.

use std::borrow::Cow;
use std::cell::OnceCell;

use ledger_core::{
    AccountAddress, AddressRole, Asset, Balance, DateField, Filter, FilterSubject, Metadata, MetadataValue,
    Timestamp, Volumes,
};

use super::flows::{Flows, Until};
use super::session::{AsOf, Session};
use super::{flows, timeline};
use crate::documents::AccountDocument;
use crate::error::ReadError;
use crate::lookup::{self, missing};
use crate::query::{Account, AccountKey, AccountOrder, Expand, TimeAxis};

/// An account as of a date. Reads only the parts that are used.
pub(crate) struct AccountSubject<'s> {
    session: &'s Session,
    as_of: &'s AsOf,
    /// The moves that count for balances.
    until: &'s Until,
    pub(crate) number: u32,
    pub(crate) address: AccountAddress,
    now: OnceCell<AccountDocument>,
    then: OnceCell<Option<AccountDocument>>,
}

impl<'s> AccountSubject<'s> {
    /// Creates the subject for an account.
    pub(crate) fn new(
        session: &'s Session,
        as_of: &'s AsOf,
        until: &'s Until,
        number: u32,
        address: AccountAddress,
    ) -> Self {
        Self { session, as_of, until, number, address, now: OnceCell::new(), then: OnceCell::new() }
    }

    fn document(&self, until: u64) -> Result<Option<AccountDocument>, ReadError> {
        lookup::account_document(self.session.versions(), self.session.ledger(), self.number, until)
    }

    /// Returns the current document.
    fn now(&self) -> Result<&AccountDocument, ReadError> {
        if let Some(document) = self.now.get() {
            return Ok(document);
        }
        let document = self.document(u64::MAX)?.ok_or_else(|| missing("the document of an account"))?;
        Ok(self.now.get_or_init(|| document))
    }

    /// Returns the document as of the date, or `None` if the account did not exist in the log yet.
    fn then(&self) -> Result<Option<&AccountDocument>, ReadError> {
        if self.as_of.account_metadata == u64::MAX {
            return self.now().map(Some);
        }
        if let Some(document) = self.then.get() {
            return Ok(document.as_ref());
        }
        let document = self.document(self.as_of.account_metadata)?;
        Ok(self.then.get_or_init(|| document).as_ref())
    }

    /// Returns whether the account exists as of the date.
    pub(crate) fn is_visible(&self) -> Result<bool, ReadError> {
        Ok(self.as_of.at.is_none() || self.as_of.shows(self.now()?.first_usage))
    }

    fn updated_at(&self) -> Result<Timestamp, ReadError> {
        Ok(match self.then()? {
            Some(document) => document.updated_at,
            None => self.now()?.inserted_at,
        })
    }

    /// Returns the sort key of the account in an order by date.
    pub(crate) fn key_by(&self, order: AccountOrder) -> Result<AccountKey, ReadError> {
        let date = match order {
            AccountOrder::Address | AccountOrder::FirstUsage => self.now()?.first_usage,
            AccountOrder::InsertionDate => self.now()?.inserted_at,
            AccountOrder::UpdatedAt => self.updated_at()?,
        };
        Ok(AccountKey { date, address: self.address.clone() })
    }

    fn volumes(&self, until: &Until) -> Result<Vec<(Asset, Volumes)>, ReadError> {
        let mut volumes = Vec::new();
        for (asset, holding) in self.session.reader.holdings(self.number)? {
            let flows = flows::of_holding(self.session, holding, until)?;
            if flows.moves > 0 {
                volumes.push((self.session.reader.asset(asset)?, flows.volumes()));
            }
        }
        volumes.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(volumes)
    }

    /// Returns the account as answers show it.
    pub(crate) fn into_account(self, expand: &Expansion) -> Result<Account, ReadError> {
        let volumes = expand.volumes.as_ref().map(|until| self.volumes(until)).transpose()?;
        let effective_volumes =
            expand.effective_volumes.as_ref().map(|until| self.volumes(until)).transpose()?;
        let updated_at = self.updated_at()?;
        let metadata = self.then()?.map_or(Metadata::EMPTY, |document| document.metadata.clone());
        let now = self.now()?;
        Ok(Account {
            metadata,
            first_usage: now.first_usage,
            insertion_date: now.inserted_at,
            updated_at,
            address: self.address,
            volumes,
            effective_volumes,
        })
    }

    fn flows_of(&self, holding: u32) -> Result<Option<Flows>, ReadError> {
        Ok(Some(flows::of_holding(self.session, holding, self.until)?).filter(|flows| flows.moves > 0))
    }
}

impl FilterSubject for AccountSubject<'_> {
    type Error = ReadError;

    fn any_address(&self, role: AddressRole, test: &dyn Fn(&str) -> bool) -> Result<bool, ReadError> {
        Ok(role == AddressRole::Own && test(self.address.as_str()))
    }

    fn metadata(&self, key: &str) -> Result<Option<Cow<'_, str>>, ReadError> {
        let value = self.then()?.and_then(|document| document.metadata.get(key));
        Ok(value.map(MetadataValue::as_shown))
    }

    fn metadata_value(&self, key: &str) -> Result<Option<Cow<'_, MetadataValue>>, ReadError> {
        Ok(self.then()?.and_then(|document| document.metadata.get(key)).map(Cow::Borrowed))
    }

    fn balance(&self, asset: &str) -> Result<Option<Balance>, ReadError> {
        let Some(asset) = self.session.head.assets.id(asset) else { return Ok(None) };
        let Some(holding) = self.session.reader.holding(self.number, asset)? else { return Ok(None) };
        Ok(self.flows_of(holding)?.map(|flows| flows.balance()))
    }

    fn any_balance(&self, test: &dyn Fn(&Balance) -> bool) -> Result<Option<bool>, ReadError> {
        let mut passes = None;
        for (_, holding) in self.session.reader.holdings(self.number)? {
            if let Some(flows) = self.flows_of(holding)? {
                if test(&flows.balance()) {
                    return Ok(Some(true));
                }
                passes = Some(false);
            }
        }
        Ok(passes)
    }

    fn date(&self, field: DateField) -> Result<Option<Timestamp>, ReadError> {
        Ok(match field {
            DateField::FirstUsage => Some(self.now()?.first_usage),
            DateField::InsertionDate => Some(self.now()?.inserted_at),
            DateField::UpdatedAt => Some(self.updated_at()?),
            _ => None,
        })
    }
}

/// The moves that count for each kind of volumes that an answer includes, if it includes them.
pub(crate) struct Expansion {
    volumes: Option<Until>,
    effective_volumes: Option<Until>,
}

/// Resolves the volumes that an answer about accounts includes, as of a date.
///
/// # Errors
///
/// [`ReadError::MissingFeature`] if the ledger does not keep them.
pub(crate) fn expansion(session: &Session, expand: Expand, as_of: &AsOf) -> Result<Expansion, ReadError> {
    let mut expansion = Expansion { volumes: None, effective_volumes: None };
    if expand.volumes {
        session.need_moves_history()?;
        expansion.volumes = Some(flows::until(session, as_of.at, TimeAxis::Inserted)?);
    }
    if expand.effective_volumes {
        session.need_moves_history()?;
        session.need_effective_volumes()?;
        expansion.effective_volumes = Some(flows::until(session, as_of.at, TimeAxis::Effective)?);
    }
    Ok(expansion)
}

/// Refuses a filter on past balances if the ledger does not keep the history of moves, whatever it would select.
pub(crate) fn need_history_for(
    session: &Session,
    filter: &Filter,
    at: Option<Timestamp>,
) -> Result<(), ReadError> {
    if at.is_some() && filter.asks_for_balances() { session.need_moves_history() } else { Ok(()) }
}

/// Returns the account with an address, if it exists as of the date.
pub(crate) fn find(
    session: &Session,
    address: &AccountAddress,
    at: Option<Timestamp>,
    expand: Expand,
) -> Result<Option<Account>, ReadError> {
    let as_of = timeline::as_of(session, at)?;
    let expansion = expansion(session, expand, &as_of)?;
    let Some(number) = session.account_number(address.as_str())? else { return Ok(None) };
    let subject = AccountSubject::new(session, &as_of, &Until::Now, number, address.clone());
    if !subject.is_visible()? {
        return Ok(None);
    }
    subject.into_account(&expansion).map(Some)
}

/// Returns the balance of an asset in an account, or zero if the account never held it.
pub(crate) fn balance(
    session: &Session,
    address: &AccountAddress,
    asset: &Asset,
) -> Result<Balance, ReadError> {
    let Some(asset) = session.head.assets.id(asset.as_str()) else { return Ok(Balance::ZERO) };
    let Some(number) = session.account_number(address.as_str())? else { return Ok(Balance::ZERO) };
    match session.reader.holding(number, asset)? {
        Some(holding) => Ok(flows::now(session, holding)?.balance()),
        None => Ok(Balance::ZERO),
    }
}
