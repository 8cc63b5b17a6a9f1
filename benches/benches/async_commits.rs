//! Commits of single payments, and long reads, from 64 tasks on a tokio runtime of two workers, against 64 threads. A
//! timer of one millisecond runs at the same time: a call that blocks a worker would delay it.
//!
//! `cargo bench -p benches --bench async_commits` prints both rates, their ratio, and the lateness of the timer.

#![allow(clippy::cast_precision_loss, reason = "figures are reported with few digits")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use benches::Failure;
use benches::bench_store::is_short_pass;
use benches::data_dir::DataDir;
use benches::histogram::Histogram;
use ledger_store::{Ledger, LedgerError, Store};

/// Number of callers, each of which waits for its answer before the next call.
const CALLERS: usize = 64;
/// Number of rounds. Tasks and threads take turns, so that a change of the machine's speed affects both.
const ROUNDS: usize = 5;
/// Number of accounts that a long read sums up, which takes some milliseconds.
const ACCOUNTS: usize = 20_000;
/// Number of accounts with volumes in a page of a long list.
const PAGE: usize = 2_000;

/// A call that has a blocking form and an asynchronous form.
#[derive(Clone, Copy, Debug)]
enum Call {
    Commit,
    Sum,
    List,
}

impl Call {
    fn block(self, ledger: &Ledger, caller: usize) -> Result<(), LedgerError> {
        match self {
            Self::Commit => {
                ledger.transaction().posting("world", account(caller), 1, "USD/2").commit().map(drop)
            }
            Self::Sum => ledger.balances().under("users:").now().map(drop),
            Self::List => ledger.accounts().with_volumes().page(PAGE).map(drop),
        }
    }

    async fn wait(self, ledger: &Ledger, caller: usize) -> Result<(), LedgerError> {
        match self {
            Self::Commit => {
                let payment = ledger.transaction().posting("world", account(caller), 1, "USD/2");
                payment.commit_async().await.map(drop)
            }
            Self::Sum => ledger.balances().under("users:").now_async().await.map(drop),
            Self::List => ledger.accounts().with_volumes().page_async(PAGE).await.map(drop),
        }
    }
}

fn account(number: usize) -> String {
    format!("users:{number}")
}

fn main() -> Result<(), Failure> {
    let (rounds, time) =
        if is_short_pass() { (1, Duration::from_millis(50)) } else { (ROUNDS, Duration::from_secs(3)) };
    let data_dir = DataDir::new(None)?;
    let store = Store::open(data_dir.path().join("store"))?;
    let ledger = store.ledger("main")?;
    let pay = |number| ledger.transaction().posting("world", account(number), 1, "USD/2");
    let funding = (0..ACCOUNTS).fold(ledger.batch(), |batch, number| batch.push(pay(number)));
    funding.commit()?.into_iter().try_for_each(|answer| answer.map(drop))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    for call in [Call::Commit, Call::Sum, Call::List] {
        let mut late = Histogram::default();
        let (mut by_threads, mut by_tasks) = (0, 0);
        for _ in 0..rounds {
            by_threads += threads(call, &ledger, time)?;
            by_tasks += runtime.block_on(tasks(call, &ledger, time, &mut late))?;
        }
        let seconds = time.as_secs_f64() * rounds as f64;
        println!("{call:?}, 64 threads: {:.0} calls/s", by_threads as f64 / seconds);
        println!("{call:?}, 64 tasks on 2 workers: {:.0} calls/s", by_tasks as f64 / seconds);
        println!("{call:?}, tasks / threads: {:.2}", by_tasks as f64 / by_threads as f64);
        let millis = |part| late.quantile(part).as_secs_f64() * 1_000.0;
        println!(
            "{call:?}, timer of 1 ms, p50 / p99: {:.2} / {:.2} ms after its start",
            millis(0.5),
            millis(0.99)
        );
    }
    store.close()?;
    Ok(())
}

fn threads(call: Call, ledger: &Ledger, time: Duration) -> Result<u64, Failure> {
    let until = Instant::now() + time;
    let calls = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let calls = &calls;
                scope.spawn(move || -> Result<(), LedgerError> {
                    while Instant::now() < until {
                        call.block(ledger, caller)?;
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
    })?;
    Ok(calls.into_inner())
}

async fn tasks(call: Call, ledger: &Ledger, time: Duration, late: &mut Histogram) -> Result<u64, Failure> {
    let until = Instant::now() + time;
    let over = Arc::new(AtomicBool::new(false));
    let timer = tokio::spawn(measure_timer(over.clone()));
    let workers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let ledger = ledger.clone();
            tokio::spawn(async move {
                let mut calls = 0;
                while Instant::now() < until {
                    call.wait(&ledger, caller).await?;
                    calls += 1;
                }
                Ok::<u64, LedgerError>(calls)
            })
        })
        .collect();
    let mut calls = 0;
    for worker in workers {
        calls += worker.await??;
    }
    over.store(true, Ordering::Relaxed);
    late.merge(&timer.await?);
    Ok(calls)
}

/// Measures how long sleeps of one millisecond take.
async fn measure_timer(over: Arc<AtomicBool>) -> Histogram {
    let mut measured = Histogram::default();
    while !over.load(Ordering::Relaxed) {
        let from = Instant::now();
        tokio::time::sleep(Duration::from_millis(1)).await;
        measured.record(from.elapsed());
    }
    measured
}
