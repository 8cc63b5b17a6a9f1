//! The load program. Each sub-command runs one measurement. The last line that it prints is a JSON object with its
//! figures.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::net::TcpListener;
use std::process::ExitCode;

use benches::deliveries::{self, Deliveries};
use benches::embedded::{self, Load};
use benches::events::{self, Events};
use benches::hot_account::{self, HotAccount};
use benches::http_auth::{self, HttpAuth};
use benches::http_lists::{self, HttpLists};
use benches::http_load::{self, HttpLoad};
use benches::http_mixed::{self, HttpMixed};
use benches::http_reads::{self, HttpReads};
use benches::mixed::{self, Mixed};
use benches::payments::{self, HttpPayments};
use benches::{Failure, bare, compare, reopen, report::Report};
use lexopt::{Arg, Parser};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The help text. Defaults are in parentheses, some with an explanation.
///
/// `--plain` and `--rich` are the variants of `benches::workload::Content`, and `naive` is
/// `benches::naive::NaiveLedger`. "In turn" means that two variants alternate, so that changes of the machine's speed
/// affect both.
const USAGE: &str = "\
load embedded   writes to a store in this process
    --transactions N (10M) --accounts N (100k) --batch N (8192) --in-flight N (4; paced 32)
    --plain | --rich, --backdated PERCENT (0), --hot PERCENT (0), --memory-budget SIZE (512MiB)
    --paced TX_PER_S   at fixed times; latencies count from these
    --single --clients N (1)   submissions of one; a single client blocks on each
    --compare naive (2M)   in turn with a B-tree for everything
    --data DIR (a fresh one that is removed), --verbose
load mixed      writes at a steady rate beside readers, which are also measured alone
    --paced TX_PER_S (100k), --batch N (1024), --readers N (1), --read-rate N (1000; 0: as fast as possible)
    --seconds N (10), --transactions N (1M, stored before the measurement), --accounts N (100k)
    --plain | --rich, --backdated PERCENT (0), --memory-budget SIZE, --data DIR
load mixed --spawn SERVER   writes over HTTP as fast as they are answered, in turns without and with readers at a
    steady rate (95 % points and first pages, 5 % sums of 1 k accounts)
    --connections N (64), --bulk N (1), --readers N (16), --read-rate N (2000: of all readers together)
    --turns N (3), --seconds N (5) of each, --transactions N (1M, stored before the measurement), --accounts N (100k)
    --backdated PERCENT (0), --memory-budget SIZE, --data DIR (filled once)
load reads      every kind of read over one HTTP connection without writers, then an export of the first part of the
    log and its import into another ledger
    --spawn SERVER, --transactions N (10M), --accounts N (100k), --reads N of each kind (2000)
    --backdated PERCENT (10), --export SIZE of that part (2GiB), --memory-budget SIZE, --data DIR (filled once),
    --only QUESTION, one of the names that it prints, without export and import
load reopen     opens what a writer left that was killed right after its last acknowledgement
    the options of embedded, except --compare
load hot-account   reads an account that every transaction moves
    --transactions N (10M), --accounts N (100k), --reads N of each kind (2000)
    --plain | --rich, --backdated PERCENT (10), --memory-budget SIZE, --data DIR
load http       writes to a server, after a bare one with the same client
    --url http://HOST:PORT | --spawn SERVER (with a fresh data directory)
    --connections N (64) --bulk N (1: POST transactions; the server's limit is 100) --seconds N (10)
    --threads N (1) --accounts N (100k), --plain | --rich, --backdated PERCENT (0)
    --script   the same by a script with variables instead of postings
    --api v1 | v2 | both (v2)   the version of the API; both are measured in turn
load auth       single writes and reads with a token and without one, in turn; then requests for tokens
    --spawn SERVER, --turns N (5), --seconds N (2) of each turn, --connections N (64), --accounts N (10k)
load events     writes to a server without a consumer of events, with a dead one, and with one that reads all, in turn
    --spawn SERVER, --turns N (3), --seconds N (3) of each turn, --connections N (64), --bulk N (1), --accounts N (100k)
load deliveries   time from a commit to the delivery of its event, one at a time, the first included: to a stream, over
    HTTP, and to a NATS server if one is given
    --spawn SERVER, --nats PROGRAM, --events N to each (500)
load payments   payments that a connector brings in from a provider in this process, without and with a posting rule, and
    pages of their list; what idle connectors cost; requests and another connector beside providers that hang, in turns
    --spawn SERVER, --payments N (1M), --reads N of each kind of page (500)
    --connectors N (1000: idle ones), --period SECONDS (120: polling period, and length of the measurement)
    --turns N (3), --seconds N (5) of requests in each turn
    --only ingestion | postings | lists | idle | hanging
load lists      pages of API v1, on a ledger that this command fills first
    --url http://HOST:PORT | --spawn SERVER (with a fresh data directory)
    --transactions N (1M) --accounts N (100k) --page-size N (1000) --reads N of each kind (200)
";

fn main() -> ExitCode {
    match run() {
        Ok(report) => {
            report.print();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("load: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Report, Failure> {
    let mut parser = Parser::from_env();
    let command = match parser.next()? {
        Some(Arg::Value(command)) => command,
        Some(Arg::Long("help")) | None => return Err(USAGE.into()),
        Some(other) => return Err(other.unexpected().into()),
    };
    match command.to_str() {
        Some("embedded") => {
            let load = Load::parse(&mut parser)?;
            if load.compare { compare::run(&load) } else { embedded::run(&load) }
        }
        Some("mixed") => {
            let arguments: Vec<OsString> = parser.raw_args()?.collect();
            let over_http = arguments.iter().any(|argument| argument == "--spawn");
            let mut parser = Parser::from_args(arguments);
            if over_http {
                http_mixed::run(&HttpMixed::parse(&mut parser)?)
            } else {
                mixed::run(&Mixed::parse(&mut parser)?)
            }
        }
        Some("hot-account") => hot_account::run(&HotAccount::parse(&mut parser)?),
        Some("reopen") => reopen::run(parser.raw_args()?.collect()),
        // The child process that `reopen` starts and kills. It never returns.
        Some("reopen-writer") => match reopen::write(&mut parser)? {},
        Some("http") => http_load::run(&HttpLoad::parse(&mut parser)?),
        Some("auth") => http_auth::run(&HttpAuth::parse(&mut parser)?),
        Some("deliveries") => deliveries::run(&Deliveries::parse(&mut parser)?),
        Some("events") => events::run(&Events::parse(&mut parser)?),
        Some("reads") => http_reads::run(&HttpReads::parse(&mut parser)?),
        Some("payments") => payments::run(&HttpPayments::parse(&mut parser)?),
        Some("lists") => http_lists::run(&HttpLists::parse(&mut parser)?),
        // The child process that `http` starts to measure HTTP without a ledger. It runs until it is killed.
        Some("bare") => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            println!("listening on http://{}", listener.local_addr()?);
            match bare::serve(listener)? {}
        }
        _ => Err(format!("unknown sub-command {}\n{USAGE}", command.display()).into()),
    }
}
