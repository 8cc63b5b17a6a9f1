//! The generic connector API v0.1, which shows the records of the payments API. Other stacks use this server as a
//! payment provider through it.

use hyper::StatusCode;
use ledger_core::Timestamp;
use ledger_store::{Collection, Direction, Document, ReadError, Snapshot};

use crate::api::context::Context;
use crate::api::operations::Generic;
use crate::collections::{PAYMENT_ACCOUNTS, PAYMENTS};
use crate::connectors::currency;
use crate::http::error::{ApiError, Profile};
use crate::http::response::{self, Json, Numbers, Reply};
use crate::limits::PAYMENTS_PAGE_MAX;
use crate::payments::account::{self, Account};
use crate::payments::balance::{self, AccountBalance};
use crate::payments::codec::date_key;
use crate::payments::enumerations::{AccountType, PaymentStatus, PaymentType};
use crate::payments::event::write_metadata;
use crate::payments::ids::AccountId;
use crate::payments::page::{Listing, PageBound, Position, SortKey};
use crate::payments::payment::{self, Payment};
use crate::payments::record;

/// Handles a request.
///
/// # Errors
///
/// Returns the error of the request, for [`refusal`].
pub(crate) async fn handle(operation: Generic, context: &Context<'_>) -> Result<Reply, ApiError> {
    match operation {
        Generic::Accounts => accounts(context, AccountType::Internal).await,
        Generic::Beneficiaries => accounts(context, AccountType::External).await,
        Generic::Transactions => transactions(context).await,
        Generic::Balances => balances(context).await,
    }
}

/// Returns the error response in the form of this API.
pub(crate) fn refusal(error: &ApiError) -> Reply {
    let status = error.status(Profile::Stack);
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"Title\":").string(status.canonical_reason().unwrap_or("error"));
    json.raw(",\"Detail\":").string(&error.message).raw("}");
    let mut reply = json.reply(status);
    response::mark_refused(&mut reply, error.code.text(Profile::Stack));
    reply
}

/// Returns the response to a caller without a valid key or token. It does not say what is wrong.
pub(crate) fn unauthorized() -> Reply {
    let mut reply = response::unauthorized();
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"Title\":\"Unauthorized\",\"Detail\":\"no key or token that allows this\"}");
    *reply.body_mut() = json.reply(StatusCode::UNAUTHORIZED).into_body();
    reply
}

/// Default number of rows on a page.
const PAGE_SIZE: usize = 100;

/// The requested part of a list.
struct ListRequest {
    skip: usize,
    size: usize,
    since: Option<Timestamp>,
    order: SortKey,
}

impl ListRequest {
    /// Parses the parameters of a list. `since` is the name of the filter by date, and `sorts` contains the fields to
    /// sort by with their indexes. The first field is the default.
    fn of(context: &Context<'_>, since: &str, sorts: &[(&str, u32)]) -> Result<Self, ApiError> {
        let number = |name: &str, default: usize| match context.query.get(name) {
            None | Some("") => Ok(default),
            Some(text) => match text.parse::<usize>() {
                Ok(number) if number >= 1 => Ok(number),
                _ => {
                    Err(ApiError::validation(format!("{name} must be a number of at least 1, got {text:?}")))
                }
            },
        };
        let size = number("pageSize", PAGE_SIZE)?.min(PAYMENTS_PAGE_MAX);
        let page = number("page", 1)?;
        let (field, direction) = match context.query.get("sort").filter(|sort| !sort.is_empty()) {
            None => (sorts[0].0, "asc"),
            Some(sort) => sort.split_once(':').unwrap_or((sort, "")),
        };
        let direction = match direction {
            "asc" => Direction::Ascending,
            "desc" => Direction::Descending,
            other => {
                return Err(ApiError::validation(format!("the direction {other:?} is neither asc nor desc")));
            }
        };
        let found = sorts.iter().find(|(name, _)| *name == field);
        let (_, index) = found.ok_or_else(|| ApiError::validation(format!("cannot sort by {field:?}")))?;
        let skip = (page - 1).saturating_mul(size);
        let since = context.query.date(&[since])?;
        Ok(Self { skip, size, since, order: SortKey { index: *index, direction } })
    }

