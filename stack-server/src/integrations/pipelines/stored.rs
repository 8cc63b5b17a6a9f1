//! Exporters and pipelines as documents.

use ledger_core::{LedgerName, LogId, Timestamp};
use ledger_store::{
    Direction, Document, DocumentAction, DocumentChange, DocumentKey, DocumentRange, DocumentRejection,
    DocumentVersion, Expected, ReadError, Snapshot, Store, WriteError,
};
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::collections::{EXPORTERS, PIPELINE_POSITIONS, PIPELINES};
use crate::documents::{Versioned, again, damaged};
use crate::http::error::ApiError;
use crate::http::json::{self, Date, Digits, Fields, Flag, Object, Text};
use crate::http::response::{Json, Numbers};
use crate::integrations::pipelines::exporter::{Driver, Setup};
use crate::integrations::pipelines::password;
use crate::limits::PIPELINES_MAX;

/// Indexes of exporters: by date of creation, and by the file that an exporter writes, which is unique.
const EXPORTER_BY_DATE: u32 = 1;
const EXPORTER_FILE: u32 = 2;
/// Indexes of pipelines: by ledger and date of creation; by ledger and exporter, which is unique; and by exporter.
const PIPELINE_BY_LEDGER: u32 = 1;
const PIPELINE_OF_BOTH: u32 = 2;
const PIPELINE_BY_EXPORTER: u32 = 3;

/// A stored exporter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exporter {
    pub(crate) id: String,
    pub(crate) created_at: Timestamp,
    pub(crate) driver: String,
    /// The configuration as the client sent it: JSON text.
    pub(crate) config: Box<str>,
}

/// A stored pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pipeline {
    pub(crate) id: String,
    pub(crate) ledger: LedgerName,
    /// The number of the ledger, which distinguishes it from a later ledger with the same name. Documents of earlier
    /// releases do not have it.
    pub(crate) number: Option<u32>,
    pub(crate) exporter: String,
    pub(crate) created_at: Timestamp,
    pub(crate) enabled: bool,
    /// How often the pipeline was reset to the first log.
    pub(crate) run: u64,
}

// JSON form of the documents.

#[derive(Default)]
struct ExporterBody<'a> {
    driver: Text<'a>,
    config: Option<&'a RawValue>,
    created_at: Option<Timestamp>,
}

impl<'de> Fields<'de> for ExporterBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "driver" => self.driver = map.next_value()?,
            "config" => self.config = Some(map.next_value()?),
            "createdAt" => self.created_at = map.next_value::<Date>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Default)]
struct PipelineBody<'a> {
    ledger: Text<'a>,
    number: Option<&'a str>,
    exporter: Text<'a>,
    created_at: Option<Timestamp>,
    enabled: bool,
    run: Option<&'a str>,
}

impl<'de> Fields<'de> for PipelineBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "ledger" => self.ledger = map.next_value()?,
            "number" => self.number = map.next_value::<Digits<'de>>()?.0,
            "exporterID" => self.exporter = map.next_value()?,
            "createdAt" => self.created_at = map.next_value::<Date>()?.0,
            "enabled" => self.enabled = map.next_value::<Flag>()?.0,
            "run" => self.run = map.next_value::<Digits<'de>>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn read_exporter(document: &Document) -> Result<Versioned<Exporter>, ReadError> {
    let read = || {
        let Object(body) = json::first::<Object<ExporterBody<'_>>>(&document.value).ok()?;
        Some(Exporter {
            id: String::from_utf8(document.key.clone()).ok()?,
            created_at: body.created_at?,
            driver: body.driver.0.into_owned(),
            config: body.config?.get().into(),
        })
    };
    let value = read().ok_or_else(|| damaged("an exporter"))?;
    Ok(Versioned { value, version: document.version })
}

