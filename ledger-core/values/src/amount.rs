//! Exact amounts: [`Amount`] is never negative, [`Balance`] may be.

use std::fmt;
use std::ops::{Add, AddAssign};

use dashu_int::{IBig, UBig};

use crate::decimal::write_u64;
use crate::json_text::ByteSink;
use crate::limits::{AMOUNT_DIGITS_MAX, RECORDED_AMOUNT_DIGITS_MAX};

/// A quantity of an asset in its smallest unit: an exact integer, zero or more, without an upper limit.
///
/// Values up to 128 bits live inline; only larger ones allocate. Arithmetic cannot overflow.
///
/// ```
/// use ledger_values::Amount;
/// let a: Amount = "340282366920938463463374607431768211456".parse().unwrap();
/// assert_eq!((a.clone() + Amount::from(1_u64)).to_string(), "340282366920938463463374607431768211457");
/// assert_eq!((a.to_u64(), a.to_u128(), a.is_zero()), (None, None, false));
/// let price = Amount::from(5_u64);
/// assert_eq!(price.checked_sub(&Amount::from(2_u64)), Some(Amount::from(3_u64)));
/// assert_eq!(price.checked_sub(&a), None);
/// ```
///
/// Programs that store or send many amounts write them without a text of their own:
///
/// ```
/// use ledger_values::{Amount, Balance};
/// let price = Amount::from(1_500_u64);
/// let stored = price.to_le_bytes();
/// assert_eq!((stored.len(), Amount::from_le_bytes(&stored)), (2, price.clone()));
/// let mut text = Vec::new();
/// price.write_to(&mut text);
/// (-Balance::from(price)).write_to(&mut text);
/// assert_eq!(text, b"1500-1500");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(Repr);

/// The two representations of an amount. Every value has exactly one, so that the derived comparisons are
/// right.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Repr {
    /// A value that fits in 64 bits. Nearly all amounts do, and take no call into the big-integer library.
    Small(u64),
    /// A value of more than 64 bits.
    Large(UBig),
}

/// The small form needs no space of its own: an amount is as large as a big integer.
const _: () = assert!(size_of::<Amount>() == size_of::<UBig>());

impl Amount {
    /// The amount zero.
    pub const ZERO: Self = Self(Repr::Small(0));

    /// Picks the representation of an integer of any size.
    fn of(number: UBig) -> Self {
        match u64::try_from(&number) {
            Ok(small) => Self(Repr::Small(small)),
            Err(_) => Self(Repr::Large(number)),
        }
    }

    /// Returns the value as an integer of any size. Allocates only above 128 bits.
    fn number(&self) -> UBig {
        match &self.0 {
            Repr::Small(small) => UBig::from(*small),
            Repr::Large(number) => number.clone(),
        }
    }

    /// Tells whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Returns `self - other`, or `None` if the difference is negative.
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        match (&self.0, &other.0) {
            (Repr::Small(a), Repr::Small(b)) => a.checked_sub(*b).map(Self::from),
            (Repr::Small(_), Repr::Large(_)) => None,
            (Repr::Large(a), _) => {
                let b = other.number();
                (*a >= b).then(|| Self::of(a - b))
            }
        }
    }

    /// Returns the value as `u64`, or `None` if it is larger.
    #[inline]
    pub fn to_u64(&self) -> Option<u64> {
        match &self.0 {
            Repr::Small(small) => Some(*small),
            Repr::Large(_) => None,
        }
    }

    /// Returns the value as `u128`, or `None` if it is larger.
    pub fn to_u128(&self) -> Option<u128> {
        match &self.0 {
            Repr::Small(small) => Some(u128::from(*small)),
            Repr::Large(number) => u128::try_from(number).ok(),
        }
    }

    /// Returns the magnitude of an integer as an amount: the integer itself unless it is negative.
    pub fn of_integer(integer: &IBig) -> Self {
        match u64::try_from(integer) {
            Ok(small) => Self::from(small),
            Err(_) => Self::of(integer.clone().into_parts().1),
        }
    }

    /// Appends the decimal digits to `out`. Values of up to 64 bits allocate nothing.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        self.put_digits(out);
    }

    /// Appends the decimal digits to `out`.
    ///
    /// ```
    /// use ledger_values::Amount;
    /// use ledger_values::json_text::FixedBuffer;
    /// let mut bytes = [0; 4];
    /// Amount::from(1_500_u64).put_digits(&mut FixedBuffer::new(&mut bytes));
    /// assert_eq!(&bytes, b"1500");
    /// ```
    pub fn put_digits(&self, out: &mut impl ByteSink) {
        match &self.0 {
            Repr::Small(small) => write_u64(*small, out),
            Repr::Large(number) => out.put(number.to_string().as_bytes()),
        }
    }

    /// Encodes the value as little-endian bytes without trailing zero bytes. Zero has no bytes.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        self.number().to_le_bytes().into_vec()
    }

    /// Decodes the bytes that [`Amount::to_le_bytes`] wrote.
    pub fn from_le_bytes(bytes: &[u8]) -> Self {
        Self::of(UBig::from_le_bytes(bytes))
    }
}

