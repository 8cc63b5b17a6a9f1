//! Parses values on the command line: counts, sizes and percentages.

use lexopt::{Parser, ValueExt};

use crate::Failure;

/// Parses the value of an option as a count, such as `10000000`, `10_000_000`, `10M` or `100k`.
///
/// # Errors
///
/// Fails if there is no value, or it is not a count.
pub fn count(parser: &mut Parser) -> Result<u64, lexopt::Error> {
    parser.value()?.parse_with(|text| scaled(text, &[("k", 1_000), ("M", 1_000_000)]))
}

/// Parses the value of an option as a number of bytes, such as `1048576`, `64KiB`, `512MiB` or `1GiB`.
///
/// # Errors
///
/// Fails if there is no value, or it is not a size.
pub fn bytes(parser: &mut Parser) -> Result<usize, lexopt::Error> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    parser.value()?.parse_with(|text| scaled(text, &units)).map(|bytes| bytes as usize)
}

/// Parses the value of an option as a percentage, such as `10%` or `10`.
///
/// # Errors
///
/// Fails if there is no value, or it is not from 0 to 100.
pub fn percent(parser: &mut Parser) -> Result<u64, lexopt::Error> {
    parser.value()?.parse_with(percentage)
}

fn percentage(text: &str) -> Result<u64, Failure> {
    let number = scaled(text, &[("%", 1)])?;
    if number <= 100 { Ok(number) } else { Err("more than 100 %".into()) }
}

/// Parses a number with an optional unit, and multiplies it by the factor of the unit.
fn scaled(text: &str, units: &[(&str, u64)]) -> Result<u64, Failure> {
    let found = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (digits, factor) = found.unwrap_or((text, 1));
    let number: u64 = digits.replace('_', "").parse().map_err(|_| "not a number")?;
    number.checked_mul(factor).ok_or_else(|| "too large".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parser(value: &str) -> Parser {
        let mut parser = Parser::from_args(["--option", value]);
        parser.next().expect("an option").expect("one");
        parser
    }

    #[test]
    fn parses_counts_sizes_and_percentages() {
        assert_eq!(count(&mut parser("10_000")).expect("a count"), 10_000);
        assert_eq!(count(&mut parser("10M")).expect("a count"), 10_000_000);
        assert_eq!(count(&mut parser("100k")).expect("a count"), 100_000);
        assert_eq!(bytes(&mut parser("512MiB")).expect("a size"), 512 << 20);
        assert_eq!(percent(&mut parser("10%")).expect("a part"), 10);
        assert_eq!(percent(&mut parser("10")).expect("a part"), 10);
    }

    #[test]
    fn refuses_other_texts() {
        for text in ["", "M", "-1", "1.5M", "20000000000000M"] {
            assert!(count(&mut parser(text)).is_err(), "{text}");
        }
        assert!(bytes(&mut parser("512MB")).is_err());
        assert!(percent(&mut parser("101%")).is_err());
    }
}
