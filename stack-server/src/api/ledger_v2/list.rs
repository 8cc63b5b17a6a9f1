//! Shared handling of v2 lists: parameters, cursors, and the response envelope.

use ledger_core::{Filter, FilterOf, Resource, Selects, Switch};
use ledger_store::{Direction, Expand, LedgerView, Page, PageRequest, Start, TimeAxis, parse_sort};

use crate::api::context::Context;
use crate::api::cursor::{ListId, ListQuery, Sort};
use crate::api::ledger_v2::query;
use crate::http::error::ApiError;
use crate::http::response::{Json, Reply};
use crate::limits::INLINE_ROWS_MAX;

/// The properties that distinguish one list from the others.
pub(crate) struct ListSpec {
    /// The name of the list in cursors.
    pub(crate) name: &'static str,
    /// The resource of the rows.
    pub(crate) resource: Resource,
    /// The default order.
    pub(crate) direction: Direction,
    /// The keys by which clients can sort, in snake case, with the order of each.
    pub(crate) sortable: &'static [(&'static str, Sort)],
    /// The parameters for the end of the time window.
    pub(crate) until: &'static [&'static str],
    /// The parameters for the start of the time window.
    pub(crate) since: &'static [&'static str],
}

/// A parsed list request.
pub(crate) struct List {
    /// The name of the list in cursors. The next field contains the ledger or another scope of the cursor.
    name: &'static str,
    ledger: String,
    /// The resource of the rows, if the response names it.
    resource: Option<&'static str>,
    pub(crate) query: ListQuery,
    filter: Filter,
}

impl List {
    /// Reads a list request from its cursor or from its parameters. Beside a cursor, only `pageSize` counts.
    ///
    /// # Errors
    ///
    /// `VALIDATION` for a bad parameter, cursor or filter.
    pub(crate) fn of(context: &Context<'_>, spec: &'static ListSpec) -> Result<Self, ApiError> {
        let ledger = context.variables.first().map_or(String::new(), ToString::to_string);
        let settings = context.app.settings();
        let most = settings.max_page_size;
        let page_size = context.query.page_size("pageSize")?;
        let page_size = page_size.map(|size| u32::try_from(size).map_or(most, |size| size.min(most)));
        let cursor = context.query.get("cursor").filter(|cursor| !cursor.is_empty());
        let query = if let Some(cursor) = cursor {
            let list_id = ListId { list: spec.name, ledger: &ledger };
            let query = ListQuery::from_cursor(cursor, context.app.cursor_key(), list_id)?;
            ListQuery { page_size: page_size.unwrap_or(query.page_size), ..query }
        } else {
            let (order, direction) = order(context, spec)?;
            // Validate these dates even for lists that do not use them.
            context.query.date(&["pit"])?;
            context.query.date(&["oot"])?;
            ListQuery {
                page_size: page_size.unwrap_or(settings.default_page_size.min(settings.max_page_size)),
                filter: query::filter_text(context)?.to_owned(),
                at: context.query.date(spec.until)?,
                from: context.query.date(spec.since)?,
                expand: expand(context),
                axis: time_axis(context),
                order,
                direction,
                group_by: if spec.resource == Resource::Volumes { group_by(context)? } else { 0 },
                include_deleted: context.query.flag("includeDeleted"),
                start: Start::First,
            }
        };
        let filter = query::parse(context.profile, spec.resource, &query.filter)?;
        Ok(Self { name: spec.name, ledger, resource: None, query, filter })
    }

    /// Creates the list of a stored query. Its cursors are only valid for the same `scope`.
    pub(crate) fn stored(
        name: &'static str,
        resource: &'static str,
        scope: String,
        query: ListQuery,
        filter: Filter,
    ) -> Self {
        Self { name, ledger: scope, resource: Some(resource), query, filter }
    }

    /// Returns the filter for the store's list of the same resource.
    ///
    /// # Errors
    ///
    /// `INTERNAL` if the filter is for another resource, which is a defect of this server.
    pub(crate) fn filter<R: Selects>(&self) -> Result<FilterOf<R>, ApiError> {
        FilterOf::try_from(self.filter.clone()).map_err(|error| ApiError::fault(&error.to_string()))
    }

    /// Returns whether the query may have to read more than one page of rows in their natural order.
    pub(crate) fn is_long(&self) -> bool {
        !self.filter.is_all()
            || self.query.at.is_some()
            || self.query.order != Sort::Natural
            || self.query.page_size > INLINE_ROWS_MAX
    }

    /// Builds the page request for the store. `parse` reads the key in the cursor.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if the key in the cursor is malformed. Only a defect of this server makes such a cursor.
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

