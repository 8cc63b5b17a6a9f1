//! A short pass of every attack: a server with a small budget keeps its memory.

use std::process::Command;

#[test]
fn server_survives_short_attacks() {
    let output = Command::new(env!("CARGO_BIN_EXE_attack"))
        .args(["--memory-budget", "64MiB", "--scale", "25", "--hold", "6"])
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("the program runs");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(table.lines().count(), 10, "{table}");
}
