//! Publishers: every event arrives in order, and an unreachable broker delays no write.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ledger_store::Store;
use serde_json::Value;
use stack_server::{PublishSettings, Publishers, Topics};

use crate::receiver::{Received, Receiver};
use crate::skipping::skipped;

fn http(receiver: &Receiver) -> PublishSettings {
    let topics = Topics::parse(&format!("*:{}", receiver.url("/in"))).expect("pairs");
    PublishSettings { topics, http: true, ..PublishSettings::default() }
}

fn pay(store: &Store, ledger: &str, amount: u64) {
    let ledger = store.ledger(ledger).expect("a name");
    ledger.transaction().posting("world", "a", amount, "USD").commit().expect("recorded");
}

fn amount(event: &Value) -> u64 {
    event["payload"]["transactions"][0]["postings"][0]["amount"].as_u64().expect("a transaction")
}

/// Returns the amounts in the events of a ledger, in order of acceptance.
fn amounts(received: &[Received], ledger: &str) -> Vec<u64> {
    let events = received.iter().map(Received::json);
    events.filter(|event| event["payload"]["ledger"] == ledger).map(|event| amount(&event)).collect()
}

#[test]
fn posts_events_in_order_and_retries_refused_ones() {
    let (store, receiver) = (Store::in_memory(), Receiver::start());
    pay(&store, "one", 1);
    let publishers = Publishers::start(&store, &http(&receiver)).expect("the publishers start");
    receiver.answer_next(&[500, 404, 302]);
    for amount in 2..=40 {
        pay(&store, if amount % 3 == 0 { "two" } else { "one" }, amount);
    }
    let taken = receiver.taken(39);
    let expected = |rest: bool| (2..=40).filter(|amount| (amount % 3 == 0) == rest).collect::<Vec<u64>>();
    assert_eq!(
        amounts(&taken, "one"),
        expected(false),
        "what was committed before it was first started is no event"
    );
    assert_eq!(amounts(&taken, "two"), expected(true));
    let all = receiver.wait("all", |_| true);
    assert_eq!(all.iter().filter(|one| one.status >= 300).count(), 3);
    // A repeated delivery has the same message id.
    let refused = all.iter().find(|one| one.status >= 300).expect("a refused delivery");
    let again = taken
        .iter()
        .find(|one| one.json()["payload"] == refused.json()["payload"])
        .expect("a repeated delivery");
    assert_eq!(again.headers["message-uuid"], refused.headers["message-uuid"]);
    let mut ids: Vec<_> = taken.iter().map(|one| &one.headers["message-uuid"]).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 39);
    assert!(taken.iter().all(|one| one.path == "/in" && one.headers["content-type"] == "application/json"));
    assert!(taken.iter().all(|one| serde_json::from_str::<Value>(&one.headers["message-metadata"]).is_ok()));
    assert!(taken.iter().all(|one| !one.headers.contains_key("formance-webhook-signature")));
    publishers.stop();
}

#[test]
fn resumes_after_last_acknowledged_event() {
    let directory = tempfile::tempdir().expect("a directory");
    let receiver = Receiver::start();
    let open = || Store::open(directory.path().join("data")).expect("the store opens");
    let mut next = 1;
    for _ in 0..3 {
        let store = open();
        let publishers = Publishers::start(&store, &http(&receiver)).expect("the publishers start");
        for _ in 0..5 {
            pay(&store, "one", next);
            next += 1;
        }
        receiver.taken(next as usize - 1);
        receiver.answer_always(Some(503));
        // The receiver refuses this event while the publisher runs.
        pay(&store, "one", next);
        next += 1;
        let unseen = next - 1;
        receiver.wait("an attempt", |all| all.iter().any(|one| amount(&one.json()) == unseen));
        publishers.stop();
        store.close().expect("the store closes");
        drop(store);
        receiver.answer_always(None);
        let store = open();
        // No publisher runs during this write.
        pay(&store, "one", next);
        next += 1;
        store.close().expect("the store closes");
    }
    let store = open();
    let publishers = Publishers::start(&store, &http(&receiver)).expect("the publishers start");
    let taken = receiver.taken(next as usize - 1);
    assert_eq!(amounts(&taken, "one"), (1..next).collect::<Vec<_>>(), "each once: nothing crashed");
    publishers.stop();
}

