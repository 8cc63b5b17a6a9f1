//! Conversions between values and the types of other libraries. None of them goes through floating point.

use std::cmp::Ordering;
use std::iter::Sum;
use std::ops::{Add, Neg, Sub};

use dashu_int::IBig;

use crate::amount::{Amount, AmountError, Balance};
use crate::names::Asset;
#[cfg(feature = "chrono")]
use crate::timestamp::{Timestamp, TimestampError};
use crate::transaction::TransactionId;

/// A number that is an amount of an asset.
///
/// Integers count the smallest unit of the asset. With the feature `decimal`, decimals count whole units: of `USD/2`,
/// `dec!(1.50)` is the same as `150`.
///
/// ```
/// use ledger_values::{Amount, AmountError, Asset, IntoAmount};
/// let usd = Asset::parse("USD/2")?;
/// assert_eq!(1_50.into_amount(&usd)?, Amount::from(150_u64));
/// assert_eq!((-1).into_amount(&usd), Err(AmountError::Negative));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no amount",
    label = "expected an integer in the smallest unit of the asset",
    note = "of `USD/2`, `100_00` is a hundred dollars; with the feature `decimal`, so is `dec!(100)` of `rust_decimal`",
    note = "floating-point numbers are not exact, so they are no amounts"
)]
pub trait IntoAmount {
    /// Returns the amount in the smallest unit of the asset.
    ///
    /// # Errors
    ///
    /// [`AmountError::Negative`], or [`AmountError::TooPrecise`] for a decimal with more digits than the asset has.
    fn into_amount(self, asset: &Asset) -> Result<Amount, AmountError>;
}

impl IntoAmount for Amount {
    fn into_amount(self, _: &Asset) -> Result<Amount, AmountError> {
        Ok(self)
    }
}

impl IntoAmount for &Amount {
    fn into_amount(self, _: &Asset) -> Result<Amount, AmountError> {
        Ok(self.clone())
    }
}

macro_rules! unsigned {
    ($($integer:ty),+) => {$(
        impl IntoAmount for $integer {
            fn into_amount(self, _: &Asset) -> Result<Amount, AmountError> {
                Ok(Amount::from(self))
            }
        }
    )+};
}

macro_rules! signed {
    ($($integer:ty),+) => {$(
        impl TryFrom<$integer> for Amount {
            type Error = AmountError;

            fn try_from(value: $integer) -> Result<Self, AmountError> {
                u128::try_from(value).map(Amount::from).map_err(|_| AmountError::Negative)
            }
        }

        impl IntoAmount for $integer {
            fn into_amount(self, _: &Asset) -> Result<Amount, AmountError> {
                Amount::try_from(self)
            }
        }
    )+};
}

unsigned!(u32, u64, u128);
signed!(i32, i64, i128);

impl From<u32> for Amount {
    fn from(value: u32) -> Self {
        Self::from(u64::from(value))
    }
}

impl TryFrom<Balance> for Amount {
    type Error = AmountError;

    fn try_from(balance: Balance) -> Result<Self, AmountError> {
        if balance.is_negative() {
            return Err(AmountError::Negative);
        }
        Ok(Self::of_integer(&balance.into_integer()))
    }
}

impl IntoAmount for Balance {
    fn into_amount(self, _: &Asset) -> Result<Amount, AmountError> {
        Amount::try_from(self)
    }
}

/// Fails for an amount of more than 64 bits.
impl TryFrom<&Amount> for u64 {
    type Error = AmountError;

    fn try_from(amount: &Amount) -> Result<Self, AmountError> {
        amount.to_u64().ok_or(AmountError::TooLong)
    }
}

/// Fails for an amount of more than 128 bits.
impl TryFrom<&Amount> for u128 {
    type Error = AmountError;

    fn try_from(amount: &Amount) -> Result<Self, AmountError> {
        amount.to_u128().ok_or(AmountError::TooLong)
    }
}

