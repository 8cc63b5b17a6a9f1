//! Pages of holdings.

use std::collections::BTreeMap;

use ledger_core::Volumes;

use super::page_key;
use crate::codec::{Corrupt, Output, Reader};
use crate::entry::{put_amount, read_amount};
use crate::index::{DisplacedSums, Quantity};

/// So many holdings share a page. It mostly fits a page of the file, since its numbers are as narrow as they can be: a
/// flush may change holdings anywhere, and then writes nearly all pages again.
pub(crate) const HOLDING_PLACES: u32 = 256;

const LARGE: u8 = 1;
const DISPLACED: u8 = 2;

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

/// Reads and changes a page of holdings.
pub(crate) struct HoldingPage {
    places: Vec<Place>,
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
        Self { places: vec![Place::default(); HOLDING_PLACES as usize], extras: BTreeMap::new() }
    }

    /// A stored page.
    pub(crate) fn decode(stored: &[u8]) -> Result<Self, Corrupt> {
        let packed = Packed::new(stored)?;
        let mut page = Self::empty();
        for (at, place) in page.places[..packed.count].iter_mut().enumerate() {
            *place = packed.place(at)?;
        }
        let mut reader = Reader::new(packed.extras);
        while !reader.is_empty() {
            let (place, extra) = read_extra(&mut reader)?;
            page.extras.insert(place, extra);
        }
        Ok(page)
    }

    /// One holding of a stored page.
    pub(crate) fn find(stored: &[u8], number: u32) -> Result<Option<StoredHolding>, Corrupt> {
        let packed = Packed::new(stored)?;
        let place = number % HOLDING_PLACES;
        if place as usize >= packed.count {
            return Ok(None);
        }
        let Some(mut holding) = packed.place(place as usize)?.holding() else { return Ok(None) };
        let mut reader = Reader::new(packed.extras);
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
        let mut all = Vec::with_capacity(page.places.len());
        for (number, place) in (0..).zip(&page.places) {
            if let Some(mut holding) = place.holding() {
                if let Some(extra) = page.extras.remove(&(number as u8)) {
                    extra.put_into(&mut holding);
                }
                all.push((number, holding));
            }
        }
        Ok(all)
    }

    /// The account and asset of a holding that is here.
    pub(crate) fn identity(&self, number: u32) -> Option<(u32, u32)> {
        let place = &self.places[(number % HOLDING_PLACES) as usize];
        (place.ordinal > 0).then_some((place.account, place.asset))
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
        self.places[usize::from(place)] =
            Place { account, asset, ordinal, input: small_input, output: small_output };
        if large.is_some() || displaced.is_some() {
            self.extras.insert(place, Extra { large, displaced: displaced.cloned() });
        }
    }

    /// The page to store.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = pack(&self.places);
        let mut extras = Output::default();
        for (place, extra) in self.extras {
            extras.make_room();
            extras.put_byte(place);
            extras.put_byte(
                u8::from(extra.large.is_some()) * LARGE + u8::from(extra.displaced.is_some()) * DISPLACED,
            );
            if let Some(volumes) = extra.large {
                put_amount(&mut extras, &volumes.input);
                put_amount(&mut extras, &volumes.output);
            }
            if let Some(displaced) = extra.displaced {
                extras.put_varint(u64::from(displaced.count));
                displaced.input.put(&mut extras);
                displaced.output.put(&mut extras);
            }
        }
        out.extend_from_slice(extras.as_slice());
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

/// What has a fixed width of a holding; nothing where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    account: u32,
    asset: u32,
    ordinal: u32,
    input: u64,
    output: u64,
}

const COLUMNS: usize = 5;
/// No number of a column is wider.
const WIDTHS_MAX: [u8; COLUMNS] = [4, 4, 4, 8, 8];
const HEAD_BYTES: usize = 2 + 4 + COLUMNS;

impl Place {
    /// What stands in each column, in a page whose least account is `least`.
    fn numbers(&self, least: u32) -> [u64; COLUMNS] {
        if self.ordinal == 0 {
            return [0; COLUMNS];
        }
        let small = [self.account - least, self.asset, self.ordinal].map(u64::from);
        [small[0], small[1], small[2], self.input, self.output]
    }

    fn holding(&self) -> Option<StoredHolding> {
        let Self { account, asset, ordinal, input, output } = *self;
        let volumes = Volumes { input: input.into(), output: output.into() };
        (ordinal > 0).then_some(StoredHolding { account, asset, ordinal, volumes, displaced: None })
    }
}