fn read_pipeline(document: &Document) -> Result<Versioned<Pipeline>, ReadError> {
    let read = || {
        let Object(body) = json::first::<Object<PipelineBody<'_>>>(&document.value).ok()?;
        Some(Pipeline {
            id: String::from_utf8(document.key.clone()).ok()?,
            ledger: LedgerName::parse(&body.ledger.0).ok()?,
            number: body.number.map(str::parse).transpose().ok()?,
            exporter: body.exporter.0.into_owned(),
            created_at: body.created_at?,
            enabled: body.enabled,
            run: body.run?.parse().ok()?,
        })
    };
    let value = read().ok_or_else(|| damaged("a pipeline"))?;
    Ok(Versioned { value, version: document.version })
}

fn put_exporter(
    exporter: &Exporter,
    setup: Option<&Setup>,
    keys: Option<Vec<DocumentKey>>,
    expected: Expected,
) -> DocumentChange {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"driver\":").string(&exporter.driver).raw(",\"config\":").raw(&exporter.config);
    json.raw(",\"createdAt\":").time(exporter.created_at).raw("}");
    let keys = keys.unwrap_or_else(|| {
        let date = exporter.created_at.as_micros().to_be_bytes();
        let mut keys = vec![DocumentKey { index: EXPORTER_BY_DATE, key: date.to_vec(), unique: false }];
        if let Some(Setup { driver: Driver::File(file), .. }) = setup {
            keys.push(DocumentKey {
                index: EXPORTER_FILE,
                key: file.name.clone().into_bytes(),
                unique: true,
            });
        }
        keys
    });
    DocumentChange {
        collection: EXPORTERS,
        key: exporter.id.clone().into_bytes(),
        expected,
        action: DocumentAction::Put { value: json.into_bytes(), keys },
    }
}

fn put_pipeline(pipeline: &Pipeline, expected: Expected) -> DocumentChange {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"ledger\":").plain_string(pipeline.ledger.as_str());
    if let Some(number) = pipeline.number {
        json.raw(",\"number\":").integer(u64::from(number));
    }
    json.raw(",\"exporterID\":").plain_string(&pipeline.exporter);
    json.raw(",\"createdAt\":").time(pipeline.created_at);
    json.raw(",\"enabled\":").boolean(pipeline.enabled);
    json.raw(",\"run\":").integer(pipeline.run).raw("}");
    let ledger = prefix(&pipeline.ledger);
    let by_date = [&ledger[..], &pipeline.created_at.as_micros().to_be_bytes()].concat();
    let of_both = [&ledger[..], pipeline.exporter.as_bytes()].concat();
    let keys = vec![
        DocumentKey { index: PIPELINE_BY_LEDGER, key: by_date, unique: false },
        DocumentKey { index: PIPELINE_OF_BOTH, key: of_both, unique: true },
        DocumentKey {
            index: PIPELINE_BY_EXPORTER,
            key: pipeline.exporter.clone().into_bytes(),
            unique: false,
        },
    ];
    DocumentChange {
        collection: PIPELINES,
        key: pipeline.id.clone().into_bytes(),
        expected,
        action: DocumentAction::Put { value: json.into_bytes(), keys },
    }
}

/// Returns the common prefix of the keys of a ledger's pipelines. Names of ledgers do not contain the byte that ends
/// it.
fn prefix(ledger: &LedgerName) -> Vec<u8> {
    [ledger.as_str().as_bytes(), &[0]].concat()
}

fn delete(collection: ledger_store::Collection, id: &str, expected: Expected) -> DocumentChange {
    DocumentChange { collection, key: id.as_bytes().to_vec(), expected, action: DocumentAction::Delete }
}

// Exporters.

/// Returns the exporter with this id.
pub(crate) fn exporter(snapshot: &Snapshot, id: &str) -> Result<Option<Versioned<Exporter>>, ReadError> {
    let found = snapshot.document(EXPORTERS, id.as_bytes())?;
    found.as_ref().map(read_exporter).transpose()
}

