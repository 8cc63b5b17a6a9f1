//! Portions: exact rational numbers.

use std::fmt;

use dashu_int::ops::Gcd;
use dashu_int::{IBig, UBig};

use super::error::PortionFault;
use crate::limits::SCRIPT_DIGITS_MAX;

/// A part of a whole in lowest terms. A literal may be above 1 or below 0; a share may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Portion {
    numerator: IBig,
    /// The number below the line, greater than zero.
    denominator: UBig,
}

impl Portion {
    /// Returns `numerator / denominator`, or `None` if the denominator is zero.
    pub(super) fn new(numerator: IBig, denominator: IBig) -> Option<Self> {
        if denominator.is_zero() {
            return None;
        }
        let (sign, denominator) = denominator.into_parts();
        let (over, magnitude) = numerator.into_parts();
        let (magnitude, denominator) = reduce(magnitude, denominator);
        Some(Self { numerator: IBig::from_parts(over * sign, magnitude), denominator })
    }

    /// Parses a percentage without its `%`. Returns `None` if it has too many digits.
    pub(super) fn of_percent(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if whole.len() + fraction.len() > SCRIPT_DIGITS_MAX {
            return None;
        }
        let digits =
            if fraction.is_empty() { natural(whole)? } else { natural(&format!("{whole}{fraction}"))? };
        let denominator = match u32::try_from(fraction.len()).ok()? + 2 {
            power @ 0..=19 => UBig::from(10_u64.pow(power)),
            power => UBig::from(10_u8).pow(power as usize),
        };
        let (numerator, denominator) = reduce(digits, denominator);
        Some(Self { numerator: IBig::from(numerator), denominator })
    }

    /// Parses the text of a variable: `12.5%`, or `1/8` with at most one blank on each side of `/`.
    pub(super) fn parse(text: &str) -> Result<Self, PortionFault> {
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let portion = if let Some(percent) = text.strip_suffix('%') {
            let well_formed = match percent.split_once('.') {
                Some((whole, fraction)) => is_digits(whole) && is_digits(fraction),
                None => is_digits(percent),
            };
            if !well_formed {
                return Err(PortionFault::Format);
            }
            Self::of_percent(percent).ok_or(PortionFault::Format)?
        } else {
            let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}');
            let (over, under) = text.split_once('/').ok_or(PortionFault::Format)?;
            let over = over.strip_suffix(is_blank).unwrap_or(over);
            let under = under.strip_prefix(is_blank).unwrap_or(under);
            if !is_digits(over) || !is_digits(under) {
                return Err(PortionFault::Format);
            }
            let over = natural(over).ok_or(PortionFault::Format)?;
            let under = natural(under).ok_or(PortionFault::Format)?;
            Self::new(over.into(), under.into()).ok_or(PortionFault::Fraction)?
        };
        if portion.is_share() { Ok(portion) } else { Err(PortionFault::Range) }
    }

    /// Tells whether the portion is between 0 and 1.
    pub(super) fn is_share(&self) -> bool {
        self.numerator.as_ubig().is_some_and(|numerator| *numerator <= self.denominator)
    }

    /// Returns the number above the line.
    pub(super) fn numerator(&self) -> &IBig {
        &self.numerator
    }

    /// Returns the number below the line.
    pub(super) fn denominator(&self) -> &UBig {
        &self.denominator
    }
}

fn reduce(numerator: UBig, denominator: UBig) -> (UBig, UBig) {
    if let (Ok(over), Ok(under)) = (u64::try_from(&numerator), u64::try_from(&denominator)) {
        // Nearly every portion fits in 64 bits.
        let (mut a, mut b) = (over, under);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        return (UBig::from(over / a), UBig::from(under / a));
    }
    let common = (&numerator).gcd(&denominator);
    (numerator / &common, denominator / common)
}

/// Parses digits. Returns `None` if there are too many.
pub(super) fn natural(digits: &str) -> Option<UBig> {
    if digits.len() <= 19 {
        return digits.parse::<u64>().ok().map(UBig::from);
    }
    if digits.len() > SCRIPT_DIGITS_MAX {
        return None;
    }
    UBig::from_str_radix(digits, 10).ok()
}

