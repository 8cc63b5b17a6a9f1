//! Exact amounts: [`Amount`] is never negative, [`Balance`] may be.

use std::fmt;
use std::ops::{Add, AddAssign};

use dashu_int::{IBig, UBig};

use crate::decimal::write_u64;
use crate::limits::AMOUNT_DIGITS_MAX;

/// A quantity of an asset in its smallest unit: an exact integer, zero or more, without an upper limit.
///
/// Values up to 128 bits live inline; only larger ones allocate. Arithmetic cannot overflow.
///
/// ```
/// use ledger_core::Amount;
/// let a: Amount = "340282366920938463463374607431768211456".parse().unwrap();
/// assert_eq!((a + Amount::from(1_u64)).to_string(), "340282366920938463463374607431768211457");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Amount(UBig);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(UBig::ZERO);

    /// Whether this is nothing.
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// `self - other`, or `None` where that would be negative.
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        (self.0 >= other.0).then(|| Self(&self.0 - &other.0))
    }

    /// The value as `u64`, or `None` if it is larger.
    pub fn to_u64(&self) -> Option<u64> {
        u64::try_from(&self.0).ok()
    }

    /// The value as `u128`, or `None` if it is larger.
    pub fn to_u128(&self) -> Option<u128> {
        u128::try_from(&self.0).ok()
    }

    /// The amount of an integer that is not negative; of one that is, its size.
    pub(crate) fn of_integer(integer: &IBig) -> Self {
        match u128::try_from(integer) {
            Ok(small) => Self(UBig::from(small)),
            Err(_) => Self(integer.clone().into_parts().1),
        }
    }

    /// Appends its decimal digits to `out`; for values of 64 bits without formatting or allocating.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match self.to_u64() {
            Some(small) => write_u64(small, out),
            None => out.extend_from_slice(self.0.to_string().as_bytes()),
        }
    }

    /// Little-endian bytes without trailing zero bytes; zero is empty.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        self.0.to_le_bytes().into_vec()
    }

    /// Reads what [`Amount::to_le_bytes`] wrote.
    pub fn from_le_bytes(bytes: &[u8]) -> Self {
        Self(UBig::from_le_bytes(bytes))
    }
}

impl From<u64> for Amount {
    fn from(value: u64) -> Self {
        Self(UBig::from(value))
    }
}

impl From<u128> for Amount {
    fn from(value: u128) -> Self {
        Self(UBig::from(value))
    }
}

impl Add<&Amount> for Amount {
    type Output = Amount;

    fn add(mut self, other: &Amount) -> Amount {
        self += other;
        self
    }
}

impl Add for Amount {
    type Output = Amount;

    fn add(self, other: Amount) -> Amount {
        self + &other
    }
}

impl AddAssign<&Amount> for Amount {
    fn add_assign(&mut self, other: &Amount) {
        self.0 += &other.0;
    }
}

/// Why a text is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AmountError {
    /// Not a sequence of decimal digits.
    Malformed,
    /// A minus sign before digits.
    Negative,
    /// More than [`AMOUNT_DIGITS_MAX`] digits.
    TooLong,
}

impl fmt::Display for AmountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("an amount is a whole number in decimal digits"),
            Self::Negative => f.write_str("negative amount"),
            Self::TooLong => write!(f, "an amount has at most {AMOUNT_DIGITS_MAX} digits"),
        }
    }
}

impl std::error::Error for AmountError {}

impl std::str::FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let digits = match text.strip_prefix('-') {
            Some(rest) if rest.bytes().all(|b| b == b'0') && !rest.is_empty() => rest,
            Some(rest) if !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()) => {
                return Err(AmountError::Negative);
            }
            _ => text,
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(AmountError::Malformed);
        }
        if digits.len() > AMOUNT_DIGITS_MAX {
            return Err(AmountError::TooLong);
        }
        if digits.len() <= 19 {
            let small = digits.bytes().fold(0_u64, |sum, b| sum * 10 + u64::from(b - b'0'));
            return Ok(Self::from(small));
        }
        UBig::from_str_radix(digits, 10).map(Self).map_err(|_| AmountError::Malformed)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_u64() {
            Some(small) => fmt::Display::fmt(&small, f),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Input minus output: an exact integer of any sign and size.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Balance(IBig);

impl Balance {
    /// Nothing owned, nothing owed.
    pub const ZERO: Self = Self(IBig::ZERO);

    /// `input - output`.
    pub fn of(input: &Amount, output: &Amount) -> Self {
        Self(IBig::from(input.0.clone()) - IBig::from(output.0.clone()))
    }

    /// Appends its decimal digits to `out`, with a minus sign below zero.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match i64::try_from(&self.0) {
            Ok(small) => {
                if small < 0 {
                    out.push(b'-');
                }
                write_u64(small.unsigned_abs(), out);
            }
            Err(_) => out.extend_from_slice(self.0.to_string().as_bytes()),
        }
    }

    /// The balance of an integer.
    pub(crate) fn of_integer(integer: IBig) -> Self {
        Self(integer)
    }

    /// The integer.
    pub(crate) fn into_integer(self) -> IBig {
        self.0
    }

    /// Whether the balance is below zero.
    pub fn is_negative(&self) -> bool {
        self.0 < IBig::ZERO
    }

    /// The value as `u64`, or `None` if it is negative or larger.
    pub fn to_u64(&self) -> Option<u64> {
        u64::try_from(&self.0).ok()
    }

    /// Reads decimal digits with an optional sign.
    ///
    /// # Errors
    ///
    /// As for an [`Amount`], but a sign is allowed.
    pub fn parse(text: &str) -> Result<Self, AmountError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if digits.starts_with('-') {
            return Err(AmountError::Malformed);
        }
        let magnitude = IBig::from(digits.parse::<Amount>()?.0);
        Ok(Self(if negative { -magnitude } else { magnitude }))
    }
}

impl From<Amount> for Balance {
    fn from(value: Amount) -> Self {
        Self(IBig::from(value.0))
    }
}

impl From<i64> for Balance {
    fn from(value: i64) -> Self {
        Self(IBig::from(value))
    }
}

impl AddAssign<&Balance> for Balance {
    fn add_assign(&mut self, other: &Balance) {
        self.0 += &other.0;
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_exact_at_any_size() {
        for text in ["0", "1", "9007199254740993", "18446744073709551616", &"9".repeat(87), &"1".repeat(1000)]
        {
            let amount: Amount = text.parse().expect("digits");
            assert_eq!(amount.to_string(), text);
            let negative = Balance::of(&Amount::ZERO, &amount);
            let mut written = Vec::new();
            amount.write_to(&mut written);
            negative.write_to(&mut written);
            assert_eq!(written, format!("{text}{negative}").into_bytes());
            assert_eq!(Amount::from_le_bytes(&amount.to_le_bytes()), amount);
        }
    }

    #[test]
    fn what_is_no_whole_number_is_refused() {
        for (text, error) in [
            ("", AmountError::Malformed),
            ("1.0", AmountError::Malformed),
            ("1e3", AmountError::Malformed),
            ("+1", AmountError::Malformed),
            ("--1", AmountError::Malformed),
            ("-1", AmountError::Negative),
            (&"1".repeat(1001), AmountError::TooLong),
        ] {
            assert_eq!(text.parse::<Amount>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_balance_is_input_minus_output() {
        let balance = Balance::of(&Amount::from(5_u64), &Amount::from(7_u64));
        assert_eq!(balance, Balance::from(-2));
        assert!(balance.is_negative());
        assert_eq!(Balance::parse("-2"), Ok(balance));
    }
}
