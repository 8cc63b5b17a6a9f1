//! Compares the store with the naive engine. They take turns with slices of the same work, so that changes of the
//! machine's speed affect both.

use std::time::{Duration, Instant};

use ledger_store::{SystemClock, TimeSource};

use crate::Failure;
use crate::calibration;
use crate::data_dir::{DataDir, disk_bytes};
use crate::embedded::{Load, drive};
use crate::histogram::Histogram;
use crate::naive::NaiveLedger;
use crate::report::{Report, rate};
use crate::workload::Workload;

/// Number of turns of each engine.
const SLICES: u64 = 4;

/// Gives each engine the same transactions in turn, and reports both rates and their ratio. Each turn of the
/// store ends with a flush of the index, so that its work is complete.
///
/// # Errors
///
/// Fails if an engine fails or refuses a transaction.
pub fn run(load: &Load) -> Result<Report, Failure> {
    let data_dir = DataDir::new(load.data.clone())?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    let mut workload = Workload::new(load.profile.clone(), 1);
    let store_path = data_dir.path().join("store");
    let store = load.funded_store(&store_path, &workload)?;
    let naive_path = data_dir.path().join("naive.redb");
    let mut naive = NaiveLedger::create(&naive_path)?;
    for requests in workload.funding(8192) {
        naive.apply(&requests, SystemClock.now())?;
    }
    let mut naive_workload = workload.clone();
    let slice = Load { transactions: (load.transactions / SLICES).max(1), ..load.clone() };
    let (mut store_time, mut naive_time) = (Duration::ZERO, Duration::ZERO);
    let (mut store_latency, mut naive_latency) = (Histogram::default(), Histogram::default());
    for number in 1..=SLICES {
        let begin = Instant::now();
        store_latency.merge(&drive(&slice, &store, &mut workload)?.latency);
        store.flush();
        let store_took = begin.elapsed();
        let begin = Instant::now();
        drive_naive(&slice, &mut naive, &mut naive_workload, &mut naive_latency)?;
        let naive_took = begin.elapsed();
        println!(
            "slice {number}: store {:.0} tx/s, naive {:.0} tx/s, ratio {:.2}",
            rate(slice.transactions, store_took),
            rate(slice.transactions, naive_took),
            naive_took.as_secs_f64() / store_took.as_secs_f64()
        );
        store_time += store_took;
        naive_time += naive_took;
    }
    let count = slice.transactions * SLICES;
    let ratio = naive_time.as_secs_f64() / store_time.as_secs_f64();
    report.text("what", "compare");
    report.text("content", load.profile.content.name());
    report.count("transactions", count);
    report.count("accounts", load.profile.accounts);
    report.number("tx_per_s_indexed", rate(count, store_time));
    report.number("naive_tx_per_s", rate(count, naive_time));
    report.number("ratio", ratio);
    println!(
        "rate: store {:.0} tx/s to the end of the flush, naive {:.0} tx/s, ratio {ratio:.2}",
        rate(count, store_time),
        rate(count, naive_time)
    );
    report.latency("", "latency of a batch, store", &store_latency);
    report.latency("naive_", "latency of a batch, naive", &naive_latency);
    store.close()?;
    let all = naive.transactions()?;
    drop(naive);
    let (store_bytes, naive_bytes) = (disk_bytes(&store_path)?, std::fs::metadata(&naive_path)?.len());
    report.number("bytes_per_tx", store_bytes as f64 / all as f64);
    report.number("naive_bytes_per_tx", naive_bytes as f64 / all as f64);
    println!(
        "disk: store {:.0} B/tx, naive {:.0} B/tx",
        store_bytes as f64 / all as f64,
        naive_bytes as f64 / all as f64
    );
    Ok(report)
}

fn drive_naive(
    load: &Load,
    naive: &mut NaiveLedger,
    workload: &mut Workload,
    latency: &mut Histogram,
) -> Result<(), Failure> {
    let mut left = load.transactions;
    while left > 0 {
        let size = (load.batch as u64).min(left);
        let requests = workload.batch(size as usize, SystemClock.now());
        let begin = Instant::now();
        naive.apply(&requests, SystemClock.now())?;
        latency.record(begin.elapsed());
        left -= size;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Content, Profile};

    #[test]
    fn both_engines_record_all_transactions() {
        let load = Load {
            profile: Profile {
                accounts: 20,
                content: Content::Rich,
                backdated_percent: 10,
                ..Profile::default()
            },
            transactions: 400,
            batch: 50,
            ..Load::default()
        };
        let report = run(&load).expect("figures");
        let figure = |name: &str| report.get(name).and_then(serde_json::Value::as_f64).expect("a figure");
        assert!((figure("transactions") - 400.0).abs() < 0.5);
        let ratio = figure("tx_per_s_indexed") / figure("naive_tx_per_s");
        assert!((figure("ratio") / ratio - 1.0).abs() < 0.01);
        assert!(figure("naive_bytes_per_tx") > 0.0);
    }
}
