//! The writer's state of a holding, which is one asset in one account.
//!
//! It is compact, because the writer keeps all accounts in use in its share of the memory budget. *Backdated* includes
//! postdated: the effective date of such a transaction is earlier or later than the date when the store recorded it.
//! The totals include these transactions; their sums are also kept separately, so that volumes by effective date can be
//! computed.

use std::ops::{Deref, DerefMut};

use ledger_core::{Amount, Balance, Volumes};
use ledger_index::{BackdatedSums, Quantity};

/// The state of a holding: its numbers and its sums.
#[derive(Clone, Debug)]
pub(crate) struct HoldingState {
    /// The number of the asset in the ledger.
    pub(crate) asset: u32,
    /// The number of the holding in the ledger.
    pub(crate) holding: u32,
    /// Number of transactions that moved it.
    pub(crate) transaction_count: u32,
    sums: Sums,
}

/// The totals of all transactions, and the sums of those that are backdated or postdated. Sums beyond 64 bits are on
/// the heap.
#[derive(Clone, Debug)]
enum Sums {
    Small {
        /// Number of backdated and postdated transactions.
        backdated_count: u32,
        input: u64,
        output: u64,
        backdated_input: u64,
        backdated_output: u64,
    },
    Large(Box<LargeSums>),
}

#[derive(Clone, Debug)]
struct LargeSums {
    totals: Volumes,
    backdated: Option<BackdatedSums>,
}

impl Sums {
    const ZERO: Self =
        Self::Small { backdated_count: 0, input: 0, output: 0, backdated_input: 0, backdated_output: 0 };

    fn of(totals: &Volumes, backdated: Option<BackdatedSums>) -> Self {
        let sums = backdated
            .as_ref()
            .map_or(Some((0, 0, 0)), |sums| Some((sums.count, sums.input.as_u64()?, sums.output.as_u64()?)));
        match (totals.input.to_u64(), totals.output.to_u64(), sums) {
            (Some(input), Some(output), Some((backdated_count, backdated_input, backdated_output))) => {
                Self::Small { backdated_count, input, output, backdated_input, backdated_output }
            }
            _ => Self::Large(Box::new(LargeSums { totals: totals.clone(), backdated })),
        }
    }

    fn totals(&self) -> Volumes {
        match self {
            Self::Small { input, output, .. } => {
                Volumes { input: Amount::from(*input), output: Amount::from(*output) }
            }
            Self::Large(large) => large.totals.clone(),
        }
    }

    fn backdated(&self) -> Option<BackdatedSums> {
        match self {
            Self::Small { backdated_count: 0, .. } => None,
            Self::Small { backdated_count, backdated_input, backdated_output, .. } => Some(BackdatedSums {
                input: Quantity::from(*backdated_input),
                output: Quantity::from(*backdated_output),
                count: *backdated_count,
            }),
            Self::Large(large) => large.backdated.clone(),
        }
    }
}

impl HoldingState {
    /// Creates the state of a holding that no transaction has moved.
    pub(crate) fn new(asset: u32, holding: u32) -> Self {
        Self { asset, holding, transaction_count: 0, sums: Sums::ZERO }
    }

    /// Creates the state of a holding from what the index holds.
    pub(crate) fn stored(
        asset: u32,
        holding: u32,
        transaction_count: u32,
        totals: &Volumes,
        backdated: Option<BackdatedSums>,
    ) -> Self {
        Self { asset, holding, transaction_count, sums: Sums::of(totals, backdated) }
    }

    /// Returns the input and output of all transactions.
    pub(crate) fn totals(&self) -> Volumes {
        self.sums.totals()
    }

    /// Returns input minus output.
    pub(crate) fn balance(&self) -> Balance {
        self.totals().balance()
    }

    /// Replaces the totals. Writes them in place if the old and the new ones fit 64 bits.
    #[inline]
    pub(crate) fn set_totals(&mut self, totals: &Volumes) {
        match (&mut self.sums, totals.input.to_u64(), totals.output.to_u64()) {
            (Sums::Small { input, output, .. }, Some(now_input), Some(now_output)) => {
                *input = now_input;
                *output = now_output;
            }
            (sums, ..) => *sums = Sums::of(totals, sums.backdated()),
        }
    }

    /// Returns the sums of its backdated and postdated transactions, if there are any.
    #[inline]
    pub(crate) fn backdated(&self) -> Option<Box<BackdatedSums>> {
        match &self.sums {
            Sums::Small { backdated_count: 0, .. } => None,
            sums => sums.backdated().map(Box::new),
        }
    }

