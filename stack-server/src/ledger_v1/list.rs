//! What all lists have in common: the page size, the cursor, the envelope.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::StatusCode;
use ledger_core::{Filter, FilterNode, Resource};
use ledger_store::{Clock, Direction, Expand, LedgerView, Page, PageRequest, ReadError, Start};
use serde_json::value::RawValue;

use crate::call::Call;
use crate::cursor::{ListQuery, Place, Sort};
use crate::error::ApiError;
use crate::json::{self, Array, Entries, Text};
use crate::limits::{FILTER_BYTES_MAX, INLINE_ROWS_MAX};
use crate::response::{Json, Reply};

/// Rows of a page unless asked, and at most.
const PAGE_SIZE: u32 = 15;
const PAGE_SIZE_MAX: u32 = 1_000;

/// What is particular to a list.
pub(crate) struct Kind {
    /// The word that its cursors are bound to.
    pub(crate) name: &'static str,
    pub(crate) resource: Resource,
    /// The parameters that it reads. None of them is taken beside a cursor.
    pub(crate) parameters: &'static [&'static str],
    /// Whether it reads `metadata[…]`.
    pub(crate) metadata: bool,
    /// What the parameters select; checks them in the order of this list.
    pub(crate) select: fn(&Parameters) -> Result<Vec<FilterNode>, ApiError>,
}