impl Default for Amount {
    fn default() -> Self {
        Self::ZERO
    }
}

impl From<u64> for Amount {
    fn from(value: u64) -> Self {
        Self(Repr::Small(value))
    }
}

impl From<u128> for Amount {
    fn from(value: u128) -> Self {
        match u64::try_from(value) {
            Ok(small) => Self::from(small),
            Err(_) => Self(Repr::Large(UBig::from(value))),
        }
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
    #[inline]
    fn add_assign(&mut self, other: &Amount) {
        *self = match (&self.0, &other.0) {
            (Repr::Small(a), Repr::Small(b)) => match a.checked_add(*b) {
                Some(sum) => Self::from(sum),
                None => Self::from(u128::from(*a) + u128::from(*b)),
            },
            _ => Self::of(self.number() + other.number()),
        };
    }
}

/// Reason why a text is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AmountError {
    /// The text is not a sequence of decimal digits.
    Malformed,
    /// The text has a minus sign before its digits.
    Negative,
    /// The text has more than [`AMOUNT_DIGITS_MAX`] digits.
    TooLong,
    /// A decimal with more fractional digits than the asset has.
    TooPrecise,
    /// The text is not a decimal in whole units, such as `12.50`.
    MalformedUnits,
}

impl fmt::Display for AmountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("an amount is a whole number in decimal digits"),
            Self::MalformedUnits => {
                f.write_str("an amount is decimal digits with at most one point between them")
            }
            Self::Negative => f.write_str("negative amount"),
            Self::TooPrecise => f.write_str("the amount has more fractional digits than its asset"),
            Self::TooLong => write!(f, "an amount has at most {AMOUNT_DIGITS_MAX} digits"),
        }
    }
}

impl std::error::Error for AmountError {}

impl std::str::FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        Self::parse_up_to(text, AMOUNT_DIGITS_MAX)
    }
}

impl Amount {
    /// Parses the amount of a recorded transaction, which may have [`RECORDED_AMOUNT_DIGITS_MAX`] digits.
    ///
    /// ```
    /// use ledger_values::Amount;
    /// let sum = "1".repeat(1_001);
    /// assert!(sum.parse::<Amount>().is_err() && Amount::parse_recorded(&sum).is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`AmountError`] if the text is not a whole number or has too many digits.
    pub fn parse_recorded(text: &str) -> Result<Self, AmountError> {
        Self::parse_up_to(text, RECORDED_AMOUNT_DIGITS_MAX)
    }

