//! The sub-command `lists`: measures the lists of API v1 on a ledger with a chosen number of transactions.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ledger_store::SystemClock;
use ledger_store::TimeSource;
use lexopt::{Arg, Parser, ValueExt};

use crate::data_dir::DataDir;
use crate::histogram::Histogram;
use crate::http_client::Connection;
use crate::http_load::{fresh_ledger_name, refused, start_or_use_server};
use crate::process::Memory;
use crate::report::{Report, rate};
use crate::workload::{Profile, Random, Workload};
use crate::{Failure, arguments, calibration, wire};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct HttpLists {
    /// The kind of transactions.
    pub profile: Profile,
    /// Address of the server, or `None` to start one.
    pub address: Option<String>,
    /// Program of the server to start for the run.
    pub spawn: Option<PathBuf>,
    /// Number of transactions in addition to those that fund the accounts.
    pub transactions: u64,
    /// Number of rows of a page.
    pub page_size: u64,
    /// Number of reads of each kind of page. Kinds that scan the whole ledger are read a tenth as often.
    pub reads: u64,
}

impl Default for HttpLists {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            address: None,
            spawn: None,
            transactions: 1_000_000,
            page_size: 1_000,
            reads: 200,
        }
    }
}

impl HttpLists {
    /// Parses the options of the sub-command.
    ///
    /// # Errors
    ///
    /// Fails if an option is unknown, its value is invalid, or there is no server.
    pub fn parse(parser: &mut Parser) -> Result<Self, Failure> {
        let mut lists = Self::default();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("url") => {
                    let url = parser.value()?.string()?;
                    let address = url.strip_prefix("http://").ok_or("the URL must begin with http://")?;
                    lists.address = Some(address.trim_end_matches('/').to_owned());
                }
                Arg::Long("spawn") => lists.spawn = Some(parser.value()?.into()),
                Arg::Long("transactions") => lists.transactions = arguments::count(parser)?,
                Arg::Long("accounts") => lists.profile.accounts = arguments::count(parser)?,
                Arg::Long("page-size") => lists.page_size = arguments::count(parser)?,
                Arg::Long("reads") => lists.reads = arguments::count(parser)?.max(1),
                other => return Err(other.unexpected().into()),
            }
        }
        if lists.address.is_some() == lists.spawn.is_some() {
            return Err("give either the URL of a server or the program of one to spawn".into());
        }
        if lists.profile.accounts < 2 {
            return Err("at least two accounts are required".into());
        }
        Ok(lists)
    }
}

/// A kind of page to measure.
struct PageRequest {
    name: &'static str,
    /// Path and query below the ledger, for an account number and a transaction number. Ends with `?` or `&`, because
    /// the page size follows.
    path: fn(u64, u64) -> String,
    /// True if the server scans the whole ledger, because no index helps. It may refuse such a request as too
    /// expensive.
    is_scan: bool,
}

/// The kinds of pages. Addresses have the form `users:0012345:main`.
const QUESTIONS: [PageRequest; 9] = [
    PageRequest { name: "newest", path: |_, _| "transactions?".to_owned(), is_scan: false },
    PageRequest { name: "older", path: |_, id| format!("transactions?after={id}&"), is_scan: false },
    PageRequest { name: "newest_logs", path: |_, _| "logs?".to_owned(), is_scan: false },
    PageRequest { name: "accounts", path: |_, _| "accounts?".to_owned(), is_scan: false },
    PageRequest {
        name: "accounts_by_prefix",
        path: |account, _| format!("accounts?address=users:{:04}[0-9]%2B:main&", account / 1_000),
        is_scan: false,
    },
    PageRequest {
        name: "balances_by_prefix",
        path: |account, _| format!("balances?address=users:{:04}[0-9]%2B:main&", account / 1_000),
        is_scan: false,
    },
    PageRequest {
        name: "transactions_by_prefix",
        path: |account, _| format!("transactions?account=users:{:06}[0-9]:main&", account / 10),
        is_scan: false,
    },
    PageRequest {
        name: "accounts_scanned",
        path: |account, _| format!("accounts?address=.*{:03}:ma.n&", account % 1_000),
        is_scan: true,
    },
    PageRequest {
        name: "transactions_scanned",
        path: |account, _| format!("transactions?account=.*{:05}:ma.n&", account % 100_000),
        is_scan: true,
    },
];

