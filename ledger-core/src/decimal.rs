//! Decimal digits, without the formatting machinery: numbers are on the path of every hashed log.

/// Appends the digits of a number.
pub(crate) fn write_u64(mut value: u64, out: &mut Vec<u8>) {
    // The largest has twenty digits.
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
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