/// A balance and an amount are equal if they are the same number.
impl PartialEq<Amount> for Balance {
    fn eq(&self, other: &Amount) -> bool {
        Self::of(other, &Amount::ZERO) == *self
    }
}

macro_rules! integer_of_balance {
    ($($integer:ty),+) => {$(
        /// Fails for a balance that the integer cannot hold.
        impl TryFrom<Balance> for $integer {
            type Error = AmountError;

            fn try_from(balance: Balance) -> Result<Self, AmountError> {
                Self::try_from(&balance)
            }
        }

        impl PartialOrd<$integer> for Balance {
            fn partial_cmp(&self, other: &$integer) -> Option<Ordering> {
                Some(self.cmp(&Balance::from(*other)))
            }
        }

        /// Fails for a balance that the integer cannot hold.
        impl TryFrom<&Balance> for $integer {
            type Error = AmountError;

            fn try_from(balance: &Balance) -> Result<Self, AmountError> {
                let integer = balance.clone().into_integer();
                <$integer>::try_from(&integer).map_err(|_| AmountError::TooLong)
            }
        }

        impl PartialEq<$integer> for Balance {
            fn eq(&self, other: &$integer) -> bool {
                <$integer>::try_from(self).is_ok_and(|have| have == *other)
            }
        }
    )+};
}

integer_of_balance!(i32, i64, i128);

impl From<i32> for Balance {
    fn from(value: i32) -> Self {
        Self::from(i64::from(value))
    }
}

impl From<i128> for Balance {
    fn from(value: i128) -> Self {
        Self::of_integer(IBig::from(value))
    }
}

impl std::str::FromStr for Balance {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        Self::parse(text)
    }
}

impl Add for Balance {
    type Output = Balance;

    fn add(mut self, other: Balance) -> Balance {
        self += &other;
        self
    }
}

impl Sub for Balance {
    type Output = Balance;

    fn sub(self, other: Balance) -> Balance {
        self + -other
    }
}

impl Neg for Balance {
    type Output = Balance;

    fn neg(self) -> Balance {
        Self::of_integer(-self.into_integer())
    }
}

impl Sum for Balance {
    fn sum<I: Iterator<Item = Self>>(balances: I) -> Self {
        balances.fold(Self::ZERO, |sum, balance| sum + balance)
    }
}

impl From<u64> for TransactionId {
    fn from(id: u64) -> Self {
        Self::new(id)
    }
}

impl From<TransactionId> for u64 {
    fn from(id: TransactionId) -> Self {
        id.get()
    }
}

impl std::fmt::Display for TransactionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

impl std::str::FromStr for TransactionId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self::new)
    }
}

/// Drops fractions of a microsecond.
#[cfg(feature = "chrono")]
impl<Tz: chrono::TimeZone> From<chrono::DateTime<Tz>> for Timestamp {
    fn from(time: chrono::DateTime<Tz>) -> Self {
        Self::from_micros(time.timestamp_micros())
    }
}

/// Fails outside the range of `chrono`.
#[cfg(feature = "chrono")]
impl TryFrom<Timestamp> for chrono::DateTime<chrono::Utc> {
    type Error = TimestampError;

    fn try_from(at: Timestamp) -> Result<Self, TimestampError> {
        Self::from_timestamp_micros(at.as_micros()).ok_or(TimestampError::OutOfRange)
    }
}

#[cfg(feature = "decimal")]
mod decimal {
    use rust_decimal::Decimal;

    use super::{Amount, AmountError, Asset, Balance, IntoAmount};

    impl IntoAmount for Decimal {
        fn into_amount(self, asset: &Asset) -> Result<Amount, AmountError> {
            if self.is_sign_negative() && !self.is_zero() {
                return Err(AmountError::Negative);
            }
            let units = self.normalize();
            let zeros = asset.scale().checked_sub(units.scale()).ok_or(AmountError::TooPrecise)?;
            // The text has no limit, a decimal has 96 bits.
            let mut digits = units.mantissa().to_string();
            digits.extend(std::iter::repeat_n('0', zeros as usize));
            digits.parse()
        }
    }

