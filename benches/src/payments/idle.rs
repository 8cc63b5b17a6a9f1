//! Measures the cost of installed connectors whose providers have nothing new.

use std::time::Instant;

use super::api::Api;
use super::options::HttpPayments;
use crate::Failure;
use crate::process::{Memory, processor_time};
use crate::report::Report;

/// Installs connectors during a polling period, so that their polls are spread evenly, and measures the server during
/// the next period. `server` is the id of its process, and `base` is the address of the provider.
///
/// # Errors
///
/// Fails if the server refuses an installation.
pub(super) async fn measure(
    options: &HttpPayments,
    server: u32,
    api: &mut Api,
    base: &str,
    report: &mut Report,
) -> Result<(), Failure> {
    let begin = Instant::now();
    let period = format!("{}s", options.period.as_secs());
    for number in 0..options.connectors {
        let due = begin + options.period.mul_f64(number as f64 / options.connectors as f64);
        tokio::time::sleep_until(due.into()).await;
        api.install(&format!("idle {number}"), &format!("{base}/0"), &period).await?;
    }
    let used = || processor_time(server).unwrap_or_default();
    let (begin, before) = (Instant::now(), used());
    tokio::time::sleep(options.period).await;
    let share = used().saturating_sub(before).as_secs_f64() / begin.elapsed().as_secs_f64() * 100.0;
    let memory = Memory::of_process(server);
    report.count("idle_connectors", options.connectors);
    report.number("idle_cpu_percent", share);
    report.count("idle_rss_bytes", memory.resident);
    report.count("idle_rss_peak_bytes", memory.peak);
    println!(
        "{} idle connectors: {share:.2} % of a processor, {} MiB resident, {} MiB at most",
        options.connectors,
        memory.resident >> 20,
        memory.peak >> 20
    );
    Ok(())
}