/// The head and the columns of a page.
fn pack(places: &[Place]) -> Vec<u8> {
    let count = places.iter().rposition(|place| place.ordinal > 0).map_or(0, |last| last + 1);
    let places = &places[..count];
    let present = places.iter().filter(|place| place.ordinal > 0);
    let least = present.map(|place| place.account).min().unwrap_or(0);
    let mut bits = [0; COLUMNS];
    for place in places {
        for (bits, number) in bits.iter_mut().zip(place.numbers(least)) {
            *bits |= number;
        }
    }
    let widths = bits.map(|bits| (u64::BITS - bits.leading_zeros()).div_ceil(8) as u8);
    let columns: usize = widths.iter().map(|width| count * usize::from(*width)).sum();
    let mut out = Vec::with_capacity(HEAD_BYTES + columns + size_of::<u64>());
    out.extend_from_slice(&(count as u16).to_le_bytes());
    out.extend_from_slice(&least.to_le_bytes());
    out.extend_from_slice(&widths);
    let mut at = out.len();
    // Each number is put with all its bytes: the next one goes over those that are beyond the width.
    out.resize(HEAD_BYTES + columns + size_of::<u64>(), 0);
    for (column, width) in widths.into_iter().enumerate() {
        for place in places {
            out[at..at + size_of::<u64>()].copy_from_slice(&place.numbers(least)[column].to_le_bytes());
            at += usize::from(width);
        }
    }
    out.truncate(at);
    out
}

/// A stored page of holdings.
struct Packed<'a> {
    count: usize,
    least: u32,
    widths: [u8; COLUMNS],
    columns: &'a [u8],
    extras: &'a [u8],
}

impl<'a> Packed<'a> {
    fn new(stored: &'a [u8]) -> Result<Self, Corrupt> {
        let corrupt = Corrupt { what: "page of holdings" };
        let (head, rest) = stored.split_at_checked(HEAD_BYTES).ok_or(corrupt)?;
        let (count, head) = head.split_first_chunk::<2>().ok_or(corrupt)?;
        let (least, widths) = head.split_first_chunk::<4>().ok_or(corrupt)?;
        let widths: [u8; COLUMNS] = widths.try_into().map_err(|_| corrupt)?;
        let count = usize::from(u16::from_le_bytes(*count));
        if count > HOLDING_PLACES as usize || widths.iter().zip(WIDTHS_MAX).any(|(width, max)| *width > max) {
            return Err(corrupt);
        }
        let bytes = widths.iter().map(|width| count * usize::from(*width)).sum();
        let (columns, extras) = rest.split_at_checked(bytes).ok_or(corrupt)?;
        Ok(Self { count, least: u32::from_le_bytes(*least), widths, columns, extras })
    }

    /// What is at a place below the count.
    fn place(&self, place: usize) -> Result<Place, Corrupt> {
        let mut numbers = [0; COLUMNS];
        let mut column = 0;
        for (number, width) in numbers.iter_mut().zip(self.widths) {
            let width = usize::from(width);
            *number = number_at(self.columns, column + place * width, width);
            column += self.count * width;
        }
        let [account, asset, ordinal, input, output] = numbers;
        if ordinal == 0 {
            return Ok(Place::default());
        }
        let account = self.least.checked_add(account as u32).ok_or(Corrupt { what: "page of holdings" })?;
        // No wider than four bytes, as their columns are.
        let (asset, ordinal) = (asset as u32, ordinal as u32);
        Ok(Place { account, asset, ordinal, input, output })
    }
}

/// The number of so many bytes at a place of the columns.
fn number_at(columns: &[u8], at: usize, width: usize) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    if let Some(eight) = columns.get(at..at + size_of::<u64>()) {
        bytes.copy_from_slice(eight);
        let unused = 8 * (size_of::<u64>() - width) as u32;
        u64::from_le_bytes(bytes) & u64::MAX.checked_shr(unused).unwrap_or(0)
    } else {
        bytes[..width].copy_from_slice(&columns[at..at + width]);
        u64::from_le_bytes(bytes)
    }
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
        for cut in 0..stored.len() {
            let found = HoldingPage::find(&stored[..cut], first);
            assert!(found.is_err() || cut >= stored.len() - 100, "{cut} of {}", stored.len());
        }
        assert_eq!(HoldingPage::all(&stored).expect("what was written").len(), 3);
    }

    #[test]
    fn numbers_of_any_width_read_back_from_any_places() {
        let numbers = |shift: u32| [0, 1, 0xff, 0x100, u64::MAX].map(|number: u64| number >> shift);
        for places in [vec![0], vec![255], vec![3, 4, 200], (0..256).collect::<Vec<u32>>()] {
            for shift in 0..64 {
                let mut page = HoldingPage::empty();
                for (at, place) in places.iter().enumerate() {
                    let [a, b, c] = [0, 1, 2].map(|more| numbers(shift)[(at + more) % 5]);
                    let small = |number: u64| number as u32;
                    let volumes = (&Quantity::from(b), &Quantity::from(c));
                    page.put(512 + place, (small(a), small(c)), small(b).max(1), volumes, None);
                }
                let stored = page.encode();
                let all = HoldingPage::all(&stored).expect("what was written");
                assert_eq!(all.iter().map(|(place, _)| *place).collect::<Vec<_>>(), places);
                for (at, (place, holding)) in all.into_iter().enumerate() {
                    let [a, b, c] = [0, 1, 2].map(|more| numbers(shift)[(at + more) % 5]);
                    assert_eq!((holding.account, holding.asset), (a as u32, c as u32));
                    assert_eq!(holding.ordinal, (b as u32).max(1));
                    assert_eq!(holding.volumes, Volumes { input: b.into(), output: c.into() });
                    assert_eq!(HoldingPage::find(&stored, place), Ok(Some(holding)));
                }
            }
        }
    }
}
