//! Measures whether providers that never answer delay requests of the API or another connector.

use std::time::{Duration, Instant};

use super::api::Api;
use super::options::HttpPayments;
use super::provider;
use crate::Failure;
use crate::histogram::Histogram;
use crate::report::{Report, rate};

/// Number of connectors whose providers hang.
const HANGING: u64 = 50;

/// Divisor of the run's number of payments. The other connector ingests this part of them in each turn.
const INGESTED_ONE_IN: u64 = 50;

/// The figures of all turns without hanging providers, or of all turns with them.
#[derive(Default)]
struct Figures {
    reads: Histogram,
    writes: Histogram,
    ingested: u64,
    ingesting: Duration,
}

/// Measures requests and another connector in turns without and with hanging providers.
///
/// # Errors
///
/// Fails if the server gives an unexpected answer.
pub(super) async fn measure(
    run: &HttpPayments,
    api: &mut Api,
    base: &str,
    report: &mut Report,
) -> Result<(), Failure> {
    api.ask("POST", "/v2/beside", "{}").await?;
    let payments = (run.payments / INGESTED_ONE_IN).max(2);
    let mut sides = [Figures::default(), Figures::default()];
    for turn in 0..run.turns {
        let mut hanging = Vec::new();
        for (at, side) in sides.iter_mut().enumerate() {
            if at == 1 {
                for number in 0..HANGING {
                    let name = format!("hanging {turn}.{number}");
                    hanging.push(api.install(&name, &format!("{base}/hanging"), "1s").await?);
                }
            }
            requests(run, api, side).await?;
            let name = format!("beside {turn}.{at}");
            side.ingesting += ingest(api, base, &name, payments).await?;
            side.ingested += payments;
        }
        for connector in hanging {
            api.uninstall(&connector).await?;
        }
    }
    for (side, name) in sides.iter().zip(["alone", "beside_hanging"]) {
        report.latency(&format!("{name}_read_"), &format!("{name}: a page of payments"), &side.reads);
        report.latency(&format!("{name}_write_"), &format!("{name}: a transaction"), &side.writes);
        let figure = rate(side.ingested, side.ingesting);
        report.number(&format!("{name}_payments_per_s"), figure);
        println!("{name}: another connector brings in {figure:.0} payments/s");
    }
    Ok(())
}

/// Sends reads and writes for the configured time, and records their latencies.
async fn requests(run: &HttpPayments, api: &mut Api, side: &mut Figures) -> Result<(), Failure> {
    const TRANSACTION: &str =
        r#"{"postings":[{"source":"world","destination":"shop","asset":"EUR/2","amount":1}]}"#;
    let begin = Instant::now();
    while begin.elapsed() < run.time {
        side.reads.record(api.timed("GET", "/api/payments/payments", "").await?);
        side.writes.record(api.timed("POST", "/v2/beside/transactions", TRANSACTION).await?);
    }
    Ok(())
}

/// Measures the time in which another connector ingests payments. Removes the connector afterwards.
async fn ingest(api: &mut Api, base: &str, name: &str, payments: u64) -> Result<Duration, Failure> {
    let begin = Instant::now();
    let connector = api.install(name, &format!("{base}/{payments}"), "1h").await?;
    api.wait_for_payment(&connector, &provider::date(payments - 1).to_string()).await?;
    let took = begin.elapsed();
    api.uninstall(&connector).await?;
    Ok(took)
}
