//! Walks through the lists of a provider, one page per step of a task. A connector builds the request of a page from
//! its [`PagePosition`]. Everything else is the same for all providers.
//!
//! A walk does not assume that pages are stable. If the same page comes twice in a row, pages have moved. The walk then
//! ends without progress, and the next walk begins at the same date. After a complete walk, the next one begins at the
//! newest date minus the list's overlap, because providers change records that they have already listed.

use std::time::Duration;

use ledger_core::Timestamp;
use serde_json::value::RawValue;

use crate::connectors::json_object::{InvalidRecord, JsonObject, elements};
use crate::connectors::{Failure, NewTask, Page, Restart, TaskContext, object};
use crate::payments::task::NO_STATE;

/// A list of a provider.
pub(super) struct List {
    /// The member `name` in the descriptor of the task that walks the list. A text for people.
    pub(super) name: &'static str,
    /// The member `key` in the descriptor, by which the connector finds this list again.
    pub(super) key: &'static str,
    /// The response member with the rows; empty if the response itself is the list.
    pub(super) rows: &'static str,
    /// Returns whether this response is the last page. An empty page always ends the walk.
    pub(super) is_last: fn(Option<&JsonObject<'_>>, &PagePosition) -> bool,
    /// The response member that names the next page; empty if pages have numbers.
    pub(super) token: &'static str,
    /// The next walk begins this long before the newest date; `None` if every walk reads everything.
    pub(super) overlap: Option<Duration>,
    /// Reads one row of a page.
    pub(super) read: Read,
}

/// Adds a record to a page, and returns the date by which the list is filtered.
pub(super) type Read =
    fn(&JsonObject<'_>, &TaskContext, &mut Page) -> Result<Option<Timestamp>, InvalidRecord>;

/// Ends the walk after one response, which contains the whole list.
pub(super) fn single_page(_: Option<&JsonObject<'_>>, _: &PagePosition) -> bool {
    true
}

/// Ends the walk only after an empty page.
pub(super) fn until_empty(_: Option<&JsonObject<'_>>, _: &PagePosition) -> bool {
    false
}

impl List {
    /// Returns the task that walks the list once.
    pub(super) fn task(&self, members: &[(&str, &str)]) -> NewTask {
        let named = [("name", self.name), ("key", self.key)];
        let all: Vec<_> = named.into_iter().chain(members.iter().copied()).collect();
        NewTask::once(object(&all), Restart::IfNotActive)
    }
}

/// Returns a hash of the rows of a page, independent of their order.
fn digest_of(rows: &[&RawValue]) -> String {
    let mut texts: Vec<_> = rows.iter().map(|row| row.get()).collect();
    texts.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(text.as_bytes()).update(&[0]);
    }
    hasher.finalize().to_hex().to_string()
}

/// The position of the next page in a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PagePosition {
    /// Only records from this date on are requested; empty for all.
    pub(super) since: String,
    /// Number of earlier pages in this walk.
    pub(super) page: u64,
    /// Number of earlier rows in this walk.
    pub(super) offset: u64,
    /// The provider's token for the page; empty for the first page.
    pub(super) token: String,
    /// The newest date in this walk.
    newest: String,
    /// The hash of the previous page.
    digest: String,
}

impl PagePosition {
    /// Returns the position in the state of a task.
    pub(super) fn of(context: &TaskContext) -> Self {
        Self {
            since: context.state_member("since"),
            page: context.state_member("page").parse().unwrap_or(0),
            offset: context.state_member("offset").parse().unwrap_or(0),
            token: context.state_member("token"),
            newest: context.state_member("newest"),
            digest: context.state_member("digest"),
        }
    }

    /// Returns the state at the start of a walk.
    fn first(since: &str) -> String {
        if since.is_empty() { NO_STATE.to_owned() } else { object(&[("since", since)]) }
    }

    fn json(&self) -> String {
        let (page, offset) = (self.page.to_string(), self.offset.to_string());
        object(&[
            ("since", &self.since),
            ("page", &page),
            ("offset", &offset),
            ("token", &self.token),
            ("newest", &self.newest),
            ("digest", &self.digest),
        ])
    }

    /// Reads the response with the page at this position.
    ///
    /// # Errors
    ///
    /// Fails if the response contains no list.
    pub(super) fn read(self, list: &List, context: &TaskContext, body: &[u8]) -> Result<Page, Failure> {
        let wrong = |reason: &str| Failure::retryable(format!("{}: {reason}", list.key));
        let raw: &RawValue = serde_json::from_slice(body).map_err(|error| wrong(&error.to_string()))?;
        let response = JsonObject::of(raw);
        let rows = response.as_ref().map_or_else(|| elements(raw), |response| response.list(list.rows));
        let rows = rows.ok_or_else(|| wrong("the answer holds no list"))?;
        let digest = digest_of(&rows);
        let mut page = Page::default();
        if rows.is_empty() {
            page.state = Some(self.end(list));
            return Ok(page);
        }
        if self.digest == digest {
            page.state = Some(Self::first(&self.since));
            page.warning =
                Some(format!("{}: a page came twice, the next walk begins where this one did", list.key));
            return Ok(page);
        }
        let mut position = self;
        for raw in &rows {
            let read = JsonObject::of(raw)
                .ok_or_else(|| InvalidRecord("a row that is no object was passed over".to_owned()));
            match read.and_then(|row| (list.read)(&row, context, &mut page)) {
                Ok(at) => position.note_date(at.map(|at| at.min(context.now))),
                Err(InvalidRecord(reason)) => page.warning = page.warning.take().or(Some(reason)),
            }
        }
        position.digest = digest;
        position.page += 1;
        position.offset += rows.len() as u64;
        position.token = response.as_ref().map(|response| response.text(list.token)).unwrap_or_default();
        let has_token = list.token.is_empty() || !matches!(&*position.token, "" | "0");
        page.has_more = has_token && !(list.is_last)(response.as_ref(), &position);
        page.state = Some(if page.has_more { position.json() } else { position.end(list) });
        Ok(page)
    }