#[test]
fn posts_types_to_their_topics_and_skips_the_rest() {
    let (store, receiver) = (Store::in_memory(), Receiver::start());
    let url = |path: &str| receiver.url(path);
    let mapping = format!("SAVED_METADATA:{},COMMITTED_TRANSACTIONS:{}", url("/meta"), url("/tx"));
    let publishing = PublishSettings {
        topics: Topics::parse(&mapping).expect("pairs"),
        http: true,
        ..PublishSettings::default()
    };
    let publishers = Publishers::start(&store, &publishing).expect("the publishers start");
    let ledger = store.ledger("one").expect("a name");
    let paid = ledger.transaction().posting("world", "a", 1, "USD").commit().expect("recorded");
    ledger.revert(paid.id).commit().expect("reverted");
    ledger.set_account_metadata("a", [("k", "v")].into_iter().collect()).expect("set");
    let taken = receiver.taken(2);
    let paths: Vec<_> = taken.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["/tx", "/meta"]);
    publishers.stop();
    for (http, nats, mapping) in
        [(true, false, "*:events"), (true, false, ""), (false, true, "*:a.>"), (false, true, "*:a..b")]
    {
        let topics = Topics::parse(mapping).expect("pairs");
        let publishing = PublishSettings { topics, http, nats, ..PublishSettings::default() };
        let started = Publishers::start(&store, &publishing);
        assert!(started.is_err(), "{mapping}");
    }
}

#[test]
fn signs_events_for_http_receivers() {
    let (store, receiver) = (Store::in_memory(), Receiver::start());
    let directory = tempfile::tempdir().expect("a directory");
    let secrets = directory.path().join("secrets");
    std::fs::write(&secrets, "new-secret\nold-secret\n").expect("written");
    let publishing = PublishSettings { http_secrets: Some(secrets.clone()), ..http(&receiver) };
    let publishers = Publishers::start(&store, &publishing).expect("the publishers start");
    pay(&store, "one", 1);
    let taken = receiver.taken(1).remove(0);
    let (id, time) = (&taken.headers["formance-webhook-id"], &taken.headers["formance-webhook-timestamp"]);
    assert_eq!(id, &taken.headers["message-uuid"]);
    let signatures: Vec<_> = taken.headers["formance-webhook-signature"].split(' ').collect();
    let signed = format!("{id}.{time}.{}", taken.body);
    let sign =
        |secret: &str, text: &str| format!("v1,{}", STANDARD.encode(hmac_by_openssl(secret, text)?)).into();
    let Some(expected): Option<String> = sign("new-secret", &signed) else {
        skipped("no openssl to compare with");
        publishers.stop();
        return;
    };
    assert_eq!(signatures, [expected, sign("old-secret", &signed).expect("the program runs")]);
    for tampered in [format!("{id}.{time}0.{}", taken.body), format!("{id}.{time}.{} ", taken.body)] {
        let other: String = sign("new-secret", &tampered).expect("the program runs");
        assert!(!signatures.contains(&other.as_str()));
    }
    publishers.stop();
    std::fs::write(&secrets, "\n \n").expect("written");
    assert!(Publishers::start(&store, &publishing).is_err(), "an empty file would leave events unsigned");
}

