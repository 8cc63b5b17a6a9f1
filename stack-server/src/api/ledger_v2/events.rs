//! The events of a ledger as a stream that a browser can read (server-sent events).
//!
//! DIFFERENCE: other servers of this API have no such route. The id of an event is the id of its log, so a client that
//! reconnects with `Last-Event-ID` misses nothing. The stream ends when the client disconnects or stops reading, when
//! its token expires or is revoked, and when the server stops. Periodic comments show that both ends are alive.

use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use ledger_core::{LedgerName, LogId};
use ledger_store::{FeedSize, LedgerView, Store};

use crate::api::app::App;
use crate::api::context::Context;
use crate::auth::clock;
use crate::auth::guard::VerifiedToken;
use crate::http::error::ApiError;
use crate::http::memory::Reservation;
use crate::http::reply_body::{Parts, ReplyBody};
use crate::http::response::{self, Json, Numbers, Reply};
use crate::integrations::events::envelope::{EventType, write_event};
use crate::limits::{EVENT_PART_BYTES, EVENT_PART_LOGS, JSON_FACTOR};
use crate::log;

/// The parameters of a stream.
#[derive(Clone, Debug)]
struct StreamRequest {
    /// The number of the ledger, which distinguishes it from another ledger with the same name.
    number: u32,
    /// Send events after this log. `None` starts at the first log.
    after: Option<LogId>,
    /// Send events of these types. An empty list means all types.
    types: Vec<EventType>,
}

impl StreamRequest {
    fn of(context: &Context<'_>, ledger: &LedgerView) -> Result<Self, ApiError> {
        let mut types = Vec::new();
        for name in
            context.query.all("type").flat_map(|names| names.split(',')).filter(|name| !name.is_empty())
        {
            let kind = EventType::parse(name);
            types.push(
                kind.ok_or_else(|| ApiError::validation("invalid 'type' query param: no type of event"))?,
            );
        }
        Ok(Self { number: ledger.info().id, after: after(context, ledger)?, types })
    }

    fn wants(&self, kind: EventType) -> bool {
        self.types.is_empty() || self.types.contains(&kind)
    }
}

/// Reads the start of the stream. The header takes precedence over the parameters: a browser cannot set it on its
/// first request, but sets it itself when it reconnects.
fn after(context: &Context<'_>, ledger: &LedgerView) -> Result<Option<LogId>, ApiError> {
    let header = context.headers.get("last-event-id").filter(|value| !value.is_empty());
    let header = header.map(|value| value.to_str().unwrap_or("?"));
    let given = header.or_else(|| context.query.get("lastEventId").filter(|text| !text.is_empty()));
    let last = ledger.last_log();
    let Some(text) = given else {
        return match context.query.get("from") {
            None | Some("" | "now") => Ok(last),
            Some("first") => Ok(None),
            Some(_) => Err(ApiError::validation("invalid 'from' query param: neither 'first' nor 'now'")),
        };
    };
    match text.parse() {
        Ok(id) if !text.starts_with('+') => {
            // Waiting for a log in the future would skip all logs before it.
            if last.is_none_or(|last| last.get() < id) && id > 0 {
                return Err(ApiError::validation(format!(
                    "the last event id {id} is beyond the end of the log"
                )));
            }
            Ok(Some(LogId::new(id)))
        }
        _ => Err(ApiError::validation("the last event id is no id of a log")),
    }
}

pub(crate) fn stream(context: &Context<'_>) -> Result<Reply, ApiError> {
    let ledger = context.ledger()?;
    let request = StreamRequest::of(context, &ledger)?;
    let slot = context.app.event_stream()?;
    let (parts, body) = ReplyBody::parts();
    let (app, name, token) = (context.app.clone(), context.ledger_name()?, context.token.clone());
    let now = clock::now(app.store());
    tokio::spawn(async move {
        let _slot = slot;
        let mut stopping = app.stopping();
        tokio::select! {
            // The sender is gone only if the server was dropped. Nothing is left to do then.
            _ = stopping.wait_for(|stop| *stop) => {}
            // The client has disconnected.
            () = parts.closed() => {}
            () = ended(token, now) => {}
            () = send(&app, &name, request, &parts) => {}
        }
    });
    let mut reply = response::stream(body);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(reply)
}

