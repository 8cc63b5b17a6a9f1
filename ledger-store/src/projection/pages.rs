//! Pages of accounts or holdings by their dense numbers.
//!
//! ```text
//! holdings page := 144 * { account:u32 asset:u32 ordinal:u32 input:u64 output:u64 } extras
//!                  little-endian; ordinal 0 is an empty place
//! extras        := { place:u8 flags:u8 [input:amount output:amount] [displaced count, input, output] }
//!                  flags: 1 the volumes stand here, since one exceeds 64 bits; 2 displaced sums stand here
//! accounts page := { place:u8 address:text holdings:varint { asset:varint holding:varint } }
//!                  ascending by place; holdings ascending by asset; of 64 accounts
//! usage page    := 480 * { first usage:i64 }
//!                  little-endian
//! ```
//!
//! First usages stand apart: a transaction with an early date changes those of accounts anywhere, and the less
//! stands beside them the less is written again.

use std::collections::BTreeMap;

use compact_str::CompactString;
use ledger_core::{Timestamp, Volumes};

use crate::codec::{Corrupt, Output, Reader, put_prefixed, put_varint};
use crate::entry::{put_amount, read_amount};
use crate::index::{DisplacedSums, Quantity};
use crate::lookup::BEFORE_ALL;

/// So many accounts share a page.
pub(crate) const ACCOUNT_PLACES: u32 = 64;

/// So many holdings share a page, which then takes nearly the whole of one of the file: two in one would be two to find
/// and to put in a flush that changes both.
pub(crate) const HOLDING_PLACES: u32 = 144;

const HOLDING_BYTES: usize = 28;
const HOLDINGS_BYTES: usize = HOLDING_BYTES * HOLDING_PLACES as usize;
const LARGE: u8 = 1;
const DISPLACED: u8 = 2;

fn page_key(ledger: u32, page: u32) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&ledger.to_be_bytes());
    key[4..].copy_from_slice(&page.to_be_bytes());
    key
}

/// A holding as it stands in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredHolding {
    /// Its account's number.
    pub(crate) account: u32,
    /// Its asset's number.
    pub(crate) asset: u32,
    /// How many transactions touched it.
    pub(crate) ordinal: u32,
    /// Its totals.
    pub(crate) volumes: Volumes,
    /// Totals of its displaced transactions.
    pub(crate) displaced: Option<Box<DisplacedSums>>,
}

/// An account as it stands in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredAccount {
    /// Its address.
    pub(crate) address: CompactString,
    /// Asset and holding numbers, ascending by asset.
    pub(crate) holdings: Vec<(u32, u32)>,
}

/// Reads and changes a page of holdings.
pub(crate) struct HoldingPage {
    bytes: Vec<u8>,
    extras: BTreeMap<u8, Extra>,
}

#[derive(Clone, Debug)]
struct Extra {
    large: Option<Volumes>,
    displaced: Option<DisplacedSums>,
}

impl HoldingPage {
    /// The key of the page that has a holding.
    pub(crate) fn key(ledger: u32, holding: u32) -> [u8; 8] {
        page_key(ledger, holding / HOLDING_PLACES)
    }

    /// A page without holdings.
    pub(crate) fn empty() -> Self {
        Self { bytes: vec![0; HOLDINGS_BYTES], extras: BTreeMap::new() }
    }

    /// A stored page.
    pub(crate) fn decode(stored: &[u8]) -> Result<Self, Corrupt> {
        let (fixed, rest) =
            stored.split_at_checked(HOLDINGS_BYTES).ok_or(Corrupt { what: "page of holdings" })?;
        let mut page = Self { bytes: fixed.to_vec(), extras: BTreeMap::new() };
        let mut reader = Reader::new(rest);
        while !reader.is_empty() {
            let (place, extra) = read_extra(&mut reader)?;
            page.extras.insert(place, extra);
        }
        Ok(page)
    }

