//! Pages of first usages: the date of each account's earliest use.

use ledger_codec::Corrupt;
use ledger_core::Timestamp;

use super::page_key;

/// Number of first usages per page. Such a page fits a page of the file.
const USAGE_PLACES: u32 = 480;

/// A date that is before every other: the first usage of an account without one.
pub(crate) const BEFORE_ALL: Timestamp = Timestamp::from_micros(i64::MIN);

/// A decoded page of first usages, for reading and changing.
pub(crate) struct UsagePage(Vec<u8>);

impl UsagePage {
    /// Returns the key of the page that contains an account's first usage.
    pub(crate) fn key(ledger: u32, account: u32) -> [u8; 8] {
        page_key(ledger, account / USAGE_PLACES)
    }

    /// Creates a page without first usages.
    pub(crate) fn empty() -> Self {
        Self(BEFORE_ALL.as_micros().to_le_bytes().repeat(USAGE_PLACES as usize))
    }

    /// Decodes a stored page.
    pub(crate) fn decode(stored: &[u8]) -> Result<Self, Corrupt> {
        if stored.len() == USAGE_PLACES as usize * 8 {
            Ok(Self(stored.to_vec()))
        } else {
            Err(Corrupt { what: "page of first usages" })
        }
    }

    /// Returns the first usage of an account in a stored page, or [`BEFORE_ALL`] if it has none.
    pub(crate) fn find(stored: &[u8], account: u32) -> Result<Timestamp, Corrupt> {
        let at = (account % USAGE_PLACES) as usize;
        match stored.as_chunks::<8>().0.get(at) {
            Some(micros) => Ok(Timestamp::from_micros(i64::from_le_bytes(*micros))),
            None => Err(Corrupt { what: "page of first usages" }),
        }
    }

    /// Returns every first usage with its place in the page.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Timestamp)> {
        let usages = self.0.as_chunks::<8>().0.iter();
        (0..)
            .zip(usages.map(|micros| Timestamp::from_micros(i64::from_le_bytes(*micros))))
            .filter(|(_, usage)| *usage != BEFORE_ALL)
    }

    /// Sets the first usage of an account. Returns whether the value changed.
    pub(crate) fn put(&mut self, account: u32, usage: Timestamp) -> bool {
        let usage = usage.as_micros().to_le_bytes();
        let at = (account % USAGE_PLACES) as usize * 8;
        let place = &mut self.0[at..at + 8];
        let changes = *place != usage;
        place.copy_from_slice(&usage);
        changes
    }

    /// Encodes the page for storing.
    pub(crate) fn encode(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn put_reports_whether_first_usage_changed() {
        let date = Timestamp::from_micros;
        let mut page = UsagePage::empty();
        assert!(page.put(481, date(-5)) && page.put(USAGE_PLACES * 3 - 1, date(7)));
        assert!(!page.put(481, date(-5)));
        let stored = page.encode();
        assert_eq!(UsagePage::find(&stored, 481), Ok(date(-5)));
        assert_eq!(UsagePage::find(&stored, 482), Ok(BEFORE_ALL));
        let page = UsagePage::decode(&stored).expect("what was written");
        assert_eq!(page.iter().collect::<Vec<_>>(), [(1, date(-5)), (USAGE_PLACES - 1, date(7))]);
        assert!(UsagePage::decode(&stored[1..]).is_err());
    }
}
