//! Writes decimal digits without `std::fmt`, because every hashed log contains numbers.

use crate::json_text::ByteSink;

/// Appends the decimal digits of a number to `out`.
///
/// ```
/// use ledger_values::decimal::write_u64;
/// let mut text = b"id=".to_vec();
/// write_u64(u64::MAX, &mut text);
/// assert_eq!(text, b"id=18446744073709551615");
/// ```
pub fn write_u64(value: u64, out: &mut impl ByteSink) {
    out.put(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_numbers_like_std() {
        for value in [0, 1, 9, 10, 99, 100, 18_446_744_073_709_551_615] {
            let mut out = Vec::new();
            write_u64(value, &mut out);
            assert_eq!(out, value.to_string().into_bytes());
        }
    }
}
