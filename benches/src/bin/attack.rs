//! The attack program. It attacks the memory of a server and prints a table of the results.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use benches::Failure;
use benches::attack::{self, Options};
use lexopt::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
attack   attacks the memory of a server, a fresh one for each attack, while an honest client goes on beside it
    --spawn SERVER (this program), --memory-budget SIZE (512MiB), --scale PERCENT of the connections (100)
    --hold SECONDS of each attack (40), --only ATTACK: bodies, imports, pages, heads, events, streams,
        abandoned, batches
The exit status is 1 if the server used more memory than documented, an honest request failed, or (in a release build)
one of a hundred honest requests took more than 100 ms.
";

fn main() -> ExitCode {
    match run() {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("attack: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, Failure> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    match arguments.peek().and_then(|first| first.to_str()) {
        // The child process that is attacked. It runs until it is killed.
        Some("serve") => match attack::serve(arguments.collect())? {},
        Some("--help") => return Ok(USAGE.to_owned()),
        _ => {}
    }
    // Each connection also needs a descriptor in this process.
    stack_server::descriptors::raise_limit();
    attack::run(&Options::parse(&mut Parser::from_args(arguments))?)
}
