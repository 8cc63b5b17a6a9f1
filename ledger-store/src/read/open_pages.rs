//! Keeps the pages of accounts and holdings that a reader used last. The first lookup in a page decodes one item. The
//! second decodes the whole page, because more lookups in it usually follow.

use std::cell::RefCell;

use ledger_core::Volumes;
use ledger_index::{IndexSnapshot, tables};

use crate::error::ReadError;
use crate::lookup;
use crate::projection::{ACCOUNT_PLACES, AccountPage, HOLDING_PLACES, HoldingPage, StoredHolding};

/// The page of the last lookup.
struct OpenPage<T> {
    page: u32,
    /// The decoded page, from the second lookup in it on.
    content: Option<T>,
}

/// The holdings of a page with their places in it, ascending.
type Holdings = Vec<(u32, StoredHolding)>;

/// The pages of one ledger that were read last. Valid for one snapshot of the index.
#[derive(Default)]
pub(crate) struct OpenPages {
    accounts: RefCell<Option<OpenPage<AccountPage>>>,
    holdings: RefCell<Option<OpenPage<Holdings>>>,
}

/// Finds an item in a page. The first lookup in a page calls `decode_item`, which decodes just the item. Later lookups
/// use the whole page: `decode_page` reads it once, and `find_in_page` finds the item in it.
fn find<T, R>(
    cached: &RefCell<Option<OpenPage<T>>>,
    page: u32,
    decode_item: impl FnOnce() -> Result<Option<R>, ReadError>,
    decode_page: impl FnOnce() -> Result<Option<T>, ReadError>,
    find_in_page: impl FnOnce(&T) -> Option<R>,
) -> Result<Option<R>, ReadError> {
    let mut cached = cached.borrow_mut();
    let Some(open) = cached.as_mut().filter(|open| open.page == page) else {
        *cached = Some(OpenPage { page, content: None });
        return decode_item();
    };
    if open.content.is_none() {
        open.content = decode_page()?;
    }
    Ok(open.content.as_ref().and_then(find_in_page))
}

impl OpenPages {
    /// Returns asset and number of every holding of an account, if the index has the account.
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

    /// Returns the volumes of a holding and the number of transactions that touched it, if the index has the holding.
    pub(crate) fn holding(
        &self,
        index: &IndexSnapshot,
        ledger: u32,
        holding: u32,
    ) -> Result<Option<(Volumes, u32)>, ReadError> {
        let volumes_and_count = |stored: &StoredHolding| (stored.volumes.clone(), stored.transaction_count);
        find(
            &self.holdings,
            holding / HOLDING_PLACES,
            || Ok(lookup::stored_holding(index, ledger, holding)?.as_ref().map(volumes_and_count)),
            || {
                let key = HoldingPage::key(ledger, holding);
                let page = index.read(tables::HOLDINGS, &key, |page| Ok(HoldingPage::all(page)))?;
                Ok(page.transpose()?)
            },
            |page| {
                let place = page.binary_search_by_key(&(holding % HOLDING_PLACES), |(place, _)| *place);
                place.ok().map(|at| volumes_and_count(&page[at].1))
            },
        )
    }
}
