//! The text of `--help`.

use std::fmt::Write as _;

use super::flags::{self, IGNORED_FLAGS};
use super::invocation::Topic;
use crate::cli::exit::{self, Exit};

const COMMANDS: &str = "\
stack-server: the Payments Stack API from an embedded ledger

Usage: stack-server [serve] [FLAGS]     serve until SIGTERM or SIGINT
       stack-server verify DIR [--expect-head ENTRIES:HASH]
                                        check a data directory that no server has open, and that its first
                                        entries are those that had this hash
       stack-server backup …            copy a data directory; so do restore, export and import: see
                                        stack-server help backup
       stack-server worker [FLAGS]      wait for a signal: the server does the work of a worker itself
       stack-server script …            work with scripts; see stack-server help script
       stack-server auth …              manage clients, tokens and keys; see stack-server help auth
       stack-server help [COMMAND]      explain a command
       stack-server --version | --help

A command explains its own exit statuses if it has others than these.
";

const SERVE: &str = "\
stack-server serve: answer requests until SIGTERM or SIGINT

Usage: stack-server [serve] [FLAGS]

A signal lets requests in flight finish; a second one does not wait for them.
";

const VERIFY: &str = "\
stack-server verify: check a data directory that no server has open

Usage: stack-server verify DIR [--expect-head ENTRIES:HASH]

Reads everything that is stored, and prints a JSON line for each fault and one that sums up.

  --expect-head ENTRIES:HASH   also check that the first ENTRIES entries are those that had this HASH; serve writes
                               both to its log as `head`, and backup prints them
";

const WORKER: &str = "\
stack-server worker: wait for SIGTERM or SIGINT

Usage: stack-server worker [FLAGS]

Deployments of other servers start a worker beside the server. Here the server runs pipelines and removes deleted
buckets itself, so a worker does nothing. It accepts all flags of serve and opens no data directory.
";

/// Returns the help text of a command.
pub fn help_of(topic: Topic) -> String {
    match topic {
        Topic::Serve => format!("{SERVE}\n{}\n{}", exit::help(&Exit::OF_COMMANDS), flags_help()),
        Topic::Verify => format!("{VERIFY}\n{}", exit::help(&Exit::OF_VERIFY)),
        Topic::Worker => WORKER.to_owned(),
    }
}

/// Returns the text of `--help`.
pub fn help() -> String {
    format!("{COMMANDS}\n{}\n{}", exit::help(&Exit::OF_COMMANDS), flags_help())
}

/// Returns the part of a help text about the flags of `serve`.
fn flags_help() -> String {
    let mut text = String::from(
        "Flags of serve, each with its environment variable; a flag goes before its variable:\n",
    );
    for flag in flags::all() {
        let name = format!("--{} {}", flag.name, flag.value);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name:<40} {:<34} {}", flag.variable, flag.help);
    }
    let ignored: Vec<_> = IGNORED_FLAGS.iter().map(|flag| format!("--{}", flag.name)).collect();
    let _ = writeln!(text, "\nAccepted with a warning, and without effect: {}", ignored.join(", "));
    text
}
