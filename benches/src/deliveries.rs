//! The sub-command `deliveries`: measures the time from a commit to the delivery of its event, one event at a time.
//! Also reports the time of the first event by itself. The consumers are a stream, a receiver over HTTP, and a
//! subscriber of a NATS server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use lexopt::{Arg, Parser};

use crate::child::Spawned;
use crate::data_dir::DataDir;
use crate::histogram::Histogram;
use crate::http_client::Connection;
use crate::report::{Report, millis};
use crate::{Failure, arguments, calibration, wire};

const LEDGER: &str = "main";

/// The NATS subject (its word for a topic) to which the server publishes events.
const SUBJECT: &str = "deliveries";

/// Maximum time to wait for an event, or for a NATS server that starts.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Deliveries {
    /// The server program.
    pub spawn: PathBuf,
    /// The program of a NATS server. Without one NATS is not measured.
    pub nats: Option<PathBuf>,
    /// Number of events to each consumer.
    pub events: u64,
}

impl Deliveries {
    /// Parses the options of the sub-command.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown, its value is invalid, or there is no server.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let (mut spawn, mut nats, mut events) = (None, None, 500);
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("spawn") => spawn = Some(PathBuf::from(parser.value()?)),
                Arg::Long("nats") => nats = Some(PathBuf::from(parser.value()?)),
                Arg::Long("events") => events = arguments::count(parser)?,
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(Self { spawn: spawn.ok_or("--spawn is required: the server program to start")?, nats, events })
    }
}

/// Measures each consumer with a separate server.
///
/// # Errors
///
/// Fails if a server does not start, gives an unexpected answer, or delivers no event in time.
pub fn run(deliveries: &Deliveries) -> Result<Report, Failure> {
    let data_dir = DataDir::new(None)?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    report.text("what", "deliveries");
    report.count("events", deliveries.events);
    let start = |name: &str, flags: &[&str]| {
        let data = data_dir.path().join(name).into_os_string();
        let fixed = ["--listen", "127.0.0.1:0", "--data"].map(Into::into);
        let more = flags.iter().map(Into::into);
        Spawned::start_server(&deliveries.spawn, fixed.into_iter().chain([data]).chain(more))
    };
    let count = deliveries.events;

    let (_server, address) = start("stream", &[])?;
    let mut writer = Writer::new(&address)?;
    writer.measure("stream", &follow(&address)?, count, &mut report)?;

    let (mapping, arrivals) = receive()?;
    let flags = ["--publisher-http-enabled", "--publisher-topic-mapping", mapping.as_str()];
    let (_server, address) = start("http", &flags)?;
    Writer::new(&address)?.measure("http", &arrivals, count, &mut report)?;

    if let Some(program) = &deliveries.nats {
        let (_nats, broker) = start_nats(program, &data_dir.path().join("broker"))?;
        let arrivals = subscribe(broker)?;
        let (mapping, url) = (format!("*:{SUBJECT}"), format!("nats://{broker}"));
        let flags = [
            "--publisher-nats-enabled",
            "--publisher-nats-url",
            &url,
            "--publisher-topic-mapping",
            mapping.as_str(),
        ];
        let (_server, address) = start("nats", &flags)?;
        Writer::new(&address)?.measure("nats", &arrivals, count, &mut report)?;
    }
    Ok(report)
}

/// A connection to a server with a ledger.
struct Writer {
    runtime: tokio::runtime::Runtime,
    connection: Connection,
}

impl Writer {
    fn new(address: &str) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let connection = runtime.block_on(Connection::connect(address))?;
        let mut writer = Self { runtime, connection };
        writer.send(&wire::create_ledger(LEDGER))?;
        Ok(writer)
    }

    fn send(&mut self, request: &[u8]) -> Result<(), Failure> {
        let answer = self.runtime.block_on(self.connection.exchange(request))?;
        if answer.status >= 300 {
            return Err(format!("{}: {}", answer.status, String::from_utf8_lossy(answer.body)).into());
        }
        Ok(())
    }

    /// Writes `count` transactions. Waits for the event of each transaction before the next one. Reports the times from
    /// the answer, which follows the commit, to the event.
    fn measure(
        &mut self,
        consumer: &str,
        arrivals: &Receiver<Instant>,
        count: u64,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let body = r#"{"postings":[{"source":"world","destination":"a","amount":1,"asset":"USD"}]}"#;
        let request = format!(
            "POST /v2/{LEDGER}/transactions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut latency = Histogram::default();
        for number in 0..count {
            self.send(request.as_bytes())?;
            let committed = Instant::now();
            let delay = arrivals.recv_timeout(TIMEOUT)?.saturating_duration_since(committed);
            latency.record(delay);
            if number == 0 {
                report.number(&format!("{consumer}_first_ms"), millis(delay));
                println!("{consumer}: the first event after {:.3} ms", millis(delay));
            }
        }
        report.latency(&format!("{consumer}_"), &format!("{consumer}: commit to delivery"), &latency);
        Ok(())
    }
}

