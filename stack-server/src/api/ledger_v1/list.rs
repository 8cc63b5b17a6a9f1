//! Shared handling of v1 lists: the page size, the cursor, and the response envelope.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::StatusCode;
use ledger_core::{Filter, FilterNode, FilterOf, Resource, Selects};
use ledger_store::{Direction, Expand, LedgerView, Page, PageRequest, ReadError, Start, TimeAxis};
use serde_json::value::RawValue;

use crate::api::context::Context;
use crate::api::cursor::{ListId, ListQuery, Sort};
use crate::api::ledger_v1::client::Client;
use crate::http::error::ApiError;
use crate::http::json::{self, Array, Entries, Text};
use crate::http::response::{Json, Reply};
use crate::limits::{FILTER_BYTES_MAX, INLINE_ROWS_MAX};

/// Default number of rows per page.
const PAGE_SIZE: u32 = 15;
const PAGE_SIZE_MAX: u32 = 1_000;

/// The properties that distinguish one list from the others.
pub(crate) struct ListSpec {
    /// The name of the list in cursors. A cursor of another list is refused.
    pub(crate) name: &'static str,
    pub(crate) resource: Resource,
    /// The query parameters of the list. A request with a cursor must not have any of them.
    pub(crate) parameters: &'static [&'static str],
    /// True if the list accepts `metadata[…]` parameters.
    pub(crate) metadata: bool,
    /// True if the rows are in ascending order for clients of 2.4, which use only cursors for paging.
    pub(crate) ascends_for_2_4: bool,
    /// The parameters that a count of 1.10 ignores.
    pub(crate) ignored_by_1_10_counts: &'static [&'static str],
    /// Converts the parameters to conditions. Checks them in the order of `parameters`.
    pub(crate) select: fn(&Parameters) -> Result<Vec<FilterNode>, ApiError>,
}

/// The parameters of a list request in their original order. Cursors contain them. An empty value counts as absent,
/// except for metadata, where the empty text is a value to match.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Takes the parameters of the list from a request.
    pub(crate) fn of(context: &Context<'_>, spec: &ListSpec) -> Self {
        let ascends = spec.ascends_for_2_4 && Client::of(context).is_2_4();
        let read = |name: &str| {
            let is_read = spec.parameters.contains(&name) && !(ascends && name == "after");
            is_read || (spec.metadata && metadata_key(name).is_some())
        };
        let pairs = context
            .query
            .pairs()
            .filter(|(name, value)| read(name) && (!value.is_empty() || metadata_key(name).is_some()));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Returns the first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns every value of a parameter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    /// Returns the key and value of every `metadata[key]=value`. The first value counts if a key is repeated.
    pub(crate) fn metadata(&self) -> Vec<(&str, &str)> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for (name, value) in &self.0 {
            if let Some(key) = metadata_key(name)
                && found.iter().all(|(have, _)| *have != key)
            {
                found.push((key, value));
            }
        }
        found
    }

    /// Encodes the parameters as a JSON array of alternating names and values. Without parameters the text is
    /// empty.
    fn to_text(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let texts = self.0.iter().flat_map(|(name, value)| [name, value]);
        serde_json::to_string(&texts.collect::<Vec<_>>()).unwrap_or_default()
    }

    fn from_text(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let Array(texts) = json::first::<Array<Text<'_>>>(text.as_bytes()).ok()?;
        let (pairs, rest) = texts.as_chunks::<2>();
        let pairs = pairs.iter().map(|[name, value]| (name.0.to_string(), value.0.to_string()));
        rest.is_empty().then(|| Self(pairs.collect()))
    }
}

/// Returns the key in `metadata[key]`.
fn metadata_key(name: &str) -> Option<&str> {
    name.strip_prefix("metadata[")?.strip_suffix(']').filter(|key| !key.is_empty())
}

/// Builds the filter of a count. It takes the parameters of its list; servers of 1.10 ignore some of them.
///
/// # Errors
///
/// Returns `VALIDATION` for a bad parameter.
pub(crate) fn count_filter<R: Selects>(
    context: &Context<'_>,
    spec: &ListSpec,
) -> Result<FilterOf<R>, ApiError> {
    let mut parameters = Parameters::of(context, spec);
    if !Client::of(context).is_2_4() {
        parameters.0.retain(|(name, _)| !spec.ignored_by_1_10_counts.contains(&name.as_str()));
    }
    let filter = filter(spec, &parameters)?;
    FilterOf::try_from(filter).map_err(|error| ApiError::fault(&error.to_string()))
}

fn filter(spec: &ListSpec, parameters: &Parameters) -> Result<Filter, ApiError> {
    let nodes = (spec.select)(parameters)?;
    if nodes.is_empty() {
        return Ok(Filter::all(spec.resource));
    }
    Filter::new(spec.resource, FilterNode::And(nodes))
        .map_err(|error| ApiError::validation(error.to_string()))
}

