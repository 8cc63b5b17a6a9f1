//! The command `numscript`: checks, runs, formats and tests scripts without a ledger.

use std::process::ExitCode;

fn main() -> ExitCode {
    ledger_numscript::cli::main("numscript", std::env::args_os().skip(1))
}