/// Runs `read` in a thread, which ends with its connection. Returns the times of the events that it reports.
fn in_background(read: impl FnOnce(Sender<Instant>) + Send + 'static) -> Receiver<Instant> {
    let (arrived, arrivals) = channel();
    std::thread::spawn(move || read(arrived));
    arrivals
}

/// Follows the stream of the ledger's events.
fn follow(address: &str) -> Result<Receiver<Instant>, Failure> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /v2/{LEDGER}/_events HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
    let mut lines = BufReader::new(stream).lines();
    // This line shows that the stream is open.
    if !lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("retry: ")) {
        return Err("the stream of events does not begin".into());
    }
    Ok(in_background(move |arrived| {
        for line in lines.map_while(Result::ok) {
            if line.starts_with("event: ") && arrived.send(Instant::now()).is_err() {
                return;
            }
        }
    }))
}

/// Starts an HTTP server that receives events. Returns the topic mapping with which a ledger server publishes to it.
fn receive() -> Result<(String, Receiver<Instant>), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mapping = format!("*:http://{}/", listener.local_addr()?);
    let arrivals = in_background(move |arrived| {
        for stream in listener.incoming().map_while(Result::ok) {
            let arrived = arrived.clone();
            // A connection that breaks off ends its thread.
            std::thread::spawn(move || receive_over(&stream, &arrived));
        }
    });
    Ok((mapping, arrivals))
}

fn receive_over(stream: &TcpStream, arrived: &Sender<Instant>) -> Result<(), Failure> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        reader.read_exact(&mut vec![0; length])?;
        arrived.send(Instant::now())?;
        (&mut (&*stream)).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    }
}

/// Starts a NATS server with `JetStream`, and waits until it answers.
fn start_nats(program: &Path, data: &Path) -> Result<(Spawned, SocketAddr), Failure> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let port = address.port().to_string();
    let fixed =
        ["--jetstream", "--addr", "127.0.0.1", "--port", port.as_str(), "--store_dir"].map(Into::into);
    let nats = Spawned::start(program, fixed.into_iter().chain([data.as_os_str().to_owned()]))?;
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        if begun.elapsed() > TIMEOUT {
            return Err("the NATS server does not listen".into());
        }
        std::thread::yield_now();
    }
    Ok((nats, address))
}

/// Subscribes to the topic of the events.
fn subscribe(broker: SocketAddr) -> Result<Receiver<Instant>, Failure> {
    let mut stream = TcpStream::connect(broker)?;
    stream.set_nodelay(true)?;
    let hello = format!("CONNECT {{\"verbose\":false,\"headers\":false}}\r\nSUB {SUBJECT} 1\r\nPING\r\n");
    stream.write_all(hello.as_bytes())?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while !line.starts_with("PONG") {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err("the NATS server ends the connection".into());
        }
    }
    Ok(in_background(move |arrived| {
        // A connection that breaks off ends the thread.
        let _ = read_messages(reader, &stream, &arrived);
    }))
}

/// Reads the messages of a subscription, and answers the pings of the NATS server.
fn read_messages(
    mut reader: BufReader<TcpStream>,
    mut stream: &TcpStream,
    arrived: &Sender<Instant>,
) -> Result<(), Failure> {
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line.starts_with("PING") {
            stream.write_all(b"PONG\r\n")?;
        } else if line.starts_with("MSG ") {
            let length: usize = line.trim_end().rsplit(' ').next().unwrap_or_default().parse()?;
            reader.read_exact(&mut vec![0; length + 2])?;
            arrived.send(Instant::now())?;
        }
    }
}