/// A parsed list request.
pub(crate) struct List {
    spec: &'static ListSpec,
    ledger: String,
    query: ListQuery,
    filter: Filter,
}

impl List {
    /// Reads a list request from its cursor or from its parameters. A request with a cursor must not have parameters of
    /// the list, and its page size is ignored. For clients of 2.4, the other parameters are ignored, and the page size
    /// counts.
    ///
    /// # Errors
    ///
    /// Returns `VALIDATION` for a bad parameter, and for a cursor that does not belong to this list.
    pub(crate) fn of(context: &Context<'_>, spec: &'static ListSpec) -> Result<Self, ApiError> {
        let ledger = context.variable(0).to_owned();
        let parameters = Parameters::of(context, spec);
        let cursor = ["cursor", "pagination_token"]
            .into_iter()
            .find_map(|name| Some((name, context.query.get(name).filter(|text| !text.is_empty())?)));
        let is_2_4 = Client::of(context).is_2_4();
        if let Some((name, text)) = cursor {
            if !is_2_4 && parameters.0.iter().any(|(_, value)| !value.is_empty()) {
                let message = format!("no other query params can be set with '{name}'");
                return Err(ApiError::validation(message));
            }
            let invalid = || ApiError::validation(format!("invalid '{name}' query param"));
            let list_id = ListId { list: spec.name, ledger: &ledger };
            let query = ListQuery::from_cursor(text, context.app.cursor_key(), list_id)
                .ok()
                .or_else(|| blank_cursor(text))
                .ok_or_else(invalid)?;
            let parameters = Parameters::from_text(&query.filter).ok_or_else(invalid)?;
            let filter = filter(spec, &parameters).map_err(|_| invalid())?;
            let page_size = if is_2_4 { given_page_size(context)? } else { None };
            let query = match page_size {
                Some(page_size) => ListQuery { page_size, ..query },
                None => query,
            };
            return Ok(Self { spec, ledger, query, filter });
        }
        let filter = filter(spec, &parameters)?;
        let page_size = given_page_size(context)?.unwrap_or(PAGE_SIZE);
        let text = parameters.to_text();
        if text.len() > FILTER_BYTES_MAX {
            let message = format!("the filters are longer than {FILTER_BYTES_MAX} bytes");
            return Err(ApiError::validation(message));
        }
        let mut query = first_page(page_size, text);
        if spec.ascends_for_2_4 && is_2_4 {
            query.direction = Direction::Ascending;
        }
        Ok(Self { spec, ledger, query, filter })
    }

    /// Returns the filter for the store's list of the same resource.
    ///
    /// # Errors
    ///
    /// `INTERNAL` if the filter is for another resource, which is a defect of this server.
    pub(crate) fn filter<R: Selects>(&self) -> Result<FilterOf<R>, ApiError> {
        FilterOf::try_from(self.filter.clone()).map_err(|error| ApiError::fault(&error.to_string()))
    }

    /// Returns whether the query may take too long for a thread that serves HTTP: it has a filter, or requests many
    /// rows.
    pub(crate) fn is_long(&self) -> bool {
        !self.filter.is_all() || self.query.page_size > INLINE_ROWS_MAX
    }

    /// Queries a ledger for the page. Returns `None` if the ledger does not exist. A `long` query runs on a separate
    /// thread.
    ///
    /// # Errors
    ///
    /// Fails if the query fails.
    pub(crate) async fn ask<Q: Send + 'static, T: Send + 'static>(
        context: &Context<'_>,
        ledger: Option<LedgerView>,
        question: Q,
        long: bool,
        ask: fn(&LedgerView, &Q) -> Result<Page<T>, ReadError>,
    ) -> Result<Option<Page<T>>, ApiError> {
        let Some(ledger) = ledger else { return Ok(None) };
        if long {
            return context.app.long(move || Ok(Some(ask(&ledger, &question)?))).await;
        }
        Ok(Some(ask(&ledger, &question)?))
    }

    /// Builds the page request for the store. `parse` reads the key in the cursor.
    ///
    /// # Errors
    ///
    /// Returns `VALIDATION` if the key in the cursor is malformed. Only a defect of this server makes such a
    /// cursor.
    pub(crate) fn page<K>(&self, parse: impl Fn(&str) -> Option<K>) -> Result<PageRequest<K>, ApiError> {
        let key =
            |text: &str| parse(text).ok_or_else(|| ApiError::validation("invalid 'cursor' query param"));
        Ok(PageRequest {
            size: self.query.page_size as usize,
            direction: self.query.direction,
            start: match &self.query.start {
                Start::First => Start::First,
                Start::After(text) => Start::After(key(text)?),
                Start::Before(text) => Start::Before(key(text)?),
            },
        })
    }

