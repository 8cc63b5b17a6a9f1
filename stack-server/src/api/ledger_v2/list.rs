//! The common part of all lists: their parameters, the cursor, the envelope.

use ledger_core::{Filter, FilterOf, Resource, Selects, Switch};
use ledger_store::{Direction, Expand, LedgerView, Page, PageRequest, Start, TimeAxis};

use crate::api::call::Call;
use crate::api::cursor::{ListQuery, Place, Sort};
use crate::api::ledger_v2::query;
use crate::http::error::ApiError;
use crate::http::response::{Json, Reply};
use crate::limits::INLINE_ROWS_MAX;

/// The particular part of a list.
pub(crate) struct Kind {
    /// The word that its cursors are bound to.
    pub(crate) name: &'static str,
    /// The kind of its rows.
    pub(crate) resource: Resource,
    /// Its order where the caller asks for none.
    pub(crate) direction: Direction,
    /// The keys by which it can be sorted, in snake case, with the order of each.
    pub(crate) sortable: &'static [(&'static str, Sort)],
    /// The parameters that bound it in time, the upper end first.
    pub(crate) until: &'static [&'static str],
    pub(crate) since: &'static [&'static str],
}

/// A list request, ready to be read.
pub(crate) struct List {
    /// The word that its cursors are bound to, and beside it the ledger or what else.
    name: &'static str,
    ledger: String,
    /// The kind of its rows, where the answer says so.
    resource: Option<&'static str>,
    pub(crate) query: ListQuery,
    filter: Filter,
}

impl List {
    /// Reads a list request: from its cursor, with which only `pageSize` counts beside, or from its parameters.
    ///
    /// # Errors
    ///
    /// `VALIDATION` for a bad parameter, cursor or filter.
    pub(crate) fn of(call: &Call<'_>, kind: &'static Kind) -> Result<Self, ApiError> {
        let ledger = call.variables.first().map_or(String::new(), ToString::to_string);
        let settings = call.app.settings();
        let page_size =
            call.query.page_size("pageSize")?.map(|size| size.min(settings.max_page_size.into()) as u32);
        let cursor = call.query.get("cursor").filter(|cursor| !cursor.is_empty());
        let query = if let Some(cursor) = cursor {
            let place = Place { list: kind.name, ledger: &ledger };
            let query = ListQuery::from_cursor(cursor, call.app.cursor_key(), place)?;
            ListQuery { page_size: page_size.unwrap_or(query.page_size), ..query }
        } else {
            let (order, direction) = order(call, kind)?;
            // Lists without a date in their question check these all the same.
            call.query.date(&["pit"])?;
            call.query.date(&["oot"])?;
            ListQuery {
                page_size: page_size.unwrap_or(settings.default_page_size.min(settings.max_page_size)),
                filter: query::filter_text(call)?.to_owned(),
                at: call.query.date(kind.until)?,
                from: call.query.date(kind.since)?,
                expand: expand(call),
                clock: clock(call),
                order,
                direction,
                group_by: if kind.resource == Resource::Volumes { group_by(call)? } else { 0 },
                include_deleted: call.query.flag("includeDeleted"),
                start: Start::First,
            }
        };
        let filter = query::parse(call.profile, kind.resource, &query.filter)?;
        Ok(Self { name: kind.name, ledger, resource: None, query, filter })
    }

    /// The list of a stored query, whose cursors work at `place`.
    pub(crate) fn stored(
        name: &'static str,
        resource: &'static str,
        place: String,
        query: ListQuery,
        filter: Filter,
    ) -> Self {
        Self { name, ledger: place, resource: Some(resource), query, filter }
    }

    /// The filter, for the store's list of the same resource.
    ///
    /// # Errors
    ///
    /// `INTERNAL` if the list is of another resource; only a defect makes such a list.
    pub(crate) fn filter<R: Selects>(&self) -> Result<FilterOf<R>, ApiError> {
        FilterOf::try_from(self.filter.clone()).map_err(|error| ApiError::fault(&error.to_string()))
    }

    /// Whether the store has to look at more than one page of rows in their order.
    pub(crate) fn is_long(&self) -> bool {
        !self.filter.is_all()
            || self.query.at.is_some()
            || self.query.order != Sort::Natural
            || self.query.page_size > INLINE_ROWS_MAX
    }

    /// The part that is asked for, with keys read by `parse`.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if the cursor's key is none; only a defect makes such a cursor.
    pub(crate) fn page<K>(&self, parse: impl Fn(&str) -> Option<K>) -> Result<PageRequest<K>, ApiError> {
        let invalid = || ApiError::validation("invalid 'cursor' query param");
        Ok(PageRequest {
            size: self.query.page_size as usize,
            direction: self.query.direction,
            start: match &self.query.start {
                Start::First => Start::First,
                Start::After(key) => Start::After(parse(key).ok_or_else(invalid)?),
                Start::Before(key) => Start::Before(parse(key).ok_or_else(invalid)?),
            },
        })
    }

