//! Runs a campaign of power cuts of any length.
//!
//! ```text
//! cargo run --release -p ledger-testkit --bin power_cuts -- --runs 2000 [--seed 0] [--threads 8] [--writers] [--mutant]
//! ```
//!
//! With `--writers` several writers submit in parallel, each with several transactions in flight. With `--mutant`
//! syncs have no effect, and runs must fail. Prints the seeds that fail and a summary. Exits with 1 if a run failed
//! or, with `--mutant`, if none did.

#![allow(clippy::cast_possible_truncation, reason = "the number of threads is small")]

use std::process::ExitCode;
use std::time::Instant;

use ledger_testkit::{Campaign, Scenario, WorkCounts};

fn main() -> ExitCode {
    let mut campaign =
        Campaign { first_seed: 0, runs: 200, lying_syncs: false, scenario: Scenario::Steps, threads: 8 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok());
        let known = match argument.as_str() {
            "--runs" => number(arguments.next()).map(|runs| campaign.runs = runs),
            "--seed" => number(arguments.next()).map(|seed| campaign.first_seed = seed),
            "--threads" => number(arguments.next()).map(|threads| campaign.threads = threads as usize),
            "--writers" => {
                campaign.scenario = Scenario::Writers;
                Some(())
            }
            "--mutant" => {
                campaign.lying_syncs = true;
                Some(())
            }
            _ => None,
        };
        if known.is_none() {
            eprintln!("usage: power_cuts [--runs N] [--seed N] [--threads N] [--writers] [--mutant]");
            return ExitCode::from(2);
        }
    }
    let begun = Instant::now();
    let (mut failed, mut done) = (0_u64, WorkCounts::default());
    campaign.run(|seed, result| match result {
        Ok(more) => done.add(more),
        Err(reason) => {
            failed += 1;
            if !campaign.lying_syncs {
                eprintln!("seed {seed}: {reason}");
            }
        }
    });
    println!(
        "{} runs, {} cuts, {} steps acknowledged, {} unknown ones kept, {} questions answered, {failed} runs failed, \
         {:.1} s",
        campaign.runs,
        done.cuts,
        done.acknowledged,
        done.unknown_kept,
        done.questions,
        begun.elapsed().as_secs_f64()
    );
    if (failed > 0) == campaign.lying_syncs { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
