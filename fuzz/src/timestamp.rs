//! Fuzz target: parsing a printed date returns the same date.

use ledger_core::Timestamp;

/// Reads a text, and a number of microseconds.
pub fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(date) = Timestamp::parse(text)
    {
        assert_eq!(Timestamp::parse(&date.to_string()), Ok(date), "{text:?}");
    }
    if let Some((micros, _)) = data.split_first_chunk::<8>() {
        let date = Timestamp::from_micros(i64::from_le_bytes(*micros));
        // Any date can be printed, but only years of four digits can be parsed.
        if let Ok(again) = Timestamp::parse(&date.to_string()) {
            assert_eq!(again, date);
        }
    }
}