/// Returns all exporters, oldest first. Their number is limited by [`PIPELINES_MAX`].
pub(crate) fn exporters(snapshot: &Snapshot) -> Result<Vec<Exporter>, ReadError> {
    let found = snapshot.documents_by(EXPORTERS, EXPORTER_BY_DATE, &DocumentRange::default())?;
    found.iter().map(|document| read_exporter(document).map(|exporter| exporter.value)).collect()
}

/// Adds an exporter.
///
/// # Errors
///
/// `VALIDATION` if there are too many exporters, or if another exporter writes the same file.
pub(crate) fn create_exporter(store: &Store, exporter: &Exporter, setup: &Setup) -> Result<(), ApiError> {
    if exporters(&store.snapshot())?.len() >= PIPELINES_MAX {
        return Err(ApiError::validation(format!("there are {PIPELINES_MAX} exporters already")));
    }
    let change = put_exporter(exporter, Some(setup), None, Expected::Absent);
    store.change_documents(vec![change]).map(drop).map_err(file_taken)
}

fn file_taken(error: WriteError) -> ApiError {
    match error {
        WriteError::Document(DocumentRejection::KeyTaken { index: EXPORTER_FILE, .. }) => {
            ApiError::validation("driver 'file' invalid: another exporter writes a file of this name")
        }
        other => other.into(),
    }
}

/// Changes the driver and the configuration of an exporter.
///
/// # Errors
///
/// `NOT_FOUND` if there is no such exporter; `VALIDATION` if a placeholder would replace a secret, or if another
/// exporter writes the same file.
pub(crate) fn update_exporter(
    store: &Store,
    id: &str,
    driver: &str,
    config: &str,
    setup: &Setup,
) -> Result<(), ApiError> {
    again(|| {
        let found = exporter(&store.snapshot(), id)?.ok_or_else(no_exporter)?;
        let config = password::restore_secrets(config, &found.value.config)
            .map_err(|error| ApiError::validation(error.to_string()))?
            .into();
        let changed = Exporter { driver: driver.to_owned(), config, ..found.value };
        let change = put_exporter(&changed, Some(setup), None, Expected::Version(found.version));
        Ok(store.change_documents(vec![change]))
    })
    .and_then(|changed| changed.map(drop).map_err(file_taken))
}

/// Removes an exporter and its pipelines in one commit.
///
/// # Errors
///
/// `NOT_FOUND` if there is no such exporter.
pub(crate) fn delete_exporter(store: &Store, id: &str) -> Result<(), ApiError> {
    again(|| {
        let snapshot = store.snapshot();
        let found = exporter(&snapshot, id)?.ok_or_else(no_exporter)?;
        let range = DocumentRange {
            from: std::ops::Bound::Included(id.as_bytes().to_vec()),
            to: std::ops::Bound::Included(id.as_bytes().to_vec()),
            limit: PIPELINES_MAX,
            ..DocumentRange::default()
        };
        // A concurrent creation of a pipeline changes the version of the exporter, so that this commit fails.
        let mut changes = vec![delete(EXPORTERS, id, Expected::Version(found.version))];
        for document in snapshot.documents_by(PIPELINES, PIPELINE_BY_EXPORTER, &range)? {
            let pipeline = read_pipeline(&document)?.value;
            changes.extend(delete_pipeline(&pipeline.id, Expected::Anything));
        }
        Ok(store.change_documents(changes))
    })
    .and_then(|changed| Ok(changed.map(drop)?))
}

fn no_exporter() -> ApiError {
    ApiError::not_found("exporter not found")
}

// Pipelines.

/// Returns whether the ledger of a pipeline was removed permanently. The pipeline then belongs to no ledger, even if a
/// new ledger has the same name.
fn is_orphan(snapshot: &Snapshot, pipeline: &Pipeline) -> bool {
    pipeline.number.is_some_and(|number| snapshot.is_removed(number))
}

