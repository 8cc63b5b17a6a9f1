//! The sub-command `payments`: measures how fast connectors ingest payments, how fast the server lists them, the cost
//! of idle connectors, and whether a hanging provider delays other requests.

pub mod api;
mod hanging;
mod idle;
mod ingestion;
mod lists;
mod options;
pub mod provider;

use std::ffi::OsString;

use self::api::Api;
pub use self::options::HttpPayments;
use crate::child::Spawned;
use crate::data_dir::{DataDir, disk_bytes};
use crate::process::Memory;
use crate::report::Report;
use crate::{Failure, calibration};

/// Measures the parts. Each part has its own server, except that the lists use the server of the ingestion.
///
/// # Errors
///
/// Fails if a server does not start, or gives an unexpected answer.
pub fn run(run: &HttpPayments) -> Result<Report, Failure> {
    let data_dir = DataDir::new(None)?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    report.text("what", "payments");
    report.count("payments", run.payments);
    let base = format!("http://{}", provider::start()?);
    let endpoint = format!("{base}/{}", run.payments);
    let start = |name: &str| {
        let data = data_dir.path().join(name).into_os_string();
        let flags = ["--listen", "127.0.0.1:0", "--data"].map(OsString::from);
        Spawned::start_server(&run.spawn, flags.into_iter().chain([data]))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if run.wants("ingestion") || run.wants("lists") {
        let (server, address) = start("plain")?;
        runtime.block_on(async {
            let mut api = Api::connect(&address).await?;
            ingestion::measure_bare_client(run, &endpoint, &mut report).await?;
            let connector =
                ingestion::ingest(run, server.id(), &mut api, &endpoint, false, &mut report).await?;
            let disk = disk_bytes(&data_dir.path().join("plain"))?;
            report.count("disk_bytes_per_payment", disk / run.payments);
            if run.wants("lists") {
                lists::measure(run, &mut api, &connector, &mut report).await?;
            }
            Ok::<(), Failure>(())
        })?;
        report.count("rss_peak_bytes", Memory::of_process(server.id()).peak);
    }
    if run.wants("postings") {
        let (server, address) = start("posted")?;
        runtime.block_on(async {
            let mut api = Api::connect(&address).await?;
            ingestion::ingest(run, server.id(), &mut api, &endpoint, true, &mut report).await
        })?;
    }
    if run.wants("idle") {
        let (server, address) = start("idle")?;
        runtime.block_on(async {
            let mut api = Api::connect(&address).await?;
            idle::measure(run, server.id(), &mut api, &base, &mut report).await
        })?;
    }
    if run.wants("hanging") {
        let (_server, address) = start("hanging")?;
        runtime.block_on(async {
            let mut api = Api::connect(&address).await?;
            hanging::measure(run, &mut api, &base, &mut report).await
        })?;
    }
    Ok(report)
}