/// Fills a ledger through API v1 and measures its lists, one page at a time.
///
/// # Errors
///
/// Fails if the server gives an unexpected answer.
pub fn run(lists: &HttpLists) -> Result<Report, Failure> {
    let data_dir = DataDir::new(None)?;
    let mut report = Report::default();
    calibration::note_machine(data_dir.path(), &mut report)?;
    let data = data_dir.path().join("store");
    let (server, address) = start_or_use_server(lists.spawn.as_deref(), lists.address.as_deref(), &data)?;
    let ledger = fresh_ledger_name(wire::Api::V1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    report.text("what", "lists");
    report.count("page_size", lists.page_size);
    runtime.block_on(async {
        let mut connection = Connection::connect(&address).await?;
        let all = fill(lists, &ledger, &mut connection).await?;
        report.count("transactions", all);
        let mut random = Random::new(1);
        for question in &QUESTIONS {
            let reads = if question.is_scan { lists.reads.div_ceil(10) } else { lists.reads };
            let mut latency = Histogram::default();
            let mut refusals = 0;
            for _ in 0..reads {
                let path = (question.path)(random.below(lists.profile.accounts), random.below(all));
                let size = lists.page_size;
                let request =
                    format!("GET /{ledger}/{path}pageSize={size} HTTP/1.1\r\nhost: localhost\r\n\r\n");
                let begin = Instant::now();
                let answer = connection.exchange(request.as_bytes()).await?;
                match answer.status {
                    200 => {}
                    400 if question.is_scan => refusals += 1,
                    status => return Err(refused(status, answer.body)),
                }
                latency.record(begin.elapsed());
            }
            report.latency(&format!("{}_", question.name), question.name, &latency);
            if question.is_scan {
                report.count(&format!("{}_refused", question.name), refusals);
                println!("  of {reads}, refused as too expensive: {refusals}");
            }
        }
        Ok::<(), Failure>(())
    })?;
    if let Some(server) = &server {
        let memory = Memory::of_process(server.id());
        report.count("rss_peak_bytes", memory.peak);
    }
    Ok(report)
}

/// Creates the ledger with all its transactions, and returns their number.
async fn fill(lists: &HttpLists, ledger: &str, connection: &mut Connection) -> Result<u64, Failure> {
    const BATCH: u64 = 1_000;
    let begin = Instant::now();
    let mut workload = Workload::new(lists.profile.clone(), 0);
    let mut batches: Vec<u64> = vec![BATCH; (lists.transactions / BATCH) as usize];
    batches.extend(Some(lists.transactions % BATCH).filter(|rest| *rest > 0));
    let funding: Vec<_> = workload.funding(BATCH as usize).collect();
    let transfers = batches.into_iter().map(|size| workload.batch(size as usize, SystemClock.now()));
    let mut request = Vec::new();
    let mut all = 0;
    for requests in funding.into_iter().chain(transfers) {
        wire::encode_request(wire::Api::V1, ledger, &requests, wire::Form::Postings, &mut request)?;
        let answer = connection.exchange(&request).await?;
        if answer.status != 200 {
            return Err(refused(answer.status, answer.body));
        }
        all += requests.len() as u64;
    }
    let time: Duration = begin.elapsed();
    println!("filled: {all} transactions in {:.1} s, {:.0} tx/s", time.as_secs_f64(), rate(all, time));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_options() {
        let parse = |arguments: &[&str]| HttpLists::parse(&mut Parser::from_args(arguments));
        let lists = parse(&["--url", "http://localhost:80/", "--transactions", "2k"]).expect("options");
        assert_eq!((lists.address.as_deref(), lists.transactions), (Some("localhost:80"), 2_000));
        assert!(parse(&[]).is_err());
        assert!(parse(&["--spawn", "server", "--accounts", "1"]).is_err());
    }

    #[test]
    fn questions_name_existing_accounts() {
        for question in &QUESTIONS {
            let path = (question.path)(12_345, 7);
            if let Some((_, pattern)) = path.split_once("=users:") {
                let literal: String = pattern.chars().take_while(char::is_ascii_digit).collect();
                assert!("0012345".starts_with(&literal), "{path}");
            }
        }
    }
}