/// Prints lowest terms and always the denominator: `1/8`, `0/1`.
impl fmt::Display for Portion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

/// An exact sum of portions. It is not reduced, because only its comparison with 1 and the rest matter.
#[derive(Clone, Debug)]
pub(super) struct Total {
    numerator: IBig,
    denominator: UBig,
}

impl Total {
    /// Returns the sum of no portions.
    pub(super) fn zero() -> Self {
        Self { numerator: IBig::ZERO, denominator: UBig::ONE }
    }

    /// Adds a portion. Returns `None` if the common denominator takes more than `bits_max` bits.
    pub(super) fn add(&mut self, portion: &Portion, bits_max: usize) -> Option<()> {
        use dashu_int::ops::BitTest;
        if self.denominator == portion.denominator {
            self.numerator += &portion.numerator;
            return Some(());
        }
        if self.denominator.bit_len() + portion.denominator.bit_len() > bits_max {
            // The product may still be far from the least common denominator.
            let common = (&self.denominator).gcd(&portion.denominator);
            let missing = &portion.denominator / &common;
            if self.denominator.bit_len() + missing.bit_len() > bits_max {
                return None;
            }
            let factor = &self.denominator / &common;
            self.numerator =
                &self.numerator * IBig::from(missing.clone()) + &portion.numerator * IBig::from(factor);
            self.denominator *= missing;
            return Some(());
        }
        self.numerator = &self.numerator * IBig::from(portion.denominator.clone())
            + &portion.numerator * IBig::from(self.denominator.clone());
        self.denominator = &self.denominator * &portion.denominator;
        Some(())
    }

    /// Compares the sum with one.
    pub(super) fn compare_one(&self) -> std::cmp::Ordering {
        self.numerator.cmp(self.denominator.as_ibig())
    }

    /// Returns one minus the sum.
    pub(super) fn rest(&self) -> Portion {
        Portion {
            numerator: self.denominator.as_ibig() - &self.numerator,
            denominator: self.denominator.clone(),
        }
    }

    /// Returns the sum in lowest terms.
    pub(super) fn reduced(&self) -> Portion {
        Portion::new(self.numerator.clone(), self.denominator.clone().into())
            .expect("a product of denominators is not zero")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduces_portions_to_lowest_terms() {
        for (text, printed) in [
            ("12.5%", Ok("1/8")),
            ("0.0%", Ok("0/1")),
            ("100/100", Ok("1/1")),
            ("10 / 1000", Ok("1/100")),
            ("00.50%", Ok("1/200")),
            ("", Err(PortionFault::Format)),
            ("1/2 ", Err(PortionFault::Format)),
            ("1  /2", Err(PortionFault::Format)),
            ("50 %", Err(PortionFault::Format)),
            (".5%", Err(PortionFault::Format)),
            ("5.%", Err(PortionFault::Format)),
            ("-1/2", Err(PortionFault::Format)),
            ("1/0", Err(PortionFault::Fraction)),
            ("3/2", Err(PortionFault::Range)),
            ("100.1%", Err(PortionFault::Range)),
        ] {
            let read = Portion::parse(text).map(|portion| portion.to_string());
            assert_eq!(read.as_deref(), printed.as_ref().copied(), "{text:?}");
        }
        let long = format!("1/1{}", "0".repeat(999));
        assert_eq!(Portion::parse(&long).map(|p| p.to_string()), Ok(long));
    }

    #[test]
    fn compares_sums_exactly_within_a_bound() {
        let share = |text: &str| Portion::parse(text).expect("a portion");
        let mut total = Total::zero();
        for text in ["1/3", "1/6", "25%"] {
            total.add(&share(text), 64).expect("small");
        }
        assert_eq!(total.compare_one(), std::cmp::Ordering::Less);
        assert_eq!(
            (
                total.reduced().to_string(),
                Portion::new(total.rest().numerator, total.rest().denominator.into()).map(|p| p.to_string())
            ),
            ("3/4".into(), Some("1/4".into()))
        );
        assert_eq!(total.add(&share("1/18446744073709551557"), 64), None);
        // Equal factors do not count twice.
        assert_eq!(total.add(&share("1/72"), 8), Some(()));
    }
}
