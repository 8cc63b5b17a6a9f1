//! The load program: each sub-command measures one thing and prints its figures, as one JSON object in its
//! last line.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use benches::embedded::{self, Load};
use benches::{Failure, report::Report};
use lexopt::{Arg, Parser};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
load embedded   writes to a store in this process
    --transactions N (10M) --accounts N (100k) --batch N (8192) --in-flight N (4; paced 32)
    --plain | --rich, --backdated PERCENT (0), --memory-budget SIZE (512MiB)
    --paced TX_PER_S   at fixed times; latencies count from these
    --single --clients N (1)   submissions of one; a single client blocks on each
    --data DIR (a fresh one that is removed), --verbose
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
        Some("embedded") => embedded::run(&Load::parse(&mut parser)?),
        _ => Err(format!("unknown sub-command {}\n{USAGE}", command.display()).into()),
    }
}
