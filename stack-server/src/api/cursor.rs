//! Cursors: the whole query of a list and a position in it, as an opaque text.
//!
//! A cursor is base64url of a version, the fields of [`ListQuery`] and a keyed digest. The digest also covers the ledger
//! and the operation. So a cursor works only for the list that returned it, and only this store can create one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ledger_core::Timestamp;
use ledger_store::{Direction, Expand, Start, TimeAxis};

use crate::http::error::ApiError;
use crate::limits::CURSOR_BYTES_MAX;

/// Version of the encoding. Changes with the fields, so that cursors of other releases are refused and not misread.
const VERSION: u8 = 2;

/// Number of bytes of the digest. Too many to guess, and few enough for a URL.
const DIGEST_BYTES: usize = 16;

/// The secret with which a store authenticates its cursors.
pub(crate) type CursorKey = [u8; 32];

/// The sort orders of lists. Each list supports its natural order and some of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Sort {
    /// The natural order of the list, such as by id or by address.
    #[default]
    Natural,
    /// Transactions by effective date.
    Timestamp,
    UpdatedAt,
    RevertedAt,
    FirstUsage,
    InsertionDate,
    Version,
}

impl Sort {
    /// All orders. The index of each is its number in cursors.
    pub(crate) const ALL: [Self; 7] = [
        Self::Natural,
        Self::Timestamp,
        Self::UpdatedAt,
        Self::RevertedAt,
        Self::FirstUsage,
        Self::InsertionDate,
        Self::Version,
    ];
}

/// The query of a list, as a cursor stores it. A list uses only the fields for which it has parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListQuery {
    pub(crate) page_size: u32,
    /// The JSON text of the filter. Empty if there is none.
    pub(crate) filter: String,
    /// The point in time of the list. For volumes, the end of the interval.
    pub(crate) at: Option<Timestamp>,
    /// For volumes, the beginning of the interval.
    pub(crate) from: Option<Timestamp>,
    pub(crate) expand: Expand,
    /// The dates that `at` and `from` are compared with: effective or insertion dates.
    pub(crate) axis: TimeAxis,
    pub(crate) order: Sort,
    pub(crate) direction: Direction,
    pub(crate) group_by: u32,
    /// For ledgers, whether ledgers in deleted buckets are listed too.
    pub(crate) include_deleted: bool,
    /// The position, as the key of an item in the form of the list.
    pub(crate) start: Start<String>,
}

/// The list for which a cursor is valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListId<'a> {
    /// The name of the list.
    pub(crate) list: &'static str,
    /// The ledger. Empty for the list of ledgers.
    pub(crate) ledger: &'a str,
}

impl ListQuery {
    /// Encodes this query as a cursor.
    pub(crate) fn to_cursor(&self, key: &CursorKey, list_id: ListId<'_>) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.page_size.to_le_bytes());
        bytes.extend_from_slice(&self.group_by.to_le_bytes());
        bytes.push(
            u8::from(self.expand.volumes)
                | u8::from(self.expand.effective_volumes) << 1
                | u8::from(self.axis == TimeAxis::Inserted) << 2
                | u8::from(self.include_deleted) << 3
                | u8::from(self.direction == Direction::Descending) << 4
                | u8::from(self.at.is_some()) << 5
                | u8::from(self.from.is_some()) << 6,
        );
        bytes.push(self.order as u8);
        for date in [self.at, self.from].into_iter().flatten() {
            bytes.extend_from_slice(&date.as_micros().to_le_bytes());
        }
        let filter_bytes = u32::try_from(self.filter.len()).expect("a filter is part of a request");
        bytes.extend_from_slice(&filter_bytes.to_le_bytes());
        bytes.extend_from_slice(self.filter.as_bytes());
        let (side, start) = match &self.start {
            Start::First => (0, ""),
            Start::After(key) => (1, key.as_str()),
            Start::Before(key) => (2, key.as_str()),
        };
        bytes.push(side);
        bytes.extend_from_slice(start.as_bytes());
        authenticated(bytes, key, list_id)
    }

    /// Decodes a cursor that [`ListQuery::to_cursor`] created.
    ///
    /// # Errors
    ///
    /// `VALIDATION` for every other text, and for a cursor of another list or store.
    pub(crate) fn from_cursor(text: &str, key: &CursorKey, list_id: ListId<'_>) -> Result<Self, ApiError> {
        Self::read(text, key, list_id).ok_or_else(|| ApiError::validation("invalid 'cursor' query param"))
    }