    /// Reads the rows. `by_since` is the index by the date that the filter compares, and `date` returns that date of a
    /// row.
    fn rows<T>(
        &self,
        snapshot: &Snapshot,
        collection: Collection,
        by_since: u32,
        accept: impl Fn(&Document) -> Result<Option<T>, ReadError>,
        date: impl Fn(&T) -> Timestamp,
    ) -> Result<Vec<T>, ApiError> {
        let ascends_by_date = self.order.index == by_since && self.order.direction == Direction::Ascending;
        let mut listing = Listing {
            collection,
            prefix: vec![],
            order: vec![self.order],
            from: PageBound::Start,
            size: PAYMENTS_PAGE_MAX,
            is_filtered: true,
            index_filter: None,
        };
        if let Some(since) = self.since.filter(|_| ascends_by_date) {
            // This position is after all rows whose date precedes `since`.
            let before = Timestamp::from_micros(since.as_micros().saturating_sub(1));
            let document = vec![u8::MAX; 32];
            listing.from = PageBound::After(Position { keys: vec![date_key(before).to_vec()], document });
        }
        let (mut skip, mut rows) = (self.skip, Vec::new());
        loop {
            let page = listing.page(snapshot, |document| {
                let row = accept(document)?;
                Ok(row.filter(|row| self.since.is_none_or(|since| date(row) >= since)))
            })?;
            for row in page.rows {
                if skip > 0 {
                    skip -= 1;
                } else {
                    rows.push(row);
                }
                if rows.len() == self.size {
                    return Ok(rows);
                }
            }
            let Some(next) = page.next else { return Ok(rows) };
            listing.from = PageBound::After(next);
        }
    }
}

/// Returns a response whose body is a bare JSON array.
fn array<T>(context: &Context<'_>, rows: &[T], write: impl FnMut(&mut Json, &T)) -> Reply {
    let mut json = context.json();
    json.raw("[").list(rows, write).raw("]");
    json.reply(StatusCode::OK)
}

async fn accounts(context: &Context<'_>, kind: AccountType) -> Result<Reply, ApiError> {
    let sorts = [("createdAt", account::BY_DATE), ("id", account::BY_REFERENCE)];
    let request = ListRequest::of(context, "createdAtFrom", &sorts)?;
    let snapshot = context.app.snapshot();
    let read = move || {
        let accept = |document: &Document| {
            let account = record::of::<Account>(document)?.value;
            Ok((account.kind == kind).then_some(account))
        };
        request.rows(&snapshot, PAYMENT_ACCOUNTS, account::BY_DATE, accept, |account| account.created_at)
    };
    let rows = context.app.long(read).await?;
    let name = if kind == AccountType::Internal { "accountName" } else { "ownerName" };
    Ok(array(context, &rows, |json, account| {
        json.raw("{\"id\":").plain_string(&account.id.text()).raw(",").plain_string(name).raw(":");
        json.string(&account.name).raw(",\"createdAt\":").time(account.created_at);
        if !account.metadata.is_empty() {
            json.raw(",\"metadata\":");
            write_metadata(json, &account.metadata);
        }
        json.raw("}");
    }))
}

/// A payment in the form of this API.
struct Transaction {
    payment: Payment,
    kind: &'static str,
    currency: String,
}

/// Converts a payment. Returns `None` if this API cannot express its type or asset.
fn transaction(payment: Payment) -> Option<Transaction> {
    let kind = match payment.id.kind {
        PaymentType::PayIn => "PAYIN",
        PaymentType::Payout => "PAYOUT",
        PaymentType::Transfer => "TRANSFER",
        PaymentType::Other => return None,
    };
    let currency = currency::currency(&payment.asset)?.to_owned();
    Some(Transaction { payment, kind, currency })
}

