//! The common part of lists of the payments API: pages, cursors, sorting and filters.

use hyper::StatusCode;
use ledger_core::Timestamp;
use ledger_store::{Collection, Direction, Document, ReadError, Snapshot};

use crate::api::context::Context;
use crate::api::cursor::{ListId, authenticated, checked};
use crate::http::error::ApiError;
use crate::http::response::{Json, Reply};
use crate::limits::{PAYMENTS_PAGE_DEFAULT, PAYMENTS_PAGE_MAX};
use crate::payments::codec::{Decoder, Encoder, text_key};
use crate::payments::filter::{Filter, Keys};
use crate::payments::page::{IndexFilter, Listing, Page, PageBound, Position, SortKey};

/// The definition of a list: its name in cursors, its collection, sort fields and filters.
pub(super) struct List {
    pub(super) name: &'static str,
    pub(super) collection: Collection,
    /// The sort fields, each with its index. The first one is the creation date. Without a requested order, lists are
    /// sorted by it, newest first.
    pub(super) sorts: &'static [(&'static str, u32)],
    pub(super) filter: Keys,
    /// The index of references, if filters of this list support references.
    pub(super) by_reference: Option<u32>,
    /// Returns the part of a dated index that has all rows of a filter; [`no_values`] for lists without dated indexes.
    pub(super) by_value: fn(&Filter) -> Option<IndexFilter>,
}

/// For lists without dated indexes.
pub(super) fn no_values(_: &Filter) -> Option<IndexFilter> {
    None
}

/// No filters.
pub(super) const UNFILTERED: Keys = Keys { keys: &[], has_metadata: false };

/// Query parameters of lists of balances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) asset: Option<String>,
    pub(super) from: Option<Timestamp>,
    pub(super) to: Option<Timestamp>,
}

/// The complete query of a list, as stored in a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Query {
    size: usize,
    order: Vec<SortKey>,
    /// The filter as JSON text; empty if there is none.
    filter: String,
    window: Window,
    from: PageBound,
}

/// Version of the layout of cursors. Increase it with each change of their fields.
const CURSOR_VERSION: u8 = 2;

impl Query {
    fn cursor(&self, context: &Context<'_>, list_id: ListId<'_>) -> String {
        let mut out = Encoder::default();
        out.byte(CURSOR_VERSION).count(self.size).count(self.order.len());
        for key in &self.order {
            out.byte(u8::try_from(key.index).expect("a list has few sort keys"))
                .byte(u8::from(key.direction == Direction::Descending));
        }
        out.text(&self.filter).optional_text(self.window.asset.as_deref());
        for date in [self.window.from, self.window.to] {
            match date {
                None => out.byte(0),
                Some(at) => out.byte(1).time(at),
            };
        }
        let (side, position) = match &self.from {
            PageBound::Start => (0, None),
            PageBound::After(position) => (1, Some(position)),
            PageBound::Before(position) => (2, Some(position)),
        };
        out.byte(side);
        if let Some(position) = position {
            out.raw(&position.document);
            for key in &position.keys {
                out.raw(key);
            }
        }
        authenticated(out.into_bytes(), context.app.cursor_key(), list_id)
    }

    fn of_cursor(text: &str, context: &Context<'_>, list_id: ListId<'_>) -> Option<Self> {
        let bytes = checked(text, context.app.cursor_key(), list_id)?;
        let mut input = Decoder::new(&bytes);
        if input.byte()? != CURSOR_VERSION {
            return None;
        }
        let size = input.count()?;
        let order: Option<Vec<SortKey>> = (0..input.count()?)
            .map(|_| {
                let index = u32::from(input.byte()?);
                let descends = input.byte()? != 0;
                let direction = if descends { Direction::Descending } else { Direction::Ascending };
                Some(SortKey { index, direction })
            })
            .collect();
        let order = order?;
        let filter = input.string()?;
        let asset = input.optional_text()?.map(str::to_owned);
        let mut date = || match input.byte()? {
            0 => Some(None),
            _ => input.time().map(Some),
        };
        let window = Window { asset, from: date()?, to: date()? };
        let side = input.byte()?;
        let from = if side == 0 {
            PageBound::Start
        } else {
            let document = input.raw()?.to_vec();
            let keys = order.iter().map(|_| input.raw().map(<[u8]>::to_vec)).collect::<Option<_>>()?;
            let position = Position { keys, document };
            if side == 1 { PageBound::After(position) } else { PageBound::Before(position) }
        };
        Some(Self { size, order, filter, window, from })
    }
}

/// A validated request for a list.
pub(super) struct ListRequest {
    query: Query,
    listing: Listing,
    pub(super) filter: Option<Filter>,
    name: &'static str,
    scope: String,
}

impl ListRequest {
    /// Returns the query parameters of a list of balances.
    pub(super) fn window(&self) -> &Window {
        &self.query.window
    }

    /// Records that the handler skips rows for other reasons than the filter. The list then reads larger parts.
    pub(super) fn skip_rows(&mut self) {
        self.listing.is_filtered = true;
    }

    /// Returns whether reading the page may take long.
    fn is_long(&self) -> bool {
        self.listing.is_filtered || self.listing.order.len() > 1
    }
}

