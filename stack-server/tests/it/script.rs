//! Scripts on the command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn script(arguments: &[&str]) -> Output {
    let server = env!("CARGO_BIN_EXE_stack-server");
    Command::new(server).arg("script").args(arguments).output().expect("the binary runs")
}

#[track_caller]
fn check(output: &Output, status: i32, said: &str) {
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{out}{errors}");
    assert!(out.contains(said) || errors.contains(said), "{said:?} is not in\n{out}{errors}");
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file is written");
    path.display().to_string()
}

#[test]
fn the_conformance_suites_pass() {
    let beside_the_workspace = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance");
    let root = std::env::var_os("CONFORMANCE_DIR").map_or_else(beside_the_workspace, PathBuf::from);
    let suites = root.join("numscript");
    if !suites.exists() {
        println!("skipped: no conformance data");
        return;
    }
    let output = script(&["test", &suites.display().to_string()]);
    check(&output, 0, " passed, 0 failed");
}

#[test]
fn cases_are_judged_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let send = "send [GOLD 3] (source = @mine destination = @mint)";
    let posting = r#"{"source":"mine","destination":"mint","asset":"GOLD","amount":3}"#;
    file(folder.path(), "dig.num", send);
    file(
        folder.path(),
        "dig.num.specs.json",
        &format!(
            r#"{{"balances":[{{"account":"mine","asset":"GOLD","amount":5}}],"testCases":[
                {{"it":"digs","expect.postings":[{posting}],"expect.endBalances.include":[
                    {{"account":"mine","asset":"GOLD","amount":2}}]}},
                {{"it":"is exhausted","balances":[{{"account":"mine","asset":"GOLD","amount":2}}],
                  "expect.error.missingFunds":true}},
                {{"it":"hopes","expect.postings":[]}},
                {{"it":"rests","skip":true,"expect.postings":[]}}]}}"#
        ),
    );
    let lines = format!(
        "{{\"script\":\"save [GOLD 1]\",\"expect.parses\":false}}\n\
         {{\"script\":{send:?},\"it\":\"nothing there\",\"expect.error\":{{\"class\":\"funds\",\"kind\":\"MissingFundsErr\"}}}}\n"
    );
    let lines = file(folder.path(), "lines.jsonl", &lines);
    check(&script(&["test", &lines]), 0, "2 passed, 0 failed");
    let output = script(&["test", &folder.path().display().to_string()]);
    check(&output, 1, "4 passed, 1 failed");
    check(&output, 1, "hopes");
    check(&output, 1, "amount: 3");
    check(&script(&["test"]), 2, "no path");
    check(&script(&["test", "/no/such/path"]), 2, "/no/such/path");
}
