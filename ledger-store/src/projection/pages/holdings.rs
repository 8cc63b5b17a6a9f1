//! Pages of holdings in the index.

#![allow(
    clippy::cast_possible_truncation,
    reason = "a page has 256 places, and a column is as wide as its values"
)]

use ledger_codec::{Corrupt, Output, Reader};
use ledger_core::Volumes;
use ledger_index::{BackdatedSums, Quantity};
use ledger_journal::entry::{put_amount, read_amount};

use super::columns::{
    ACCOUNT, ASSET, COLUMNS, CORRUPT, Columns, HOLDING_PLACES, INPUT, OUTPUT, Packed, TRANSACTION_COUNT, pack,
};
use super::page_key;
use crate::quantity::amount_of;

const LARGE: u8 = 1;
const BACKDATED: u8 = 2;

/// A holding in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredHolding {
    /// Number of the holding's account.
    pub(crate) account: u32,
    /// Number of the holding's asset.
    pub(crate) asset: u32,
    /// Number of transactions that touched it.
    pub(crate) transaction_count: u32,
    /// Total volumes.
    pub(crate) volumes: Volumes,
    /// Sums over its backdated transactions.
    pub(crate) backdated: Option<Box<BackdatedSums>>,
}

/// A decoded page of holdings, for reading and changing.
pub(crate) struct HoldingPage {
    columns: Box<Columns>,
    extras: Extras,
}

impl HoldingPage {
    /// Returns the key of the page that contains a holding.
    pub(crate) fn key(ledger: u32, holding: u32) -> [u8; 8] {
        page_key(ledger, holding / HOLDING_PLACES)
    }

    /// Creates a page without holdings.
    pub(crate) fn empty() -> Self {
        Self { columns: Box::new([[0; HOLDING_PLACES as usize]; COLUMNS]), extras: Extras::default() }
    }

    /// Decodes a stored page.
    pub(crate) fn decode(stored: &[u8]) -> Result<Self, Corrupt> {
        let packed = Packed::new(stored)?;
        let mut page = Self { extras: Extras::decode(packed.extras)?, ..Self::empty() };
        packed.unpack(&mut page.columns)?;
        Ok(page)
    }

    /// Decodes one holding of a stored page.
    pub(crate) fn find(stored: &[u8], number: u32) -> Result<Option<StoredHolding>, Corrupt> {
        let packed = Packed::new(stored)?;
        let place = number % HOLDING_PLACES;
        if place as usize >= packed.count {
            return Ok(None);
        }
        let Some(mut holding) = holding_of(packed.numbers(place as usize)?) else { return Ok(None) };
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

    /// Decodes every holding of a stored page, with its place.
    pub(crate) fn all(stored: &[u8]) -> Result<Vec<(u32, StoredHolding)>, Corrupt> {
        let packed = Packed::new(stored)?;
        let mut columns: Columns = [[0; HOLDING_PLACES as usize]; COLUMNS];
        packed.unpack(&mut columns)?;
        let mut all = Vec::with_capacity(packed.count);
        for place in 0..packed.count {
            let numbers = columns.each_ref().map(|column| column[place]);
            all.extend(holding_of(numbers).map(|holding| (place as u32, holding)));
        }
        let mut reader = Reader::new(packed.extras);
        while !reader.is_empty() {
            let (place, extra) = read_extra(&mut reader)?;
            if let Ok(at) = all.binary_search_by_key(&u32::from(place), |(place, _)| *place) {
                extra.put_into(&mut all[at].1);
            }
        }
        Ok(all)
    }

    /// Returns account and asset of a holding, if it is on the page.
    pub(crate) fn identity(&self, number: u32) -> Option<(u32, u32)> {
        let place = (number % HOLDING_PLACES) as usize;
        let number = |column: usize| self.columns[column][place] as u32;
        (number(TRANSACTION_COUNT) > 0).then(|| (number(ACCOUNT), number(ASSET)))
    }

    /// Sets the current state of a holding. Large volumes and backdated sums are never removed; a state without them
    /// must not follow one with them.
    pub(crate) fn put(&mut self, number: u32, holding: CurrentHolding<'_>) {
        let CurrentHolding { account, asset, transaction_count, input, output, backdated } = holding;
        let place = (number % HOLDING_PLACES) as u8;
        let (small_input, small_output, large) = match (input.as_u64(), output.as_u64()) {
            (Some(input), Some(output)) => (input, output, None),
            _ => (0, 0, Some(Volumes { input: amount_of(input), output: amount_of(output) })),
        };
        let numbers =
            [u64::from(account), u64::from(asset), u64::from(transaction_count), small_input, small_output];
        for (column, number) in self.columns.iter_mut().zip(numbers) {
            column[usize::from(place)] = number;
        }
        if large.is_some() || backdated.is_some() {
            self.extras.put(place, Extra { large, backdated: backdated.cloned() });
        }
    }

    /// Encodes the page for storing.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = pack(self.columns);
        self.extras.encode(&mut out);
        out
    }
}

