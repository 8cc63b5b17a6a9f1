//! Decimal digits, without the formatting machinery: numbers are on the path of every hashed log.

use crate::json_text::Out;

/// Appends the digits of a number.
pub(crate) fn write_u64(value: u64, out: &mut impl Out) {
    out.put(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_std_prints_them() {
        for value in [0, 1, 9, 10, 99, 100, 18_446_744_073_709_551_615] {
            let mut out = Vec::new();
            write_u64(value, &mut out);
            assert_eq!(out, value.to_string().into_bytes());
        }
    }
}
