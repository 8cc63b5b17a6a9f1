//! Entry points for fuzzing: requests without a socket, and parsers. Only available with the feature `testing`, and not
//! part of the stable interface.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use ledger_core::{Filter, Resource};
use ledger_store::{Direction, Expand, Start, Store, TimeAxis};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::api::app::App;
use crate::api::auth::form;
use crate::api::cursor::{ListId, ListQuery, Sort};
use crate::api::ledger_v2;
use crate::auth::guard::{self, LastToken};
use crate::http::error::Profile;
use crate::integrations::pipelines::exporter::ExporterPolicy;
use crate::outbound::OutboundPolicy;
use crate::server::large::{LargeRequests, LargeThread};
use crate::server::placement::Placement;
use crate::server::{self, Connection};
use crate::settings::Settings;

mod payment_filters;
mod providers;

pub use payment_filters::payment_filter_laws;
pub use providers::ConnectorsUnderTest;

/// A server without a listener, which answers bytes.
pub struct OfflineServer {
    app: App,
    runtime: Runtime,
    large: LargeRequests,
    /// The thread for large requests. It ends when the server is dropped.
    _large_thread: LargeThread,
}

impl OfflineServer {
    /// Creates a server that uses the data in a store.
    pub fn new(store: &Store, settings: Settings) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("the system allows another runtime");
        // The server is in the state of stopping from the start. Otherwise an event stream would never end.
        let (_, stopping) = watch::channel(true);
        let policy = ExporterPolicy { outbound: OutboundPolicy::Public, folder: None };
        // A server on this address accepts the host names that the fuzzed requests contain.
        let address = (Ipv4Addr::UNSPECIFIED, 80).into();
        let app = App::new(store.clone(), settings, None, address, None, stopping, policy);
        let (large, large_thread) = LargeRequests::start(0).expect("the system allows another thread");
        Self { app, runtime, large, _large_thread: large_thread }
    }

    /// Sends bytes over one connection, closes its sending side, and returns all bytes of the response.
    pub fn send(&self, bytes: &[u8]) -> Vec<u8> {
        let answered = Arc::new(Mutex::new(Vec::new()));
        let connection = Bytes { unread: bytes.to_vec(), at: 0, answered: answered.clone() };
        let (app, large) = (self.app.clone(), self.large.clone());
        let service = service_fn(move |request| {
            let (app, large) = (app.clone(), large.clone());
            async move {
                let last_token = LastToken::default();
                let peer = Ipv4Addr::LOCALHOST.into();
                let placement = Placement::new(large);
                let from = Connection { peer, last_token: &last_token, placement: &placement };
                Ok::<_, Infallible>(server::answer(&app, request, from).await)
            }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            // The client waits for the response even if it sends no more data.
            .half_close(true)
            .serve_connection(connection, service);
        // Bytes that are not HTTP cause an error, with or without a response.
        let _ = self.runtime.block_on(serving);
        let mut answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut answered)
    }
}

/// An in-memory connection: the bytes to read, and the written bytes.
struct Bytes {
    unread: Vec<u8>,
    at: usize,
    answered: Arc<Mutex<Vec<u8>>>,
}

impl Read for Bytes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.unread[self.at..];
        let taken = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..taken]);
        self.at += taken;
        Poll::Ready(Ok(()))
    }
}

impl Write for Bytes {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Parses a filter. Returns `None` if it is refused.
pub fn filter(resource: Resource, text: &str) -> Option<Filter> {
    ledger_v2::parse_filter(Profile::Stack, resource, text).ok()
}

/// Returns whether a text has the form of a token. Does not check the signature.
pub fn reads_as_token(text: &str) -> bool {
    guard::reads_as_token(text)
}

/// Returns request headers with this `Authorization`, or `None` if it is not a valid header value.
fn authorization(header: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_bytes(header).ok()?);
    Some(headers)
}