impl List {
    /// Parses the query of a request. `scope` distinguishes lists with the same name in cursors, and `prefix` is the
    /// common prefix of the keys of the rows.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if the cursor, a parameter or the filter is not valid.
    pub(super) fn parse(
        &self,
        context: &Context<'_>,
        scope: &str,
        prefix: Vec<u8>,
    ) -> Result<ListRequest, ApiError> {
        let list_id = ListId { list: self.name, ledger: scope };
        // A cursor contains the whole query, so ignore all other parameters.
        let query = match context.query.get("cursor").filter(|cursor| !cursor.is_empty()) {
            Some(cursor) => Query::of_cursor(cursor, context, list_id)
                .ok_or_else(|| ApiError::validation("invalid 'cursor' query param"))?,
            None => self.first_query(context)?,
        };
        let filter = match query.filter.as_str() {
            "" => None,
            text => Some(
                Filter::parse(text, self.filter)
                    .map_err(|error| ApiError::validation(format!("invalid filter: {error}")))?,
            ),
        };
        let index_filter = filter.as_ref().and_then(|filter| self.index_filter(filter, &query.order));
        let listing = Listing {
            collection: self.collection,
            prefix,
            order: query.order.clone(),
            from: query.from.clone(),
            size: query.size,
            is_filtered: filter.is_some(),
            index_filter,
        };
        Ok(ListRequest { query, listing, filter, name: self.name, scope: scope.to_owned() })
    }

    /// The further key that a filter requires of all rows, if the list can be read by it.
    fn index_filter(&self, filter: &Filter, order: &[SortKey]) -> Option<IndexFilter> {
        if filter.matches_nothing() {
            return Some(IndexFilter::Nothing);
        }
        if let Some((index, text)) = self.by_reference.zip(filter.required_text("reference")) {
            return Some(IndexFilter::Key(index, text_key(text)));
        }
        let is_by_date = matches!(order, [key] if key.index == self.sorts[0].1);
        if is_by_date { (self.by_value)(filter) } else { None }
    }

    fn first_query(&self, context: &Context<'_>) -> Result<Query, ApiError> {
        let size = match context.query.page_size("limit") {
            Ok(Some(limit)) if self.name == BALANCES => Some(limit),
            Err(error) if self.name == BALANCES => return Err(error),
            _ => context.query.page_size("pageSize")?,
        };
        let size = size.map_or(PAYMENTS_PAGE_DEFAULT, |size| {
            usize::try_from(size).map_or(PAYMENTS_PAGE_MAX, |size| size.min(PAYMENTS_PAGE_MAX))
        });
        let mut order: Vec<SortKey> = Vec::new();
        for sort in context.query.all("sort").filter(|sort| !sort.is_empty()) {
            let key = self.sort_key(sort)?;
            if order.iter().all(|have| have.index != key.index) {
                order.push(key);
            }
        }
        if order.is_empty() {
            order.push(SortKey { index: self.sorts[0].1, direction: Direction::Descending });
        }
        let body = context.body.trim_ascii();
        let filter = if body.is_empty() {
            context.query.get("query").unwrap_or_default().to_owned()
        } else {
            let text = std::str::from_utf8(body);
            text.map_err(|_| ApiError::validation("invalid filter: it is not UTF-8"))?.to_owned()
        };
        let mut window = Window::default();
        if self.name == BALANCES {
            window.asset = context.query.get("asset").filter(|asset| !asset.is_empty()).map(str::to_owned);
            window.from = context.query.date(&["from"])?;
            window.to = context.query.date(&["to"])?;
        }
        Ok(Query { size, order, filter, window, from: PageBound::Start })
    }

    fn sort_key(&self, sort: &str) -> Result<SortKey, ApiError> {
        let (field, direction) = sort.split_once(':').unwrap_or((sort, "asc"));
        let direction = match direction {
            "asc" | "ASC" => Direction::Ascending,
            "desc" | "DESC" | "dsc" | "DSC" => Direction::Descending,
            other => {
                return Err(ApiError::validation(format!("sort order not well specified, got {other}")));
            }
        };
        let found = self.sorts.iter().find(|(name, _)| *name == field);
        let (_, index) = found.ok_or_else(|| ApiError::validation(format!("cannot sort by {field:?}")))?;
        Ok(SortKey { index: *index, direction })
    }
}

/// The name of the list of balances, which has additional query parameters.
pub(super) const BALANCES: &str = "balances";

/// Reads a page and returns it as a response. `accept` converts a document to a row, or skips it. `write` writes a row.
pub(super) async fn answer<T: Send + 'static>(
    context: &Context<'_>,
    request: ListRequest,
    mut accept: impl FnMut(&ListRequest, &Snapshot, &Document) -> Result<Option<T>, ReadError> + Send + 'static,
    mut write: impl FnMut(&mut Json, &T),
) -> Result<Reply, ApiError> {
    let is_long = request.is_long();
    let snapshot = context.app.snapshot();
    let read = move || {
        let page = request.listing.page(&snapshot, |document| accept(&request, &snapshot, document))?;
        Ok((request, page))
    };
    let (request, page): (ListRequest, Page<T>) =
        if is_long { context.app.long(read).await? } else { context.app.blocking(move |_| read()).await? };
    let list_id = ListId { list: request.name, ledger: &request.scope };
    let cursor = |from: PageBound| Query { from, ..request.query.clone() }.cursor(context, list_id);
    let mut json = context.json();
    json.raw("{\"cursor\":{\"pageSize\":").integer(request.query.size as u64);
    json.raw(",\"hasMore\":").boolean(page.next.is_some());
    if let Some(position) = page.previous {
        json.raw(",\"previous\":").plain_string(&cursor(PageBound::Before(position)));
    }
    if let Some(position) = page.next {
        json.raw(",\"next\":").plain_string(&cursor(PageBound::After(position)));
    }
    json.raw(",\"data\":[").list(&page.rows, |json, row| write(json, row)).raw("]}}");
    Ok(json.reply(StatusCode::OK))
}