    fn note_date(&mut self, at: Option<Timestamp>) {
        let Some(at) = at else { return };
        if Timestamp::parse(&self.newest).map_or(true, |newest| newest < at) {
            self.newest = at.to_string();
        }
    }

    /// Returns the state after the last page.
    fn end(&self, list: &List) -> String {
        let Some(overlap) = list.overlap else { return NO_STATE.to_owned() };
        let overlap = i64::try_from(overlap.as_micros()).unwrap_or(i64::MAX);
        let begin = Timestamp::parse(&self.newest)
            .map(|newest| Timestamp::from_micros(newest.as_micros().saturating_sub(overlap)));
        match (begin, Timestamp::parse(&self.since)) {
            (Ok(begin), Ok(since)) => Self::first(&begin.max(since).to_string()),
            (Ok(begin), Err(_)) => Self::first(&begin.to_string()),
            (Err(_), _) => Self::first(&self.since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payments::ids::ConnectorId;
    use crate::uuid::Uuid;

    fn read_row(
        row: &JsonObject<'_>,
        _: &TaskContext,
        page: &mut Page,
    ) -> Result<Option<Timestamp>, InvalidRecord> {
        page.children.push(LIST.task(&[("row", &row.required("id")?)]));
        Ok(Some(row.required_date("at")?))
    }

    const LIST: List = List {
        name: "rows",
        key: "rows",
        rows: "rows",
        is_last: until_empty,
        token: "",
        overlap: Some(Duration::from_mins(1)),
        read: read_row,
    };

    fn context(state: &str) -> TaskContext {
        TaskContext {
            connector: ConnectorId { provider: "TEST".into(), installation: Uuid::from_bytes([7; 16]) },
            descriptor: "{}".to_owned(),
            state: state.to_owned(),
            now: Timestamp::parse("2024-01-01T00:10:00Z").expect("a date"),
        }
    }

    /// Makes a step of a walk. Returns the page and the state after it.
    fn step(state: &str, body: &str) -> (Page, String) {
        let context = context(state);
        let page = PagePosition::of(&context).read(&LIST, &context, body.as_bytes()).expect("a list");
        let state = page.state.clone().expect("a state");
        (page, state)
    }

    const FIRST: &str =
        r#"{"rows":[{"id":1,"at":"2024-01-01T00:05:00Z"},{"id":2,"at":"2024-01-01T00:04:00Z"}]}"#;

    #[test]
    fn walk_ends_at_empty_page_and_overlaps() {
        let (page, state) = step("{}", FIRST);
        assert!(page.has_more && page.children.len() == 2);
        let position = PagePosition::of(&context(&state));
        assert_eq!((position.page, position.offset), (1, 2));
        let (page, state) = step(&state, r#"{"rows":[]}"#);
        assert_eq!((page.has_more, &*state), (false, r#"{"since":"2024-01-01T00:04:00Z"}"#));
        // The bound never decreases.
        let late = r#"{"rows":[{"id":3,"at":"2023-01-01T00:00:00Z"}]}"#;
        let (_, state) = step(&step(&state, late).1, r#"{"rows":[]}"#);
        assert_eq!(state, r#"{"since":"2024-01-01T00:04:00Z"}"#);
    }

    #[test]
    fn page_that_comes_twice_ends_without_progress() {
        let (_, state) = step("{}", FIRST);
        let turned =
            r#"{"rows":[{"id":2,"at":"2024-01-01T00:04:00Z"},{"id":1,"at":"2024-01-01T00:05:00Z"}]}"#;
        let (page, state) = step(&state, turned);
        assert_eq!((page.has_more, &*state), (false, "{}"));
        assert!(page.warning.is_some_and(|warning| warning.contains("twice")));
    }

    #[test]
    fn date_in_the_future_hides_nothing() {
        let future = r#"{"rows":[{"id":1,"at":"2999-01-01T00:00:00Z"},7,{"id":2,"at":"x"},{"at":"x"}]}"#;
        let (page, state) = step("{}", future);
        assert!(page.children.len() == 2 && page.warning.is_some());
        let (_, state) = step(&state, r#"{"rows":[]}"#);
        assert_eq!(state, r#"{"since":"2024-01-01T00:09:00Z"}"#);
    }

    #[test]
    fn answer_without_list_is_tried_again() {
        for body in ["", "{", "[1", "7", r#"{"rows":7}"#, r#"{"rows":null}"#, "<html>"] {
            let context = context("{}");
            assert!(PagePosition::of(&context).read(&LIST, &context, body.as_bytes()).is_err(), "{body}");
        }
    }
}
