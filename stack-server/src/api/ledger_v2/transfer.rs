//! The routes that export and import the whole log of a ledger.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use ledger_core::{FilterOf, LogId};
use ledger_store::{
    Direction, ImportError, ImportRefusal, LedgerView, LogHashes, LogImporter, LogQuery, LogView, Page,
    PageRequest, Start, Store, TransferError,
};
use tokio::time::Instant;

use crate::api::context::Context;
use crate::api::ledger_v2::logs::shape_for;
use crate::http::error::{ApiError, Code};
use crate::http::memory::{self, Reservation};
use crate::http::reply_body::ReplyBody;
use crate::http::request;
use crate::http::response::{Json, Numbers, Reply, stream};
use crate::limits::{
    BODY_WAIT, EXPORT_BYTES, IMPORT_BYTES, IMPORT_BYTES_MIN, JSON_FACTOR, STREAM_BEGIN_WAIT,
};
use crate::shapes::log::{LogShape, write_log};

/// Number of logs per read of an export.
const PAGE_LOGS: usize = 500;

/// Streams all current logs, oldest first, one per line.
pub(crate) async fn export(context: &Context<'_>) -> Result<Reply, ApiError> {
    let name = context.ledger_name()?;
    let snapshot = context.app.snapshot().with_page_bytes(EXPORT_BYTES);
    let ledger = snapshot.ledger(&name).ok_or_else(ApiError::ledger_not_found)?;
    let shape = shape_for(context, &ledger);
    let app = context.app.clone();
    let read = async move |ledger: LedgerView, start| {
        let read = move |_: &Store, held| ExportPart::read(&ledger, start, shape, held);
        app.feed(EXPORT_BYTES * JSON_FACTOR, read).await
    };
    // Read the first part before answering, so that its error can still have a status.
    let first = tokio::time::timeout(STREAM_BEGIN_WAIT, read(ledger.clone(), Start::First)).await;
    let mut part = first.map_err(|_| ApiError::busy("too many streams wait for their clients"))??;
    let (parts, body) = ReplyBody::parts();
    tokio::spawn(async move {
        loop {
            let ExportPart { text, held, next } = part;
            // Stop if the client has disconnected.
            if !text.is_empty() && parts.send(Ok(held.keep(Bytes::from(text)))).await.is_err() {
                return;
            }
            let Some(last) = next else { return };
            // The stream holds one part that waits for the client. Read the next part only when the client has taken
            // the waiting one, and when there is memory for the next.
            let Ok(slot) = parts.reserve().await else { return };
            let next = tokio::select! {
                next = read(ledger.clone(), Start::After(last)) => next,
                () = parts.closed() => return,
            };
            part = match next {
                Ok(next) => next,
                Err(error) => {
                    error.log_cause();
                    slot.send(Err(std::io::Error::other(error.message)));
                    return;
                }
            };
        }
    });
    Ok(stream(body))
}

/// A part of an export.
struct ExportPart {
    text: Vec<u8>,
    /// The memory of the text.
    held: Reservation,
    /// The last log of the part, if there are more after it.
    next: Option<LogId>,
}

impl ExportPart {
    fn read(
        ledger: &LedgerView,
        start: Start<LogId>,
        shape: LogShape,
        mut held: Reservation,
    ) -> Result<Self, ApiError> {
        let page = page(ledger, start)?;
        let mut json = Json::with_capacity(Numbers::Plain, page.items.len() * 1_024);
        for log in &page.items {
            write_log(&mut json, log, shape);
            json.raw("\n");
        }
        let next = page.items.last().filter(|_| page.has_next).map(|log| log.entry.id);
        let text = json.into_bytes();
        held.set(text.len());
        Ok(Self { text, held, next })
    }
}

fn page(ledger: &LedgerView, start: Start<LogId>) -> Result<Page<LogView>, ApiError> {
    let page = PageRequest { size: PAGE_LOGS, direction: Direction::Ascending, start };
    Ok(ledger.logs(&LogQuery { filter: FilterOf::all(), hashes: LogHashes::Wire, page })?)
}

/// Imports the logs of an export. White space, or nothing, may separate them.
pub(crate) async fn import(context: &Context<'_>) -> Result<Reply, ApiError> {
    let Some(mut incoming) = context.take_stream() else {
        return Err(ApiError::fault("the body of an import was read before"));
    };
    let imported = import_all(context, &mut incoming).await;
    if imported.is_err() {
        request::discard_import(incoming, context.app.settings().import_timeout).await;
    }
    imported.map(|()| crate::http::response::no_content())
}

