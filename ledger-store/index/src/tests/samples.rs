//! Random rows of every kind, like those that the projection creates.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::row::Row;
use crate::rows::tests::{Dice, random_large};
use crate::rows::{
    DisplacedRow, DisplacedSums, EffectiveRow, HistoryRow, KeyRow, LogRow, Quantity, TermRow, TransactionRow,
    VersionRow,
};

/// The state that the generator keeps between batches.
#[derive(Default)]
pub(super) struct State {
    /// A growing number: a transaction, a log or a position.
    clock: u64,
    holdings: BTreeMap<u64, HistoryRow>,
}

impl State {
    fn tick(&mut self, dice: &mut Dice) -> u64 {
        self.clock += 1 + dice.below(3);
        self.clock
    }
}

/// A kind of row that can be generated at random.
pub(super) trait Sample: Row + PartialEq + Debug {
    /// Returns the next row in journal order.
    fn next(dice: &mut Dice, state: &mut State) -> Self;
    /// Returns a key that a reader may ask for, whether present or not.
    fn any_key(dice: &mut Dice, state: &State) -> Self::Key;
    /// Returns the smallest and the largest key that belong together with `key`.
    fn group(key: Self::Key) -> (Self::Key, Self::Key);
    /// Returns the row without values that depend on its source.
    fn alone(self) -> Self {
        self
    }
}

impl Sample for HistoryRow {
    fn next(dice: &mut Dice, state: &mut State) -> Self {
        let transaction = state.tick(dice);
        let holding = (dice.below(3) << 32) | dice.below(30);
        let (input, output) = (random_large(dice), Quantity::from(dice.below(2) * 50));
        let is_displaced = dice.below(4) == 0;
        let before = state.holdings.get(&holding);
        let mut displaced = before.and_then(|before| before.displaced.clone());
        if is_displaced {
            let zero = DisplacedSums { input: Quantity::ZERO, output: Quantity::ZERO, count: 0 };
            let sums = displaced.get_or_insert_with(|| Box::new(zero));
            sums.input = sums.input.plus(&input);
            sums.output = sums.output.plus(&output);
            sums.count += 1;
        }
        let row = HistoryRow {
            holding,
            transaction,
            input: before.map_or(Quantity::ZERO, |before| before.input.clone()).plus(&input),
            output: before.map_or(Quantity::ZERO, |before| before.output.clone()).plus(&output),
            displaced,
            ordinal: before.map_or(0, |before| before.ordinal) + 1,
            is_displaced,
            is_source: dice.below(2) == 0,
            is_destination: dice.below(2) == 0,
        };
        state.holdings.insert(holding, row.clone());
        row
    }

    fn any_key(dice: &mut Dice, state: &State) -> Self::Key {
        ((dice.below(4) << 32) | dice.below(32), dice.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, 0), (key.0, u64::MAX))
    }
}

impl Sample for DisplacedRow {
    fn next(dice: &mut Dice, state: &mut State) -> Self {
        let timestamp = dice.below(1000).cast_signed() - 500;
        let (input, output) = (random_large(dice), Quantity::from(dice.below(2)));
        Self::new(dice.below(20), timestamp, state.tick(dice), input, output)
    }

    fn any_key(dice: &mut Dice, state: &State) -> Self::Key {
        (dice.below(22), dice.below(1100).cast_signed() - 550, dice.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, i64::MIN, 0), (key.0, i64::MAX, u64::MAX))
    }

    fn alone(self) -> Self {
        Self::new(self.holding, self.timestamp, self.transaction, self.input, self.output)
    }
}

impl Sample for KeyRow {
    fn next(dice: &mut Dice, state: &mut State) -> Self {
        // Make some fingerprints collide.
        let fingerprint = dice.below(5000).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { space: dice.below(3), fingerprint, value: state.tick(dice) }
    }

    fn any_key(dice: &mut Dice, state: &State) -> Self::Key {
        let fingerprint = dice.below(6000).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (dice.below(4), fingerprint, dice.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, key.1, 0), (key.0, key.1, u64::MAX))
    }
}

impl Sample for TermRow {
    fn next(dice: &mut Dice, state: &mut State) -> Self {
        let (space, term, id) = (dice.below(2), dice.below(6) * 1_000_003, dice.below(100));
        Self::new(space, term, id, state.tick(dice), dice.below(3) != 0)
    }

    fn any_key(dice: &mut Dice, state: &State) -> Self::Key {
        (dice.below(3), dice.below(7) * 1_000_003, dice.below(102), dice.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, key.1, 0, 0), (key.0, key.1, u64::MAX, u64::MAX))
    }
}

impl Sample for LogRow {
    fn next(dice: &mut Dice, state: &mut State) -> Self {
        let log = state.tick(dice);
        Self { ledger: dice.below(3) as u32, log, position: log * 2, date: log.cast_signed() * 1_000_000 }
    }

    fn any_key(dice: &mut Dice, state: &State) -> Self::Key {
        (dice.below(4) as u32, dice.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, 0), (key.0, u64::MAX))
    }
}

impl Sample for TransactionRow {
    fn next(dice: &mut Dice, state: &mut State) -> Self {
        let transaction = state.tick(dice);
        let timestamp = dice.any().cast_signed() >> 10;
        let ledger = dice.below(3) as u32;
        Self {
            ledger,
            transaction,
            position: transaction * 2,
            log: transaction + 7,
            timestamp,
            date: timestamp,
        }
    }

    fn any_key(dice: &mut Dice, state: &State) -> Self::Key {
        (dice.below(4) as u32, dice.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, 0), (key.0, u64::MAX))
    }
}

impl Sample for VersionRow {
    fn next(dice: &mut Dice, state: &mut State) -> Self {
        let length = if dice.below(200) == 0 { 20_000 } else { dice.below(60) };
        let bytes = (0..length).map(|_| dice.any() as u8).collect();
        Self { space: dice.below(2), id: dice.below(50), position: state.tick(dice), bytes }
    }

    fn any_key(dice: &mut Dice, state: &State) -> Self::Key {
        (dice.below(3), dice.below(52), dice.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, key.1, 0), (key.0, key.1, u64::MAX))
    }
}

impl Sample for EffectiveRow {
    fn next(dice: &mut Dice, state: &mut State) -> Self {
        let timestamp = dice.below(1 << 40).cast_signed() - (1 << 39);
        Self { ledger: dice.below(3) as u32, timestamp, transaction: state.tick(dice) }
    }

    fn any_key(dice: &mut Dice, state: &State) -> Self::Key {
        let timestamp = dice.below(1 << 40).cast_signed() - (1 << 39);
        (dice.below(4) as u32, timestamp, dice.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, i64::MIN, 0), (key.0, i64::MAX, u64::MAX))
    }
}
