//! Flips one bit after the other in the files of stores that were closed, killed or lost power, and asks every kind of
//! question:
//!
//! ```text
//! cargo run --release -p ledger-testkit --bin flips -- --flips 20000 [--seed 0] [--threads 4]
//! ```
//!
//! Prints a table, and exits with 1 if a flip was silent: an answer was wrong, or acknowledged data was missing without
//! a report.

#![allow(clippy::cast_possible_truncation, reason = "the number of threads is small")]

use std::process::ExitCode;
use std::time::Instant;

use ledger_testkit::{FlipCounts, FlipOutcome, flips};

fn main() -> ExitCode {
    let (mut wanted, mut seed, mut threads) = (1_000, 0, 4);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = match argument.as_str() {
            "--flips" => &mut wanted,
            "--seed" => &mut seed,
            "--threads" => &mut threads,
            _ => return usage(),
        };
        match arguments.next().and_then(|text| text.parse::<u64>().ok()) {
            Some(number) => *value = number,
            None => return usage(),
        }
    }
    let begun = Instant::now();
    let mut counts = FlipCounts::default();
    let mut silent = 0_u64;
    flips(seed, wanted, threads as usize, |damaged, left, flipped| {
        counts.add(damaged, left, &flipped);
        if let FlipOutcome::Silent(reason) = flipped {
            silent += 1;
            eprintln!("silent: {reason}");
        }
    });
    print!("{counts}");
    println!("{wanted} flips, {silent} silent, {:.1} s", begun.elapsed().as_secs_f64());
    if silent == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage() -> ExitCode {
    eprintln!("usage: flips [--flips N] [--seed N] [--threads N]");
    ExitCode::from(2)
}
