//! Measures how fast a connector ingests payments, with and without a posting rule, and how fast a client that stores
//! nothing receives them from the provider.

use std::time::Instant;

use serde_json::{Value, json};

use super::api::{Api, escape};
use super::options::HttpPayments;
use super::provider;
use crate::Failure;
use crate::http_client::Connection;
use crate::http_load::refused;
use crate::process::processor_time;
use crate::report::{Report, rate};

/// Number of rows on a page that the connector requests.
const PAGE_SIZE: u64 = 100;

/// The script of the posting rule. It posts the amount of each payment from the ledger account of the payment's source
/// to the one of its destination.
const SCRIPT: &str = "vars {\n  monetary $amount\n  account $source\n  account $destination\n}\n\
    send $amount (\n  source = $source allowing unbounded overdraft\n  destination = $destination\n)\n";

/// Measures the upper bound of the ingestion: a client that stores nothing fetches all pages with one connection, as
/// the connector does, and parses them.
///
/// # Errors
///
/// Fails if the provider gives an unexpected answer.
pub(super) async fn measure_bare_client(
    run: &HttpPayments,
    endpoint: &str,
    report: &mut Report,
) -> Result<(), Failure> {
    let (address, path) = endpoint.trim_start_matches("http://").split_once('/').ok_or("an endpoint")?;
    let mut connection = Connection::connect(address).await?;
    let (mut since, mut fetched) = (0, 0);
    let begin = Instant::now();
    while since + 1 < run.payments {
        let from = escape(&provider::date(since).to_string());
        let request = format!(
            "GET /{path}/transactions?pageSize={PAGE_SIZE}&page=1&updatedAtFrom={from} HTTP/1.1\r\n\
             host: localhost\r\n\r\n"
        );
        let answer = connection.exchange(request.as_bytes()).await?;
        if answer.status != 200 {
            return Err(refused(answer.status, answer.body));
        }
        let rows: Vec<Value> = serde_json::from_slice(answer.body)?;
        fetched += rows.len() as u64;
        // The next page starts at the date of the last row, as the connector's does, so it repeats this row.
        since += rows.len() as u64 - 1;
    }
    let figure = rate(fetched, begin.elapsed());
    report.number("provider_payments_per_s", figure);
    println!("a bare client of the provider: {figure:.0} payments/s");
    Ok(())
}

/// Installs a connector, with a posting rule if `has_rule` is set, and measures the time until the server lists the
/// newest payment. Returns the id of the connector.
///
/// # Errors
///
/// Fails if the server or the connector fails.
pub(super) async fn ingest(
    run: &HttpPayments,
    server: u32,
    api: &mut Api,
    endpoint: &str,
    has_rule: bool,
    report: &mut Report,
) -> Result<String, Failure> {
    let name = if has_rule { "posted" } else { "plain" };
    // The rule must exist before the first payment, so the connector gets the provider's address after the rule.
    let connector = api.install(name, if has_rule { "" } else { endpoint }, "1h").await?;
    let cpu_time = || processor_time(server).unwrap_or_default();
    let (mut begin, mut cpu_before) = (Instant::now(), cpu_time());
    if has_rule {
        // Create the ledger `payments`, which the rule names.
        api.ask("POST", "/v2/payments", "{}").await?;
        let path = format!("/api/payments/connectors/GENERIC/{connector}");
        let rule = json!({"ledger": "payments", "script": SCRIPT});
        api.ask("PUT", &format!("{path}/postings"), &rule.to_string()).await?;
        let config = json!({"name": name, "apiKey": "key", "endpoint": endpoint, "pollingPeriod": "1h"});
        (begin, cpu_before) = (Instant::now(), cpu_time());
        api.ask("POST", &format!("{path}/config"), &config.to_string()).await?;
    }
    let newest = provider::date(run.payments - 1).to_string();
    api.wait_for_payment(&connector, &newest).await?;
    let took = begin.elapsed();
    let micros = cpu_time().saturating_sub(cpu_before).as_secs_f64() * 1e6 / run.payments as f64;
    let figure = rate(run.payments, took);
    report.number(&format!("{name}_payments_per_s"), figure);
    report.number(&format!("{name}_cpu_us_per_payment"), micros);
    println!("{name}: {figure:.0} payments/s, server CPU {micros:.2} us each");
    Ok(connector)
}
