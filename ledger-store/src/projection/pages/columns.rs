//! Packs the numbers of a page of holdings into columns.

#![allow(
    clippy::cast_possible_truncation,
    reason = "a page has 256 places, and a column is as wide as its values"
)]

use ledger_codec::Corrupt;

/// Number of holdings per page. A page mostly fits a page of the file, because its columns are as narrow as possible. A
/// flush can change holdings anywhere and then writes nearly all pages again.
pub(crate) const HOLDING_PLACES: u32 = 256;
pub(super) const COLUMNS: usize = 5;
/// Indexes of the columns, in the order in which they are stored.
pub(super) const ACCOUNT: usize = 0;
pub(super) const ASSET: usize = 1;
pub(super) const TRANSACTION_COUNT: usize = 2;
pub(super) const INPUT: usize = 3;
pub(super) const OUTPUT: usize = 4;
/// Maximum width of the numbers of each column, in bytes.
const WIDTHS_MAX: [u8; COLUMNS] = [4, 4, 4, 8, 8];
const HEAD_BYTES: usize = 2 + 4 + COLUMNS;
pub(super) const CORRUPT: Corrupt = Corrupt { what: "page of holdings" };

/// The numbers of the holdings by column and place; 0 in places without a holding. With one width per column, a column
/// is read and written in one tight loop.
pub(super) type Columns = [[u64; HOLDING_PLACES as usize]; COLUMNS];

/// Encodes the head and the columns of a page.
pub(super) fn pack(mut columns: Box<Columns>) -> Vec<u8> {
    let count = columns[TRANSACTION_COUNT]
        .iter()
        .rposition(|transactions| *transactions > 0)
        .map_or(0, |last| last + 1);
    let is_present = columns[TRANSACTION_COUNT].map(|transactions| transactions > 0);
    let present = columns[ACCOUNT][..count].iter().zip(is_present).filter(|(_, is_present)| *is_present);
    let least = present.map(|(account, _)| *account).min().unwrap_or(0);
    for (account, is_present) in columns[ACCOUNT][..count].iter_mut().zip(is_present) {
        *account -= u64::from(is_present) * least;
    }
    let widths = columns.each_ref().map(|column| {
        let bits = column[..count].iter().fold(0, |bits, number| bits | number);
        (u64::BITS - bits.leading_zeros()).div_ceil(8) as u8
    });
    let bytes: usize = widths.iter().map(|width| count * usize::from(*width)).sum();
    let mut out = Vec::with_capacity(HEAD_BYTES + bytes);
    out.extend_from_slice(&(count as u16).to_le_bytes());
    out.extend_from_slice(&(least as u32).to_le_bytes());
    out.extend_from_slice(&widths);
    out.resize(HEAD_BYTES + bytes, 0);
    let mut rest = &mut out[HEAD_BYTES..];
    for (column, width) in columns.iter().zip(widths) {
        let (bytes, others) = rest.split_at_mut(count * usize::from(width));
        (CODINGS[usize::from(width)].write)(&column[..count], bytes);
        rest = others;
    }
    out
}

/// Reads and writes a column of one width. The width is a constant in the loops.
struct Coding {
    read: fn(&[u8], &mut [u64]),
    write: fn(&[u64], &mut [u8]),
}

/// The functions for each width, indexed by the width in bytes.
const CODINGS: [Coding; 1 + size_of::<u64>()] = [
    Coding { read: |_, _| {}, write: |_, _| {} },
    Coding::of::<1>(),
    Coding::of::<2>(),
    Coding::of::<3>(),
    Coding::of::<4>(),
    Coding::of::<5>(),
    Coding::of::<6>(),
    Coding::of::<7>(),
    Coding::of::<8>(),
];

impl Coding {
    const fn of<const WIDTH: usize>() -> Self {
        Self {
            read: |bytes, column| {
                for (number, bytes) in column.iter_mut().zip(bytes.as_chunks::<WIDTH>().0) {
                    let mut eight = [0; size_of::<u64>()];
                    eight[..WIDTH].copy_from_slice(bytes);
                    *number = u64::from_le_bytes(eight);
                }
            },
            write: |column, bytes| {
                for (number, bytes) in column.iter().zip(bytes.as_chunks_mut::<WIDTH>().0) {
                    bytes.copy_from_slice(&number.to_le_bytes()[..WIDTH]);
                }
            },
        }
    }
}

/// A stored page of holdings, split into its parts.
pub(super) struct Packed<'a> {
    pub(super) count: usize,
    least: u32,
    widths: [u8; COLUMNS],
    columns: &'a [u8],
    /// Bytes after the columns.
    pub(super) extras: &'a [u8],
}

impl<'a> Packed<'a> {
    pub(super) fn new(stored: &'a [u8]) -> Result<Self, Corrupt> {
        let (head, rest) = stored.split_at_checked(HEAD_BYTES).ok_or(CORRUPT)?;
        let (count, head) = head.split_first_chunk::<2>().ok_or(CORRUPT)?;
        let (least, widths) = head.split_first_chunk::<4>().ok_or(CORRUPT)?;
        let widths: [u8; COLUMNS] = widths.try_into().map_err(|_| CORRUPT)?;
        let count = usize::from(u16::from_le_bytes(*count));
        if count > HOLDING_PLACES as usize || widths.iter().zip(WIDTHS_MAX).any(|(width, max)| *width > max) {
            return Err(CORRUPT);
        }
        let bytes = widths.iter().map(|width| count * usize::from(*width)).sum();
        let (columns, extras) = rest.split_at_checked(bytes).ok_or(CORRUPT)?;
        Ok(Self { count, least: u32::from_le_bytes(*least), widths, columns, extras })
    }

    /// Returns the numbers at a place, which must be below `count`.
    pub(super) fn numbers(&self, place: usize) -> Result<[u64; COLUMNS], Corrupt> {
        let mut numbers = [0; COLUMNS];
        let mut column = 0;
        for (number, width) in numbers.iter_mut().zip(self.widths) {
            let width = usize::from(width);
            *number = number_at(self.columns, column + place * width, width);
            column += self.count * width;
        }
        numbers[ACCOUNT] += u64::from(self.least);
        if numbers[TRANSACTION_COUNT] > 0 && numbers[ACCOUNT] > u64::from(u32::MAX) {
            return Err(CORRUPT);
        }
        Ok(numbers)
    }

    /// Decodes all columns into `columns`, which must contain zeros.
    pub(super) fn unpack(&self, columns: &mut Columns) -> Result<(), Corrupt> {
        let mut rest = self.columns;
        for (column, width) in columns.iter_mut().zip(self.widths) {
            let (bytes, others) = rest.split_at(self.count * usize::from(width));
            (CODINGS[usize::from(width)].read)(bytes, column);
            rest = others;
        }
        let mut accounts = 0;
        for place in 0..self.count {
            if columns[TRANSACTION_COUNT][place] == 0 {
                for column in columns.iter_mut() {
                    column[place] = 0;
                }
            } else {
                columns[ACCOUNT][place] += u64::from(self.least);
                accounts |= columns[ACCOUNT][place];
            }
        }
        if accounts > u64::from(u32::MAX) { Err(CORRUPT) } else { Ok(()) }
    }
}

/// Reads the number of `width` bytes at index `at` of the columns.
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
