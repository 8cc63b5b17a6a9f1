//! A date that is printed is read back as the same date.

use ledger_core::Timestamp;

/// The bytes are a text, and a number of microseconds.
pub fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(date) = Timestamp::parse(text)
    {
        assert_eq!(Timestamp::parse(&date.to_string()), Ok(date), "{text:?}");
    }
    if let Some((micros, _)) = data.split_first_chunk::<8>() {
        let date = Timestamp::from_micros(i64::from_le_bytes(*micros));
        // Printing has no limits; years that take more than four digits are not read.
        if let Ok(again) = Timestamp::parse(&date.to_string()) {
            assert_eq!(again, date);
        }
    }
}
