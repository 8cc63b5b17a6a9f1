//! Replays conversations, which were recorded on other servers of this API, against the binary.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skipping::skipped;

/// Conversations about features that this release does not have. All others must match.
const NOT_YET: &[&str] = &[];

/// Like [`NOT_YET`], for v1.
const LEGACY_NOT_YET: &[&str] = &[
    // This conversation reads five accounts in pages of two. After the first two it expects the last two, and then
    // another page, so that the third account would be on no page. Its other steps match, and so do the recorded
    // pages of `accounts-paging`.
    "cursor-rules",
];

fn conversations(folder: &str, not_yet: &[&str]) -> Option<(PathBuf, Vec<PathBuf>)> {
    let beside_the_workspace = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance");
    let root = std::env::var_os("CONFORMANCE_DIR").map_or_else(beside_the_workspace, PathBuf::from);
    let http = root.join("http");
    let entries = std::fs::read_dir(http.join(folder)).ok()?;
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.retain(|file| {
        let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        !not_yet.contains(&name)
    });
    files.sort();
    Some((http.join("replay.py"), files))
}

#[track_caller]
fn play(folder: &str, not_yet: &[&str], flags: &str) {
    let Some((player, files)) = conversations(folder, not_yet) else {
        skipped("no conformance data");
        return;
    };
    if Command::new("python3").arg("--version").output().is_err() {
        skipped("no python3");
        return;
    }
    let server = env!("CARGO_BIN_EXE_stack-server");
    let spawn = format!("{server} serve {flags} --listen 127.0.0.1:{{port}} --data {{dir}}");
    let output = Command::new("python3").arg(player).arg("--spawn").arg(spawn).args(&files).output();
    let output = output.expect("the player runs");
    assert!(
        output.status.success() && files.len() > 20,
        "{} files\n{}{}",
        files.len(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn v1_matches_recordings() {
    play("ledger-v1", LEGACY_NOT_YET, "");
}

/// Conversations that need a provider of the generic API on a fixed port, which another test on this machine may use.
const PROVIDER_WANTED: &[&str] = &["generic-provider", "balances"];

#[test]
fn the_payments_api_conforms() {
    play("payments", PROVIDER_WANTED, "");
}

#[test]
fn stack_profile_matches_recordings() {
    play("ledger-v2", NOT_YET, "");
}

#[test]
fn ledger_profile_matches_recordings() {
    play("ledger-v2x", NOT_YET, "--experimental-features");
}