/// Computes the HMAC-SHA-256 with the `openssl` program.
fn hmac_by_openssl(secret: &str, text: &str) -> Option<Vec<u8>> {
    let mut openssl = Command::new("openssl")
        .args(["dgst", "-sha256", "-mac", "HMAC", "-binary", "-macopt", &format!("key:{secret}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    openssl.stdin.take()?.write_all(text.as_bytes()).ok()?;
    Some(openssl.wait_with_output().ok()?.stdout).filter(|digest| digest.len() == 32)
}

/// A real NATS server on its own port.
pub(crate) struct Broker {
    child: Option<Child>,
    port: u16,
    directory: tempfile::TempDir,
}

impl Broker {
    /// Starts a NATS server. Returns `None` if the program is not installed.
    pub(crate) fn start() -> Option<Self> {
        let port =
            TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address").port();
        let mut broker = Self { child: None, port, directory: tempfile::tempdir().expect("a directory") };
        if broker.run() {
            return Some(broker);
        }
        skipped("no nats-server");
        None
    }

    /// Starts the program and waits until it answers.
    pub(crate) fn run(&mut self) -> bool {
        let command = Command::new("nats-server")
            .args(["--jetstream", "--addr", "127.0.0.1", "--port", &self.port.to_string(), "--store_dir"])
            .arg(self.directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = command else { return false };
        self.child = Some(child);
        let late = Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < late, "the broker does not come up");
            std::thread::yield_now();
        }
        true
    }

    /// Kills the program, like a crash.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the process can be killed");
            child.wait().expect("the process ends");
        }
    }

    /// Subscribes to a subject, without `JetStream`.
    fn subscribe(&self, subject: &str) -> Subscription {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the broker is there");
        stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
        let hello = format!("CONNECT {{\"verbose\":false,\"headers\":false}}\r\nSUB {subject} 1\r\nPING\r\n");
        stream.write_all(hello.as_bytes()).expect("sent");
        let mut subscription = Subscription(BufReader::new(stream));
        while !subscription.line().starts_with("PONG") {}
        subscription
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Waits until a stream holds `count` messages. Returns the headers and the body of each.
    #[track_caller]
    pub(crate) fn messages(&self, stream: &str, count: usize) -> Vec<(String, Value)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let client = async_nats::connect(self.url()).await.expect("the broker is there");
            let jetstream = async_nats::jetstream::new(client);
            let late = Instant::now() + Duration::from_mins(1);
            let (stream, last) = loop {
                if let Ok(mut stream) = jetstream.get_stream(stream).await
                    && let Ok(info) = stream.info().await
                    && info.state.messages >= count as u64
                {
                    let last = info.state.last_sequence;
                    break (stream, last);
                }
                assert!(Instant::now() < late, "the messages do not come");
                tokio::time::sleep(Duration::from_millis(20)).await;
            };
            let mut messages = Vec::new();
            for sequence in 1..=last {
                let message = stream.get_raw_message(sequence).await.expect("a message");
                let id = message.headers.get("Nats-Msg-Id").expect("an id").to_string();
                assert_eq!(
                    message.headers.get("_watermill_message_uuid").map(ToString::to_string),
                    Some(id.clone())
                );
                messages.push((id, serde_json::from_slice(&message.payload).expect("JSON")));
            }
            messages
        })
    }
}

/// A connection to a broker that gets the messages of a subject.
struct Subscription(BufReader<TcpStream>);

