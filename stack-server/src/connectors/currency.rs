//! Currencies of ISO 4217 with their decimals, and amounts as decimal text.

use std::fmt;

use ledger_core::Balance;
use rust_decimal::Decimal;

/// Codes of the currencies without decimals.
const NO_DECIMALS: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
/// Codes of the currencies with two decimals.
const TWO: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN \
BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ \
GYD HKD HNL HRK HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP \
MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK \
SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD YER \
ZAR ZMW ZWL";
/// Codes of the currencies with three decimals.
const THREE: &str = "BHD IQD JOD KWD LYD OMR TND";
/// Codes of the currencies with four decimals.
const FOUR: &str = "CLF UYW";

/// Returns the number of decimals of a currency, by its code in upper case.
pub(crate) fn decimals(code: &str) -> Option<u32> {
    let has = |codes: &str| code.len() == 3 && codes.split(' ').any(|have| have == code);
    [(NO_DECIMALS, 0), (TWO, 2), (THREE, 3), (FOUR, 4)]
        .into_iter()
        .find(|(codes, _)| has(codes))
        .map(|(_, decimals)| decimals)
}

/// Returns the asset of a currency: its code and its decimals, or the code alone if the currency has no decimals or is
/// unknown.
pub(crate) fn asset(code: &str) -> String {
    let code = code.to_ascii_uppercase();
    match decimals(&code) {
        None | Some(0) => code,
        Some(decimals) => format!("{code}/{decimals}"),
    }
}

/// Returns the currency code of an asset, if the asset states as many decimals as the currency has.
pub(crate) fn currency(asset: &str) -> Option<&str> {
    let (code, given) = asset.split_once('/').unwrap_or((asset, "0"));
    let given: u32 = given.parse().ok()?;
    (decimals(code)? == given).then_some(code)
}

/// The reason why a decimal text is not an amount of a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AmountError {
    Malformed,
    UnknownCurrency,
    TooPrecise,
    TooLarge,
}

impl fmt::Display for AmountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the amount is no decimal number",
            Self::UnknownCurrency => "the currency is unknown",
            Self::TooPrecise => "the amount has more decimals than its currency",
            Self::TooLarge => "the amount is too large",
        })
    }
}

/// Number of decimal digits that always fit a `Decimal`, which has 96 bits. Some numbers with one digit more fit too.
const DIGITS_MAX: usize = 28;

/// Parses a decimal number exactly. Refuses a number that `Decimal` would have to round.
fn decimal(text: &str) -> Result<Decimal, AmountError> {
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        None => (text, 0),
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().map_err(|_| AmountError::Malformed)?),
    };
    let number = Decimal::from_str_exact(digits).map_err(|error| match error {
        rust_decimal::Error::Underflow => AmountError::TooPrecise,
        rust_decimal::Error::ExceedsMaximumPossibleValue => AmountError::TooLarge,
        _ if digits.len() > DIGITS_MAX
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-')) =>
        {
            AmountError::TooLarge
        }
        _ => AmountError::Malformed,
    })?;
    let number = number.normalize();
    if number.is_zero() {
        return Ok(Decimal::ZERO);
    }
    let scale = i64::from(number.scale()) - i64::from(exponent);
    if scale > i64::from(Decimal::MAX_SCALE) {
        return Err(AmountError::TooPrecise);
    }
    let zeros = u32::try_from((-scale).max(0)).map_err(|_| AmountError::TooLarge)?;
    let mantissa = 10_i128.checked_pow(zeros).and_then(|power| number.mantissa().checked_mul(power));
    let mantissa = mantissa.ok_or(AmountError::TooLarge)?;
    let scale = u32::try_from(scale.max(0)).map_err(|_| AmountError::TooPrecise)?;
    Decimal::try_from_i128_with_scale(mantissa, scale).map_err(|_| AmountError::TooLarge)
}

