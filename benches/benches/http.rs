//! Benchmark of writes over a loopback connection, one request at a time. Each write is durable before its answer.

use std::net::TcpListener;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ledger_store::{SystemClock, TimeSource};
use stack_server::{Server, Settings};

use benches::bench_store::BenchStore;
use benches::http_client::Connection;
use benches::wire;
use benches::workload::{Content, ledger_name};

fn http(criterion: &mut Criterion) {
    let (accounts, transactions) = (10_000, 0);
    let bench = BenchStore::new(Content::Rich, accounts, transactions).expect("a store on disk");
    let mut workload = bench.workload.clone();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = Server::start(&bench.store, Settings::default(), listener).expect("threads");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    let connected = runtime.block_on(Connection::connect(server.address()));
    let mut connection = connected.expect("the server listens");
    let mut group = criterion.benchmark_group("http, one durable commit a request");
    for (name, size) in [("single", 1), ("bulk of 100", 100)] {
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || {
                    let mut request = Vec::new();
                    let requests = workload.batch(size, SystemClock.now());
                    wire::encode_request(
                        wire::Api::V2,
                        ledger_name().as_str(),
                        &requests,
                        wire::Form::Postings,
                        &mut request,
                    )
                    .expect("transactions");
                    request
                },
                |request| {
                    let answer = runtime.block_on(connection.exchange(&request)).expect("an answer");
                    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(answer.body));
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
    drop(connection);
    server.stop();
}

criterion_group!(benches, http);
criterion_main!(benches);
