//! Random rows of every kind, like those that the projection creates.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use crate::row::Row;
use crate::rows::tests::{Rng, random_large};
use crate::rows::{
    BackdatedRow, BackdatedSums, DocumentRow, EffectiveRow, HistoryRow, KeyRow, LogRow, Quantity, TermRow,
    TransactionRow, VersionRow,
};

/// The state that the generator keeps between batches.
#[derive(Default)]
pub(super) struct State {
    /// A growing number: a transaction, a log or a position.
    clock: u64,
    holdings: BTreeMap<u64, HistoryRow>,
}

impl State {
    fn tick(&mut self, rng: &mut Rng) -> u64 {
        self.clock += 1 + rng.below(3);
        self.clock
    }
}

/// A kind of row that can be generated at random.
pub(super) trait Sample: Row + PartialEq + Debug {
    /// Returns the next row in journal order.
    fn next(rng: &mut Rng, state: &mut State) -> Self;
    /// Returns a key that a reader may ask for, whether present or not.
    fn any_key(rng: &mut Rng, state: &State) -> Self::Key;
    /// Returns the smallest and the largest key that belong together with `key`.
    fn group(key: Self::Key) -> (Self::Key, Self::Key);
    /// Returns the row without values that depend on its source.
    fn alone(self) -> Self {
        self
    }
}

impl Sample for HistoryRow {
    fn next(rng: &mut Rng, state: &mut State) -> Self {
        let transaction = state.tick(rng);
        let holding = (rng.below(3) << 32) | rng.below(30);
        let (input, output) = (random_large(rng), Quantity::from(rng.below(2) * 50));
        let is_backdated = rng.below(4) == 0;
        let before = state.holdings.get(&holding);
        let mut backdated = before.and_then(|before| before.backdated.clone());
        if is_backdated {
            let zero = BackdatedSums { input: Quantity::ZERO, output: Quantity::ZERO, count: 0 };
            let sums = backdated.get_or_insert_with(|| Box::new(zero));
            sums.input = sums.input.plus(&input);
            sums.output = sums.output.plus(&output);
            sums.count += 1;
        }
        let row = HistoryRow {
            holding,
            transaction,
            input: before.map_or(Quantity::ZERO, |before| before.input.clone()).plus(&input),
            output: before.map_or(Quantity::ZERO, |before| before.output.clone()).plus(&output),
            backdated,
            ordinal: before.map_or(0, |before| before.ordinal) + 1,
            is_backdated,
            is_source: rng.below(2) == 0,
            is_destination: rng.below(2) == 0,
        };
        state.holdings.insert(holding, row.clone());
        row
    }

    fn any_key(rng: &mut Rng, state: &State) -> Self::Key {
        ((rng.below(4) << 32) | rng.below(32), rng.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, 0), (key.0, u64::MAX))
    }
}

impl Sample for BackdatedRow {
    fn next(rng: &mut Rng, state: &mut State) -> Self {
        let timestamp = rng.below(1000).cast_signed() - 500;
        let (input, output) = (random_large(rng), Quantity::from(rng.below(2)));
        Self::new(rng.below(20), timestamp, state.tick(rng), input, output)
    }

    fn any_key(rng: &mut Rng, state: &State) -> Self::Key {
        (rng.below(22), rng.below(1100).cast_signed() - 550, rng.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, i64::MIN, 0), (key.0, i64::MAX, u64::MAX))
    }

    fn alone(self) -> Self {
        Self::new(self.holding, self.timestamp, self.transaction, self.input, self.output)
    }
}

impl Sample for KeyRow {
    fn next(rng: &mut Rng, state: &mut State) -> Self {
        // Make some fingerprints collide.
        let fingerprint = rng.below(5000).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { space: rng.below(3), fingerprint, value: state.tick(rng) }
    }

    fn any_key(rng: &mut Rng, state: &State) -> Self::Key {
        let fingerprint = rng.below(6000).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (rng.below(4), fingerprint, rng.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, key.1, 0), (key.0, key.1, u64::MAX))
    }
}

