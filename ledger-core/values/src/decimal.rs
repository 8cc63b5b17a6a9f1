//! Writes decimal digits without `std::fmt`, because every hashed log contains numbers.

use crate::json_text::ByteSink;

/// Appends the decimal digits of a number to `out`.
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