async fn import_all(context: &Context<'_>, incoming: &mut Incoming) -> Result<(), ApiError> {
    context.ledger()?;
    let memory = context.app.memory();
    let mut importer = LogImporter::strict(context.app.store(), context.ledger_name()?);
    let mut buffer = ImportBuffer { text: Vec::new(), kept: 0, held: memory.bodies.nothing() };
    let timeout = context.app.settings().import_timeout;
    let mut pace = Pace::begin(timeout);
    loop {
        let frame = tokio::time::timeout_at(pace.deadline, incoming.frame()).await;
        let frame = frame.map_err(|_| too_slow(importer.report().imported))?;
        let is_end = frame.is_none();
        if let Some(frame) = frame {
            let frame = frame.map_err(|_| refused("the body breaks off"))?;
            if let Ok(data) = frame.into_data() {
                buffer.push(&data).await?;
                pace.arrived(data.len());
            }
        }
        if buffer.text.len() >= IMPORT_BYTES || is_end {
            let part = std::mem::take(&mut buffer.text);
            let _work = memory.work(part.len()).await?;
            let import = move || importer.push(&part).map(|()| importer);
            importer = context.app.blocking(move |_| import().map_err(import_error)).await?;
            buffer.keep(importer.memory_bytes());
            // The time of recording the logs does not count against the client.
            pace = Pace::begin(timeout);
        }
        if is_end {
            return importer.finish().map(drop).map_err(import_error);
        }
    }
}

/// The bytes of an import that have arrived and that the importer has not received yet, with the reserved memory of the
/// import.
struct ImportBuffer {
    text: Vec<u8>,
    /// Number of bytes that the importer keeps of an incomplete log.
    kept: usize,
    held: Reservation,
}

impl ImportBuffer {
    /// Adds bytes.
    ///
    /// # Errors
    ///
    /// 503 if there is no memory for them for a while.
    async fn push(&mut self, bytes: &[u8]) -> Result<(), ApiError> {
        let wanted = self.text.len() + bytes.len();
        if wanted > self.text.capacity() {
            let capacity = wanted.max(self.text.capacity() / 2 * 3).max(IMPORT_BYTES);
            if !self.held.grow_to(self.kept + capacity, BODY_WAIT).await {
                return Err(memory::too_many_bodies());
            }
            self.text.reserve_exact(capacity - self.text.len());
        }
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    /// Notes that the importer received the text and keeps this number of bytes of it.
    fn keep(&mut self, bytes: usize) {
        self.kept = bytes;
        self.held.set(self.kept + self.text.capacity());
    }
}

/// The pace at which an import must arrive.
struct Pace {
    timeout: Duration,
    /// Time at which the import fails if fewer than [`IMPORT_BYTES_MIN`] bytes have arrived by then.
    deadline: Instant,
    /// Number of bytes that have arrived since this deadline was set.
    bytes: usize,
}

impl Pace {
    fn begin(timeout: Duration) -> Self {
        Self { timeout, deadline: Instant::now() + timeout, bytes: 0 }
    }

    /// Counts bytes. Enough of them move the deadline.
    fn arrived(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= IMPORT_BYTES_MIN {
            *self = Self::begin(self.timeout);
        }
    }
}

/// Returns the answer to an import whose client is too slow. Bytes that have arrived since the last recorded part have no
/// effect.
fn too_slow(imported: u64) -> ApiError {
    let imported = match imported {
        0 => "no log was imported".to_owned(),
        logs => format!("the first {logs} logs were imported"),
    };
    let message = format!("the body did not arrive in time: {imported}");
    ApiError::refused(StatusCode::REQUEST_TIMEOUT, message)
}

/// Returns the answer to an import that failed.
fn import_error(error: TransferError) -> ApiError {
    match error {
        TransferError::Import(ImportError::Write(error)) => error.into(),
        TransferError::Import(ImportError::Refused { log, refusal }) => refused(match refusal {
            ImportRefusal::InUse => refusal.to_string(),
            ImportRefusal::LogExists => format!("log {log} already exists"),
            ImportRefusal::WrongHash { .. } => format!("{refusal} for log {log}"),
            refusal => format!("log {log}: {refusal}"),
        }),
        error => refused(error),
    }
}

fn refused(reason: impl std::fmt::Display) -> ApiError {
    ApiError::new(Code::Import, format!("importing logs: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_bytes_move_the_deadline_of_an_import() {
        let mut pace = Pace { timeout: Duration::from_secs(1), deadline: Instant::now(), bytes: 0 };
        let first = pace.deadline;
        pace.arrived(IMPORT_BYTES_MIN - 1);
        assert_eq!(pace.deadline, first);
        pace.arrived(1);
        assert!(pace.deadline > first && pace.bytes == 0);
    }
}