/// Returns the token of an `Authorization` header, or `None` if the header is refused or has another scheme.
pub fn reads_as_bearer(header: &[u8]) -> Option<Vec<u8>> {
    guard::bearer_of(&authorization(header)?).map(<[u8]>::to_vec)
}

/// Returns the id and secret of an `Authorization` header, or `None` if the header is refused or has another scheme.
pub fn reads_as_basic(header: &[u8]) -> Option<(String, String)> {
    let headers = authorization(header)?;
    let found = form::basic(&headers).ok().flatten()?;
    Some((found.id, found.secret.unwrap_or_default()))
}

/// Returns the value of a parameter in the body of a form. The outer `None` means that the form is refused.
pub fn reads_as_form(body: &str, name: &str) -> Option<Option<String>> {
    let form = form::Form::parse(body).ok()?;
    Some(form.get(name).map(str::to_owned))
}

/// Checks the laws of cursors. If a text is accepted as a cursor, then the query that it contains has this text as its
/// cursor. A cursor with a changed character is refused, and so is a cursor of another list, ledger or store.
///
/// # Panics
///
/// Panics if a law does not hold.
pub fn cursor_laws(data: &[u8]) {
    let key = [7; 32];
    let list_id = ListId { list: "accounts", ledger: "main" };
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(query) = ListQuery::from_cursor(text, &key, list_id)
    {
        // Random data does not contain a valid digest.
        assert_eq!(query.to_cursor(&key, list_id), text.trim_end_matches('='));
    }
    let mut bytes = data.iter().copied();
    let mut byte = || bytes.next().unwrap_or(0);
    let flags = byte();
    let flag = |bit: u8| flags >> bit & 1 == 1;
    let mut number = || u32::from_le_bytes([byte(), byte(), byte(), byte()]);
    let (page_size, group_by) = (number(), number());
    let mut date = |there: bool| {
        let micros = i64::from(number()) << 32 | i64::from(number());
        there.then(|| ledger_core::Timestamp::from_micros(micros))
    };
    let (at, from) = (date(flag(0)), date(flag(1)));
    // Selects the order, and the character of the cursor to change.
    let choice = byte();
    let text = String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned();
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (filter, place_text) = text.split_at(middle);
    let query = ListQuery {
        page_size,
        filter: filter.to_owned(),
        at,
        from,
        expand: Expand { volumes: flag(2), effective_volumes: flag(3) },
        axis: if flag(4) { TimeAxis::Inserted } else { TimeAxis::Effective },
        order: Sort::ALL[usize::from(choice) % Sort::ALL.len()],
        direction: if flag(6) { Direction::Descending } else { Direction::Ascending },
        group_by,
        include_deleted: flag(5),
        start: if flag(7) {
            Start::After(place_text.to_owned())
        } else {
            Start::Before(place_text.to_owned())
        },
    };
    let cursor = query.to_cursor(&key, list_id);
    if cursor.len() > crate::limits::CURSOR_BYTES_MAX {
        return;
    }
    assert_eq!(ListQuery::from_cursor(&cursor, &key, list_id).as_ref(), Ok(&query));
    for elsewhere in [ListId { list: "logs", ledger: "main" }, ListId { list: "accounts", ledger: "mai" }] {
        assert!(ListQuery::from_cursor(&cursor, &key, elsewhere).is_err());
    }
    assert!(ListQuery::from_cursor(&cursor, &[8; 32], list_id).is_err());
    let mut tampered = cursor.into_bytes();
    let at = usize::from(choice) * 7 % tampered.len();
    tampered[at] = if tampered[at] == b'A' { b'B' } else { b'A' };
    let tampered = String::from_utf8(tampered).expect("one ASCII character replaces another");
    // The last character can contain unused bits. A text that changes only these is refused as well.
    assert!(ListQuery::from_cursor(&tampered, &key, list_id).is_err(), "{tampered}");
}
