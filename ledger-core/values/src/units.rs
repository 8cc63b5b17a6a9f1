//! Amounts as decimals in whole units of an asset, as people read and write them.

use crate::amount::{Amount, AmountError, Balance};
use crate::limits::AMOUNT_DIGITS_MAX;
use crate::names::Asset;

impl Amount {
    /// Parses a decimal in whole units of an asset: digits, and a point with further digits.
    ///
    /// ```
    /// use ledger_values::{Amount, AmountError, Asset};
    /// let usd = Asset::parse("USD/2")?;
    /// assert_eq!(Amount::parse_units("12.5", &usd), Ok(Amount::from(1250_u64)));
    /// assert_eq!(Amount::parse_units("12.505", &usd), Err(AmountError::TooPrecise));
    /// assert_eq!(Amount::from(7_u64).to_units(&usd), "0.07");
    /// # Ok::<(), ledger_values::NameError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`AmountError`]; [`AmountError::TooPrecise`] for more fractional digits than the asset has, zeros at the end
    /// apart.
    pub fn parse_units(text: &str, asset: &Asset) -> Result<Self, AmountError> {
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return Err(AmountError::MalformedUnits),
            Some(parts) => parts,
            None => (text, ""),
        };
        if matches!(whole, "" | "-") || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(AmountError::MalformedUnits);
        }
        let (fraction, scale) = (fraction.trim_end_matches('0'), asset.scale() as usize);
        if fraction.len() > scale {
            return Err(AmountError::TooPrecise);
        }
        if whole.len() + scale > AMOUNT_DIGITS_MAX {
            return Err(AmountError::TooLong);
        }
        let digits = format!("{whole}{fraction}{}", "0".repeat(scale - fraction.len()));
        digits.parse().map_err(|error| match error {
            AmountError::Malformed => AmountError::MalformedUnits,
            error => error,
        })
    }

    /// Returns the amount as a decimal in whole units of an asset, with all of its fractional digits.
    pub fn to_units(&self, asset: &Asset) -> String {
        decimal(&self.to_string(), asset)
    }
}

impl Balance {
    /// Returns the balance as a decimal in whole units of an asset, with all of its fractional digits.
    ///
    /// ```
    /// use ledger_values::{Asset, Balance};
    /// assert_eq!(Balance::from(-1250).to_units(&Asset::parse("USD/2")?), "-12.50");
    /// assert_eq!(Balance::from(-1250).to_units(&Asset::parse("JPY")?), "-1250");
    /// # Ok::<(), ledger_values::NameError>(())
    /// ```
    pub fn to_units(&self, asset: &Asset) -> String {
        let text = self.to_string();
        match text.strip_prefix('-') {
            Some(digits) => format!("-{}", decimal(digits, asset)),
            None => decimal(&text, asset),
        }
    }
}

fn decimal(digits: &str, asset: &Asset) -> String {
    let scale = asset.scale() as usize;
    if scale == 0 {
        return digits.to_owned();
    }
    let padded = "0".repeat((scale + 1).saturating_sub(digits.len())) + digits;
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asset(name: &str) -> Asset {
        Asset::parse(name).expect("an asset")
    }

    #[test]
    fn whole_units_parse_and_format() {
        let large = "9".repeat(60);
        for (name, text, smallest, back) in [
            ("USD/2", "12.50", "1250", "12.50"),
            ("USD/2", "12.5000", "1250", "12.50"),
            ("USD/2", "0.07", "7", "0.07"),
            ("USD/2", "007", "700", "7.00"),
            ("JPY", "1250", "1250", "1250"),
            ("JPY", "1250.0", "1250", "1250"),
            ("JPY", large.as_str(), large.as_str(), large.as_str()),
            ("BTC/8", "0.00000001", "1", "0.00000001"),
        ] {
            let amount = Amount::parse_units(text, &asset(name)).expect(text);
            assert_eq!(
                (amount.to_string(), amount.to_units(&asset(name))),
                (smallest.to_owned(), back.to_owned())
            );
            assert_eq!(Balance::from(amount).to_units(&asset(name)), back);
        }
    }

    #[test]
    fn malformed_whole_units_are_refused() {
        let parse = |text: &str| Amount::parse_units(text, &asset("USD/2"));
        for text in ["", ".", "1.", ".5", "1e3", "1_000", "+1", " 1", "1.5.0", "1.-5", "1,50", "-", "½"] {
            assert_eq!(parse(text), Err(AmountError::MalformedUnits), "{text}");
        }
        assert_eq!(parse("-1.50"), Err(AmountError::Negative));
        assert_eq!(parse("1.505"), Err(AmountError::TooPrecise));
        assert_eq!(parse(&"9".repeat(AMOUNT_DIGITS_MAX)), Err(AmountError::TooLong));
    }
}
