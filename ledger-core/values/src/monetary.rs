//! An amount with its asset.

use std::fmt;

use crate::amount::{Amount, AmountError};
use crate::convert::IntoAmount;
use crate::names::{Asset, NameError};

/// An amount of an asset. The text form is that of scripts: `USD/2 160`.
///
/// ```
/// use ledger_values::{Asset, Monetary};
/// let price = Monetary::new(Asset::parse("USD/2")?, 160_00);
/// assert_eq!(price.to_string(), "USD/2 16000");
/// assert_eq!("USD/2 16000".parse(), Ok(price));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Monetary {
    /// The asset.
    pub asset: Asset,
    /// The amount in the smallest unit of the asset.
    pub amount: Amount,
}

/// Reason why an asset and an amount do not make a [`Monetary`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MonetaryError {
    /// The text is not an asset, a space and an amount.
    Malformed,
    /// The asset is malformed.
    Asset(NameError),
    /// The amount is refused.
    Amount(AmountError),
}

impl Monetary {
    /// Makes an amount of an asset from the number of its smallest units.
    pub fn new(asset: impl Into<Asset>, amount: u64) -> Self {
        Self { asset: asset.into(), amount: Amount::from(amount) }
    }

    /// Creates an amount of an asset from any type that converts to them.
    ///
    /// ```
    /// use ledger_values::{AmountError, Monetary, MonetaryError};
    /// assert_eq!(Monetary::exact("USD/2", 160_00)?.to_string(), "USD/2 16000");
    /// let negative = Monetary::exact("USD/2", -1);
    /// assert_eq!(negative, Err(MonetaryError::Amount(AmountError::Negative)));
    /// assert!(matches!(Monetary::exact("usd", 1), Err(MonetaryError::Asset(_))));
    /// # Ok::<(), MonetaryError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MonetaryError::Asset`], [`MonetaryError::Amount`].
    pub fn exact<A>(asset: A, amount: impl IntoAmount) -> Result<Self, MonetaryError>
    where
        A: TryInto<Asset>,
        A::Error: Into<NameError>,
    {
        let asset = asset.try_into().map_err(|error| MonetaryError::Asset(error.into()))?;
        let amount = amount.into_amount(&asset).map_err(MonetaryError::Amount)?;
        Ok(Self { asset, amount })
    }
}

impl fmt::Display for Monetary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.asset, self.amount)
    }
}

impl std::str::FromStr for Monetary {
    type Err = MonetaryError;

    fn from_str(text: &str) -> Result<Self, MonetaryError> {
        let (asset, amount) = text.split_once(' ').ok_or(MonetaryError::Malformed)?;
        let amount: Amount = amount.parse().map_err(MonetaryError::Amount)?;
        Self::exact(asset, amount)
    }
}

impl fmt::Display for MonetaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => {
                f.write_str("an amount of money is written as an asset, a space and an amount")
            }
            Self::Asset(error) => error.fmt(f),
            Self::Amount(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MonetaryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Malformed => None,
            Self::Asset(error) => Some(error),
            Self::Amount(error) => Some(error),
        }
    }
}
