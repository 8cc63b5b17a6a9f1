//! Sorts the rows of a batch. Most sort keys are evenly distributed, so arithmetic finds the place of a row, without
//! comparisons.

#![allow(clippy::cast_possible_truncation, reason = "there are fewer parts than rows")]

use super::row::Row;

/// Minimum number of rows for this algorithm. Fewer are sorted by comparison.
const ROWS_MIN: usize = 128;
/// Average number of rows in a part.
const PART_ROWS: usize = 4;

/// Sorts rows by their keys.
///
/// Distributes the rows to parts by the leading bits of [`Row::spread`]. Sorts each part in the same way by the
/// remaining bits, or by comparison if it is small. However uneven the distribution is, there are few passes.
pub fn sort_rows<R: Row>(rows: &mut [R]) {
    let parts = if rows.len() < ROWS_MIN { None } else { Parts::of(rows) };
    let Some(parts) = parts else {
        rows.sort_unstable_by_key(Row::key);
        return;
    };
    let ends = parts.arrange(rows);
    let mut start = 0;
    for end in ends {
        let part = &mut rows[start..end as usize];
        if part.len() > 1 && !part.is_sorted_by_key(Row::key) {
            // If few values are very frequent, the others are spread over a part of their own.
            sort_rows(part);
        }
        start = end as usize;
    }
}

/// How rows are distributed to parts.
struct Parts {
    least: u64,
    shift: u32,
    count: usize,
}

impl Parts {
    /// Returns `None` if the rows belong to several groups, or are all alike.
    fn of<R: Row>(rows: &[R]) -> Option<Self> {
        let (group, first) = R::spread(&rows.first()?.key())?;
        let (mut least, mut greatest) = (first, first);
        for row in rows {
            let (have, word) = R::spread(&row.key())?;
            if have != group {
                return None;
            }
            (least, greatest) = (least.min(word), greatest.max(word));
        }
        let bits = u64::BITS - (greatest - least).leading_zeros();
        let part_bits = (rows.len() / PART_ROWS).ilog2();
        let shift = bits.saturating_sub(part_bits);
        let count = ((greatest - least) >> shift) as usize + 1;
        (count > 1).then_some(Self { least, shift, count })
    }

    fn part<R: Row>(&self, row: &R) -> usize {
        let (_, word) = R::spread(&row.key()).expect("`of` has checked that the rows have a spread");
        ((word - self.least) >> self.shift) as usize
    }

    /// Moves every row into its part, keeping the order within parts. Returns the end of each part.
    fn arrange<R: Row>(&self, rows: &mut [R]) -> Vec<u32> {
        let mut ends = vec![0_u32; self.count];
        for row in &*rows {
            ends[self.part(row)] += 1;
        }
        let mut next = 0;
        for end in &mut ends {
            next += std::mem::replace(end, next);
        }
        // Each entry is first the start of its part, and becomes its end as rows are placed.
        let mut places: Vec<u32> = Vec::with_capacity(rows.len());
        for row in &*rows {
            let place = &mut ends[self.part(row)];
            places.push(*place);
            *place += 1;
        }
        for at in 0..rows.len() {
            while places[at] as usize != at {
                let to = places[at] as usize;
                rows.swap(at, to);
                places.swap(at, to);
            }
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::KeyRow;

    fn check(rows: Vec<(u64, u64)>) {
        let mut rows: Vec<KeyRow> = (0..)
            .zip(rows)
            .map(|(value, (space, fingerprint))| KeyRow { space, fingerprint, value })
            .collect();
        let mut expected = rows.clone();
        expected.sort_unstable_by_key(Row::key);
        sort_rows(&mut rows);
        assert_eq!(rows, expected);
    }

    #[test]
    fn rows_are_sorted_however_they_are_spread() {
        let mut rng = 1_u64;
        let mut roll = || {
            rng = rng.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            rng >> 3
        };
        for count in [0, 1, 127, 128, 1_000, 5_000] {
            check((0..count).map(|_| (1, roll())).collect());
            check((0..count).map(|_| (1, roll() % 3)).collect());
            check((0..count).map(|_| (1, u64::MAX)).collect());
            check((0..count).map(|_| (roll() % 2, roll())).collect());
            check((0..count).map(|_| (1, if roll() % 50 == 0 { roll() } else { 7 })).collect());
            check((0..count).map(|at| (1, u64::MAX - at)).collect());
            check((0..count).map(|at| (1, [0, u64::MAX][at as usize % 2])).collect());
        }
    }
}
