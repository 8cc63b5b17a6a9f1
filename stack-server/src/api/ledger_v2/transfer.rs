//! The routes that export and import the whole log of a ledger.

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use ledger_core::{FilterOf, LedgerName, LogId};
use ledger_store::{
    Direction, ImportError, ImportRefusal, ImportedLog, LedgerView, LogHashes, LogQuery, LogView, Page,
    PageRequest, Start, Store,
};
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::api::call::Call;
use crate::api::ledger_v2::log_body::read_log;
use crate::api::ledger_v2::logs::shape_for;
use crate::http::error::{ApiError, Code};
use crate::http::memory::{self, Held};
use crate::http::reply_body::ReplyBody;
use crate::http::request;
use crate::http::response::{Json, Numbers, Reply, stream};
use crate::limits::{
    BODY_READ_TIMEOUT, BODY_WAIT, EXPORT_BYTES, IMPORT_BYTES, IMPORT_BYTES_MIN, IMPORT_LOGS, JSON_FACTOR,
    LOG_BYTES_MAX, STREAM_BEGIN_WAIT,
};
use crate::shapes::log::{LogShape, write_log};

/// Number of logs per read of an export.
const PAGE_LOGS: usize = 500;

/// Streams all current logs, oldest first, one per line.
pub(crate) async fn export(call: &Call<'_>) -> Result<Reply, ApiError> {
    let name = call.ledger_name()?;
    let snapshot = call.app.snapshot().with_page_bytes(EXPORT_BYTES);
    let ledger = snapshot.ledger(&name).ok_or_else(ApiError::ledger_not_found)?;
    let shape = shape_for(call, &ledger);
    let app = call.app.clone();
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
            // The next part is read only once the client has taken the part before the last, and there is memory for it.
            let Ok(slot) = parts.reserve().await else { return };
            let next = tokio::select! {
                next = read(ledger.clone(), Start::After(last)) => next,
                () = parts.closed() => return,
            };
            part = match next {
                Ok(next) => next,
                Err(error) => {
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
    held: Held,
    /// The last log of the part, if there are more after it.
    next: Option<LogId>,
}

impl ExportPart {
    fn read(
        ledger: &LedgerView,
        start: Start<LogId>,
        shape: LogShape,
        mut held: Held,
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

/// Imports the logs of an export. Anything may separate them.
pub(crate) async fn import(call: &Call<'_>) -> Result<Reply, ApiError> {
    let Some(mut incoming) = call.take_stream() else {
        return Err(ApiError::fault("the body of an import was read before"));
    };
    let imported = import_all(call, &mut incoming).await;
    if imported.is_err() {
        request::discard_import(incoming).await;
    }
    imported.map(|()| crate::http::response::no_content())
}

async fn import_all(call: &Call<'_>, incoming: &mut Incoming) -> Result<(), ApiError> {
    call.ledger()?;
    let name = call.ledger_name()?;
    let memory = call.app.memory();
    let mut gathered = Gathered { text: Vec::new(), held: memory.bodies.nothing() };
    let mut pace = Pace::begin();
    let mut enough = IMPORT_BYTES;
    loop {
        let frame = tokio::time::timeout_at(pace.deadline, incoming.frame()).await;
        let frame = frame
            .map_err(|_| ApiError::refused(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"))?;
        let is_end = frame.is_none();
        if let Some(frame) = frame {
            let frame = frame.map_err(|_| refused("the body breaks off"))?;
            if let Ok(data) = frame.into_data() {
                gathered.push(&data).await?;
                pace.arrived(data.len());
            }
        }
        if gathered.text.len() >= enough || is_end {
            let (name, text) = (name.clone(), std::mem::take(&mut gathered.text));
            let _work = memory.work(text.len()).await?;
            let rest = call.app.blocking(move |store| import_some(store, &name, text, is_end)).await?;
            gathered.put_back(rest);
            // Parse an incomplete log again only after twice as much of it has arrived. This keeps the work linear.
            enough = IMPORT_BYTES.max(2 * gathered.text.len());
            // The client did not have this time.
            pace = Pace::begin();
        }
        if is_end {
            return Ok(());
        }
    }
}

/// The bytes of an import that have arrived and are not imported yet, with the memory that they hold.
struct Gathered {
    text: Vec<u8>,
    held: Held,
}

impl Gathered {
    /// Adds bytes.
    ///
    /// # Errors
    ///
    /// 503 if there is no memory for them for a while.
    async fn push(&mut self, bytes: &[u8]) -> Result<(), ApiError> {
        let wanted = self.text.len() + bytes.len();
        if wanted > self.text.capacity() {
            let capacity = wanted.max(self.text.capacity() / 2 * 3).max(IMPORT_BYTES);
            if !self.held.reach(capacity, BODY_WAIT).await {
                return Err(memory::too_many_bodies());
            }
            self.text.reserve_exact(capacity - self.text.len());
        }
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    /// Continues with the bytes that could not be imported yet.
    fn put_back(&mut self, rest: Vec<u8>) {
        self.text = rest;
        self.held.set(self.text.capacity());
    }
}

/// The pace at which an import must arrive.
struct Pace {
    /// When too little has arrived.
    deadline: Instant,
    /// Number of bytes that have arrived for this deadline.
    bytes: usize,
}

impl Pace {
    fn begin() -> Self {
        Self { deadline: Instant::now() + BODY_READ_TIMEOUT, bytes: 0 }
    }

    /// Counts bytes. Enough of them move the deadline.
    fn arrived(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= IMPORT_BYTES_MIN {
            *self = Self::begin();
        }
    }
}

/// Imports the complete logs in a text and returns the incomplete rest.
fn import_some(
    store: &Store,
    ledger: &LedgerName,
    mut text: Vec<u8>,
    is_end: bool,
) -> Result<Vec<u8>, ApiError> {
    let mut logs: Vec<ImportedLog> = Vec::new();
    // A number at the end of the text may continue in the next part, and a lone sign would be a fault. Leave it for
    // later.
    let told = if is_end { text.len() } else { text.len() - number_at_end(&text) };
    let mut values = serde_json::Deserializer::from_slice(&text[..told]).into_iter::<&RawValue>();
    let mut fault = None;
    loop {
        let whole = values.byte_offset();
        match values.next() {
            None => break,
            Some(Ok(value)) => match read_log(value) {
                Ok(log) => logs.push(log),
                Err(error) => {
                    fault = Some(refused(error));
                    break;
                }
            },
            // The rest of this log has not arrived.
            Some(Err(error)) if error.is_eof() && !is_end && text.len() - whole <= LOG_BYTES_MAX => {
                import_logs(store, ledger, &logs)?;
                return Ok(text.split_off(whole));
            }
            Some(Err(error)) => {
                fault = Some(refused(error.to_string()));
                break;
            }
        }
        if logs.len() >= IMPORT_LOGS {
            import_logs(store, ledger, &logs)?;
            logs.clear();
        }
    }
    import_logs(store, ledger, &logs)?;
    fault.map_or_else(|| Ok(text.split_off(told)), Err)
}

/// Returns how many bytes at the end of a text may be the beginning of a number.
fn number_at_end(text: &[u8]) -> usize {
    let of_number = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    text.iter().rev().take_while(of_number).count()
}

fn import_logs(store: &Store, ledger: &LedgerName, logs: &[ImportedLog]) -> Result<(), ApiError> {
    if logs.is_empty() {
        return Ok(());
    }
    store.import_new(ledger, logs).map_err(|error| match error {
        ImportError::Write(error) => error.into(),
        ImportError::Refused { log, refusal } => {
            let log = log.get();
            refused(match refusal {
                ImportRefusal::InUse => refusal.to_string(),
                ImportRefusal::LogExists => format!("log {log} already exists"),
                ImportRefusal::WrongHash { .. } => format!("{refusal} for log {log}"),
                ImportRefusal::Inconsistent { reason } => format!("log {log}: {reason}"),
            })
        }
    })
}

fn refused(reason: impl std::fmt::Display) -> ApiError {
    ApiError::new(Code::Import, format!("importing logs: {reason}"))
}

#[cfg(test)]
mod tests {
    use ledger_core::{Features, HashLogs, LedgerOptions};

    use super::*;

    fn log(id: u64) -> String {
        let date = format!("2024-01-0{id}T00:00:00Z");
        let volumes = format!(
            r#"{{"a":{{"USD/2":{{"input":{id},"output":0,"balance":{id}}}}},"world":{{"USD/2":{{"input":0,"output":{id},"balance":-{id}}}}}}}"#
        );
        format!(
            r#"{{"id":{id},"type":"NEW_TRANSACTION","data":{{"transaction":{{"id":{id},"postings":[{{"source":"world","destination":"a","amount":1,"asset":"USD/2"}}],"metadata":{{}},"timestamp":"{date}","postCommitVolumes":{volumes}}},"accountMetadata":{{}}}},"date":"{date}","unknown":-1.5e+7,"hash":null}}
"#
        )
    }

    #[test]
    fn enough_bytes_move_the_deadline_of_an_import() {
        let mut pace = Pace { deadline: Instant::now(), bytes: 0 };
        let first = pace.deadline;
        pace.arrived(IMPORT_BYTES_MIN - 1);
        assert_eq!(pace.deadline, first);
        pace.arrived(1);
        assert!(pace.deadline > first && pace.bytes == 0);
    }

    #[test]
    fn imports_body_split_at_any_byte() {
        let name = LedgerName::parse("main").expect("a name");
        let features = Features { hash_logs: HashLogs::Disabled, ..Features::default() };
        let text = log(1) + &log(2);
        for cut in 0..=text.len() {
            let store = Store::in_memory();
            let options = LedgerOptions { features, ..LedgerOptions::default() };
            store.create_ledger(name.clone(), options).expect("a ledger");
            let (first, second) = text.as_bytes().split_at(cut);
            let mut rest = import_some(&store, &name, first.to_vec(), false)
                .unwrap_or_else(|error| panic!("{}: {}", error.message, &text[..cut]));
            rest.extend_from_slice(second);
            let rest = import_some(&store, &name, rest, true)
                .unwrap_or_else(|error| panic!("{}: {}", error.message, &text[cut..]));
            assert!(rest.is_empty());
            let view = store.snapshot().ledger(&name).expect("it is there");
            assert_eq!(page(&view, Start::First).expect("it reads").items.len(), 2, "cut at {cut}");
        }
    }
}