/// Converts decimal text such as `10.50` to an amount in the smallest unit of a currency. The conversion is exact:
/// beyond the decimals of the currency, the text may only contain zeros.
///
/// # Errors
///
/// Fails if the text is not such an amount.
pub(crate) fn minor_units(text: &str, code: &str) -> Result<Balance, AmountError> {
    let places = decimals(&code.to_ascii_uppercase()).ok_or(AmountError::UnknownCurrency)?;
    let number = decimal(text)?.normalize();
    let zeros = places.checked_sub(number.scale()).ok_or(AmountError::TooPrecise)?;
    let units = number.mantissa().checked_mul(10_i128.pow(zeros)).ok_or(AmountError::TooLarge)?;
    Balance::parse(&units.to_string()).map_err(|_| AmountError::TooLarge)
}

/// Returns an amount as decimal text, and the currency code. The asset must state as many decimals as its currency has:
/// `EUR/2`, not `EUR` or `EUR/3`.
///
/// # Errors
///
/// Fails if the amount cannot be expressed in this form.
pub(crate) fn major_units<'a>(amount: &Balance, asset: &'a str) -> Result<(String, &'a str), AmountError> {
    let code = currency(asset).ok_or(AmountError::UnknownCurrency)?;
    let places = decimals(code).ok_or(AmountError::UnknownCurrency)?;
    let units = amount.to_string().parse().map_err(|_| AmountError::TooLarge)?;
    let number = Decimal::try_from_i128_with_scale(units, places).map_err(|_| AmountError::TooLarge)?;
    Ok((number.to_string(), code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_text_becomes_minor_units_and_back() {
        for (text, code, units) in [
            ("10.5", "EUR", "1050"),
            ("10.50", "eur", "1050"),
            ("10.500", "EUR", "1050"),
            ("-0.01", "EUR", "-1"),
            ("7", "JPY", "7"),
            ("7.00", "JPY", "7"),
            ("1.234", "KWD", "1234"),
            ("1e3", "EUR", "100000"),
            ("1.5E-1", "EUR", "15"),
            ("0.000", "JPY", "0"),
            ("79228162514264337593543950.33", "EUR", "7922816251426433759354395033"),
        ] {
            assert_eq!(
                minor_units(text, code).map(|units| units.to_string()),
                Ok(units.to_owned()),
                "{text}"
            );
        }
        for (text, code, error) in [
            ("0.001", "EUR", AmountError::TooPrecise),
            ("7.5", "JPY", AmountError::TooPrecise),
            ("1e-3", "EUR", AmountError::TooPrecise),
            ("1e-99", "EUR", AmountError::TooPrecise),
            ("1e99", "EUR", AmountError::TooLarge),
            ("99999999999999999999999999999999", "EUR", AmountError::TooLarge),
            ("1", "XYZ", AmountError::UnknownCurrency),
            ("", "EUR", AmountError::Malformed),
            ("1,5", "EUR", AmountError::Malformed),
            ("NaN", "EUR", AmountError::Malformed),
            ("1e", "EUR", AmountError::Malformed),
        ] {
            assert_eq!(minor_units(text, code), Err(error), "{text} {code}");
        }
        for (units, asset, text) in
            [(1050, "EUR/2", "10.50"), (7, "JPY", "7"), (-1, "EUR/2", "-0.01"), (0, "KWD/3", "0.000")]
        {
            let (found, _) = major_units(&Balance::from(units), asset).expect(text);
            assert_eq!(found, text);
        }
        assert!(major_units(&Balance::from(1), "EUR/3").is_err());
    }

    #[test]
    fn assets_have_the_decimals_of_their_currency() {
        for (code, expected) in [
            ("EUR", "EUR/2"),
            ("usd", "USD/2"),
            ("JPY", "JPY"),
            ("KWD", "KWD/3"),
            ("CLF", "CLF/4"),
            ("XYZ", "XYZ"),
        ] {
            assert_eq!(asset(code), expected);
        }
        for (asset, code) in
            [("EUR/2", Some("EUR")), ("JPY", Some("JPY")), ("EUR/3", None), ("EUR", None), ("X/2", None)]
        {
            assert_eq!(currency(asset), code, "{asset}");
        }
    }
}
