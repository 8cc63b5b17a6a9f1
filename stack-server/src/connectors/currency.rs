//! Currencies of ISO 4217 with their decimals.

/// Codes by the number of decimals of their smallest unit.
const NONE: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
const TWO: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN \
BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ \
GYD HKD HNL HRK HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP \
MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK \
SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD YER \
ZAR ZMW ZWL";
const THREE: &str = "BHD IQD JOD KWD LYD OMR TND";
const FOUR: &str = "CLF UYW";

/// The number of decimals of a currency, by its code in upper case.
pub(crate) fn decimals(code: &str) -> Option<u32> {
    let has = |codes: &str| code.len() == 3 && codes.split(' ').any(|have| have == code);
    [(NONE, 0), (TWO, 2), (THREE, 3), (FOUR, 4)]
        .into_iter()
        .find(|(codes, _)| has(codes))
        .map(|(_, decimals)| decimals)
}

/// The asset of a currency: its code and its decimals, or the bare code where there are none, or none are known.
pub(crate) fn asset(code: &str) -> String {
    let code = code.to_ascii_uppercase();
    match decimals(&code) {
        None | Some(0) => code,
        Some(decimals) => format!("{code}/{decimals}"),
    }
}

/// The currency of an asset whose decimals are those of the currency.
pub(crate) fn currency(asset: &str) -> Option<&str> {
    let (code, given) = asset.split_once('/').unwrap_or((asset, "0"));
    let given: u32 = given.parse().ok()?;
    (decimals(code)? == given).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

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
