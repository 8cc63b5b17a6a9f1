//! The exit statuses of the program: what commands return, and where users read about them.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use ledger_store::Store;
use stack_server::cli::exit::Exit;

fn run(arguments: &[&str], home: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stack-server"));
    command.args(arguments).current_dir(home).output().expect("the program starts")
}

fn create_store(path: &Path) {
    let store = Store::open(path).expect("a store");
    let ledger = store.ledger("main").expect("a name");
    ledger.transaction().posting("world", "users:1", 5_u64, "USD").commit().expect("recorded");
    store.close().expect("nothing has failed");
}

#[test]
fn commands_end_with_their_statuses() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path();
    create_store(&home.join("data"));
    let other_head = format!("1:{}", "0".repeat(64));
    for (arguments, exit) in [
        (["--version"].as_slice(), Exit::Done),
        (&["help", "verify"], Exit::Done),
        (&["halp"], Exit::InvalidCommandLine),
        (&["serve", "--listen", "nowhere"], Exit::InvalidCommandLine),
        (&["serve", "--listen", "127.0.0.1:0", "--data", "data/MANIFEST"], Exit::Failed),
        (&["worker", "--unknown"], Exit::InvalidCommandLine),
        (&["verify", "data"], Exit::Done),
        (&["verify", "data", "--expect-head", &other_head], Exit::Damaged),
        (&["verify"], Exit::InvalidCommandLine),
        (&["verify", "absent"], Exit::CannotOpen),
        (&["backup", "data", "copy"], Exit::Done),
        (&["backup", "absent", "copy"], Exit::Failed),
        (&["backup"], Exit::InvalidCommandLine),
        (&["restore", "copy", "again"], Exit::Done),
        (&["export", "data", "main"], Exit::Done),
        (&["import", "data", "copy", "absent"], Exit::Failed),
        (&["auth", "--help"], Exit::Done),
        (&["auth", "client"], Exit::InvalidCommandLine),
        (&["auth", "init", "--data", "new", "--server", "http://127.0.0.1:1"], Exit::InvalidCommandLine),
        (&["auth", "init", "--server", "http://127.0.0.1:1"], Exit::InvalidCommandLine),
        (&["auth", "client", "list", "--data", "absent"], Exit::Failed),
    ] {
        let output = run(arguments, home);
        let status = Some(i32::from(exit.status()));
        assert_eq!(output.status.code(), status, "{arguments:?} {exit:?}: {output:?}");
    }
}

#[test]
fn users_find_every_exit_status() {
    let home = tempfile::tempdir().expect("a directory");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operating.md");
    let page = std::fs::read_to_string(page).expect("the documentation is there");
    let commands = [["--help"].as_slice(), &["help", "serve"], &["help", "backup"], &["help", "auth"]];
    let helps =
        [(commands.as_slice(), Exit::OF_COMMANDS.as_slice()), (&[&["help", "verify"]], &Exit::OF_VERIFY)];
    for (arguments, exits) in helps {
        let mut table = String::from("| Exit status | Meaning |\n|---|---|\n");
        for exit in exits {
            writeln!(table, "| {} | {} |", exit.status(), exit.meaning()).expect("a text takes all");
        }
        assert!(page.contains(&format!("{table}\n")), "{table}");
        for arguments in arguments {
            let help = String::from_utf8(run(arguments, home.path()).stdout).expect("text");
            for exit in exits {
                let line = format!(" {} {}\n", exit.status(), exit.meaning());
                assert!(help.contains(&line), "{arguments:?} lacks {line}");
            }
        }
    }
}