impl Subscription {
    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).expect("a line in time") > 0, "the broker ends the connection");
        line
    }

    /// Waits for the next message.
    fn message(&mut self) -> Value {
        loop {
            let line = self.line();
            if let Some(head) = line.strip_prefix("MSG ") {
                let length = head.trim_end().rsplit(' ').next().and_then(|length| length.parse().ok());
                let mut body = vec![0; length.expect("a length")];
                self.0.read_exact(&mut body).expect("the message");
                return serde_json::from_slice(&body).expect("JSON");
            }
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn events_go_to_nats_with_their_acknowledgements() {
    let Some(mut broker) = Broker::start() else { return };
    let store = Store::in_memory();
    let mut publishing = PublishSettings { nats: true, ..PublishSettings::default() };
    publishing.topics = Topics::parse("*:stack.ledger,SAVED_METADATA:meta").expect("pairs");
    publishing.nats_settings.url = broker.url();
    publishing.nats_settings.reconnect_wait = Duration::from_millis(20);
    let publishers = Publishers::start(&store, &publishing).expect("the publishers start");
    for amount in 1..=20 {
        pay(&store, "one", amount);
    }
    store
        .ledger("one")
        .expect("a name")
        .set_account_metadata("a", [("k", "v")].into_iter().collect())
        .expect("set");
    let before = broker.messages("stack_ledger", 20);
    assert_eq!(
        before.iter().map(|(_, event)| amount(event)).collect::<Vec<_>>(),
        (1..=20).collect::<Vec<_>>()
    );
    assert_eq!(broker.messages("meta", 1)[0].1["type"], "SAVED_METADATA");
    broker.kill();
    for amount in 21..=40 {
        // An unreachable broker delays no write.
        pay(&store, "one", amount);
    }
    assert!(broker.run());
    let all = broker.messages("stack_ledger", 40);
    let mut seen = Vec::new();
    let first: Vec<u64> = all
        .iter()
        .filter(|(id, _)| {
            let new = !seen.contains(id);
            seen.push(id.clone());
            new
        })
        .map(|(_, event)| amount(event))
        .collect();
    assert_eq!(first, (1..=40).collect::<Vec<_>>());
    publishers.stop();
}

#[test]
fn nats_streams_are_there_before_the_first_event() {
    let Some(broker) = Broker::start() else { return };
    let mut publishing = PublishSettings { nats: true, ..PublishSettings::default() };
    publishing.topics = Topics::parse("*:stack.ledger,SAVED_METADATA:meta").expect("pairs");
    publishing.nats_settings.url = broker.url();
    // The first attempt to connect does not wait for this pause.
    publishing.nats_settings.reconnect_wait = Duration::from_hours(1);
    let publishers = Publishers::start(&Store::in_memory(), &publishing).expect("the publishers start");
    assert!(broker.messages("stack_ledger", 0).is_empty());
    assert!(broker.messages("meta", 0).is_empty());
    publishers.stop();
}

#[test]
fn first_event_to_nats_waits_for_its_stream() {
    let Some(broker) = Broker::start() else { return };
    // With this subscription the broker does not report to the publisher that no stream accepts the event.
    let mut subscription = broker.subscribe("stack.ledger");
    let store = Store::in_memory();
    let mut publishing = PublishSettings { nats: true, ..PublishSettings::default() };
    publishing.topics = Topics::parse("*:stack.ledger").expect("pairs");
    publishing.nats_settings.url = broker.url();
    let publishers = Publishers::start(&store, &publishing).expect("the publishers start");
    pay(&store, "one", 1);
    pay(&store, "one", 2);
    let received = [subscription.message(), subscription.message()].map(|event| amount(&event));
    assert_eq!(received, [1, 2], "an event that is not acknowledged comes again");
    publishers.stop();
}

#[test]
fn connects_to_receivers_before_the_first_event() {
    let (first, second) = (listener(), listener());
    let address = |listener: &TcpListener| listener.local_addr().expect("an address");
    let mapping = format!("*:http://{}/a,SAVED_METADATA:http://{}/b", address(&first), address(&second));
    let store = Store::in_memory();
    let topics = Topics::parse(&mapping).expect("pairs");
    let publishing = PublishSettings { topics, http: true, ..PublishSettings::default() };
    let publishers = Publishers::start(&store, &publishing).expect("the publishers start");
    let (mut used, _idle) = (accepted(&first), accepted(&second));
    pay(&store, "one", 1);
    let mut head = [0; 10];
    used.read_exact(&mut head).expect("the event comes over the open connection");
    assert_eq!(&head, b"POST /a HT");
    assert!(first.accept().is_err(), "one connection is enough");
    publishers.stop();
}

#[test]
fn idle_publisher_replaces_closed_connections() {
    let receiver = listener();
    let mapping = format!("*:http://{}/", receiver.local_addr().expect("an address"));
    let topics = Topics::parse(&mapping).expect("pairs");
    let publishing = PublishSettings { topics, http: true, ..PublishSettings::default() };
    let (store, began) = (Store::in_memory(), Instant::now());
    let publishers = Publishers::start(&store, &publishing).expect("the publishers start");
    // The receiver closes the first connections. There is no event meanwhile.
    drop(accepted(&receiver));
    drop(accepted(&receiver));
    let mut third = accepted(&receiver);
    // A receiver that closes every connection at once does not get them without pause.
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    pay(&store, "one", 1);
    let mut head = [0; 6];
    third.read_exact(&mut head).expect("the event comes over the open connection");
    assert_eq!(&head, b"POST /");
    assert!(receiver.accept().is_err(), "the event needs no further connection");
    publishers.stop();
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}

/// Waits for a connection with a time limit.
#[track_caller]
fn accepted(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).expect("a socket option");
    let late = Instant::now() + Duration::from_secs(30);
    loop {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false).expect("a socket option");
            stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
            return stream;
        }
        assert!(Instant::now() < late, "nobody connects");
        std::thread::yield_now();
    }
}

#[test]
fn stopping_does_not_wait_for_a_dead_receiver() {
    // The listener accepts connections but never answers.
    let silent = listener();
    let store = Store::in_memory();
    let topics =
        Topics::parse(&format!("*:http://{}/", silent.local_addr().expect("an address"))).expect("pairs");
    let publishers =
        Publishers::start(&store, &PublishSettings { topics, http: true, ..PublishSettings::default() });
    let publishers = publishers.expect("the publishers start");
    // Wait for the connection before the event, so that the event comes over it.
    let mut waiting = accepted(&silent);
    pay(&store, "one", 1);
    assert_eq!(waiting.read(&mut [0]).expect("an attempt"), 1);
    let began = Instant::now();
    publishers.stop();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