impl Sample for TermRow {
    fn next(rng: &mut Rng, state: &mut State) -> Self {
        let (space, term, id) = (rng.below(2), rng.below(6) * 1_000_003, rng.below(100));
        Self::new(space, term, id, state.tick(rng), rng.below(3) != 0)
    }

    fn any_key(rng: &mut Rng, state: &State) -> Self::Key {
        (rng.below(3), rng.below(7) * 1_000_003, rng.below(102), rng.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, key.1, 0, 0), (key.0, key.1, u64::MAX, u64::MAX))
    }
}

impl Sample for LogRow {
    fn next(rng: &mut Rng, state: &mut State) -> Self {
        let log = state.tick(rng);
        Self { ledger: rng.below(3) as u32, log, position: log * 2, date: log.cast_signed() * 1_000_000 }
    }

    fn any_key(rng: &mut Rng, state: &State) -> Self::Key {
        (rng.below(4) as u32, rng.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, 0), (key.0, u64::MAX))
    }
}

impl Sample for TransactionRow {
    fn next(rng: &mut Rng, state: &mut State) -> Self {
        let transaction = state.tick(rng);
        let timestamp = rng.any().cast_signed() >> 10;
        let ledger = rng.below(3) as u32;
        Self {
            ledger,
            transaction,
            position: transaction * 2,
            log: transaction + 7,
            timestamp,
            date: timestamp,
        }
    }

    fn any_key(rng: &mut Rng, state: &State) -> Self::Key {
        (rng.below(4) as u32, rng.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, 0), (key.0, u64::MAX))
    }
}

impl Sample for VersionRow {
    fn next(rng: &mut Rng, state: &mut State) -> Self {
        let length = if rng.below(200) == 0 { 20_000 } else { rng.below(60) };
        let bytes = (0..length).map(|_| rng.any() as u8).collect();
        Self { space: rng.below(2), id: rng.below(50), position: state.tick(rng), bytes }
    }

    fn any_key(rng: &mut Rng, state: &State) -> Self::Key {
        (rng.below(3), rng.below(52), rng.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, key.1, 0), (key.0, key.1, u64::MAX))
    }
}

impl Sample for EffectiveRow {
    fn next(rng: &mut Rng, state: &mut State) -> Self {
        let timestamp = rng.below(1 << 40).cast_signed() - (1 << 39);
        Self { ledger: rng.below(3) as u32, timestamp, transaction: state.tick(rng) }
    }

    fn any_key(rng: &mut Rng, state: &State) -> Self::Key {
        let timestamp = rng.below(1 << 40).cast_signed() - (1 << 39);
        (rng.below(4) as u32, timestamp, rng.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0, i64::MIN, 0), (key.0, i64::MAX, u64::MAX))
    }
}

/// Returns the key of a document or of an index entry, sometimes a long one. Some keys are the beginnings of others.
fn document_key(rng: &mut Rng) -> Arc<[u8]> {
    let mut key = vec![0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, rng.below(3) as u8];
    let length = if rng.below(20) == 0 { 2_000 } else { rng.below(4) };
    key.extend((0..length).map(|_| [0, 1, 0xff][rng.below(3) as usize]));
    key.into()
}

impl Sample for DocumentRow {
    fn next(rng: &mut Rng, state: &mut State) -> Self {
        let length = if rng.below(200) == 0 { 20_000 } else { rng.below(60) };
        let bytes: Vec<u8> = (0..length).map(|_| rng.any() as u8).collect();
        let value = if rng.below(3) == 0 { None } else { Some(bytes.into()) };
        Self { key: document_key(rng), version: state.tick(rng), value }
    }

    fn any_key(rng: &mut Rng, state: &State) -> Self::Key {
        (document_key(rng), rng.below(state.clock + 2))
    }

    fn group(key: Self::Key) -> (Self::Key, Self::Key) {
        ((key.0.clone(), 0), (key.0, u64::MAX))
    }
}