    /// The answer with a page; `key` writes the key of an item, `write` an item.
    pub(crate) fn reply<T>(
        &self,
        call: &Call<'_>,
        page: &Page<T>,
        key: impl Fn(&T) -> String,
        write: impl FnMut(&mut Json, &T),
    ) -> Reply {
        let mut json = call.json();
        json.raw("{");
        if let Some(resource) = self.resource {
            json.raw("\"resource\":").plain_string(resource).raw(",");
        }
        json.raw("\"cursor\":{\"pageSize\":").integer(self.query.page_size.into());
        json.raw(",\"hasMore\":").boolean(page.has_next);
        let place = Place { list: self.name, ledger: &self.ledger };
        let mut link = |name: &str, start: Start<String>| {
            let query = ListQuery { start, ..self.query.clone() };
            json.raw(name).plain_string(&query.to_cursor(call.app.cursor_key(), place));
        };
        if let Some(first) = page.items.first().filter(|_| page.has_previous) {
            link(",\"previous\":", Start::Before(key(first)));
        }
        if let Some(last) = page.items.last().filter(|_| page.has_next) {
            link(",\"next\":", Start::After(key(last)));
        }
        json.raw(",\"data\":[").list(&page.items, write).raw("]}}");
        json.reply(hyper::StatusCode::OK)
    }
}

/// `sort`, or for transactions `order=effective` and `reverse`.
fn order(call: &Call<'_>, kind: &Kind) -> Result<(Sort, Direction), ApiError> {
    if let Some(sort) = call.query.get("sort").filter(|sort| !sort.is_empty()) {
        return order_of(kind, sort);
    }
    match kind.resource {
        Resource::Transactions => {
            let order = match call.query.get("order") {
                Some("effective") => Sort::Timestamp,
                _ => Sort::Natural,
            };
            let reverse = call.query.flag("reverse");
            Ok((order, if reverse { Direction::Ascending } else { Direction::Descending }))
        }
        Resource::Schemas => match call.query.get("order") {
            None | Some("") => Ok((Sort::Natural, kind.direction)),
            Some(word) => Ok((Sort::Natural, direction_of(word)?)),
        },
        _ => Ok((Sort::Natural, kind.direction)),
    }
}

/// The order that a text of the form `field:direction` asks for; an empty one asks for that of the list.
///
/// # Errors
///
/// `VALIDATION` for a field that the list is not sorted by, and for another direction.
pub(crate) fn order_of(kind: &Kind, sort: &str) -> Result<(Sort, Direction), ApiError> {
    if sort.is_empty() {
        return Ok((Sort::Natural, kind.direction));
    }
    let (field, direction) = match sort.split_once(':') {
        None => (sort, kind.direction),
        Some((field, "")) => (field, kind.direction),
        Some((field, word)) => (field, direction_of(word)?),
    };
    let name = snake_case(field);
    match kind.sortable.iter().find(|(sortable, _)| *sortable == name) {
        Some((_, order)) => Ok((*order, direction)),
        None => Err(ApiError::validation(format!("field {field} is not paginated"))),
    }
}

fn direction_of(word: &str) -> Result<Direction, ApiError> {
    if word.eq_ignore_ascii_case("asc") {
        Ok(Direction::Ascending)
    } else if word.eq_ignore_ascii_case("desc") {
        Ok(Direction::Descending)
    } else {
        Err(ApiError::validation(format!("invalid order: {word}")))
    }
}

fn snake_case(field: &str) -> String {
    let mut name = String::with_capacity(field.len() + 2);
    for c in field.chars() {
        if c.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// `expand`, repeated or divided by commas; unknown words are ignored, and so are volumes that the ledger does not keep.
pub(crate) fn expand(call: &Call<'_>) -> Expand {
    let mut expand = Expand::default();
    for word in call.query.all("expand").flat_map(|value| value.split(',')) {
        match word {
            "volumes" => expand.volumes = true,
            "effectiveVolumes" => expand.effective_volumes = true,
            _ => {}
        }
    }
    kept_by_ledger(call, expand)
}

/// The expansions that the ledger can show: one without the feature of effective volumes answers without them.
pub(crate) fn kept_by_ledger(call: &Call<'_>, expand: Expand) -> Expand {
    let lacks = |ledger: LedgerView| ledger.info().features.effective_volumes == Switch::Off;
    if expand.effective_volumes && call.ledger().is_ok_and(lacks) {
        return Expand { effective_volumes: false, ..expand };
    }
    expand
}

/// Which date `pit`, `startTime` and `endTime` are about: each route reads its own spelling.
pub(crate) fn clock(call: &Call<'_>) -> TimeAxis {
    let by_insertion = ["insertionDate", "useInsertionDate", "use_insertion_date"];
    if by_insertion.iter().any(|name| call.query.flag(name)) {
        TimeAxis::Inserted
    } else {
        TimeAxis::Effective
    }
}

/// `groupBy`: by how many first segments; nothing, 0 and below join none.
fn group_by(call: &Call<'_>) -> Result<u32, ApiError> {
    match call.query.get("groupBy") {
        None | Some("") => Ok(0),
        Some(text) => match text.parse::<i64>() {
            Ok(segments) => Ok(segments.clamp(0, u32::MAX.into()) as u32),
            Err(_) => Err(ApiError::validation("invalid 'groupBy' query param")),
        },
    }
}

/// The point in time of a single read or a count. `oot` is checked, and has no effect on these.
///
/// # Errors
///
/// `VALIDATION` if one of them is no date.
pub(crate) fn point_in_time(call: &Call<'_>) -> Result<Option<ledger_core::Timestamp>, ApiError> {
    call.query.date(&["oot"])?;
    call.query.date(&["pit"])
}