    /// Builds the response for a page. A ledger that does not exist (`None`) has an empty list.
    pub(crate) fn reply<T>(
        &self,
        context: &Context<'_>,
        page: Option<&Page<T>>,
        key: impl Fn(&T) -> String,
        write: impl FnMut(&mut Json, &T),
    ) -> Reply {
        let (items, has_next, has_previous) = match page {
            Some(page) => (page.items.as_slice(), page.has_next, page.has_previous),
            None => (&[][..], false, false),
        };
        let mut json = context.json();
        json.raw("{\"cursor\":{\"pageSize\":").integer(self.query.page_size.into());
        json.raw(",\"page_size\":").integer(self.query.page_size.into());
        json.raw(",\"hasMore\":").boolean(has_next).raw(",\"has_more\":").boolean(has_next);
        let list_id = ListId { list: self.spec.name, ledger: &self.ledger };
        let mut link = |name: &str, start: Start<String>| {
            let query = ListQuery { start, ..self.query.clone() };
            json.raw(name).plain_string(&query.to_cursor(context.app.cursor_key(), list_id));
        };
        if let Some(first) = items.first().filter(|_| has_previous) {
            link(",\"previous\":", Start::Before(key(first)));
        }
        if let Some(last) = items.last().filter(|_| has_next) {
            link(",\"next\":", Start::After(key(last)));
        }
        json.raw(",\"data\":[").list(items, write).raw("]}}");
        json.reply(StatusCode::OK)
    }
}

/// Returns the parameter `pageSize`, or else its older name. Returns `None` if neither requests a number of rows.
fn given_page_size(context: &Context<'_>) -> Result<Option<u32>, ApiError> {
    let name = match context.query.get("pageSize") {
        None | Some("") => "page_size",
        Some(_) => "pageSize",
    };
    let bounded = |size| u32::try_from(size).map_or(PAGE_SIZE_MAX, |size| size.min(PAGE_SIZE_MAX));
    Ok(context.query.page_size(name)?.map(bounded))
}

fn first_page(page_size: u32, filter: String) -> ListQuery {
    ListQuery {
        page_size,
        filter,
        at: None,
        from: None,
        expand: Expand::default(),
        axis: TimeAxis::default(),
        order: Sort::Natural,
        direction: Direction::Descending,
        group_by: 0,
        include_deleted: false,
        start: Start::First,
    }
}

/// Reads a cursor that contains only a page size as a request for the first page. Cursors of other servers are JSON,
/// and test suites of clients send such cursors.
fn blank_cursor(text: &str) -> Option<ListQuery> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    let bytes = bytes.trim_ascii();
    if !bytes.starts_with(b"{") {
        return None;
    }
    let Entries(entries) = serde_json::from_slice::<Entries<'_, &RawValue>>(bytes).ok()?;
    let mut page_size = PAGE_SIZE;
    for (Text(name), value) in entries {
        match value.get() {
            "0" | "\"\"" | "null" | "{}" | "[]" | "\"0001-01-01T00:00:00Z\"" => {}
            digits if name == "pageSize" => page_size = digits.parse::<u32>().ok()?.min(PAGE_SIZE_MAX),
            _ => return None,
        }
    }
    Some(first_page(page_size, String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_round_trip_as_text() {
        let parameters = Parameters(vec![
            ("metadata[a.b]".into(), "x\"y".into()),
            ("metadata[a.b]".into(), "second".into()),
            ("account".into(), "é|b".into()),
        ]);
        assert_eq!(parameters.metadata(), [("a.b", "x\"y")]);
        assert_eq!(Parameters::from_text(&parameters.to_text()), Some(parameters));
        assert_eq!(Parameters::from_text(""), Some(Parameters::default()));
        assert_eq!(Parameters::from_text("[\"a\"]"), None);
    }

    #[test]
    fn blank_cursor_means_first_page() {
        let size = |json: &str| blank_cursor(&URL_SAFE_NO_PAD.encode(json)).map(|query| query.page_size);
        assert_eq!(size("{}"), Some(15));
        assert_eq!(size(r#"{"pageSize":0,"after":0,"startTime":"0001-01-01T00:00:00Z"}"#), Some(15));
        assert_eq!(size(r#"{"pageSize":7,"metadata":{}}"#), Some(7));
        assert_eq!(size(r#"{"pageSize":9999}"#), Some(1_000));
        for other in ["", "x", "[]", "{", r#"{"after":3}"#, r#"{"pageSize":-1}"#, "{}x"] {
            assert_eq!(size(other), None, "{other}");
        }
    }
}
