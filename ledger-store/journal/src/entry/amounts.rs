//! Amounts in stored bytes: LEB128 without an upper limit.

#![allow(clippy::cast_possible_truncation, reason = "groups of seven bits are cut out of words")]

use ledger_codec::{Corrupt, Output, Reader};
use ledger_core::Amount;

/// Maximum size in bytes of a varint that certainly fits a `u64`: 9 bytes hold numbers below 2^63.
const SMALL_BYTES_MAX: usize = 9;

/// Maximum number of 7-bit groups in an amount. 1,000 digits take 3,322 bits; sums of such amounts take a few more.
const AMOUNT_GROUPS_MAX: usize = 1_024;

/// Appends an amount of any size. The caller has reserved space for a varint. A larger amount reserves more, and leaves
/// that space free behind it.
pub fn put_amount(out: &mut Output, amount: &Amount) {
    match amount.to_u64() {
        Some(small) => out.put_varint(small),
        None => put_large(out, amount),
    }
}

#[cold]
fn put_large(out: &mut Output, amount: &Amount) {
    let bytes = amount.to_le_bytes();
    let bits = bytes.len() * 8 - bytes.last().map_or(0, |top| top.leading_zeros() as usize);
    let groups = bits.div_ceil(7);
    let group = |group| {
        let bit = group * 7;
        let low = u16::from(bytes[bit / 8]);
        let high = bytes.get(bit / 8 + 1).map_or(0, |b| u16::from(*b));
        let value = (((high << 8) | low) >> (bit % 8)) as u8 & 0x7f;
        if group + 1 < groups { value | 0x80 } else { value }
    };
    out.put_bytes(&(0..groups).map(group).collect::<Vec<u8>>());
}

/// Decodes an amount that [`put_amount`] wrote.
///
/// # Errors
///
/// [`Corrupt`] if the bytes do not begin with an amount.
pub fn read_amount(reader: &mut Reader<'_>) -> Result<Amount, Corrupt> {
    let rest = reader.rest();
    let Some(last) = rest.iter().take(AMOUNT_GROUPS_MAX).position(|byte| *byte < 0x80) else {
        return Err(Corrupt { what: "amount without an end" });
    };
    if last < SMALL_BYTES_MAX {
        return reader.varint().map(Amount::from);
    }
    let groups = reader.bytes(last + 1)?;
    let mut bytes = vec![0_u8; (groups.len() * 7).div_ceil(8) + 1];
    for (group, value) in groups.iter().enumerate() {
        let bit = group * 7;
        let value = u16::from(value & 0x7f) << (bit % 8);
        bytes[bit / 8] |= value as u8;
        bytes[bit / 8 + 1] |= (value >> 8) as u8;
    }
    Ok(Amount::from_le_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_amounts_of_any_size() {
        let mut texts: Vec<String> =
            ["0", "1", "127", "128", "9223372036854775807", "9223372036854775808"].map(String::from).to_vec();
        for digits in [20, 38, 39, 40, 87, 154, 1000] {
            texts.push("9".repeat(digits));
            texts.push(format!("1{}", "0".repeat(digits - 1)));
        }
        for text in texts {
            let amount: Amount = text.parse().expect("digits");
            let mut out = Output::default();
            out.make_room();
            put_amount(&mut out, &amount);
            out.put_varint(7);
            let mut reader = Reader::new(out.as_slice());
            assert_eq!(read_amount(&mut reader), Ok(amount), "{text}");
            assert_eq!(reader.varint(), Ok(7), "{text}: nothing more is read");
        }
    }

    #[test]
    fn unterminated_amount_is_corrupt() {
        assert!(read_amount(&mut Reader::new(&[0x80, 0x80])).is_err());
        assert!(read_amount(&mut Reader::new(&[0xff; 5_000])).is_err());
    }
}