    /// One holding of a stored page.
    pub(crate) fn find(stored: &[u8], number: u32) -> Result<Option<StoredHolding>, Corrupt> {
        let (fixed, rest) =
            stored.split_at_checked(HOLDINGS_BYTES).ok_or(Corrupt { what: "page of holdings" })?;
        let place = number % HOLDING_PLACES;
        let Some(mut holding) = read_fixed(fixed, place as usize)? else { return Ok(None) };
        let mut reader = Reader::new(rest);
        while !reader.is_empty() {
            let (at, extra) = read_extra(&mut reader)?;
            if u32::from(at) >= place {
                if u32::from(at) == place {
                    extra.put_into(&mut holding);
                }
                break;
            }
        }
        Ok(Some(holding))
    }

    /// Every holding of a stored page with its place.
    pub(crate) fn all(stored: &[u8]) -> Result<Vec<(u32, StoredHolding)>, Corrupt> {
        let mut page = Self::decode(stored)?;
        let mut all = Vec::with_capacity(HOLDING_PLACES as usize);
        for place in 0..HOLDING_PLACES {
            if let Some(mut holding) = read_fixed(&page.bytes, place as usize)? {
                if let Some(extra) = page.extras.remove(&(place as u8)) {
                    extra.put_into(&mut holding);
                }
                all.push((place, holding));
            }
        }
        Ok(all)
    }

    /// The account and asset of a holding that is here.
    pub(crate) fn identity(&self, number: u32) -> Result<Option<(u32, u32)>, Corrupt> {
        let at = (number % HOLDING_PLACES) as usize * HOLDING_BYTES;
        let mut reader = LittleEndian(&self.bytes[at..at + HOLDING_BYTES]);
        let (account, asset, ordinal) = (reader.u32()?, reader.u32()?, reader.u32()?);
        Ok((ordinal > 0).then_some((account, asset)))
    }

    /// Puts a holding as it stands now.
    pub(crate) fn put(
        &mut self,
        number: u32,
        (account, asset): (u32, u32),
        ordinal: u32,
        (input, output): (&Quantity, &Quantity),
        displaced: Option<&DisplacedSums>,
    ) {
        let place = (number % HOLDING_PLACES) as u8;
        let (small_input, small_output, large) = match (input.as_u64(), output.as_u64()) {
            (Some(input), Some(output)) => (input, output, None),
            _ => (0, 0, Some(Volumes { input: input.to_amount(), output: output.to_amount() })),
        };
        let at = usize::from(place) * HOLDING_BYTES;
        let bytes = &mut self.bytes[at..at + HOLDING_BYTES];
        bytes[..4].copy_from_slice(&account.to_le_bytes());
        bytes[4..8].copy_from_slice(&asset.to_le_bytes());
        bytes[8..12].copy_from_slice(&ordinal.to_le_bytes());
        bytes[12..20].copy_from_slice(&small_input.to_le_bytes());
        bytes[20..28].copy_from_slice(&small_output.to_le_bytes());
        if large.is_some() || displaced.is_some() {
            self.extras.insert(place, Extra { large, displaced: displaced.cloned() });
        }
    }

    /// The page to store.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = self.bytes;
        let mut sums = Output::default();
        for (place, extra) in self.extras {
            out.push(place);
            out.push(
                u8::from(extra.large.is_some()) * LARGE + u8::from(extra.displaced.is_some()) * DISPLACED,
            );
            if let Some(volumes) = extra.large {
                put_amount(&mut out, &volumes.input);
                put_amount(&mut out, &volumes.output);
            }
            if let Some(displaced) = extra.displaced {
                sums.truncate(0);
                sums.make_room();
                sums.put_varint(u64::from(displaced.count));
                displaced.input.put(&mut sums);
                displaced.output.put(&mut sums);
                out.extend_from_slice(sums.as_slice());
            }
        }
        out
    }
}

impl Extra {
    fn put_into(self, holding: &mut StoredHolding) {
        if let Some(volumes) = self.large {
            holding.volumes = volumes;
        }
        holding.displaced = self.displaced.map(Box::new);
    }
}

fn read_extra(reader: &mut Reader<'_>) -> Result<(u8, Extra), Corrupt> {
    let place = reader.u8()?;
    let flags = reader.u8()?;
    let large = if flags & LARGE != 0 {
        Some(Volumes { input: read_amount(reader)?, output: read_amount(reader)? })
    } else {
        None
    };
    let displaced = if flags & DISPLACED != 0 {
        let count = reader.varint_u32()?;
        Some(DisplacedSums { input: Quantity::read(reader)?, output: Quantity::read(reader)?, count })
    } else {
        None
    };
    Ok((place, Extra { large, displaced }))
}

