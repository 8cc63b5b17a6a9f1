//! Measures pages of the list of payments: sorted by every field, with filters, and along the cursors to the end.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::api::{Api, escape};
use super::options::HttpPayments;
use super::provider;
use crate::Failure;
use crate::histogram::Histogram;
use crate::report::Report;
use crate::workload::Random;

/// The fields by which payments are sorted.
const FIELDS: [&str; 8] =
    ["createdAt", "reference", "amount", "initialAmount", "status", "type", "scheme", "asset"];

/// Filters, each with its name in the report. Those `of_none` match no payment. A run replaces `REFERENCE` and
/// `CONNECTOR` by its own values.
const FILTERS: [(&str, &str); 9] = [
    ("status", r#"{"$match":{"status":"FAILED"}}"#),
    ("status_of_none", r#"{"$match":{"status":"DISPUTE"}}"#),
    ("type", r#"{"$match":{"type":"TRANSFER"}}"#),
    ("asset", r#"{"$match":{"asset":"JPY"}}"#),
    ("asset_of_none", r#"{"$match":{"asset":"CHF/2"}}"#),
    ("reference", r#"{"$match":{"reference":"REFERENCE"}}"#),
    ("connector", r#"{"$match":{"connectorID":"CONNECTOR"}}"#),
    ("amount", r#"{"$gte":{"amount":500000}}"#),
    ("status_and_type", r#"{"$and":[{"$match":{"status":"FAILED"}},{"$match":{"type":"TRANSFER"}}]}"#),
];

/// Measures first pages, pages that cursors lead to, and filtered pages. Checks that the whole list has as many rows as
/// there are payments.
///
/// # Errors
///
/// Fails if the server gives an unexpected answer.
pub(super) async fn measure(
    run: &HttpPayments,
    api: &mut Api,
    connector: &str,
    report: &mut Report,
) -> Result<(), Failure> {
    for field in FIELDS {
        for direction in ["asc", "desc"] {
            let path = format!("/api/payments/payments?sort={field}:{direction}");
            let name = format!("by_{field}_{direction}");
            repeated(run, api, &path, &name, report).await?;
        }
        walk(run, api, field, report).await?;
    }
    whole(run, api, report).await?;
    let mut random = Random::new(1);
    for (name, filter) in FILTERS {
        let reference = provider::id(random.below(run.payments));
        let filter = filter.replace("REFERENCE", &reference).replace("CONNECTOR", connector);
        let path = format!("/api/payments/payments?query={}", escape(&filter));
        repeated(run, api, &path, &format!("filter_{name}"), report).await?;
    }
    Ok(())
}

/// Measures the same page many times.
async fn repeated(
    run: &HttpPayments,
    api: &mut Api,
    path: &str,
    name: &str,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut latency = Histogram::default();
    let begin = Instant::now();
    for _ in 0..run.reads {
        latency.record(api.timed("GET", path, "").await?);
        // Stop early if a list is very slow.
        if begin.elapsed().as_secs() >= 10 {
            break;
        }
    }
    report.latency(&format!("{name}_"), name, &latency);
    Ok(())
}

/// Measures pages of the usual size that follow each other by their cursors.
async fn walk(run: &HttpPayments, api: &mut Api, field: &str, report: &mut Report) -> Result<(), Failure> {
    let mut latency = Histogram::default();
    let mut path = format!("/api/payments/payments?sort={field}:desc");
    for _ in 0..run.reads {
        let (page, took) = page(api, &path).await?;
        latency.record(took);
        match page["cursor"]["next"].as_str() {
            None => break,
            Some(next) => path = format!("/api/payments/payments?cursor={next}"),
        }
    }
    let name = format!("walk_{field}");
    report.latency(&format!("{name}_"), &name, &latency);
    Ok(())
}

/// Reads the whole list in long pages. Reports the first and the last tenth of them apart, because the cost of a page
/// must not depend on its position.
async fn whole(run: &HttpPayments, api: &mut Api, report: &mut Report) -> Result<(), Failure> {
    let mut path = "/api/payments/payments?sort=amount:desc&pageSize=1000".to_owned();
    let (mut times, mut rows) = (Vec::new(), 0);
    loop {
        let (page, took) = page(api, &path).await?;
        times.push(took);
        rows += page["cursor"]["data"].as_array().map_or(0, Vec::len) as u64;
        match page["cursor"]["next"].as_str() {
            None => break,
            Some(next) => path = format!("/api/payments/payments?cursor={next}"),
        }
    }
    if rows != run.payments {
        return Err(format!("the list has {rows} payments of {}", run.payments).into());
    }
    let tenth = times.len().div_ceil(10);
    for (name, times) in [("first", &times[..tenth]), ("last", &times[times.len() - tenth..])] {
        let mut latency = Histogram::default();
        for took in times {
            latency.record(*took);
        }
        report.latency(&format!("whole_{name}_"), &format!("{name} tenth of long pages"), &latency);
    }
    Ok(())
}

/// Reads a page and measures the time until it is complete.
async fn page(api: &mut Api, path: &str) -> Result<(Value, Duration), Failure> {
    let (answer, took) = api.timed_answer("GET", path, "").await?;
    Ok((serde_json::from_slice(answer)?, took))
}
