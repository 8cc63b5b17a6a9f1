//! The routes that export and import the whole log of a ledger.

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use ledger_core::FilterOf;
use ledger_store::{
    Direction, ImportError, ImportRefusal, LedgerView, LogHashes, LogImporter, LogQuery, LogView, Page,
    PageRequest, Start, TransferError,
};

use crate::api::call::Call;
use crate::api::ledger_v2::logs::shape_for;
use crate::http::error::{ApiError, Code};
use crate::http::reply_body::ReplyBody;
use crate::http::request;
use crate::http::response::{Json, Numbers, Reply, stream};
use crate::limits::{BODY_READ_TIMEOUT, IMPORT_BYTES};
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
    let mut importer = LogImporter::strict(call.app.store(), call.ledger_name()?);
    let mut gathered = Vec::new();
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
        if gathered.len() >= IMPORT_BYTES || is_end {
            let part = std::mem::take(&mut gathered);
            let import = move || importer.push(&part).map(|()| importer);
            importer = call.app.blocking(move |_| import().map_err(fault)).await?;
        }
        if is_end {
            return importer.finish().map(drop).map_err(fault);
        }
    }
}

/// The answer to an import that failed.
fn fault(error: TransferError) -> ApiError {
    match error {
        TransferError::Import(ImportError::Write(error)) => error.into(),
        TransferError::Import(ImportError::Refused { log, refusal }) => refused(match refusal {
            ImportRefusal::InUse => refusal.to_string(),
            ImportRefusal::LogExists => format!("log {log} already exists"),
            ImportRefusal::WrongHash { .. } => format!("{refusal} for log {log}"),
            ImportRefusal::Inconsistent { reason } => format!("log {log}: {reason}"),
        }),
        error => refused(error),
    }
}

fn refused(reason: impl std::fmt::Display) -> ApiError {
    ApiError::new(Code::Import, format!("importing logs: {reason}"))
}