/// Returns the pipeline with this id.
pub(crate) fn pipeline(snapshot: &Snapshot, id: &str) -> Result<Option<Versioned<Pipeline>>, ReadError> {
    let found = snapshot.document(PIPELINES, id.as_bytes())?;
    let found = found.as_ref().map(read_pipeline).transpose()?;
    Ok(found.filter(|found| !is_orphan(snapshot, &found.value)))
}

/// Returns the pipelines of a ledger, or of all ledgers, oldest first.
pub(crate) fn pipelines(
    snapshot: &Snapshot,
    ledger: Option<&LedgerName>,
) -> Result<Vec<Pipeline>, ReadError> {
    let mut all = stored_pipelines(snapshot, ledger)?;
    all.retain(|pipeline| !is_orphan(snapshot, pipeline));
    Ok(all)
}

/// Deletes the pipelines of permanently removed ledgers. Returns whether there were any.
///
/// # Errors
///
/// Fails if the store cannot be written.
pub(crate) fn delete_orphans(store: &Store) -> Result<bool, ApiError> {
    let snapshot = store.snapshot();
    let mut orphans = stored_pipelines(&snapshot, None)?;
    orphans.retain(|pipeline| is_orphan(&snapshot, pipeline));
    let deleted = !orphans.is_empty();
    for orphan in orphans {
        store.change_documents(delete_pipeline(&orphan.id, Expected::Anything))?;
    }
    Ok(deleted)
}

fn delete_pipeline(id: &str, expected: Expected) -> Vec<DocumentChange> {
    vec![delete(PIPELINES, id, expected), delete(PIPELINE_POSITIONS, id, Expected::Anything)]
}

/// Returns the same pipelines, and those of permanently removed ledgers.
fn stored_pipelines(snapshot: &Snapshot, ledger: Option<&LedgerName>) -> Result<Vec<Pipeline>, ReadError> {
    let mut range = DocumentRange { direction: Direction::Ascending, ..DocumentRange::default() };
    if let Some(ledger) = ledger {
        let from = prefix(ledger);
        let mut to = from.clone();
        to.pop();
        to.push(1);
        (range.from, range.to) = (std::ops::Bound::Included(from), std::ops::Bound::Excluded(to));
    }
    let found = snapshot.documents_by(PIPELINES, PIPELINE_BY_LEDGER, &range)?;
    found.iter().map(|document| read_pipeline(document).map(|pipeline| pipeline.value)).collect()
}

/// Adds a pipeline.
///
/// # Errors
///
/// `VALIDATION` if the exporter does not exist, if a pipeline connects the two already, or if there are too many
/// pipelines.
pub(crate) fn create_pipeline(store: &Store, pipeline: &Pipeline) -> Result<(), ApiError> {
    let created = again(|| {
        let snapshot = store.snapshot();
        let found = snapshot.document(EXPORTERS, pipeline.exporter.as_bytes())?;
        let Some(document) = found else {
            return Err(ApiError::validation(format!("exporter '{}' not found", pipeline.exporter)));
        };
        if pipelines(&snapshot, None)?.len() >= PIPELINES_MAX {
            return Err(ApiError::validation(format!("there are {PIPELINES_MAX} pipelines already")));
        }
        let exporter = read_exporter(&document)?;
        let mut changes = vec![
            // Store the exporter unchanged, so that the commit fails if another thread removes it concurrently.
            put_exporter(&exporter.value, None, Some(document.keys), Expected::Version(exporter.version)),
            put_pipeline(pipeline, Expected::Absent),
            put_position(&pipeline.id, None, Expected::Anything),
        ];
        // Delete a pipeline of a removed ledger with the same name, because it would occupy the unique key.
        for other in stored_pipelines(&snapshot, Some(&pipeline.ledger))? {
            if is_orphan(&snapshot, &other) {
                changes.extend(delete_pipeline(&other.id, Expected::Anything));
            }
        }
        Ok(store.change_documents(changes))
    })?;
    match created {
        Ok(_) => Ok(()),
        Err(WriteError::Document(DocumentRejection::KeyTaken { index: PIPELINE_OF_BOTH, .. })) => {
            Err(ApiError::validation("pipeline already exists"))
        }
        Err(error) => Err(error.into()),
    }
}

