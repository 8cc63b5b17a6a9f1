//! Benchmark of commits. Each commit is one durable write to the journal, regardless of its size.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ledger_store::{SystemClock, TimeSource};

use benches::bench_store::BenchStore;
use benches::workload::{Content, submission};

fn append(criterion: &mut Criterion) {
    for (mode, content) in [("plain", Content::Plain), ("rich", Content::Rich)] {
        let mut group = criterion.benchmark_group(format!("append {mode}, one fdatasync a commit"));
        group.sample_size(20);
        let bench = BenchStore::new(content, 10_000, 0).expect("a store on disk");
        let mut workload = bench.workload.clone();
        for size in [1, 8192] {
            group.throughput(Throughput::Elements(size as u64));
            group.bench_function(size.to_string(), |bencher| {
                bencher.iter_batched(
                    || submission(workload.batch(size, SystemClock.now())),
                    |submission| bench.store.apply(submission).expect("the store takes writes"),
                    BatchSize::PerIteration,
                );
            });
        }
        group.finish();
    }
}

criterion_group!(benches, append);
criterion_main!(benches);
