//! What the writer knows of a holding, in few bytes: all accounts that are in use must fit its share.

use ledger_core::{Amount, Balance, Volumes};

use crate::index::{DisplacedSums, Quantity};

/// An asset in an account.
#[derive(Clone, Debug)]
pub(crate) struct HoldingState {
    /// The asset's number.
    pub(crate) asset: u32,
    /// The holding's number.
    pub(crate) holding: u32,
    /// How many transactions touched it.
    pub(crate) ordinal: u32,
    /// Its totals.
    pub(crate) totals: Totals,
    /// Totals of its displaced transactions.
    pub(crate) displaced: Displaced,
}

/// Volumes in half the bytes, as long as both fit 64 bits: a million accounts must fit the writer's share.
#[derive(Clone, Debug)]
pub(crate) enum Totals {
    Small { input: u64, output: u64 },
    Large(Box<Volumes>),
}

impl Totals {
    /// Nothing.
    pub(crate) const ZERO: Self = Self::Small { input: 0, output: 0 };

    /// The volumes.
    pub(crate) fn to_volumes(&self) -> Volumes {
        match self {
            Self::Small { input, output } => {
                Volumes { input: Amount::from(*input), output: Amount::from(*output) }
            }
            Self::Large(volumes) => Volumes::clone(volumes),
        }
    }

    /// Becomes these volumes; small ones are written in place.
    #[inline]
    pub(crate) fn set(&mut self, volumes: &Volumes) {
        match (self, volumes.input.to_u64(), volumes.output.to_u64()) {
            (Self::Small { input, output }, Some(now_input), Some(now_output)) => {
                *input = now_input;
                *output = now_output;
            }
            (totals, ..) => *totals = Self::from(volumes),
        }
    }

    /// Some of it, for who wants it to be near.
    pub(crate) fn glance(&self) -> u64 {
        match self {
            Self::Small { input, .. } => *input,
            Self::Large(_) => 0,
        }
    }

    /// Input minus output.
    pub(crate) fn balance(&self) -> Balance {
        self.to_volumes().balance()
    }
}

impl From<&Volumes> for Totals {
    #[inline]
    fn from(volumes: &Volumes) -> Self {
        match (volumes.input.to_u64(), volumes.output.to_u64()) {
            (Some(input), Some(output)) => Self::Small { input, output },
            _ => Self::Large(Box::new(volumes.clone())),
        }
    }
}

/// Sums over the displaced transactions of a holding, inline as long as they fit 64 bits.
#[derive(Clone, Debug)]
pub(crate) enum Displaced {
    /// There are none.
    None,
    Small {
        count: u32,
        input: u64,
        output: u64,
    },
    Large(Box<DisplacedSums>),
}

impl Displaced {
    /// The sums, if there are any.
    pub(crate) fn to_sums(&self) -> Option<Box<DisplacedSums>> {
        match self {
            Self::None => None,
            Self::Small { count, input, output } => Some(Box::new(DisplacedSums {
                input: Quantity::from(*input),
                output: Quantity::from(*output),
                count: *count,
            })),
            Self::Large(sums) => Some(sums.clone()),
        }
    }

    /// Adds what one more displaced transaction moved.
    pub(crate) fn add(&mut self, input: &Quantity, output: &Quantity) {
        let (count, sum_in, sum_out) = match self {
            Self::None => (0, Quantity::ZERO, Quantity::ZERO),
            Self::Small { count, input, output } => (*count, Quantity::from(*input), Quantity::from(*output)),
            Self::Large(sums) => (sums.count, sums.input.clone(), sums.output.clone()),
        };
        *self = Self::of(count + 1, sum_in.plus(input), sum_out.plus(output));
    }

    /// Allocates only what does not fit 64 bits.
    fn of(count: u32, input: Quantity, output: Quantity) -> Self {
        match (input.as_u64(), output.as_u64()) {
            (Some(input), Some(output)) => Self::Small { count, input, output },
            _ => Self::Large(Box::new(DisplacedSums { input, output, count })),
        }
    }
}

impl From<Option<Box<DisplacedSums>>> for Displaced {
    fn from(sums: Option<Box<DisplacedSums>>) -> Self {
        match sums {
            None => Self::None,
            Some(sums) => Self::of(sums.count, sums.input, sums.output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_and_sums_come_back_whatever_their_size() {
        let large: Amount = "340282366920938463463374607431768211456".parse().expect("an amount");
        for input in [Amount::ZERO, Amount::from(u64::MAX), large.clone()] {
            let volumes = Volumes { input, output: Amount::from(7_u64) };
            assert_eq!(Totals::from(&volumes).to_volumes(), volumes);
        }
        let mut displaced = Displaced::None;
        assert_eq!(displaced.to_sums(), None);
        let mut expected = DisplacedSums { input: Quantity::ZERO, output: Quantity::ZERO, count: 0 };
        for input in [5_u64, u64::MAX, 1] {
            displaced.add(&Quantity::from(input), &Quantity::ZERO);
            expected.input = expected.input.plus(&Quantity::from(input));
            expected.count += 1;
            assert_eq!(displaced.to_sums().as_deref(), Some(&expected));
        }
    }
}
