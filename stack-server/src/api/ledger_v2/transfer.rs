//! The routes that export and import the whole log of a ledger.

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use ledger_core::{FilterOf, LedgerName};
use ledger_store::{
    Direction, ImportError, ImportRefusal, ImportedLog, LedgerView, LogHashes, LogQuery, LogView, Page,
    PageRequest, Start, Store,
};
use serde_json::value::RawValue;

use crate::api::call::Call;
use crate::api::ledger_v2::log_body::read_log;
use crate::api::ledger_v2::logs::shape_for;
use crate::http::error::{ApiError, Code};
use crate::http::reply_body::ReplyBody;
use crate::http::request;
use crate::http::response::{Json, Numbers, Reply, stream};
use crate::limits::{BODY_READ_TIMEOUT, IMPORT_BYTES, IMPORT_LOGS, LOG_BYTES_MAX};
use crate::shapes::log::write_log;

/// Number of logs per read of an export.
const PAGE_LOGS: usize = 500;

/// Streams all current logs, oldest first, one per line.
pub(crate) async fn export(call: &Call<'_>) -> Result<Reply, ApiError> {
    let ledger = call.ledger()?;
    let shape = shape_for(call, &ledger);
    let app = call.app.clone();
    let read = async move |ledger: LedgerView, start| app.long(move || page(&ledger, start)).await;
    // Read the first part before answering, so that its error can still have a status.
    let mut part = read(ledger.clone(), Start::First).await?;
    let (parts, body) = ReplyBody::parts();
    tokio::spawn(async move {
        loop {
            let mut json = Json::with_capacity(Numbers::Plain, part.items.len() * 1_024);
            for log in &part.items {
                write_log(&mut json, log, shape);
                json.raw("\n");
            }
            // Stop if the client has disconnected.
            if !part.items.is_empty() && parts.send(Ok(Bytes::from(json.into_bytes()))).await.is_err() {
                return;
            }
            let Some(last) = part.items.last().filter(|_| part.has_next) else { return };
            part = match read(ledger.clone(), Start::After(last.entry.id)).await {
                Ok(part) => part,
                Err(error) => {
                    let _ = parts.send(Err(std::io::Error::other(error.message))).await;
                    return;
                }
            };
        }
    });
    Ok(stream(body))
}

fn page(ledger: &LedgerView, start: Start<ledger_core::LogId>) -> Result<Page<LogView>, ApiError> {
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
    let mut gathered = Vec::new();
    let mut enough = IMPORT_BYTES;
    loop {
        let frame = tokio::time::timeout(BODY_READ_TIMEOUT, incoming.frame()).await;
        let frame = frame
            .map_err(|_| ApiError::refused(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"))?;
        let is_end = frame.is_none();
        if let Some(frame) = frame {
            let frame = frame.map_err(|_| refused("the body breaks off"))?;
            if let Ok(data) = frame.into_data() {
                gathered.extend_from_slice(&data);
            }
        }
        if gathered.len() >= enough || is_end {
            let (name, bytes) = (name.clone(), std::mem::take(&mut gathered));
            gathered = call.app.blocking(move |store| import_some(store, &name, bytes, is_end)).await?;
            // Parse an incomplete log again only after twice as much of it has arrived. This keeps the work linear.
            enough = IMPORT_BYTES.max(2 * gathered.len());
        }
        if is_end {
            return Ok(());
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