/// The state of a holding after its last transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CurrentHolding<'a> {
    pub(crate) account: u32,
    pub(crate) asset: u32,
    /// Number of transactions that have moved the holding.
    pub(crate) transaction_count: u32,
    pub(crate) input: &'a Quantity,
    pub(crate) output: &'a Quantity,
    /// Sums of the backdated transactions, if there are any.
    pub(crate) backdated: Option<&'a BackdatedSums>,
}

/// Creates a holding from its numbers, in the order of the columns. Returns `None` for an empty place.
fn holding_of(numbers: [u64; COLUMNS]) -> Option<StoredHolding> {
    let volumes = Volumes { input: numbers[INPUT].into(), output: numbers[OUTPUT].into() };
    // The columns of these numbers are at most four bytes wide.
    let [account, asset, transaction_count] =
        [ACCOUNT, ASSET, TRANSACTION_COUNT].map(|column| numbers[column] as u32);
    (transaction_count > 0).then_some(StoredHolding {
        account,
        asset,
        transaction_count,
        volumes,
        backdated: None,
    })
}

/// Data that few holdings have besides their numbers: the stored bytes, and changes to them.
#[derive(Default)]
struct Extras {
    stored: Vec<u8>,
    /// Place and end offset of each stored extra, ascending.
    ends: Vec<(u8, u32)>,
    /// Changed extras with their places, ascending.
    changed: Vec<(u8, Extra)>,
}

impl Extras {
    fn decode(stored: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(stored);
        let mut ends: Vec<(u8, u32)> = Vec::new();
        while !reader.is_empty() {
            let (place, _) = read_extra(&mut reader)?;
            if ends.last().is_some_and(|(last, _)| *last >= place) {
                return Err(CORRUPT);
            }
            ends.push((place, (stored.len() - reader.remaining()) as u32));
        }
        Ok(Self { stored: stored.to_vec(), ends, changed: Vec::new() })
    }

    fn put(&mut self, place: u8, extra: Extra) {
        // Changes mostly come in ascending order.
        let at = self.changed.partition_point(|(have, _)| *have < place);
        match self.changed.get_mut(at).filter(|(have, _)| *have == place) {
            Some((_, before)) => *before = extra,
            None => self.changed.insert(at, (place, extra)),
        }
    }

    /// Encodes the extras in order of their places. Copies neighbouring unchanged extras at once.
    fn encode(self, out: &mut Vec<u8>) {
        let mut ends = self.ends.into_iter().peekable();
        let (mut copied, mut begin) = (0, 0);
        let mut changed = Output::default();
        for (place, extra) in self.changed {
            while let Some((_, end)) = ends.next_if(|(at, _)| *at < place) {
                begin = end as usize;
            }
            out.extend_from_slice(&self.stored[copied..begin]);
            if let Some((_, end)) = ends.next_if(|(at, _)| *at == place) {
                begin = end as usize;
            }
            copied = begin;
            changed.truncate(0);
            extra.encode(place, &mut changed);
            out.extend_from_slice(changed.as_slice());
        }
        out.extend_from_slice(&self.stored[copied..]);
    }
}

