//! Positions in the lists of a generic provider, whose rows are in the order of their dates. Pages have numbers, and a
//! response with the wrong page would hide records. So each page must prove that it follows the previous one.

use ledger_core::Timestamp;

use crate::connectors::{TaskContext, object};
use crate::http::response::{Json, Numbers};
use crate::payments::task::NO_STATE;

/// Maximum number of repeated requests for a page after responses with a wrong page. After several wrong responses in a
/// row, either the provider behaves this way, or the records have changed.
const TRIES_MAX: u64 = 5;

/// The position of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WalkPosition {
    /// Only records from this date on are requested.
    pub(super) since: String,
    pub(super) page: u64,
    /// The newest date so far.
    newest: String,
    /// Hash of the rows of the previous page, in any order; of the last response for the first page, until that is confirmed.
    digest: String,
    /// Hash of a row that the first page from this date must contain; empty if none is known.
    anchor: String,
    /// Hash of the last row so far.
    last: String,
    /// Number of repeated requests for this page.
    tries: u64,
    /// True if the dates of some pages were out of order, so that records between them may have been missed. The next walk
    /// then begins where this one began.
    is_unproven: bool,
}

impl WalkPosition {
    /// Returns the position in the state of a task. `since_member` is the name of the member with the date from which
    /// on records are requested. It is empty if every walk reads everything.
    pub(super) fn of(context: &TaskContext, since_member: &str) -> Self {
        Self {
            since: if since_member.is_empty() { String::new() } else { context.state_member(since_member) },
            page: context.state_member("page").parse().unwrap_or(1),
            newest: context.state_member("newest"),
            digest: context.state_member("digest"),
            anchor: context.state_member("anchor"),
            last: context.state_member("last"),
            tries: context.state_member("tries").parse().unwrap_or(0),
            is_unproven: context.state_member("mixed") == "true",
        }
    }

    /// Returns the same position in a walk whose pages cannot prove that they found everything, because the provider
    /// ignores the number of the page.
    pub(super) fn without_proof(self) -> Self {
        Self { is_unproven: true, ..self }
    }

    /// Returns the position as the state of a task.
    pub(super) fn json(&self, since_member: &str) -> String {
        let mut json = Json::new(Numbers::Plain);
        json.raw("{");
        if !since_member.is_empty() && !self.since.is_empty() {
            json.plain_string(since_member).raw(":").string(&self.since).raw(",");
        }
        json.raw("\"page\":\"").integer(self.page).raw("\",\"newest\":").string(&self.newest);
        json.raw(",\"digest\":").string(&self.digest).raw(",\"anchor\":").string(&self.anchor);
        json.raw(",\"last\":").string(&self.last);
        json.raw(",\"tries\":\"").integer(self.tries).raw("\",\"mixed\":").boolean(self.is_unproven).raw("}");
        json.into_string()
    }

    /// Returns the position after a page, or `None` if the page shows that the provider has no pages. The page is
    /// requested again if it equals the previous one, lacks the row with which it must begin, or contains rows that
    /// were not requested. In these cases the provider returned another page, and continuing after it would skip
    /// records for good. The first page of a walk has no such row, so two equal responses confirm it.
    pub(super) fn next(&self, since_member: &str, dates: &[Timestamp], hashes: &[String]) -> Option<Self> {
        let mut sorted: Vec<_> = hashes.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        let digest = hash(&sorted.concat());
        let is_first = self.page == 1 && self.anchor.is_empty();
        let is_repeated = !is_first && self.digest == digest;
        if !since_member.is_empty() && self.tries < TRIES_MAX {
            let is_unconfirmed = is_first && self.digest != digest;
            let is_torn = self.page == 1 && !self.anchor.is_empty() && !hashes.contains(&self.anchor);
            let is_early = Timestamp::parse(&self.since)
                .is_ok_and(|since| dates.iter().any(|at| seconds(*at) < seconds(since)));
            let is_shuffled = !self.is_unproven && !dates.is_sorted();
            if is_unconfirmed || is_repeated || is_torn || is_early || is_shuffled {
                let digest = if is_first { digest } else { self.digest.clone() };
                return Some(Self { tries: self.tries + 1, digest, ..self.clone() });
            }
        }
        if is_repeated {
            return None;
        }
        let is_unproven = self.is_unproven || !dates.is_sorted();
        let newest = dates.iter().fold(self.newest.clone(), |newest, at| later(&newest, *at));
        let last = hashes.last().cloned().unwrap_or_default();
        Some(match next_bound(&self.since, dates).filter(|_| !is_unproven) {
            Some(since) => Self { since, page: 1, newest, anchor: last.clone(), last, ..Self::default() },
            None => Self {
                since: self.since.clone(),
                page: self.page + 1,
                newest,
                digest,
                anchor: self.anchor.clone(),
                last,
                tries: 0,
                is_unproven,
            },
        })
    }