    impl Amount {
        /// Returns the amount in whole units of the asset, such as `1.50` for 150 of `USD/2`. Returns `None` if a
        /// decimal cannot represent it exactly.
        pub fn to_decimal(&self, asset: &Asset) -> Option<Decimal> {
            Balance::from(self.clone()).to_decimal(asset)
        }
    }

    impl Balance {
        /// Returns the balance in whole units of the asset. See [`Amount::to_decimal`].
        pub fn to_decimal(&self, asset: &Asset) -> Option<Decimal> {
            let integer = i128::try_from(self).ok()?;
            Decimal::try_from_i128_with_scale(integer, asset.scale()).ok()
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn decimals_have_the_scale_of_the_asset() {
            let usd = Asset::parse("USD/2").expect("an asset");
            for (text, amount, back) in [
                ("100.00", "10000", "100.00"),
                ("1.5", "150", "1.50"),
                ("0", "0", "0.00"),
                ("-0", "0", "0.00"),
            ] {
                let decimal: Decimal = text.parse().expect(text);
                let found = decimal.into_amount(&usd).expect(text);
                assert_eq!(found.to_string(), amount);
                assert_eq!(found.to_decimal(&usd).expect(text).to_string(), back);
            }
            let into = |text: &str, asset: &Asset| text.parse::<Decimal>().expect(text).into_amount(asset);
            assert_eq!(into("1.005", &usd), Err(AmountError::TooPrecise));
            assert_eq!(into("-1", &usd), Err(AmountError::Negative));
            let fine = Asset::parse("ETH/18").expect("an asset");
            let large = into("79228162514264337593543950335", &fine).expect("no limit of amounts");
            assert_eq!(large.to_string(), format!("79228162514264337593543950335{}", "0".repeat(18)));
            assert_eq!(large.to_decimal(&fine), None);
            assert_eq!(Balance::from(-7).to_decimal(&usd).expect("small").to_string(), "-0.07");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_convert_exactly_or_fail() {
        let asset = Asset::parse("USD").expect("an asset");
        assert_eq!((-1_i64).into_amount(&asset), Err(AmountError::Negative));
        assert_eq!(i128::MAX.into_amount(&asset).expect("positive").to_u128(), Some(i128::MAX as u128));
        assert_eq!(u64::try_from(&Amount::from(u128::MAX)), Err(AmountError::TooLong));
        let balance = Balance::from(5) - Balance::from(7) + Balance::from(i128::from(i64::MAX));
        assert_eq!(i64::try_from(&balance), Ok(i64::MAX - 2));
        assert_eq!(Amount::try_from(Balance::from(-1)), Err(AmountError::Negative));
        assert!(Balance::from(-2) == -2_i64 && "-2".parse() == Ok(Balance::from(-2)));
        let (debt, huge) = (Balance::from(-2), Balance::from(i128::MAX));
        assert!(debt < 0 && huge > i64::MAX);
        assert!(Balance::from(5) == Amount::from(5_u64) && Balance::from(-5) != Amount::from(5_u64));
        assert_eq!(i64::try_from(Balance::from(i128::MAX)), Err(AmountError::TooLong));
        assert_eq!([1, 2, 3].map(Balance::from).into_iter().sum::<Balance>(), Balance::from(6));
    }

    #[cfg(feature = "chrono")]
    #[test]
    fn chrono_dates_convert_both_ways() {
        let at = Timestamp::parse("2024-05-01T12:00:00.5Z").expect("a date");
        let date = chrono::DateTime::<chrono::Utc>::try_from(at).expect("chrono has the year");
        assert_eq!(date.to_rfc3339(), "2024-05-01T12:00:00.500+00:00");
        assert_eq!(Timestamp::from(date), at);
        assert!(chrono::DateTime::<chrono::Utc>::try_from(Timestamp::from_micros(i64::MAX)).is_err());
    }
}