    /// Builds the response for a page. `key` writes the key of an item, and `write` the item.
    pub(crate) fn reply<T>(
        &self,
        context: &Context<'_>,
        page: &Page<T>,
        key: impl Fn(&T) -> String,
        write: impl FnMut(&mut Json, &T),
    ) -> Reply {
        let mut json = context.json();
        json.raw("{");
        if let Some(resource) = self.resource {
            json.raw("\"resource\":").plain_string(resource).raw(",");
        }
        json.raw("\"cursor\":{\"pageSize\":").integer(self.query.page_size.into());
        json.raw(",\"hasMore\":").boolean(page.has_next);
        let list_id = ListId { list: self.name, ledger: &self.ledger };
        let mut link = |name: &str, start: Start<String>| {
            let query = ListQuery { start, ..self.query.clone() };
            json.raw(name).plain_string(&query.to_cursor(context.app.cursor_key(), list_id));
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

/// Reads the order from `sort`, or for transactions from `order=effective` and `reverse`.
fn order(context: &Context<'_>, spec: &ListSpec) -> Result<(Sort, Direction), ApiError> {
    if let Some(sort) = context.query.get("sort").filter(|sort| !sort.is_empty()) {
        return order_of(spec, sort);
    }
    match spec.resource {
        Resource::Transactions => {
            let order = match context.query.get("order") {
                Some("effective") => Sort::Timestamp,
                _ => Sort::Natural,
            };
            let reverse = context.query.flag("reverse");
            Ok((order, if reverse { Direction::Ascending } else { Direction::Descending }))
        }
        Resource::Schemas => match context.query.get("order") {
            None | Some("") => Ok((Sort::Natural, spec.direction)),
            Some(word) => Ok((Sort::Natural, direction_of(word)?)),
        },
        _ => Ok((Sort::Natural, spec.direction)),
    }
}

/// Parses an order of the form `field:direction`. An empty text means the default order of the list.
///
/// # Errors
///
/// `VALIDATION` for a field by which the list cannot be sorted, and for an unknown direction.
pub(crate) fn order_of(spec: &ListSpec, sort: &str) -> Result<(Sort, Direction), ApiError> {
    let (order, direction) = parse_sort(sort, spec.sortable, spec.direction)
        .map_err(|error| ApiError::validation(error.to_string()))?;
    Ok((order.unwrap_or(Sort::Natural), direction))
}

fn direction_of(word: &str) -> Result<Direction, ApiError> {
    Direction::parse(word).ok_or_else(|| ApiError::validation(format!("invalid order: {word}")))
}

/// Reads the parameter `expand`, which may be repeated or contain commas. Ignores unknown words, and volumes that the
/// ledger does not have.
pub(crate) fn expand(context: &Context<'_>) -> Expand {
    let mut expand = Expand::default();
    for word in context.query.all("expand").flat_map(|value| value.split(',')) {
        match word {
            "volumes" => expand.volumes = true,
            "effectiveVolumes" => expand.effective_volumes = true,
            _ => {}
        }
    }
    supported_expansions(context, expand)
}

/// Returns the expansions that the ledger supports. Drops effective volumes if the ledger does not have this feature.
pub(crate) fn supported_expansions(context: &Context<'_>, expand: Expand) -> Expand {
    let lacks = |ledger: LedgerView| ledger.info().features.effective_volumes == Switch::Off;
    if expand.effective_volumes && context.ledger().is_ok_and(lacks) {
        return Expand { effective_volumes: false, ..expand };
    }
    expand
}

/// Returns which dates `pit`, `startTime` and `endTime` refer to: effective or insertion dates. Accepts the spellings
/// of all routes.
pub(crate) fn time_axis(context: &Context<'_>) -> TimeAxis {
    let by_insertion = ["insertionDate", "useInsertionDate", "use_insertion_date"];
    if by_insertion.iter().any(|name| context.query.flag(name)) {
        TimeAxis::Inserted
    } else {
        TimeAxis::Effective
    }
}

/// Reads the parameter `groupBy`: the number of leading address segments that form a group. A missing value, 0 and
/// negative numbers mean no grouping.
fn group_by(context: &Context<'_>) -> Result<u32, ApiError> {
    match context.query.get("groupBy") {
        None | Some("") => Ok(0),
        Some(text) => match text.parse::<i64>() {
            Ok(segments) => Ok(u32::try_from(segments.max(0)).unwrap_or(u32::MAX)),
            Err(_) => Err(ApiError::validation("invalid 'groupBy' query param")),
        },
    }
}

/// Returns the point in time of a single read or a count. Validates `oot`, which has no effect on these.
///
/// # Errors
///
/// `VALIDATION` if `pit` or `oot` is not a date.
pub(crate) fn point_in_time(context: &Context<'_>) -> Result<Option<ledger_core::Timestamp>, ApiError> {
    context.query.date(&["oot"])?;
    context.query.date(&["pit"])
}
