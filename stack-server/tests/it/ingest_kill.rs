//! Kills the server while it ingests payments from a provider that repeats, swaps, reorders, truncates and fails pages
//! at random. In the end, each payment and its transaction exist once, as the provider has them.
//!
//! The ordinary run is short. `INGEST_PAYMENTS=100000 INGEST_KILLS=20 cargo test -p stack-server --test it ingest_kill`
//! runs the whole campaign. `INGEST_SEED` chooses the faults.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ledger_core::Timestamp;
use serde_json::{Value, json};

use crate::kill::{Running, ask, start_with_log};
use crate::provider::{Provider, ReceivedRequest, Reply};

const KEY: &str = "canary-of-the-campaign";

/// A transaction of the provider: its number, and how often it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    number: usize,
    changes: u64,
}

/// The records of the provider, ordered by the date of the last change.
struct ProviderRecords {
    by_date: BTreeMap<u64, Record>,
    next_second: u64,
    seed: u64,
    before: String,
}

impl ProviderRecords {
    fn new(count: usize, seed: u64) -> Self {
        let by_date = (0..count).map(|number| (number as u64, Record { number, changes: 0 })).collect();
        Self { by_date, next_second: count as u64, seed, before: "[]".to_owned() }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % below
    }

    /// Changes a random record, which moves it to the end of the list.
    fn change_one(&mut self) {
        let place = self.random(self.next_second);
        let Some((&second, _)) = self.by_date.range(place..).next() else { return };
        let mut record = self.by_date.remove(&second).expect("a record");
        record.changes += 1;
        self.by_date.insert(self.next_second, record);
        self.next_second += 1;
    }

    fn page(&self, since: u64, page: usize, size: usize) -> Vec<Value> {
        let rows = self.by_date.range(since..).skip((page - 1) * size).take(size);
        rows.map(|(second, record)| transaction(*second, record)).collect()
    }
}

/// Returns the first date of the records.
fn first() -> Timestamp {
    Timestamp::parse("2020-01-01T00:00:00Z").expect("a date")
}

fn transaction(second: u64, record: &Record) -> Value {
    let at = Timestamp::from_micros(first().as_micros() + second as i64 * 1_000_000).to_string();
    json!({"id": format!("t{}", record.number), "createdAt": "2020-01-01T00:00:00Z", "updatedAt": at,
        "currency": "EUR", "type": "PAYIN", "status": "SUCCEEDED", "amount": amount(record).to_string()})
}

fn amount(record: &Record) -> u64 {
    record.number as u64 * 1_000 + record.changes
}

fn number(query: &str, name: &str) -> Option<usize> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

fn answer(records: &Mutex<ProviderRecords>, is_faulty: &AtomicBool, asked: &ReceivedRequest) -> Reply {
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    if path != "/transactions" {
        return Reply::Whole(200, "[]".to_owned());
    }
    let mut records = records.lock().expect("no panic");
    let since = query.split('&').find_map(|pair| pair.strip_prefix("updatedAtFrom="));
    let since = since.map_or(0, |text| {
        let at = Timestamp::parse(&text.replace("%3A", ":")).expect("a date");
        ((at.as_micros() - first().as_micros()) / 1_000_000).max(0) as u64
    });
    let (page, size) = (number(query, "page").unwrap_or(1), number(query, "pageSize").unwrap_or(100));
    let mut rows = records.page(since, page, size);
    let fault = if is_faulty.load(Ordering::Relaxed) { records.random(40) } else { u64::MAX };
    match fault {
        0 => return Reply::Whole(503, "down".to_owned()),
        1 => return Reply::Truncated(json!(rows).to_string()),
        2..5 => return Reply::Whole(200, records.before.clone()),
        // Do not send another page instead of the very first one, because the connector could not detect that.
        5..8 if since > 0 || page > 1 => rows = records.page(since, page + 1, size),
        8..11 => {
            for at in (1..rows.len()).rev() {
                let other = records.random(at as u64 + 1) as usize;
                rows.swap(at, other);
            }
        }
        11..15 => records.change_one(),
        _ => {}
    }
    let text = json!(rows).to_string();
    records.before.clone_from(&text);
    Reply::Whole(200, text)
}

/// Returns the amounts of all payments by reference.
fn payments(address: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut path = "/api/payments/payments?pageSize=1000&sort=reference:asc".to_owned();
    loop {
        let (status, answer) = ask(address, "GET", &path, "").expect("an answer");
        assert_eq!(status, 200, "{answer}");
        for payment in answer["cursor"]["data"].as_array().expect("a list") {
            let reference = payment["reference"].as_str().expect("a reference").to_owned();
            let amount = payment["amount"].as_u64().expect("an amount");
            assert!(found.insert(reference, amount).is_none(), "a payment came twice: {payment}");
        }
        match answer["cursor"]["next"].as_str() {
            Some(next) => path = format!("/api/payments/payments?cursor={next}"),
            None => return found,
        }
    }
}

/// A script that posts each payment to a separate account.
const SCRIPT: &str = "vars {\n  monetary $amount\n  string $reference\n}\nsend $amount (\n  source = @world\n  \
     destination = @paid:$reference\n)";