fn read_fixed(fixed: &[u8], place: usize) -> Result<Option<StoredHolding>, Corrupt> {
    let at = place * HOLDING_BYTES;
    let mut reader =
        LittleEndian(fixed.get(at..at + HOLDING_BYTES).ok_or(Corrupt { what: "page of holdings" })?);
    let holding = StoredHolding {
        account: reader.u32()?,
        asset: reader.u32()?,
        ordinal: reader.u32()?,
        volumes: Volumes { input: reader.u64()?.into(), output: reader.u64()?.into() },
        displaced: None,
    };
    Ok((holding.ordinal > 0).then_some(holding))
}

struct LittleEndian<'a>(&'a [u8]);

impl LittleEndian<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Corrupt { what: "page of holdings" })?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, Corrupt> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Corrupt> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Reads and changes a page of accounts.
#[derive(Default)]
pub(crate) struct AccountPage(BTreeMap<u8, StoredAccount>);

impl AccountPage {
    /// The key of the page that has an account.
    pub(crate) fn key(ledger: u32, account: u32) -> [u8; 8] {
        page_key(ledger, account / ACCOUNT_PLACES)
    }

    /// A stored page.
    pub(crate) fn decode(stored: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(stored);
        let mut page = BTreeMap::new();
        while !reader.is_empty() {
            let (place, account) = read_account(&mut reader)?;
            page.insert(place, account);
        }
        Ok(Self(page))
    }

    /// One account of a stored page.
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

    /// The address of one account of a stored page.
    pub(crate) fn find_address(stored: &[u8], number: u32) -> Result<Option<CompactString>, Corrupt> {
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

    /// The holding of an asset in one account of a stored page.
    pub(crate) fn find_holding(stored: &[u8], number: u32, asset: u32) -> Result<Option<u32>, Corrupt> {
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
                    return Ok(Some(holding));
                }
            }
            return Ok(None);
        }
        Ok(None)
    }

    /// The account with a number.
    pub(crate) fn get(&self, number: u32) -> Option<&StoredAccount> {
        self.0.get(&((number % ACCOUNT_PLACES) as u8))
    }

    /// The account with a number, made with `new` if it is not here.
    pub(crate) fn entry(&mut self, number: u32, new: impl FnOnce() -> StoredAccount) -> &mut StoredAccount {
        self.0.entry((number % ACCOUNT_PLACES) as u8).or_insert_with(new)
    }

    /// The account with a number, if it is here.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut StoredAccount> {
        self.0.get_mut(&((number % ACCOUNT_PLACES) as u8))
    }

    /// Every account with its place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &StoredAccount)> {
        self.0.iter().map(|(place, account)| (u32::from(*place), account))
    }

    /// The page to store.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() * 48);
        for (place, account) in &self.0 {
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
}

/// So many first usages share a page, which then fits a page of the file.
const USAGE_PLACES: u32 = 480;

/// Reads and changes a page of first usages.
pub(crate) struct UsagePage(Vec<u8>);

impl UsagePage {
    /// The key of the page that holds an account's.
    pub(crate) fn key(ledger: u32, account: u32) -> [u8; 8] {
        page_key(ledger, account / USAGE_PLACES)
    }

    /// A page without any.
    pub(crate) fn empty() -> Self {
        Self(BEFORE_ALL.as_micros().to_le_bytes().repeat(USAGE_PLACES as usize))
    }

    /// A stored page.
    pub(crate) fn decode(stored: &[u8]) -> Result<Self, Corrupt> {
        if stored.len() == USAGE_PLACES as usize * 8 {
            Ok(Self(stored.to_vec()))
        } else {
            Err(Corrupt { what: "page of first usages" })
        }
    }

    /// The first usage of an account in a stored page; [`BEFORE_ALL`] where none is.
    pub(crate) fn find(stored: &[u8], account: u32) -> Result<Timestamp, Corrupt> {
        let at = (account % USAGE_PLACES) as usize;
        match stored.as_chunks::<8>().0.get(at) {
            Some(micros) => Ok(Timestamp::from_micros(i64::from_le_bytes(*micros))),
            None => Err(Corrupt { what: "page of first usages" }),
        }
    }

