//! Compares a store with the reference model: random commands, and between them random questions with filters, dates,
//! groupings, orders and pages, while the store is flushed, closed, opened, rebuilt, and loses its power.
//!
//! ```text
//! cargo run --release -p ledger-testkit --bin model_runs -- [--commands 100000] [--seed 0] [--each 600] [--threads 2]
//! ```
//!
//! Prints the seeds of failed runs, with the first different answer, and a summary. Exits with 1 if a run failed.

#![allow(clippy::cast_possible_truncation, reason = "the number of threads is small")]

use std::process::ExitCode;
use std::time::Instant;

use ledger_testkit::{ModelRuns, WorkCounts};

fn main() -> ExitCode {
    let mut runs = ModelRuns { first_seed: 0, commands: 100_000, commands_each: 600, threads: 2 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let number = arguments.next().and_then(|text| text.parse::<u64>().ok());
        let known = match argument.as_str() {
            "--commands" => number.map(|commands| runs.commands = commands),
            "--seed" => number.map(|seed| runs.first_seed = seed),
            "--each" => number.map(|commands| runs.commands_each = commands.max(1)),
            "--threads" => number.map(|threads| runs.threads = threads as usize),
            _ => None,
        };
        if known.is_none() {
            eprintln!("usage: model_runs [--commands N] [--seed N] [--each N] [--threads N]");
            return ExitCode::from(2);
        }
    }
    let begun = Instant::now();
    let (mut count, mut failed, mut done) = (0_u64, 0_u64, WorkCounts::default());
    runs.run(|seed, result| {
        count += 1;
        match result {
            Ok(more) => done.add(more),
            Err(differs) => {
                failed += 1;
                eprintln!("seed {seed}: {differs}");
            }
        }
    });
    println!(
        "{count} runs, {} commands in {} steps, {} questions, {} openings, {} power cuts, {failed} runs failed, {:.1} s",
        runs.commands,
        done.acknowledged,
        done.questions,
        done.openings,
        done.cuts,
        begun.elapsed().as_secs_f64()
    );
    let counters = done.counters;
    println!(
        "{} submissions, {} of them to ledgers that were not there; several as one: {} recorded, {} undone, \
         {} answered again; {} ledgers without some feature, {} removed, {} names given again",
        counters.submissions,
        counters.not_found,
        counters.joined,
        counters.joined_undone,
        counters.joined_replayed,
        counters.without_features,
        counters.removed,
        counters.names_reused
    );
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
