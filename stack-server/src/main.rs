//! The server binary.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use stack_server::cli::auth::{self, Failure};
use stack_server::cli::config::{self, Invocation};
use stack_server::cli::copies::{self, Verb};
use stack_server::cli::serve::{serve, stand_by};
use stack_server::cli::verify::verify;

// HTTP threads allocate the memory of requests and the writer's thread frees it, which is slow with the system's
// allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match config::parse(std::env::args_os().skip(1), |name| std::env::var(name).ok()) {
        Ok(Invocation::Serve(config)) => serve(&config),
        Ok(Invocation::Worker(ignored)) => stand_by(&ignored),
        Ok(Invocation::Verify(directory, kept)) => verify(&directory, kept.as_ref()),
        Ok(Invocation::Script(arguments)) => ledger_numscript::cli::main("stack-server script", arguments),
        Ok(Invocation::Auth(arguments)) => auth(arguments),
        Ok(Invocation::Copy(verb, arguments)) => copy(verb, arguments),
        Ok(Invocation::Version) => print(concat!("stack-server ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Invocation::Help) => print(&config::help()),
        Ok(Invocation::HelpOf(topic)) => print(&config::help_of(topic)),
        Err(error) => {
            eprintln!("stack-server: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints a text on standard output. Its reader, for example `head`, may leave before the end.
fn print(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Runs the command. Exit status: 0 for success, 1 for failure, 2 for an invalid command line.
fn auth(arguments: Vec<OsString>) -> ExitCode {
    match auth::main(arguments, |name| std::env::var(name).ok(), &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(reason)) => {
            eprintln!("stack-server auth: {reason}");
            ExitCode::from(2)
        }
        Err(Failure::Failed(reason)) => {
            eprintln!("stack-server auth: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command. Exit status: 0 for success, 1 for failure, 2 for an invalid command line.
fn copy(verb: Verb, arguments: Vec<OsString>) -> ExitCode {
    match copies::main(
        verb,
        arguments,
        |name| std::env::var(name).ok(),
        std::io::stdin().lock(),
        std::io::stdout().lock(),
    ) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stack-server: {error}");
            if error.is_usage() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