    fn read(text: &str, key: &CursorKey, list_id: ListId<'_>) -> Option<Self> {
        let bytes = checked(text, key, list_id)?;
        let mut rest = &bytes[..];
        let [version] = take(&mut rest)?;
        if version != VERSION {
            return None;
        }
        let page_size = u32::from_le_bytes(take(&mut rest)?);
        let group_by = u32::from_le_bytes(take(&mut rest)?);
        let [flags] = take(&mut rest)?;
        let flag = |bit: u8| flags >> bit & 1 == 1;
        let [order] = take(&mut rest)?;
        let mut date = |there: bool| -> Option<Option<Timestamp>> {
            if !there {
                return Some(None);
            }
            Some(Some(Timestamp::from_micros(i64::from_le_bytes(take(&mut rest)?))))
        };
        let at = date(flag(5))?;
        let from = date(flag(6))?;
        let filter_bytes = u32::from_le_bytes(take(&mut rest)?) as usize;
        let (filter, mut rest) = rest.split_at_checked(filter_bytes)?;
        let [side] = take(&mut rest)?;
        let place = String::from_utf8(rest.to_vec()).ok()?;
        Some(Self {
            page_size,
            filter: String::from_utf8(filter.to_vec()).ok()?,
            at,
            from,
            expand: Expand { volumes: flag(0), effective_volumes: flag(1) },
            axis: if flag(2) { TimeAxis::Inserted } else { TimeAxis::Effective },
            order: *Sort::ALL.get(usize::from(order))?,
            include_deleted: flag(3),
            direction: if flag(4) { Direction::Descending } else { Direction::Ascending },
            group_by,
            start: match side {
                0 => Start::First,
                1 => Start::After(place),
                2 => Start::Before(place),
                _ => return None,
            },
        })
    }
}

/// Encodes bytes as a text that proves that this store created it for this list.
pub(crate) fn authenticated(mut bytes: Vec<u8>, key: &CursorKey, list_id: ListId<'_>) -> String {
    bytes.extend_from_slice(&digest(key, list_id, &bytes));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the bytes that were given to [`authenticated`]. `None` for every other text.
pub(crate) fn checked(text: &str, key: &CursorKey, list_id: ListId<'_>) -> Option<Vec<u8>> {
    if text.len() > CURSOR_BYTES_MAX {
        return None;
    }
    let mut bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    let (content, found) = bytes.split_last_chunk::<DIGEST_BYTES>()?;
    // `blake3::Hash` compares in constant time.
    if padded(*found) != padded(digest(key, list_id, content)) {
        return None;
    }
    bytes.truncate(bytes.len() - DIGEST_BYTES);
    Some(bytes)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(*taken)
}

fn digest(key: &CursorKey, list_id: ListId<'_>, bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    for part in [list_id.list, list_id.ledger] {
        // The lengths keep two different lists from hashing the same bytes.
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.update(bytes);
    let mut digest = [0; DIGEST_BYTES];
    hasher.finalize_xof().fill(&mut digest);
    digest
}

fn padded(digest: [u8; DIGEST_BYTES]) -> blake3::Hash {
    let mut bytes = [0; 32];
    bytes[..DIGEST_BYTES].copy_from_slice(&digest);
    blake3::Hash::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: CursorKey = [1; 32];
    const HERE: ListId<'static> = ListId { list: "accounts", ledger: "main" };

    fn query() -> ListQuery {
        ListQuery {
            page_size: 2,
            filter: "{\"$match\":{\"address\":\"a:\"}}".into(),
            at: Some(Timestamp::from_micros(-5)),
            from: None,
            expand: Expand { volumes: true, effective_volumes: false },
            axis: TimeAxis::Inserted,
            order: Sort::RevertedAt,
            include_deleted: true,
            direction: Direction::Descending,
            group_by: 7,
            start: Start::Before("a:1".into()),
        }
    }

    #[test]
    fn a_cursor_gives_its_query_back() {
        let plain = ListQuery {
            filter: String::new(),
            at: None,
            from: Some(Timestamp::from_micros(9)),
            start: Start::First,
            ..query()
        };
        assert!(Sort::ALL.into_iter().enumerate().all(|(number, sort)| sort as usize == number));
        for query in [query(), plain, ListQuery { start: Start::After("é".into()), ..query() }] {
            let cursor = query.to_cursor(&KEY, HERE);
            assert_eq!(ListQuery::from_cursor(&cursor, &KEY, HERE), Ok(query));
        }
    }

    #[test]
    fn a_cursor_works_in_its_place_only() {
        let cursor = query().to_cursor(&KEY, HERE);
        assert!(ListQuery::from_cursor(&cursor, &[2; 32], HERE).is_err());
        for list_id in [
            ListId { list: "logs", ..HERE },
            ListId { ledger: "other", ..HERE },
            ListId { list: "account", ledger: "smain" },
        ] {
            assert!(ListQuery::from_cursor(&cursor, &KEY, list_id).is_err());
        }
    }

    #[test]
    fn no_other_text_is_a_cursor() {
        let cursor = query().to_cursor(&KEY, HERE);
        for at in 0..cursor.len() {
            let mut text = cursor.clone().into_bytes();
            text[at] = if text[at] == b'A' { b'B' } else { b'A' };
            let text = String::from_utf8(text).expect("still ASCII");
            assert!(ListQuery::from_cursor(&text, &KEY, HERE).is_err(), "changed at {at}");
            assert!(ListQuery::from_cursor(&cursor[..at], &KEY, HERE).is_err(), "cut at {at}");
        }
        for text in ["x", "%%%", "=", &"A".repeat(CURSOR_BYTES_MAX + 4)] {
            assert!(ListQuery::from_cursor(text, &KEY, HERE).is_err());
        }
    }
}
