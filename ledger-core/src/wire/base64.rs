//! Base64 of 32 bytes, the size of every hash here.

/// Encodes 32 bytes in standard base64, eight characters at a time. Each entry hashes the text of the hash
/// before; a general base64 crate took a tenth of the time of that hash.
pub(crate) fn encode(bytes: &[u8; 32]) -> [u8; 44] {
    // Six bytes make eight characters. The last group has two bytes and four of padding.
    let mut padded = [0; 38];
    padded[..32].copy_from_slice(bytes);
    let mut text = [0; 48];
    for (at, eight) in text.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let six = u64::from_be_bytes(
            *padded[at * 6..].first_chunk().expect("six times six bytes and eight more end within 38"),
        ) >> 16;
        let halves = (six & 0xffff_ff00_0000) << 8 | (six & 0xff_ffff);
        let quarters = (halves & 0x00ff_f000_00ff_f000) << 4 | (halves & 0x0000_0fff_0000_0fff);
        let eighths = (quarters & 0x0fc0_0fc0_0fc0_0fc0) << 2 | (quarters & 0x003f_003f_003f_003f);
        *eight = eighths.to_be_bytes();
    }
    for character in &mut text {
        let value = *character;
        // `A` to `Z`, `a` to `z`, the digits, `+` and `/`.
        let from = match value {
            0..26 => b'A',
            26..52 => b'a' - 26,
            52..62 => b'0'.wrapping_sub(52),
            62 => b'+'.wrapping_sub(62),
            _ => b'/'.wrapping_sub(63),
        };
        *character = value.wrapping_add(from);
    }
    text[43] = b'=';
    *text.first_chunk().expect("48 characters hold the 44 of the text")
}

/// Decodes standard base64 with padding. Returns `None` for any other text than [`encode`] makes.
pub(crate) fn decode(text: &str) -> Option<[u8; 32]> {
    let text = text.as_bytes().as_array::<44>()?;
    let mut bytes = [0; 33];
    for (three, four) in bytes.as_chunks_mut::<3>().0.iter_mut().zip(text.as_chunks::<4>().0) {
        let bits = four.iter().try_fold(0, |bits, character| Some(bits << 6 | value(*character)?))?;
        three.copy_from_slice(&bits.to_be_bytes()[1..]);
    }
    let bytes = *bytes.first_chunk()?;
    // Refuses padding in the middle, and bits below the last byte.
    (encode(&bytes) == *text).then_some(bytes)
}

/// Returns the six bits of a character. Padding has none.
fn value(character: u8) -> Option<u32> {
    let value = match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        b'=' => 0,
        _ => return None,
    };
    Some(u32::from(value))
}

/// Encodes in the alphabet of URLs, with padding.
pub(crate) fn encode_for_url(bytes: &[u8; 32]) -> [u8; 44] {
    encode(bytes).map(|character| match character {
        b'+' => b'-',
        b'/' => b'_',
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use ::base64::Engine as _;
    use ::base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_the_crate(bytes: [u8; 32], at in 0..44_usize, other: char) {
            let (text, url) = (STANDARD.encode(bytes), URL_SAFE.encode(bytes));
            prop_assert_eq!(encode(&bytes), text.as_bytes());
            prop_assert_eq!(&encode_for_url(&bytes)[..], url.as_bytes());
            prop_assert_eq!(decode(&text), Some(bytes));
            let mut changed: Vec<char> = text.chars().collect();
            changed[at] = other;
            let changed: String = changed.into_iter().collect();
            let judged = STANDARD.decode(&changed).ok().filter(|bytes| bytes.len() == 32);
            prop_assert_eq!(decode(&changed).map(Vec::from), judged);
        }
    }

    #[test]
    fn refuses_other_lengths_and_stray_padding() {
        let text = STANDARD.encode([0; 32]);
        for wrong in [
            "",
            "J5ZS",
            &text[1..],
            &text.replace('=', "A"),
            &text.replace("AA=", "A=="),
            &text.replace("A=", "B="),
        ] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
