//! Benchmark of batches including their flush into the index. Each batch is durable in the journal before its
//! answer, and all are durable in the index when the measurement ends.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ledger_store::{Submission, SystemClock, TimeSource};

use benches::bench_store::{BenchStore, is_short_pass};
use benches::workload::{Content, submission};

const BATCH: usize = 8192;

fn project(criterion: &mut Criterion) {
    let batches = if is_short_pass() { 1 } else { 16 };
    let mut group = criterion.benchmark_group("project, durable in journal and index");
    group.sample_size(10);
    group.throughput(Throughput::Elements((BATCH * batches) as u64));
    for (name, content) in [("plain", Content::Plain), ("rich", Content::Rich)] {
        let bench = BenchStore::new(content, 10_000, 0).expect("a store on disk");
        let mut workload = bench.workload.clone();
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || -> Vec<Submission> {
                    (0..batches).map(|_| submission(workload.batch(BATCH, SystemClock.now()))).collect()
                },
                |submissions| {
                    for submission in submissions {
                        bench.store.apply(submission).expect("the store takes writes");
                    }
                    bench.store.flush();
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, project);
criterion_main!(benches);
