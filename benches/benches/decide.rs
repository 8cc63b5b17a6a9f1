//! Benchmark of decisions in the core, without a store. Nothing is durable here.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use ledger_core::{Amount, Command, CreateTransaction, Facts, Posting, Timestamp, Volumes, decide, needs};

use benches::workload::{address, asset};

/// Returns a transaction with a chain of postings: the destination of each posting is the source of the next.
fn transfer(postings: u64) -> Command {
    let posting = |n| Posting {
        source: address(n),
        destination: address(n + 1),
        amount: Amount::from(10_u64),
        asset: asset(),
    };
    Command::CreateTransaction(CreateTransaction::of((0..postings).map(posting).collect()))
}

fn decide_transfers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide, in memory");
    let now = Timestamp::from_micros(1_700_000_000_000_000);
    for (name, postings) in [("1 posting", 1), ("10 postings", 10)] {
        let command = transfer(postings);
        let rich = Volumes { input: Amount::from(1_000_000_u64), output: Amount::default() };
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || command.clone(),
                |command| {
                    let (slots, volumes) = {
                        let needs = needs(&command, None);
                        (needs.slots, needs.holdings.iter().map(|_| rich.clone()).collect())
                    };
                    let mut facts = Facts { volumes, ..Facts::default() };
                    black_box(decide(&command, &slots, &mut facts, now).expect("all sources are funded"));
                    (command, facts)
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, decide_transfers);
criterion_main!(benches);
