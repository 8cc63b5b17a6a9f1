//! Pages of accounts in the index.

use ledger_codec::{Corrupt, Reader, put_prefixed, put_varint};
use ledger_core::short_text;
use smol_str::SmolStr;

use super::page_key;

/// Number of accounts per page. Bounds the bytes that a flush writes again when one account changes.
pub(crate) const ACCOUNT_PLACES: u32 = 64;

/// An account in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredAccount {
    /// Address of the account.
    pub(crate) address: SmolStr,
    /// Numbers of asset and holding for each holding, ascending by asset.
    pub(crate) holdings: Vec<(u32, u32)>,
}

/// A decoded page of accounts, for reading and changing.
#[derive(Default)]
pub(crate) struct AccountPage {
    /// The accounts with their places in the page, ascending.
    accounts: Vec<(u8, StoredAccount)>,
}

/// The result of looking up the holding of an asset in an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundHolding {
    /// The number of the holding.
    Holding(u32),
    /// The account is on the page but does not have the asset.
    NoHolding,
    /// The account is not on the page.
    NoAccount,
}

impl AccountPage {
    /// Returns the key of the page that contains an account.
    pub(crate) fn key(ledger: u32, account: u32) -> [u8; 8] {
        page_key(ledger, account / ACCOUNT_PLACES)
    }

    /// Decodes a stored page.
    pub(crate) fn decode(stored: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(stored);
        let mut page = Self::default();
        while !reader.is_empty() {
            let (place, account) = read_account(&mut reader)?;
            match page.search(place) {
                Ok(at) => page.accounts[at].1 = account,
                Err(at) => page.accounts.insert(at, (place, account)),
            }
        }
        Ok(page)
    }

    /// Decodes one account of a stored page.
    pub(crate) fn find(stored: &[u8], number: u32) -> Result<Option<StoredAccount>, Corrupt> {
        let mut reader = Reader::new(stored);
        while !reader.is_empty() {
            if u32::from(*reader.rest().first().unwrap_or(&0)) == number % ACCOUNT_PLACES {
                return read_account(&mut reader).map(|(_, account)| Some(account));
            }
            skip_account(&mut reader)?;
        }
        Ok(None)
    }

    /// Decodes the address of one account of a stored page.
    pub(crate) fn find_address(stored: &[u8], number: u32) -> Result<Option<SmolStr>, Corrupt> {
        let mut reader = Reader::new(stored);
        while !reader.is_empty() {
            if u32::from(*reader.rest().first().unwrap_or(&0)) == number % ACCOUNT_PLACES {
                reader.u8()?;
                return read_address(&mut reader).map(Some);
            }
            skip_account(&mut reader)?;
        }
        Ok(None)
    }

    /// Finds the holding of an asset in one account of a stored page.
    pub(crate) fn find_holding(stored: &[u8], number: u32, asset: u32) -> Result<FoundHolding, Corrupt> {
        let mut reader = Reader::new(stored);
        while !reader.is_empty() {
            if u32::from(*reader.rest().first().unwrap_or(&0)) != number % ACCOUNT_PLACES {
                skip_account(&mut reader)?;
                continue;
            }
            reader.u8()?;
            reader.prefixed()?;
            for _ in 0..reader.varint()? {
                let (have, holding) = (reader.varint_u32()?, reader.varint_u32()?);
                if have == asset {
                    return Ok(FoundHolding::Holding(holding));
                }
            }
            return Ok(FoundHolding::NoHolding);
        }
        Ok(FoundHolding::NoAccount)
    }

    /// Returns the account with a number, if it is on the page.
    pub(crate) fn get(&self, number: u32) -> Option<&StoredAccount> {
        self.search(place_of(number)).ok().map(|at| &self.accounts[at].1)
    }

    /// Returns the account with a number. Creates it with `new` if it is not on the page.
    pub(crate) fn entry(&mut self, number: u32, new: impl FnOnce() -> StoredAccount) -> &mut StoredAccount {
        let place = place_of(number);
        let at = self.search(place).unwrap_or_else(|at| {
            self.accounts.insert(at, (place, new()));
            at
        });
        &mut self.accounts[at].1
    }

    /// Returns the account with a number for changing, if it is on the page.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut StoredAccount> {
        self.search(place_of(number)).ok().map(|at| &mut self.accounts[at].1)
    }

    /// Returns every account with its place in the page.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &StoredAccount)> {
        self.accounts.iter().map(|(place, account)| (u32::from(*place), account))
    }

    /// Encodes the page for storing.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.accounts.len() * 48);
        for (place, account) in &self.accounts {
            out.push(*place);
            put_prefixed(&mut out, account.address.as_bytes());
            put_varint(&mut out, account.holdings.len() as u64);
            for (asset, holding) in &account.holdings {
                put_varint(&mut out, u64::from(*asset));
                put_varint(&mut out, u64::from(*holding));
            }
        }
        out
    }

    /// Returns the index of the account at a place, or the index where it belongs.
    fn search(&self, place: u8) -> Result<usize, usize> {
        self.accounts.binary_search_by_key(&place, |(place, _)| *place)
    }
}

/// Returns the place of an account in its page.
const fn place_of(account: u32) -> u8 {
    (account % ACCOUNT_PLACES) as u8
}

fn read_address(reader: &mut Reader<'_>) -> Result<SmolStr, Corrupt> {
    let address = std::str::from_utf8(reader.prefixed()?);
    address.map(short_text).map_err(|_| Corrupt { what: "address is not UTF-8" })
}

fn read_account(reader: &mut Reader<'_>) -> Result<(u8, StoredAccount), Corrupt> {
    let place = reader.u8()?;
    let address = read_address(reader)?;
    let count = reader.varint()?;
    let mut holdings = Vec::with_capacity(count.min(64) as usize);
    for _ in 0..count {
        holdings.push((reader.varint_u32()?, reader.varint_u32()?));
    }
    Ok((place, StoredAccount { address, holdings }))
}

fn skip_account(reader: &mut Reader<'_>) -> Result<(), Corrupt> {
    reader.u8()?;
    reader.prefixed()?;
    for _ in 0..reader.varint()? {
        reader.varint()?;
        reader.varint()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_account_with_its_holdings() {
        let mut page = AccountPage::default();
        for number in [64, 70, 127] {
            page.entry(number, || StoredAccount {
                address: SmolStr::from(format!("users:{number}")),
                holdings: vec![(0, number), (9, number + 1)],
            });
        }
        let stored = page.encode();
        let found = AccountPage::find(&stored, 70).expect("what was written").expect("it was put");
        assert_eq!(
            (found.address.as_str(), found.holdings.as_slice()),
            ("users:70", [(0, 70), (9, 71)].as_slice())
        );
        assert_eq!(
            AccountPage::find_address(&stored, 127).expect("what was written").as_deref(),
            Some("users:127")
        );
        assert_eq!(AccountPage::find(&stored, 71), Ok(None));
        assert_eq!(AccountPage::find_holding(&stored, 70, 9), Ok(FoundHolding::Holding(71)));
        assert_eq!(AccountPage::find_holding(&stored, 70, 8), Ok(FoundHolding::NoHolding));
        assert_eq!(AccountPage::find_holding(&stored, 71, 9), Ok(FoundHolding::NoAccount));
    }
}