fn status(status: PaymentStatus) -> &'static str {
    use PaymentStatus as S;
    match status {
        S::Succeeded | S::Refunded | S::DisputeWon => "SUCCEEDED",
        S::Failed | S::Cancelled | S::Expired => "FAILED",
        S::Pending | S::Other | S::RefundedFailure | S::Dispute | S::DisputeLost => "PENDING",
    }
}

async fn transactions(context: &Context<'_>) -> Result<Reply, ApiError> {
    let sorts = [
        ("updatedAt", payment::BY_CHANGE),
        ("createdAt", payment::BY_DATE),
        ("id", payment::BY_REFERENCE),
        ("amount", payment::BY_AMOUNT),
    ];
    let request = ListRequest::of(context, "updatedAtFrom", &sorts)?;
    let snapshot = context.app.snapshot();
    let read = move || {
        let accept = |document: &Document| Ok(transaction(record::of::<Payment>(document)?.value));
        request.rows(&snapshot, PAYMENTS, payment::BY_CHANGE, accept, |found| found.payment.changed_at)
    };
    let rows = context.app.long(read).await?;
    Ok(array(context, &rows, |json, Transaction { payment, kind, currency }| {
        json.raw("{\"id\":").plain_string(&payment.id.text());
        json.raw(",\"createdAt\":").time(payment.created_at);
        json.raw(",\"updatedAt\":").time(payment.changed_at);
        json.raw(",\"currency\":").plain_string(currency);
        json.raw(",\"scheme\":").plain_string(payment.scheme.name());
        json.raw(",\"type\":").plain_string(kind);
        json.raw(",\"status\":").plain_string(status(payment.status));
        json.raw(",\"amount\":").plain_string(&payment.amount.to_string());
        let sides = [("sourceAccountID", &payment.source), ("destinationAccountID", &payment.destination)];
        for (name, side) in sides {
            if let Some(side) = side {
                json.raw(",").plain_string(name).raw(":").plain_string(&side.text());
            }
        }
        if !payment.metadata.is_empty() {
            json.raw(",\"metadata\":");
            write_metadata(json, &payment.metadata);
        }
        json.raw("}");
    }))
}

async fn balances(context: &Context<'_>) -> Result<Reply, ApiError> {
    let text = context.variable(0).to_owned();
    let unknown = || ApiError::not_found("account not found");
    let id = AccountId::parse(&text).ok_or_else(unknown)?;
    let read = move |store: &ledger_store::Store| {
        let snapshot = store.snapshot();
        let found = record::find::<Account>(&snapshot, &id.key())?;
        let account = found.filter(|found| found.value.id == id).ok_or_else(unknown)?.value;
        let rows = record::with_prefix::<AccountBalance>(&snapshot, None, &balance::prefix(&id))?;
        Ok((account, rows.into_iter().map(|row| row.value).collect::<Vec<_>>()))
    };
    let (account, rows) = context.app.blocking(read).await?;
    // The rows are ordered by asset and date, so the last row of an asset has the newest balance.
    let is_last = |at: usize| rows.get(at + 1).is_none_or(|next| next.asset != rows[at].asset);
    let newest: Vec<_> = (0..rows.len()).filter(|at| is_last(*at)).map(|at| &rows[at]).collect();
    let at = newest.iter().map(|row| row.last_updated_at).max().unwrap_or(account.created_at);
    let shown = newest.iter().filter_map(|row| Some((currency::currency(&row.asset)?, &row.balance)));
    let mut json = context.json();
    json.raw("{\"id\":").string(&format!("{text}-{}", at.as_micros()));
    json.raw(",\"accountID\":").plain_string(&text).raw(",\"at\":").time(at).raw(",\"balances\":[");
    json.list(shown, |json, (code, amount)| {
        json.raw("{\"amount\":").plain_string(&amount.to_string());
        json.raw(",\"currency\":").plain_string(code).raw("}");
    });
    json.raw("]}");
    Ok(json.reply(StatusCode::OK))
}
