//! Benchmark of reads. Each takes a new snapshot, and reads data that is durable and in the index.

use criterion::{Criterion, criterion_group, criterion_main};
use ledger_store::{SystemClock, TimeSource};

use benches::bench_store::{BenchStore, is_short_pass};
use benches::reads::{ReadKind, Reader};
use benches::workload::Content;

fn read(criterion: &mut Criterion) {
    let (accounts, transactions) = if is_short_pass() { (100, 2_000) } else { (10_000, 500_000) };
    let from = SystemClock.now();
    let bench = BenchStore::new(Content::Rich, accounts, transactions).expect("a store on disk");
    let mut reader = Reader::new(bench.workload.addresses(), from, SystemClock.now(), 1);
    let mut group = criterion.benchmark_group("read, of a durable store at rest");
    for kind in ReadKind::ALL {
        group.bench_function(kind.name(), |bencher| {
            bencher.iter(|| reader.ask(&bench.store, kind).expect("the store is readable"));
        });
    }
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
