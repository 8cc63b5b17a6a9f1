//! Conversions between amounts of the core and quantities of the index.

use ledger_core::Amount;
use ledger_index::Quantity;

/// Converts an amount to a quantity.
#[inline]
pub(crate) fn quantity_of(amount: &Amount) -> Quantity {
    match amount.to_u64() {
        Some(small) => Quantity::from(small),
        None => Quantity::from_le_bytes(&amount.to_le_bytes()),
    }
}

/// Converts a quantity to an amount.
pub(crate) fn amount_of(quantity: &Quantity) -> Amount {
    match quantity.as_u64() {
        Some(small) => Amount::from(small),
        None => Amount::from_le_bytes(&quantity.to_le_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_survive_the_way_there_and_back() {
        for digits in [
            "0",
            "1",
            "18446744073709551615",
            "18446744073709551616",
            "340282366920938463463374607431768211456",
        ] {
            let amount: Amount = digits.parse().expect("digits");
            assert_eq!(amount_of(&quantity_of(&amount)), amount);
            assert_eq!(quantity_of(&amount).as_u64(), amount.to_u64());
        }
    }
}
