//! The text of `--help`.

use std::fmt::Write as _;

use super::flags::{self, FOREIGN};

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

Exit status: 0 done
             1 failed; of verify: something that is stored is damaged
             2 the command line makes no sense; of verify: not everything could be read
             3 of verify: the store cannot be opened

Flags of serve, each with its environment variable:
";

/// The text of `--help`.
pub fn help() -> String {
    let mut text = String::from(COMMANDS);
    for flag in flags::all() {
        let name = format!("--{} {}", flag.name, flag.value);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name:<40} {:<34} {}", flag.variable, flag.help);
    }
    let foreign: Vec<_> = FOREIGN.iter().map(|flag| format!("--{}", flag.name)).collect();
    let _ = writeln!(text, "\nAccepted with a warning, and without effect: {}", foreign.join(", "));
    text
}