/// Creates a ledger, and a rule that posts the payments of the installation to it.
fn switch_postings_on(address: &str, connector: &str) {
    let created = ask(address, "POST", "/v2/main", "{}");
    assert_eq!(created.map(|(status, _)| status), Some(204));
    let path = format!("/api/payments/connectors/GENERIC/{connector}/postings");
    let rule = json!({"ledger": "main", "script": SCRIPT}).to_string();
    let set = ask(address, "PUT", &path, &rule).expect("an answer");
    assert_eq!(set.0, 200, "{}", set.1);
}

/// Returns the balances of the payments' accounts by reference.
fn balances(address: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut path = "/v2/main/volumes?pageSize=1000".to_owned();
    loop {
        let (status, answer) = ask(address, "GET", &path, "").expect("an answer");
        assert_eq!(status, 200, "{answer}");
        for row in answer["cursor"]["data"].as_array().expect("a list") {
            let account = row["account"].as_str().expect("an account");
            if let Some(reference) = account.strip_prefix("paid:") {
                found.insert(reference.to_owned(), row["balance"].as_u64().expect("a balance"));
            }
        }
        match answer["cursor"]["next"].as_str() {
            Some(next) => path = format!("/v2/main/volumes?cursor={next}"),
            None => return found,
        }
    }
}

/// Waits until the payments and the balances equal those of the provider. The first payment has no amount until it
/// changes.
fn until_complete(address: &str, expected: &BTreeMap<String, u64>) {
    let bound = Duration::from_secs(25 + expected.len() as u64 / 200);
    let began = Instant::now();
    loop {
        let found = payments(address);
        if found == *expected {
            break;
        }
        let missing = expected.iter().filter(|(reference, amount)| found.get(*reference) != Some(amount));
        assert!(began.elapsed() < bound, "{} of {} payments are missing", missing.count(), expected.len());
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let mut balances = balances(address);
    balances.retain(|_, balance| *balance > 0);
    let due = expected.iter().filter(|(_, amount)| **amount > 0);
    assert_eq!(balances, due.map(|(reference, amount)| (reference.clone(), *amount)).collect());
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn kill(running: &mut Running) {
    running.child.kill().expect("the process can be killed");
    running.child.wait().expect("the process ends");
}

/// Waits until the provider has received this many requests, or receives no more.
fn until_asked(asked: &AtomicU64, count: u64) {
    let began = Instant::now();
    while asked.load(Ordering::Relaxed) < count && began.elapsed() < Duration::from_secs(25) {
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn ingests_once_from_faulty_provider_after_kills() {
    let (count, kills) = (setting("INGEST_PAYMENTS", 1_500) as usize, setting("INGEST_KILLS", 3));
    let seed = setting("INGEST_SEED", 7);
    let records = Arc::new(Mutex::new(ProviderRecords::new(count, seed)));
    let (is_faulty, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let is_open = Arc::new(AtomicBool::new(false));
    let provider = Provider::start();
    let (shared, faulty, counter) = (records.clone(), is_faulty.clone(), asked.clone());
    let open = is_open.clone();
    provider.handle(move |request| {
        if !open.load(Ordering::Relaxed) {
            return Some(Reply::Whole(503, "closed".to_owned()));
        }
        counter.fetch_add(1, Ordering::Relaxed);
        Some(answer(&shared, &faulty, request))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let start = || {
        let log = std::fs::File::options().create(true).append(true).open(folder.path().join("log"));
        start_with_log(&data, &["--log-level".to_owned(), "debug".to_owned()], log.expect("a log"))
    };
    let mut running = start();
    let config = json!({"name": "g", "apiKey": KEY, "endpoint": provider.url(), "pollingPeriod": "50ms"});
    let installed = ask(&running.address, "POST", "/api/payments/connectors/GENERIC", &config.to_string());
    let (status, installed) = installed.expect("an answer");
    assert_eq!(status, 201, "{installed}");
    switch_postings_on(&running.address, installed["data"]["connectorID"].as_str().expect("an id"));
    is_open.store(true, Ordering::Relaxed);
    let pages = (count / 100) as u64;
    for round in 1..=kills {
        // Reading everything takes about one request for each page.
        until_asked(&asked, round * pages / kills);
        kill(&mut running);
        running = start();
    }
    until_asked(&asked, asked.load(Ordering::Relaxed) + pages);
    is_faulty.store(false, Ordering::Relaxed);
    let expected: BTreeMap<_, _> = {
        let records = records.lock().expect("no panic");
        records.by_date.values().map(|record| (format!("t{}", record.number), amount(record))).collect()
    };
    until_complete(&running.address, &expected);
    kill(&mut running);
    let log = std::fs::metadata(folder.path().join("log")).expect("a log");
    assert!(log.len() > 1_000, "the log has {} bytes", log.len());
    assert_no_secret(folder.path());
}

/// Fails if a file below a folder contains the key.
fn assert_no_secret(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            assert_no_secret(&entry.path());
            continue;
        }
        let bytes = std::fs::read(entry.path()).expect("a file");
        let has_key = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
        assert!(!has_key, "{}", entry.path().display());
    }
}
