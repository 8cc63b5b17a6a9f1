//! Delivers logs to the destination of an exporter.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use ledger_store::FedLog;

use super::elasticsearch::Elasticsearch;
use super::error::{NoFolder, PushError};
use super::exporter::{Driver, ExporterPolicy};
use super::file::Files;
use crate::blocking;
use crate::http::response::{Json, Numbers};
use crate::limits::PIPELINES_MAX;
use crate::outbound::Client;
use crate::shapes::log::write_log_of;

/// The resources that all pipelines share.
#[derive(Debug)]
pub(super) struct Destinations {
    client: Client,
    files: Option<Arc<Files>>,
    /// The indices that exist, because a push has created or found them.
    indices: Mutex<Vec<Elasticsearch>>,
}

impl Destinations {
    /// Creates the destinations within the limits that the operator sets.
    ///
    /// # Errors
    ///
    /// Fails if the folder for files cannot be created.
    pub(super) fn new(policy: &ExporterPolicy) -> std::io::Result<Self> {
        let files = policy.folder.clone().map(Files::in_folder).transpose()?;
        Ok(Self {
            client: Client::new(policy.outbound),
            files: files.map(Arc::new),
            indices: Mutex::default(),
        })
    }

    /// Delivers logs through a driver, and returns once they have arrived.
    ///
    /// # Errors
    ///
    /// Fails if the destination does not confirm all logs.
    pub(super) async fn push(&self, driver: &Driver, logs: &[FedLog]) -> Result<(), PushError> {
        match driver {
            Driver::Noop => Ok(()),
            Driver::Http(target) => {
                let mut json = Json::with_capacity(Numbers::Plain, logs.len() * 1_024);
                json.raw("[");
                json.list(logs, write_log_of);
                json.raw("]");
                Ok(self.client.post(target, &HeaderMap::new(), Bytes::from(json.into_bytes())).await?)
            }
            Driver::ClickHouse(clickhouse) => clickhouse.push(&self.client, logs).await,
            Driver::Elasticsearch(elasticsearch) => {
                self.ensure_index(elasticsearch).await?;
                elasticsearch.push(&self.client, logs).await
            }
            Driver::File(config) => {
                let files = self.files.clone().ok_or(NoFolder)?;
                let (config, lines) = (config.clone(), lines(logs));
                off_thread(move || files.append(&config, &lines)).await
            }
            Driver::Stdout => {
                let lines = lines(logs).concat();
                off_thread(move || {
                    let mut out = std::io::stdout().lock();
                    out.write_all(&lines)?;
                    out.flush()
                })
                .await
            }
        }
    }

    /// Creates the index of an exporter with the first push after the start of the server.
    async fn ensure_index(&self, exporter: &Elasticsearch) -> Result<(), PushError> {
        let indices = || self.indices.lock().unwrap_or_else(PoisonError::into_inner);
        if indices().contains(exporter) {
            return Ok(());
        }
        exporter.create_index(&self.client).await?;
        let mut indices = indices();
        // Exporters that were changed or deleted stay in the list.
        if indices.len() >= PIPELINES_MAX {
            indices.clear();
        }
        indices.push(exporter.clone());
        Ok(())
    }
}

fn lines(logs: &[FedLog]) -> Vec<Vec<u8>> {
    let line = |fed: &FedLog| {
        let mut json = Json::new(Numbers::Plain);
        write_log_of(&mut json, fed);
        json.raw("\n");
        json.into_bytes()
    };
    logs.iter().map(line).collect()
}

async fn off_thread(work: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> Result<(), PushError> {
    Ok(blocking::run(work).await??)
}
