//! Pages of accounts and holdings that are being read: the second thing of a page is seldom the last that is asked for,
//! so the whole page is decoded then.

use std::cell::RefCell;

use ledger_core::Volumes;

use crate::error::ReadError;
use crate::index::IndexSnapshot;
use crate::lookup::{self, tables};
use crate::projection::{ACCOUNT_PLACES, AccountPage, HOLDING_PLACES, HoldingPage, StoredHolding};

/// The page that was asked for last.
struct OpenPage<T> {
    page: u32,
    /// What is in it, once more than one thing of it was asked for.
    content: Option<T>,
}

/// The holdings of a page with their places, ascending.
type Holdings = Vec<(u32, StoredHolding)>;

/// The pages of one ledger that were read last. They do not change as long as the index is the same.
#[derive(Default)]
pub(crate) struct OpenPages {
    accounts: RefCell<Option<OpenPage<AccountPage>>>,
    holdings: RefCell<Option<OpenPage<Holdings>>>,
}

/// Finds a thing on a page: `alone` if it is the first of its page that is asked for, else in the page as `decode`
/// has it, if it is there at all.
fn find<T, R>(
    kept: &RefCell<Option<OpenPage<T>>>,
    page: u32,
    alone: impl FnOnce() -> Result<Option<R>, ReadError>,
    decode: impl FnOnce() -> Result<Option<T>, ReadError>,
    of_page: impl FnOnce(&T) -> Option<R>,
) -> Result<Option<R>, ReadError> {
    let mut kept = kept.borrow_mut();
    let Some(open) = kept.as_mut().filter(|open| open.page == page) else {
        *kept = Some(OpenPage { page, content: None });
        return alone();
    };
    if open.content.is_none() {
        open.content = decode()?;
    }
    Ok(open.content.as_ref().and_then(of_page))
}

impl OpenPages {
    /// Asset and number of every holding of an account that is in the index.
    pub(crate) fn holdings_of(
        &self,
        index: &IndexSnapshot,
        ledger: u32,
        account: u32,
    ) -> Result<Option<Vec<(u32, u32)>>, ReadError> {
        find(
            &self.accounts,
            account / ACCOUNT_PLACES,
            || Ok(lookup::stored_account(index, ledger, account)?.map(|stored| stored.holdings)),
            || {
                let key = AccountPage::key(ledger, account);
                let page = index.read(tables::ACCOUNTS, &key, |page| Ok(AccountPage::decode(page)))?;
                Ok(page.transpose()?)
            },
            |page| page.get(account).map(|stored| stored.holdings.clone()),
        )
    }

    /// The totals of a holding that is in the index, and how many transactions moved it.
    pub(crate) fn holding(
        &self,
        index: &IndexSnapshot,
        ledger: u32,
        holding: u32,
    ) -> Result<Option<(Volumes, u32)>, ReadError> {
        let told = |stored: &StoredHolding| (stored.volumes.clone(), stored.ordinal);
        find(
            &self.holdings,
            holding / HOLDING_PLACES,
            || Ok(lookup::stored_holding(index, ledger, holding)?.as_ref().map(told)),
            || {
                let key = HoldingPage::key(ledger, holding);
                let page = index.read(tables::HOLDINGS, &key, |page| Ok(HoldingPage::all(page)))?;
                Ok(page.transpose()?)
            },
            |page| {
                let place = page.binary_search_by_key(&(holding % HOLDING_PLACES), |(place, _)| *place);
                place.ok().map(|at| told(&page[at].1))
            },
        )
    }
}