/// Waits until the token of a stream is no longer valid. The client then reconnects with its next token and the id of
/// the last event. `now` is in seconds since the Unix epoch.
async fn ended(token: Option<VerifiedToken>, now: u64) {
    match token {
        Some(token) => token.ended(now).await,
        None => std::future::pending().await,
    }
}

/// A batch of events that is sent at once.
struct EventBatch {
    /// The encoded events.
    text: Vec<u8>,
    /// The last log that was read.
    after: Option<LogId>,
    /// The last log that was read, if no event in this part has its id.
    passed: Option<LogId>,
    /// True if more logs can be read at once.
    has_more: bool,
}

impl EventBatch {
    /// Reads logs and encodes their events. Both are too slow for the threads that serve HTTP.
    fn read(store: &Store, name: &LedgerName, request: &StreamRequest) -> Result<Self, ApiError> {
        let ledger = store.snapshot().ledger(name).filter(|ledger| ledger.info().id == request.number);
        let ledger = ledger.ok_or_else(ApiError::ledger_not_found)?;
        let size = FeedSize { logs: EVENT_PART_LOGS, bytes: EVENT_PART_BYTES };
        let fed = ledger.logs_after(request.after, size, false)?;
        let mut batch = Self { text: Vec::new(), after: request.after, passed: None, has_more: fed.has_more };
        let mut text = Json::with_capacity(Numbers::Plain, fed.logs.len() * 1_024);
        for fed in &fed.logs {
            let (id, kind) = (fed.log.entry.id, EventType::of(&fed.log.entry.payload));
            batch.after = Some(id);
            if fed.imported || !request.wants(kind) {
                batch.passed = Some(id);
                continue;
            }
            batch.passed = None;
            text.raw("id: ").integer(id.get()).raw("\nevent: ").raw(kind.name()).raw("\ndata: ");
            write_event(&mut text, fed, log::now());
            text.raw("\n\n");
        }
        batch.text = text.into_bytes();
        Ok(batch)
    }
}

async fn send(app: &App, name: &LedgerName, mut request: StreamRequest, parts: &Parts) {
    let mut commits = app.commits();
    let heartbeat = app.settings().events_heartbeat;
    // hyper sends the head with the first part of the body. Send one now, so that the client knows at once that the
    // stream is open.
    if parts.send(Ok(Bytes::from_static(b"retry: 1000\n\n"))).await.is_err() {
        return;
    }
    // The last log that was read but not announced by an event.
    let mut passed = None;
    loop {
        // A part is read only once the client has taken the part before the last, and there is memory for it.
        let Ok(slot) = parts.reserve().await else { return };
        commits.begin();
        let (ledger, wanted) = (name.clone(), request.clone());
        let read = move |store: &Store, mut held: Reservation| {
            let batch = EventBatch::read(store, &ledger, &wanted)?;
            held.set(batch.text.len());
            Ok((batch, held))
        };
        let (batch, held) = match app.feed(EVENT_PART_BYTES * JSON_FACTOR, read).await {
            Ok(read) => read,
            Err(error) => {
                // The client reconnects with its last id. The error then gets a proper status.
                error.log_cause();
                slot.send(Err(std::io::Error::other(error.message)));
                return;
            }
        };
        if batch.after != request.after {
            (request.after, passed) = (batch.after, batch.passed);
        }
        if batch.text.is_empty() {
            drop((slot, held));
        } else {
            slot.send(Ok(held.keep(Bytes::from(batch.text))));
        }
        if batch.has_more {
            continue;
        }
        let woken = async {
            loop {
                commits.next().await;
                commits.begin();
                // The name may belong to another ledger by now.
                if app.snapshot().ledger(name).is_none_or(|ledger| {
                    ledger.info().id != request.number || ledger.last_log() > request.after
                }) {
                    return;
                }
            }
        };
        if tokio::time::timeout(heartbeat, woken).await.is_err() {
            // A browser remembers an id without data but fires no event.
            let beat = match passed.take() {
                Some(id) => format!("id: {}\n\n", id.get()),
                None => ":\n\n".to_owned(),
            };
            if parts.send(Ok(Bytes::from(beat))).await.is_err() {
                return;
            }
        }
    }
}