    /// Returns the state at the end of a walk. The next walk begins at the newest date, or where this walk began if its
    /// pages proved nothing.
    pub(super) fn end(&self, since_member: &str) -> String {
        let is_proven = !self.is_unproven && !self.last.is_empty();
        let (from, anchor) = match Timestamp::parse(&self.newest) {
            Ok(newest) if is_proven => (later(&self.since, newest), &self.last),
            _ => (self.since.clone(), &self.anchor),
        };
        if since_member.is_empty() || from.is_empty() {
            return NO_STATE.to_owned();
        }
        object(&[(since_member, &from), ("anchor", anchor)])
    }
}

/// Returns the hash of a text.
pub(super) fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}

/// Returns the date from which to request the next page, if the rows ascend and extend beyond the second of the last
/// bound.
fn next_bound(since: &str, dates: &[Timestamp]) -> Option<String> {
    let (first, last) = (dates.first()?, dates.last()?);
    let is_beyond = Timestamp::parse(since).map_or(true, |since| seconds(*last) > seconds(since));
    (dates.is_sorted() && seconds(*first) < seconds(*last) && is_beyond).then(|| last.to_string())
}

/// Returns the later of two dates. The first one may be missing.
fn later(text: &str, at: Timestamp) -> String {
    Timestamp::parse(text).map_or(at, |have| have.max(at)).to_string()
}

/// Returns a date without its fraction of a second. Providers of this API compare whole seconds.
pub(super) fn whole_seconds(date: &str) -> String {
    match date.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => date.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_micros(second * 1_000_000)
    }

    #[test]
    fn continues_at_last_row_where_rows_ascend() {
        let last = Some(at(9).to_string());
        assert_eq!(next_bound("", &[at(1), at(5), at(9)]), last);
        assert_eq!(next_bound(&at(1).to_string(), &[at(1), at(9)]), last);
        for (since, dates) in [
            (String::new(), vec![]),
            (String::new(), vec![at(5)]),
            // Rows in descending order, or all within one second.
            (String::new(), vec![at(9), at(1)]),
            (String::new(), vec![at(9), at(9)]),
            (at(9).to_string(), vec![at(5), at(9)]),
        ] {
            assert_eq!(next_bound(&since, &dates), None, "{dates:?}");
        }
    }

    #[test]
    fn dates_are_asked_for_in_whole_seconds() {
        assert_eq!(whole_seconds("2024-01-01T00:00:00.5Z"), "2024-01-01T00:00:00Z");
        assert_eq!(whole_seconds("2024-01-01T00:00:00Z"), "2024-01-01T00:00:00Z");
        assert_eq!(later("", at(3)), at(3).to_string());
        assert_eq!(later(&at(4).to_string(), at(3)), at(4).to_string());
    }

    const STATE_KEY: &str = "last_updated_at";

    /// Returns the position after pages, which are given by the seconds of their rows. The text of a row is its second.
    fn walk(pages: &[&[i64]]) -> Option<WalkPosition> {
        pages.iter().try_fold(WalkPosition { page: 1, ..WalkPosition::default() }, |place, rows| {
            let dates: Vec<_> = rows.iter().map(|second| at(*second)).collect();
            let hashes: Vec<_> = rows.iter().map(|second| hash(&second.to_string())).collect();
            place.next(STATE_KEY, &dates, &hashes)
        })
    }

    #[test]
    fn first_page_is_confirmed_by_another_answer() {
        let place = walk(&[&[1, 2]]).expect("a place");
        assert_eq!((place.page, &*place.since, place.tries), (1, "", 1));
        let place = walk(&[&[3, 4], &[1, 2], &[1, 2]]).expect("a place");
        assert_eq!((place.page, place.since, place.tries), (1, at(2).to_string(), 0));
    }

    #[test]
    fn wrong_page_is_asked_for_again() {
        let expected = walk(&[&[1, 2], &[1, 2]]).expect("a place");
        // A later page, the previous page, and a shuffled page.
        for wrong in [&[5, 6][..], &[1, 2], &[4, 2, 3]] {
            let place = walk(&[&[1, 2], &[1, 2], wrong]).expect("a place");
            assert_eq!(place, WalkPosition { tries: 1, ..expected.clone() }, "{wrong:?}");
        }
        let place = walk(&[&[1, 2], &[1, 2], &[5, 6], &[2, 3]]).expect("a place");
        assert_eq!((place.since, place.is_unproven), (at(3).to_string(), false));
    }

    #[test]
    fn pages_without_order_prove_nothing() {
        let turned: &[i64] = &[4, 2, 3];
        let place =
            walk(&[&[1, 2], &[1, 2], turned, turned, turned, turned, turned, turned]).expect("a place");
        assert_eq!((place.page, &*place.since, place.is_unproven), (2, &*at(2).to_string(), true));
        let bound = format!("\"last_updated_at\":\"{}\"", at(2));
        assert!(place.end(STATE_KEY).contains(&bound));
    }
}