    /// Every first usage that is here, with its place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Timestamp)> {
        let usages = self.0.as_chunks::<8>().0.iter();
        (0..)
            .zip(usages.map(|micros| Timestamp::from_micros(i64::from_le_bytes(*micros))))
            .filter(|(_, usage)| *usage != BEFORE_ALL)
    }

    /// Puts an account's first usage; whether it was another one.
    pub(crate) fn put(&mut self, account: u32, usage: Timestamp) -> bool {
        let usage = usage.as_micros().to_le_bytes();
        let at = (account % USAGE_PLACES) as usize * 8;
        let place = &mut self.0[at..at + 8];
        let changes = *place != usage;
        place.copy_from_slice(&usage);
        changes
    }

    /// The page to store.
    pub(crate) fn encode(self) -> Vec<u8> {
        self.0
    }
}

fn read_address(reader: &mut Reader<'_>) -> Result<CompactString, Corrupt> {
    CompactString::from_utf8(reader.prefixed()?).map_err(|_| Corrupt { what: "address is not UTF-8" })
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

    fn quantity(text: &str) -> Quantity {
        Quantity::from(&text.parse::<ledger_core::Amount>().expect("digits"))
    }

    #[test]
    fn a_holding_reads_back_at_any_size() {
        let mut page = HoldingPage::empty();
        let sums = DisplacedSums { input: quantity("5"), output: quantity(&"8".repeat(40)), count: 3 };
        let first = HOLDING_PLACES;
        page.put(first, (1, 2), 1, (&quantity("100"), &quantity("0")), None);
        page.put(first + 1, (3, 4), 2, (&quantity(&"9".repeat(50)), &quantity("1")), Some(&sums));
        page.put(2 * first - 1, (5, 6), 3, (&quantity("18446744073709551615"), &quantity("7")), Some(&sums));
        let stored = page.encode();
        let again = HoldingPage::decode(&stored).expect("what was written").encode();
        assert_eq!(stored, again);
        let large = HoldingPage::find(&stored, first + 1).expect("what was written").expect("it was put");
        assert_eq!((large.account, large.asset, large.ordinal), (3, 4, 2));
        assert_eq!(large.volumes.input.to_string(), "9".repeat(50));
        assert_eq!(large.displaced.as_deref(), Some(&sums));
        let last = HoldingPage::find(&stored, 2 * first - 1).expect("what was written").expect("it was put");
        assert_eq!((last.account, last.displaced.as_deref()), (5, Some(&sums)));
        assert_eq!(HoldingPage::find(&stored, first + 2), Ok(None));
        assert_eq!(HoldingPage::all(&stored).expect("what was written").len(), 3);
    }

    #[test]
    fn an_account_reads_back_with_its_holdings() {
        let mut page = AccountPage::default();
        for number in [64, 70, 127] {
            page.entry(number, || StoredAccount {
                address: CompactString::from(format!("users:{number}")),
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
        assert_eq!(AccountPage::find_holding(&stored, 70, 9), Ok(Some(71)));
        assert_eq!(AccountPage::find_holding(&stored, 70, 8), Ok(None));
        assert_eq!(AccountPage::find_holding(&stored, 71, 9), Ok(None));
    }

    #[test]
    fn a_first_usage_reads_back_and_says_whether_it_is_news() {
        let date = Timestamp::from_micros;
        let mut page = UsagePage::empty();
        assert!(page.put(481, date(-5)) && page.put(USAGE_PLACES * 3 - 1, date(7)));
        assert!(!page.put(481, date(-5)));
        let stored = page.encode();
        assert_eq!(UsagePage::find(&stored, 481), Ok(date(-5)));
        assert_eq!(UsagePage::find(&stored, 482), Ok(BEFORE_ALL));
        let page = UsagePage::decode(&stored).expect("what was written");
        assert_eq!(page.iter().collect::<Vec<_>>(), [(1, date(-5)), (USAGE_PLACES - 1, date(7))]);
        assert!(UsagePage::decode(&stored[1..]).is_err());
    }
}
