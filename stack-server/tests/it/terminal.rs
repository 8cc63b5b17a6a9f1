//! The progress of a long command: a bar on a terminal, and nothing in a pipe.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use ledger_store::Store;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Number of logs of the exported ledger. Their text is much longer than the buffer of a pipe.
const LOGS: usize = 3_000;

/// Opens a pseudo-terminal. Returns the side that shows what a program writes, and the side for the program.
fn terminal() -> (File, File) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&screen).expect("access");
    unlockpt(&screen).expect("it is unlocked");
    let name = ptsname(&screen, Vec::new()).expect("a name");
    let program = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it opens");
    (screen.into(), program.into())
}

fn fill(data: &Path) {
    let store = Store::open(data).expect("the store opens");
    let ledger = store.ledger("main").expect("a name");
    let mut batch = ledger.batch().atomic();
    for _ in 0..LOGS {
        let paid = ledger.transaction().posting("world", "users:1", 1, "USD");
        batch = batch.push(paid.metadata("note", "x".repeat(200)));
    }
    batch.commit().expect("recorded");
    store.close().expect("the store closes");
}

/// Runs an export and reads its output in small pieces, so that it takes longer than the pause before the first bar.
/// Returns the number of exported lines, and the text on standard error.
fn export_slowly(stderr: Stdio, mut screen: impl Read + Send + 'static) -> (usize, String) {
    let home = tempfile::tempdir().expect("a directory");
    fill(&home.path().join("data"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_stack-server"));
    command.args(["export", "--logs", "data", "main"]).current_dir(home.path());
    let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("the program starts");
    // The screen ends when only the program has held the other side.
    drop(command);
    let (sender, shown) = mpsc::channel();
    std::thread::spawn(move || {
        let mut part = [0; 1_024];
        // On Linux a terminal whose program has ended is an error, and not an end.
        while let Ok(len @ 1..) = screen.read(&mut part) {
            let _ = sender.send(part[..len].to_vec());
        }
    });
    let mut output = child.stdout.take().expect("piped");
    let (mut lines, mut text, mut part) = (0, Vec::new(), [0; 4_096]);
    loop {
        let len = output.read(&mut part).expect("the output of the program");
        if len == 0 {
            break;
        }
        lines += memchr::memchr_iter(b'\n', &part[..len]).count();
        text.extend(shown.recv_timeout(Duration::from_millis(2)).unwrap_or_default());
    }
    assert!(child.wait().expect("the program ends").success());
    text.extend(shown.iter().flatten());
    (lines, String::from_utf8(text).expect("text"))
}

#[test]
fn long_export_draws_a_bar_on_a_terminal() {
    let (screen, program) = terminal();
    let (lines, shown) = export_slowly(program.into(), screen);
    assert_eq!(lines, LOGS);
    let bars: Vec<&str> = shown.split("\r\x1b[K").collect();
    assert!(bars.len() > 2, "{shown:?}");
    for bar in &bars[1..bars.len() - 1] {
        assert!(bar.starts_with("exporting [") && bar.ends_with(" of 3000 logs)"), "{bar:?}");
    }
    assert_eq!((bars[0], bars[bars.len() - 1]), ("", ""), "nothing stays on the screen");
}

#[test]
fn long_export_draws_nothing_in_a_pipe() {
    let (screen, program) = std::io::pipe().expect("a pipe");
    assert_eq!(export_slowly(program.into(), screen), (LOGS, String::new()));
}