/// The parameters of a list in the order in which they came. They travel in cursors. Empty ones are as if they
/// were not there, but for metadata, which may be asked for an empty text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Those of a request that a list reads.
    pub(crate) fn of(call: &Call<'_>, kind: &Kind) -> Self {
        let read =
            |name: &str| kind.parameters.contains(&name) || (kind.metadata && metadata_key(name).is_some());
        let pairs = call
            .query
            .pairs()
            .filter(|(name, value)| read(name) && (!value.is_empty() || metadata_key(name).is_some()));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every value of a parameter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    /// The key and value of every `metadata[key]=value`; of a repeated key the first.
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

    /// As a JSON array of names and values in turn; empty without any.
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

/// The key in `metadata[key]`.
fn metadata_key(name: &str) -> Option<&str> {
    name.strip_prefix("metadata[")?.strip_suffix(']').filter(|key| !key.is_empty())
}

/// The filter of a count, which has the parameters of its list but no pages.
///
/// # Errors
///
/// `VALIDATION` for a bad parameter.
pub(crate) fn count_filter(call: &Call<'_>, kind: &Kind) -> Result<Filter, ApiError> {
    filter(kind, &Parameters::of(call, kind))
}

fn filter(kind: &Kind, parameters: &Parameters) -> Result<Filter, ApiError> {
    let nodes = (kind.select)(parameters)?;
    if nodes.is_empty() {
        return Ok(Filter::all(kind.resource));
    }
    Filter::new(kind.resource, FilterNode::And(nodes))
        .map_err(|error| ApiError::validation(error.to_string()))
}

/// A list request, ready to be read.
pub(crate) struct List {
    kind: &'static Kind,
    ledger: String,
    query: ListQuery,
    pub(crate) filter: Filter,
}

impl List {
    /// Reads a list request: from its cursor, beside which no parameter of the list is taken and the page size is
    /// ignored, or from its parameters.
    ///
    /// # Errors
    ///
    /// `VALIDATION` for a bad parameter, or a cursor that is none of this list.
    pub(crate) fn of(call: &Call<'_>, kind: &'static Kind) -> Result<Self, ApiError> {
        let ledger = call.variable(0).to_owned();
        let parameters = Parameters::of(call, kind);
        let cursor = ["cursor", "pagination_token"]
            .into_iter()
            .find_map(|name| Some((name, call.query.get(name).filter(|text| !text.is_empty())?)));
        if let Some((name, text)) = cursor {
            if parameters.0.iter().any(|(_, value)| !value.is_empty()) {
                let message = format!("no other query params can be set with '{name}'");
                return Err(ApiError::validation(message));
            }
            let invalid = || ApiError::validation(format!("invalid '{name}' query param"));
            let place = Place { list: kind.name, ledger: &ledger };
            let query = ListQuery::from_cursor(text, call.app.cursor_key(), place)
                .ok()
                .or_else(|| blank_cursor(text))
                .ok_or_else(invalid)?;
            let parameters = Parameters::from_text(&query.filter).ok_or_else(invalid)?;
            let filter = filter(kind, &parameters).map_err(|_| invalid())?;
            return Ok(Self { kind, ledger, query, filter });
        }
        let filter = filter(kind, &parameters)?;
        let page_size = page_size(call)?;
        let text = parameters.to_text();
        if text.len() > FILTER_BYTES_MAX {
            let message = format!("the filters are longer than {FILTER_BYTES_MAX} bytes");
            return Err(ApiError::validation(message));
        }
        Ok(Self { kind, ledger, query: first_page(page_size, text), filter })
    }

    /// Whether the store has to look at more than one page of rows in their order.
    pub(crate) fn is_long(&self) -> bool {
        !self.filter.is_all() || self.query.page_size > INLINE_ROWS_MAX
    }

    /// The page that a ledger answers with; none of a ledger that is not there. What is `long` is asked for on a
    /// thread of its own.
    ///
    /// # Errors
    ///
    /// As the ledger answers.
    pub(crate) async fn ask<Q: Send + 'static, T: Send + 'static>(
        call: &Call<'_>,
        ledger: Option<LedgerView>,
        question: Q,
        long: bool,
        ask: fn(&LedgerView, &Q) -> Result<Page<T>, ReadError>,
    ) -> Result<Option<Page<T>>, ApiError> {
        let Some(ledger) = ledger else { return Ok(None) };
        if long {
            return call.app.long(move || Ok(Some(ask(&ledger, &question)?))).await;
        }
        Ok(Some(ask(&ledger, &question)?))
    }

    /// The part that is asked for, with keys read by `parse`.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if the cursor's key is none; only a defect makes such a cursor.
    pub(crate) fn page<K>(&self, parse: impl Fn(&str) -> Option<K>) -> Result<PageRequest<K>, ApiError> {
        let key =
            |text: &str| parse(text).ok_or_else(|| ApiError::validation("invalid 'cursor' query param"));
        Ok(PageRequest {
            size: self.query.page_size as usize,
            direction: Direction::Descending,
            start: match &self.query.start {
                Start::First => Start::First,
                Start::After(text) => Start::After(key(text)?),
                Start::Before(text) => Start::Before(key(text)?),
            },
        })
    }

    /// The answer with a page; `None` is that of a ledger that is not there.
    pub(crate) fn reply<T>(
        &self,
        call: &Call<'_>,
        page: Option<&Page<T>>,
        key: impl Fn(&T) -> String,
        write: impl FnMut(&mut Json, &T),
    ) -> Reply {
        let (items, has_next, has_previous) = match page {
            Some(page) => (page.items.as_slice(), page.has_next, page.has_previous),
            None => (&[][..], false, false),
        };
        let mut json = call.json();
        json.raw("{\"cursor\":{\"pageSize\":").integer(self.query.page_size.into());
        json.raw(",\"page_size\":").integer(self.query.page_size.into());
        json.raw(",\"hasMore\":").boolean(has_next).raw(",\"has_more\":").boolean(has_next);
        let place = Place { list: self.kind.name, ledger: &self.ledger };
        let mut link = |name: &str, start: Start<String>| {
            let query = ListQuery { start, ..self.query.clone() };
            json.raw(name).plain_string(&query.to_cursor(call.app.cursor_key(), place));
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

/// `pageSize`, or else its older name.
fn page_size(call: &Call<'_>) -> Result<u32, ApiError> {
    let name = match call.query.get("pageSize") {
        None | Some("") => "page_size",
        Some(_) => "pageSize",
    };
    let size = call.query.page_size(name)?.map_or(PAGE_SIZE, |size| size.min(PAGE_SIZE_MAX.into()) as u32);
    Ok(size)
}

fn first_page(page_size: u32, filter: String) -> ListQuery {
    ListQuery {
        page_size,
        filter,
        at: None,
        from: None,
        expand: Expand::default(),
        clock: Clock::default(),
        order: Sort::Natural,
        direction: Direction::Descending,
        group_by: 0,
        include_deleted: false,
        start: Start::First,
    }
}

/// Cursors of other servers are JSON. One that asks for nothing but a page size is the first page: tests of
/// clients send such.
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
    fn parameters_travel_as_text() {
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
    fn a_cursor_that_asks_for_nothing_is_the_first_page() {
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
