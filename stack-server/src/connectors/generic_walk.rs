//! Places in the lists of a generic provider, which come in the order of their dates. Pages are numbered, so a page that is
//! not the one that was asked for would hide records: each page proves that it follows the one before.

use ledger_core::Timestamp;

use crate::connectors::{Work, object};
use crate::http::response::{Json, Numbers};
use crate::payments::task::NO_STATE;

/// How often a page is asked for again that cannot be the one that was asked for. Several wrong answers in a row are the
/// way of the provider, or the records changed.
const TRIES_MAX: u64 = 5;

/// The place of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The date from which records are asked for.
    pub(super) since: String,
    pub(super) page: u64,
    /// The newest date so far.
    newest: String,
    /// A hash of the rows of the page before, in any order.
    digest: String,
    /// A hash of the row that the first page from this date must hold; empty if none is known.
    anchor: String,
    /// A hash of the last row so far.
    last: String,
    /// How often this page was asked for again.
    tries: u64,
    /// Whether pages did not follow each other by their dates. Then the walk proves nothing of what lies between.
    is_mixed: bool,
}

impl Place {
    /// The place that the state of a task holds. `kept` is the member for the date; empty if all is read each time.
    pub(super) fn of(work: &Work, kept: &str) -> Self {
        Self {
            since: if kept.is_empty() { String::new() } else { work.kept(kept) },
            page: work.kept("page").parse().unwrap_or(1),
            newest: work.kept("newest"),
            digest: work.kept("digest"),
            anchor: work.kept("anchor"),
            last: work.kept("last"),
            tries: work.kept("tries").parse().unwrap_or(0),
            is_mixed: work.kept("mixed") == "true",
        }
    }

    /// The same place in a walk that proves nothing.
    pub(super) fn unproven(self) -> Self {
        Self { is_mixed: true, ..self }
    }

    /// The state of the task.
    pub(super) fn json(&self, kept: &str) -> String {
        let mut json = Json::new(Numbers::Plain);
        json.raw("{");
        if !kept.is_empty() && !self.since.is_empty() {
            json.plain_string(kept).raw(":").string(&self.since).raw(",");
        }
        json.raw("\"page\":\"").integer(self.page).raw("\",\"newest\":").string(&self.newest);
        json.raw(",\"digest\":").string(&self.digest).raw(",\"anchor\":").string(&self.anchor);
        json.raw(",\"last\":").string(&self.last);
        json.raw(",\"tries\":\"").integer(self.tries).raw("\",\"mixed\":").boolean(self.is_mixed).raw("}");
        String::from_utf8(json.into_bytes()).expect("JSON is UTF-8")
    }

    /// The place behind a page; `None` if the page shows that the provider knows no pages. A page is asked for again if
    /// it came before, lacks the row that it must begin with, or has rows that were not asked for: the provider gave
    /// another page, and to go on behind it would skip records for good. The first page of a walk has no such row, so
    /// two equal answers confirm it.
    pub(super) fn next(&self, kept: &str, dates: &[Timestamp], hashes: &[String]) -> Option<Self> {
        let mut sorted: Vec<_> = hashes.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        let digest = hash(&sorted.concat());
        let is_first = self.page == 1 && self.anchor.is_empty();
        let is_repeated = !is_first && self.digest == digest;
        if !kept.is_empty() && self.tries < TRIES_MAX {
            let is_unconfirmed = is_first && self.digest != digest;
            let is_torn = self.page == 1 && !self.anchor.is_empty() && !hashes.contains(&self.anchor);
            let is_early = Timestamp::parse(&self.since)
                .is_ok_and(|since| dates.iter().any(|at| seconds(*at) < seconds(since)));
            let is_shuffled = !self.is_mixed && !dates.is_sorted();
            if is_unconfirmed || is_repeated || is_torn || is_early || is_shuffled {
                let digest = if is_first { digest } else { self.digest.clone() };
                return Some(Self { tries: self.tries + 1, digest, ..self.clone() });
            }
        }
        if is_repeated {
            return None;
        }
        let is_mixed = self.is_mixed || !dates.is_sorted();
        let newest = dates.iter().fold(self.newest.clone(), |newest, at| later(&newest, *at));
        let last = hashes.last().cloned().unwrap_or_default();
        Some(match next_bound(&self.since, dates).filter(|_| !is_mixed) {
            Some(since) => Self { since, page: 1, newest, anchor: last.clone(), last, ..Self::default() },
            None => Self {
                since: self.since.clone(),
                page: self.page + 1,
                newest,
                digest,
                anchor: self.anchor.clone(),
                last,
                tries: 0,
                is_mixed,
            },
        })
    }

    /// The state at the end of a walk: the next one begins at the newest date, or where this one did if its pages proved
    /// nothing.
    pub(super) fn end(&self, kept: &str) -> String {
        let is_proven = !self.is_mixed && !self.last.is_empty();
        let (from, anchor) = match Timestamp::parse(&self.newest) {
            Ok(newest) if is_proven => (later(&self.since, newest), &self.last),
            _ => (self.since.clone(), &self.anchor),
        };
        if kept.is_empty() || from.is_empty() {
            return NO_STATE.to_owned();
        }
        object(&[(kept, &from), ("anchor", anchor)])
    }
}

/// A hash of a text.
pub(super) fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}

/// The date from which the next page is asked for, if rows ascend and reach beyond the second of the last bound.
fn next_bound(since: &str, dates: &[Timestamp]) -> Option<String> {
    let (first, last) = (dates.first()?, dates.last()?);
    let is_beyond = Timestamp::parse(since).map_or(true, |since| seconds(*last) > seconds(since));
    (dates.is_sorted() && seconds(*first) < seconds(*last) && is_beyond).then(|| last.to_string())
}

/// The later of two dates, one of which may not be there.
fn later(text: &str, at: Timestamp) -> String {
    Timestamp::parse(text).map_or(at, |have| have.max(at)).to_string()
}

/// A date without its fraction: providers of this API compare whole seconds.
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
            // Newest first, or all in one second.
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

    const KEPT: &str = "last_updated_at";

    /// A place behind pages, each given by the seconds of its rows. The text of a row is its second.
    fn walk(pages: &[&[i64]]) -> Option<Place> {
        pages.iter().try_fold(Place { page: 1, ..Place::default() }, |place, rows| {
            let dates: Vec<_> = rows.iter().map(|second| at(*second)).collect();
            let hashes: Vec<_> = rows.iter().map(|second| hash(&second.to_string())).collect();
            place.next(KEPT, &dates, &hashes)
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
        // A page further on, the page before, and one that is shuffled.
        for wrong in [&[5, 6][..], &[1, 2], &[4, 2, 3]] {
            let place = walk(&[&[1, 2], &[1, 2], wrong]).expect("a place");
            assert_eq!(place, Place { tries: 1, ..expected.clone() }, "{wrong:?}");
        }
        let place = walk(&[&[1, 2], &[1, 2], &[5, 6], &[2, 3]]).expect("a place");
        assert_eq!((place.since, place.is_mixed), (at(3).to_string(), false));
    }

    #[test]
    fn pages_without_order_prove_nothing() {
        let turned: &[i64] = &[4, 2, 3];
        let place =
            walk(&[&[1, 2], &[1, 2], turned, turned, turned, turned, turned, turned]).expect("a place");
        assert_eq!((place.page, &*place.since, place.is_mixed), (2, &*at(2).to_string(), true));
        let bound = format!("\"last_updated_at\":\"{}\"", at(2));
        assert!(place.end(KEPT).contains(&bound));
    }
}