    /// Adds one backdated or postdated transaction with this input and output to their sums. Leaves the totals as they
    /// are.
    pub(crate) fn add_backdated(&mut self, input: &Quantity, output: &Quantity) {
        let sums = match self.sums.backdated() {
            None => BackdatedSums { input: input.clone(), output: output.clone(), count: 1 },
            Some(sums) => BackdatedSums {
                input: sums.input.plus(input),
                output: sums.output.plus(output),
                count: sums.count + 1,
            },
        };
        self.sums = Sums::of(&self.totals(), Some(sums));
    }

    /// Reads a part of the state, which brings it into the processor's cache. The result has no meaning. It only keeps
    /// the compiler from removing the read.
    pub(crate) fn touch(&self) -> u64 {
        match &self.sums {
            Sums::Small { input, .. } => *input,
            Sums::Large(_) => 0,
        }
    }
}

/// The holdings of an account, ascending by asset number. A single one, the usual case, needs no heap memory.
#[derive(Clone, Debug)]
pub(crate) enum Holdings {
    One(HoldingState),
    Several(Vec<HoldingState>),
}

// The enum must not be larger than its single holding: there is one for every account in memory.
const _: () = assert!(size_of::<Holdings>() == size_of::<HoldingState>());

impl Holdings {
    /// The holdings of an account that has none.
    pub(crate) const NONE: Self = Self::Several(Vec::new());

    /// Inserts a holding at an index, which must keep the order by asset number.
    pub(crate) fn insert(&mut self, at: usize, holding: HoldingState) {
        *self = match std::mem::replace(self, Self::NONE) {
            Self::Several(none) if none.is_empty() => Self::One(holding),
            Self::Several(mut several) => {
                several.insert(at, holding);
                Self::Several(several)
            }
            Self::One(one) => {
                let mut several = vec![one];
                several.insert(at, holding);
                Self::Several(several)
            }
        }
    }

    /// Returns the number of bytes on the heap for the list. Excludes what its holdings have on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Several(several) => several.capacity() * size_of::<HoldingState>(),
        }
    }
}

impl From<Vec<HoldingState>> for Holdings {
    fn from(mut holdings: Vec<HoldingState>) -> Self {
        match holdings.pop() {
            Some(one) if holdings.is_empty() => Self::One(one),
            Some(last) => {
                holdings.push(last);
                Self::Several(holdings)
            }
            None => Self::NONE,
        }
    }
}

impl Deref for Holdings {
    type Target = [HoldingState];

    #[inline]
    fn deref(&self) -> &[HoldingState] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

impl DerefMut for Holdings {
    #[inline]
    fn deref_mut(&mut self) -> &mut [HoldingState] {
        match self {
            Self::One(one) => std::slice::from_mut(one),
            Self::Several(several) => several,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_and_sums_come_back_whatever_their_size() {
        let large: Amount = "340282366920938463463374607431768211456".parse().expect("an amount");
        for input in [Amount::ZERO, Amount::from(u64::MAX), large] {
            let totals = Volumes { input, output: Amount::from(7_u64) };
            let mut holding = HoldingState::new(1, 2);
            holding.set_totals(&totals);
            assert_eq!((holding.totals(), holding.backdated()), (totals.clone(), None));
            let mut expected = BackdatedSums { input: Quantity::ZERO, output: Quantity::ZERO, count: 0 };
            for input in [5_u64, u64::MAX, 1] {
                holding.add_backdated(&Quantity::from(input), &Quantity::ZERO);
                expected.input = expected.input.plus(&Quantity::from(input));
                expected.count += 1;
                assert_eq!(holding.backdated().as_deref(), Some(&expected));
                assert_eq!(holding.totals(), totals);
                let stored = HoldingState::stored(1, 2, 3, &totals, Some(expected.clone()));
                assert_eq!(
                    (stored.totals(), stored.backdated().as_deref()),
                    (totals.clone(), Some(&expected))
                );
            }
            let less = Volumes { input: Amount::from(8_u64), output: Amount::ZERO };
            holding.set_totals(&less);
            assert_eq!((holding.totals(), holding.backdated().as_deref()), (less, Some(&expected)));
        }
    }

    #[test]
    fn keeps_holdings_ordered_by_asset() {
        let mut holdings = Holdings::NONE;
        for asset in [5, 3, 9, 4] {
            let at = holdings.partition_point(|have| have.asset < asset);
            holdings.insert(at, HoldingState::new(asset, 0));
            let from = Holdings::from(holdings.to_vec());
            assert_eq!(from.len(), holdings.len());
            assert!(holdings.is_sorted_by_key(|have| have.asset) && from.is_sorted_by_key(|have| have.asset));
            assert_eq!(holdings.heap_bytes() == 0, holdings.len() == 1, "one takes no memory of its own");
        }
        assert!(Holdings::from(Vec::new()).is_empty());
    }
}