/// Data that few holdings have: volumes that exceed 64 bits, and sums over backdated transactions.
#[derive(Clone, Debug)]
struct Extra {
    large: Option<Volumes>,
    backdated: Option<BackdatedSums>,
}

impl Extra {
    fn put_into(self, holding: &mut StoredHolding) {
        if let Some(volumes) = self.large {
            holding.volumes = volumes;
        }
        holding.backdated = self.backdated.map(Box::new);
    }

    fn encode(&self, place: u8, out: &mut Output) {
        out.make_room();
        out.put_byte(place);
        out.put_byte(u8::from(self.large.is_some()) * LARGE + u8::from(self.backdated.is_some()) * BACKDATED);
        if let Some(volumes) = &self.large {
            put_amount(out, &volumes.input);
            put_amount(out, &volumes.output);
        }
        if let Some(backdated) = &self.backdated {
            out.put_varint(u64::from(backdated.count));
            backdated.input.put(out);
            backdated.output.put(out);
        }
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
    let backdated = if flags & BACKDATED != 0 {
        let count = reader.varint_u32()?;
        Some(BackdatedSums { input: Quantity::read(reader)?, output: Quantity::read(reader)?, count })
    } else {
        None
    };
    Ok((place, Extra { large, backdated }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::quantity_of;

    fn quantity(text: &str) -> Quantity {
        quantity_of(&text.parse().expect("digits"))
    }

    #[test]
    fn reads_back_holding_of_any_size() {
        let mut page = HoldingPage::empty();
        let sums = BackdatedSums { input: quantity("5"), output: quantity(&"8".repeat(40)), count: 3 };
        let first = HOLDING_PLACES;
        let holding = CurrentHolding {
            account: 1,
            asset: 2,
            transaction_count: 1,
            input: &quantity("100"),
            output: &quantity("0"),
            backdated: None,
        };
        page.put(first, holding);
        let (input, output) = (&quantity(&"9".repeat(50)), &quantity("1"));
        let backdated = Some(&sums);
        page.put(
            first + 1,
            CurrentHolding { account: 3, asset: 4, transaction_count: 2, input, output, backdated },
        );
        let (input, output) = (&quantity("18446744073709551615"), &quantity("7"));
        page.put(
            2 * first - 1,
            CurrentHolding { account: 5, asset: 6, transaction_count: 3, input, output, backdated },
        );
        let stored = page.encode();
        let again = HoldingPage::decode(&stored).expect("what was written").encode();
        assert_eq!(stored, again);
        let large = HoldingPage::find(&stored, first + 1).expect("what was written").expect("it was put");
        assert_eq!((large.account, large.asset, large.transaction_count), (3, 4, 2));
        assert_eq!(large.volumes.input.to_string(), "9".repeat(50));
        assert_eq!(large.backdated.as_deref(), Some(&sums));
        let last = HoldingPage::find(&stored, 2 * first - 1).expect("what was written").expect("it was put");
        assert_eq!((last.account, last.backdated.as_deref()), (5, Some(&sums)));
        assert_eq!(HoldingPage::find(&stored, first + 2), Ok(None));
        for cut in 0..stored.len() {
            let found = HoldingPage::find(&stored[..cut], first);
            assert!(found.is_err() || cut >= stored.len() - 100, "{cut} of {}", stored.len());
        }
        assert_eq!(HoldingPage::all(&stored).expect("what was written").len(), 3);
    }

    #[test]
    fn reads_back_numbers_of_any_width() {
        let numbers = |shift: u32| [0, 1, 0xff, 0x100, u64::MAX].map(|number: u64| number >> shift);
        for places in [vec![0], vec![255], vec![3, 4, 200], (0..256).collect::<Vec<u32>>()] {
            for shift in 0..64 {
                let mut page = HoldingPage::empty();
                for (at, place) in places.iter().enumerate() {
                    let [a, b, c] = [0, 1, 2].map(|more| numbers(shift)[(at + more) % 5]);
                    let small = |number: u64| number as u32;
                    let (input, output) = (&Quantity::from(b), &Quantity::from(c));
                    let (account, asset, transaction_count) = (small(a), small(c), small(b).max(1));
                    let holding =
                        CurrentHolding { account, asset, transaction_count, input, output, backdated: None };
                    page.put(512 + place, holding);
                }
                let stored = page.encode();
                let all = HoldingPage::all(&stored).expect("what was written");
                assert_eq!(all.iter().map(|(place, _)| *place).collect::<Vec<_>>(), places);
                for (at, (place, holding)) in all.into_iter().enumerate() {
                    let [a, b, c] = [0, 1, 2].map(|more| numbers(shift)[(at + more) % 5]);
                    assert_eq!((holding.account, holding.asset), (a as u32, c as u32));
                    assert_eq!(holding.transaction_count, (b as u32).max(1));
                    assert_eq!(holding.volumes, Volumes { input: b.into(), output: c.into() });
                    assert_eq!(HoldingPage::find(&stored, place), Ok(Some(holding)));
                }
            }
        }
    }

    #[test]
    fn merges_update_into_stored_page() {
        let mut model = std::collections::BTreeMap::<u32, StoredHolding>::new();
        let (mut page, mut seed) = (HoldingPage::empty(), 7_u32);
        let beyond = quantity("18446744073709551616");
        for step in 1..3_000_u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (place, kind) = (seed >> 24, (seed >> 16) % 16);
            // Sums of backdated transactions and large volumes are never removed.
            let before = model.get(&place);
            let is_backdated = kind == 0 || before.is_some_and(|holding| holding.backdated.is_some());
            let is_large =
                kind == 1 || before.is_some_and(|holding| holding.volumes.output == amount_of(&beyond));
            let input = Quantity::from(u64::from(step));
            let output = if is_large { beyond.clone() } else { quantity("9") };
            let sums = BackdatedSums { input: input.clone(), output: output.clone(), count: step };
            let holding = CurrentHolding {
                account: place,
                asset: 1,
                transaction_count: step,
                input: &input,
                output: &output,
                backdated: is_backdated.then_some(&sums),
            };
            page.put(place, holding);
            model.insert(
                place,
                StoredHolding {
                    account: place,
                    asset: 1,
                    transaction_count: step,
                    volumes: Volumes { input: amount_of(&input), output: amount_of(&output) },
                    backdated: is_backdated.then(|| Box::new(sums)),
                },
            );
            if kind < 4 {
                let stored = page.encode();
                let all = HoldingPage::all(&stored).expect("what was written");
                assert!(all.iter().map(|(place, holding)| (place, holding)).eq(&model), "step {step}");
                page = HoldingPage::decode(&stored).expect("what was written");
            }
        }
    }

    #[test]
    fn unordered_extras_are_corrupt() {
        let mut page = HoldingPage::empty();
        let sums = BackdatedSums { input: quantity("5"), output: quantity("6"), count: 3 };
        let (input, output) = (&quantity("5"), &quantity("6"));
        for place in [3, 4] {
            let holding = CurrentHolding {
                account: 1,
                asset: 2,
                transaction_count: 1,
                input,
                output,
                backdated: Some(&sums),
            };
            page.put(place, holding);
        }
        let mut stored = page.encode();
        assert!(HoldingPage::decode(&stored).is_ok());
        let first = stored.len() - 10;
        assert_eq!((stored[first], stored[first + 5]), (3, 4));
        stored[first] = 4;
        assert!(HoldingPage::decode(&stored).is_err());
    }
}
