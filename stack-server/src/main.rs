//! The server binary.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use stack_server::cli::auth::{self, Failure};
use stack_server::cli::config::{self, Invocation};
use stack_server::cli::copies::{self, Verb};
use stack_server::cli::exit::Exit;
use stack_server::cli::serve::{serve, stand_by};
use stack_server::cli::verify::verify;

// HTTP threads allocate the memory of requests and the writer's thread frees it, which is slow with the system's
// allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match config::parse(std::env::args_os().skip(1), |name| std::env::var(name).ok()) {
        Ok(Invocation::Serve(config)) => serve(&config).into(),
        Ok(Invocation::Worker(ignored)) => stand_by(&ignored).into(),
        Ok(Invocation::Verify(directory, kept)) => verify(&directory, kept.as_ref()).into(),
        Ok(Invocation::Script(arguments)) => ledger_numscript::cli::main("stack-server script", arguments),
        Ok(Invocation::Auth(arguments)) => auth(arguments).into(),
        Ok(Invocation::Copy(verb, arguments)) => copy(verb, arguments).into(),
        Ok(Invocation::Version) => print(concat!("stack-server ", env!("CARGO_PKG_VERSION"), "\n")).into(),
        Ok(Invocation::Help) => print(&config::help()).into(),
        Ok(Invocation::HelpOf(topic)) => print(&config::help_of(topic)).into(),
        Err(error) => {
            eprintln!("stack-server: {error}");
            Exit::InvalidCommandLine.into()
        }
    }
}

/// Prints a text on standard output. Its reader, for example `head`, may leave before the end.
fn print(text: &str) -> Exit {
    let _ = std::io::stdout().write_all(text.as_bytes());
    Exit::Done
}

fn auth(arguments: Vec<OsString>) -> Exit {
    match auth::main(arguments, |name| std::env::var(name).ok(), &mut std::io::stdout().lock()) {
        Ok(()) => Exit::Done,
        Err(Failure::Usage(reason)) => {
            eprintln!("stack-server auth: {reason}");
            Exit::InvalidCommandLine
        }
        Err(Failure::Failed(reason)) => {
            eprintln!("stack-server auth: {reason}");
            Exit::Failed
        }
    }
}

fn copy(verb: Verb, arguments: Vec<OsString>) -> Exit {
    match copies::main(
        verb,
        arguments,
        |name| std::env::var(name).ok(),
        std::io::stdin().lock(),
        std::io::stdout().lock(),
    ) {
        Ok(()) => Exit::Done,
        Err(error) => {
            eprintln!("stack-server: {error}");
            error.exit()
        }
    }
}