/// A change of a pipeline's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateChange {
    Start,
    Stop,
    Reset,
    Delete,
}

/// Executes an order for a pipeline of a ledger.
///
/// # Errors
///
/// `NOT_FOUND` if there is no such pipeline; `VALIDATION` for the start of a started pipeline.
pub(crate) fn change_state(
    store: &Store,
    ledger: &LedgerName,
    id: &str,
    change: StateChange,
) -> Result<(), ApiError> {
    again(|| {
        let found = pipeline(&store.snapshot(), id)?.filter(|found| found.value.ledger == *ledger);
        let found = found.ok_or_else(no_pipeline)?;
        let expected = Expected::Version(found.version);
        let changes = match change {
            StateChange::Start if found.value.enabled => {
                return Err(ApiError::validation(format!("pipeline '{id}' already started")));
            }
            StateChange::Start => vec![put_pipeline(&Pipeline { enabled: true, ..found.value }, expected)],
            StateChange::Stop => vec![put_pipeline(&Pipeline { enabled: false, ..found.value }, expected)],
            StateChange::Reset => {
                let run = found.value.run + 1;
                // Write the position to change its version, so that a push in progress cannot move it.
                let position = put_position(id, None, Expected::Anything);
                vec![put_pipeline(&Pipeline { run, ..found.value }, expected), position]
            }
            StateChange::Delete => delete_pipeline(id, expected),
        };
        Ok(store.change_documents(changes))
    })
    .and_then(|changed| Ok(changed.map(drop)?))
}

/// Returns the error for a pipeline that does not exist.
pub(crate) fn no_pipeline() -> ApiError {
    ApiError::not_found("pipeline not found")
}

// Positions.

/// The last accepted log, and the version of the stored position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredPosition {
    pub(crate) last: Option<LogId>,
    version: DocumentVersion,
}

fn put_position(id: &str, last: Option<LogId>, expected: Expected) -> DocumentChange {
    let value = last.map_or(Vec::new(), |last| last.get().to_le_bytes().to_vec());
    DocumentChange {
        collection: PIPELINE_POSITIONS,
        key: id.as_bytes().to_vec(),
        expected,
        action: DocumentAction::Put { value, keys: Vec::new() },
    }
}

/// Returns the stored position of a pipeline, or `None` if there is no such pipeline.
pub(crate) fn position(snapshot: &Snapshot, id: &str) -> Result<Option<StoredPosition>, ReadError> {
    let Some(document) = snapshot.document(PIPELINE_POSITIONS, id.as_bytes())? else { return Ok(None) };
    let last = match document.value.as_slice() {
        [] => None,
        bytes => {
            let bytes = bytes.try_into().map_err(|_| damaged("the position of a pipeline"))?;
            Some(LogId::new(u64::from_le_bytes(bytes)))
        }
    };
    Ok(Some(StoredPosition { last, version: document.version }))
}

/// Stores the position of a pipeline, unless it was stored by someone else since `kept` was read.
///
/// # Errors
///
/// [`WriteError::Document`] if the position has changed since then. An error of the store if the write fails.
pub(crate) fn move_position(
    store: &Store,
    id: &str,
    kept: StoredPosition,
    last: Option<LogId>,
) -> Result<StoredPosition, WriteError> {
    let change = put_position(id, last, Expected::Version(kept.version));
    let versions = store.change_documents(vec![change])?;
    let version = versions.into_iter().next().unwrap_or(kept.version);
    Ok(StoredPosition { last, version })
}