    fn parse_up_to(text: &str, digits_max: usize) -> Result<Self, AmountError> {
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
        if digits.len() > digits_max {
            return Err(AmountError::TooLong);
        }
        if digits.len() <= 19 {
            let small = digits.bytes().fold(0_u64, |sum, b| sum * 10 + u64::from(b - b'0'));
            return Ok(Self::from(small));
        }
        UBig::from_str_radix(digits, 10).map(Self::of).map_err(|_| AmountError::Malformed)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Small(small) => fmt::Display::fmt(small, f),
            Repr::Large(number) => fmt::Display::fmt(number, f),
        }
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Input minus output: an exact integer of any sign and size.
///
/// ```
/// use ledger_values::{Amount, Balance};
/// let balance = Balance::of(&Amount::from(3_u64), &Amount::from(5_u64));
/// assert_eq!(balance, -2);
/// assert!(balance.is_negative() && balance.to_u64().is_none());
/// assert_eq!((-balance).to_u64(), Some(2));
/// ```
///
/// Integers of the crate `dashu-int` allow any arithmetic:
///
/// ```
/// use dashu_int::IBig;
/// use ledger_values::{Amount, Balance};
/// let balance = Balance::of_integer(IBig::from(-1_000));
/// let interest: IBig = balance.into_integer() * 3 / 100;
/// assert_eq!(Balance::of_integer(interest.clone()), -30);
/// assert_eq!(Amount::of_integer(&interest), Amount::from(30_u64));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Balance(IBig);

impl Balance {
    /// The balance zero.
    pub const ZERO: Self = Self(IBig::ZERO);

    /// Returns `input - output`.
    pub fn of(input: &Amount, output: &Amount) -> Self {
        match (input.to_u64(), output.to_u64()) {
            (Some(input), Some(output)) => Self(IBig::from(i128::from(input) - i128::from(output))),
            _ => Self(IBig::from(input.number()) - IBig::from(output.number())),
        }
    }

    /// Appends the decimal digits to `out`, with a minus sign if the balance is negative.
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

    /// Makes a balance from an integer.
    pub fn of_integer(integer: IBig) -> Self {
        Self(integer)
    }

    /// Returns the balance as an integer.
    pub fn into_integer(self) -> IBig {
        self.0
    }

    /// Tells whether the balance is below zero.
    pub fn is_negative(&self) -> bool {
        self.0 < IBig::ZERO
    }

    /// Returns the value as `u64`, or `None` if it is negative or larger.
    pub fn to_u64(&self) -> Option<u64> {
        u64::try_from(&self.0).ok()
    }

    /// Reads decimal digits with an optional minus sign.
    ///
    /// # Errors
    ///
    /// The same as for an [`Amount`], except that a minus sign is allowed.
    pub fn parse(text: &str) -> Result<Self, AmountError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if digits.starts_with('-') {
            return Err(AmountError::Malformed);
        }
        let magnitude = IBig::from(digits.parse::<Amount>()?.number());
        Ok(Self(if negative { -magnitude } else { magnitude }))
    }
}

impl From<Amount> for Balance {
    fn from(value: Amount) -> Self {
        Self(IBig::from(value.number()))
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
    fn prints_exact_digits_at_any_size() {
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
    fn equal_values_have_equal_forms() {
        let edges =
            [0, 1, u128::from(u64::MAX) - 1, u128::from(u64::MAX), 1 << 64, (1 << 64) + 1, u128::MAX / 2];
        for a in edges {
            let amount = Amount::from(a);
            assert_eq!(a.to_string().parse(), Ok(amount.clone()));
            assert_eq!(amount.to_u128(), Some(a));
            assert_eq!(amount.to_u64(), u64::try_from(a).ok());
            assert_eq!(amount.is_zero(), a == 0);
            for b in edges {
                let other = Amount::from(b);
                assert_eq!(amount.cmp(&other), a.cmp(&b));
                assert_eq!(amount.clone() + &other, Amount::from(a + b), "{a} + {b}");
                assert_eq!(amount.checked_sub(&other), a.checked_sub(b).map(Amount::from), "{a} - {b}");
                assert_eq!(amount.checked_sub(&other).is_none(), Balance::of(&amount, &other).is_negative());
                let balance = if a >= b { (a - b).to_string() } else { format!("-{}", b - a) };
                assert_eq!(Balance::of(&amount, &other).to_string(), balance);
            }
        }
    }

    #[test]
    fn refuses_texts_that_are_no_whole_number() {
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
    fn balance_is_input_minus_output() {
        let balance = Balance::of(&Amount::from(5_u64), &Amount::from(7_u64));
        assert_eq!(balance, Balance::from(-2));
        assert!(balance.is_negative());
        assert_eq!(Balance::parse("-2"), Ok(balance));
    }
}
