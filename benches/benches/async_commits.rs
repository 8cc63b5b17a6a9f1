//! Commits of single payments from 64 tasks on a tokio runtime of two workers, against 64 threads. A timer of one
//! millisecond runs beside the tasks: commits that block a worker would delay it.
//!
//! `cargo bench -p benches --bench async_commits` prints both rates, their ratio, and the lateness of the timer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use benches::Failure;
use benches::bench_store::is_short_pass;
use benches::data_dir::DataDir;
use benches::histogram::Histogram;
use ledger_store::{Ledger, Store};

/// Number of callers, each of which waits for its commit before the next.
const CALLERS: usize = 64;
/// Number of rounds. The two ways take turns, so that a change of the machine's speed meets both.
const ROUNDS: usize = 5;

fn main() -> Result<(), Failure> {
    let (rounds, time) =
        if is_short_pass() { (1, Duration::from_millis(50)) } else { (ROUNDS, Duration::from_secs(3)) };
    let data_dir = DataDir::new(None)?;
    let store = Store::open(data_dir.path().join("store"))?;
    let ledger = store.ledger("main")?;
    ledger.transaction().posting("world", "users:0", 1, "USD/2").commit()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let mut late = Histogram::default();
    let (mut by_threads, mut by_tasks) = (0, 0);
    for _ in 0..rounds {
        by_threads += threads(&ledger, time)?;
        by_tasks += runtime.block_on(tasks(&ledger, time, &mut late))?;
    }
    let seconds = time.as_secs_f64() * rounds as f64;
    println!("64 threads: {:.0} commits/s", by_threads as f64 / seconds);
    println!("64 tasks on 2 workers: {:.0} commits/s", by_tasks as f64 / seconds);
    println!("tasks / threads: {:.2}", by_tasks as f64 / by_threads as f64);
    println!("timer of 1 ms, p99: {:.2} ms after its start", late.quantile(0.99).as_secs_f64() * 1_000.0);
    store.close()?;
    Ok(())
}

fn threads(ledger: &Ledger, time: Duration) -> Result<u64, Failure> {
    let until = Instant::now() + time;
    let commits = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let commits = &commits;
                scope.spawn(move || -> Result<(), ledger_store::LedgerError> {
                    while Instant::now() < until {
                        ledger
                            .transaction()
                            .posting("world", format!("users:{caller}"), 1, "USD/2")
                            .commit()?;
                        commits.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
    })?;
    Ok(commits.into_inner())
}

async fn tasks(ledger: &Ledger, time: Duration, late: &mut Histogram) -> Result<u64, Failure> {
    let until = Instant::now() + time;
    let over = Arc::new(AtomicBool::new(false));
    let timer = tokio::spawn(measure_timer(over.clone()));
    let workers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let ledger = ledger.clone();
            tokio::spawn(async move {
                let mut commits = 0;
                while Instant::now() < until {
                    let payment =
                        ledger.transaction().posting("world", format!("users:{caller}"), 1, "USD/2");
                    payment.commit_async().await?;
                    commits += 1;
                }
                Ok::<u64, ledger_store::LedgerError>(commits)
            })
        })
        .collect();
    let mut commits = 0;
    for worker in workers {
        commits += worker.await??;
    }
    over.store(true, Ordering::Relaxed);
    late.merge(&timer.await?);
    Ok(commits)
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
