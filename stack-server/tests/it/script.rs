//! The command line for scripts.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::skipping::skipped;

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
        skipped("no conformance data");
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
    check(&script(&["test", "--profile", "machine-2.0"]), 2, "no path");
    check(&script(&["test", "--profile", "other", &lines]), 2, "--profile other: expected default");
    check(&script(&["test", "/no/such/path"]), 2, "/no/such/path");
}

#[test]
fn a_profile_is_judged_by_what_its_engine_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        |amount: u32| format!("\"script\":\"send [GOLD {amount}] (source = {{ @a @b }} destination = @c)\"");
    let posting = |source: &str, amount: u32| {
        format!("{{\"source\":\"{source}\",\"destination\":\"c\",\"asset\":\"GOLD\",\"amount\":{amount}}}")
    };
    let held = "\"balances\":[{\"account\":\"b\",\"asset\":\"GOLD\",\"amount\":5}]";
    let cases = [
        // All profiles except the machine leave out postings of zero.
        format!(
            "{{{},{held},\"it\":\"pays\",\"expect.postings\":[{}],\"x-expect\":{{\"machine-v2.0.0\":{{\"expect.postings\":[{},{}]}}}}}}",
            text(3), posting("b", 3), posting("a", 0), posting("b", 3)
        ),
        format!(
            "{{{},{held},\"it\":\"lacks\",\"expect.error.missingFunds\":true,\"x-expect\":{{\"machine-v2.0.0\":{{\"expect.error\":{{\"stage\":\"execute\",\"kind\":\"ErrInsufficientFund\"}}}},\"numscript\":{{\"expect.error\":{{\"kind\":\"MissingFundsErr\",\"fields\":{{\"Available\":\"5\"}}}}}}}}}}",
            text(9)
        ),
        "{\"script\":\"set_tx_meta(1, 1)\",\"it\":\"types\",\"expect.error\":{\"class\":\"script\",\"kind\":\"TypeMismatch\"},\"x-expect\":{\"numscript\":{\"expect.error\":{\"kind\":\"MissingFundsErr\"}},\"machine-v2.0.0\":{\"expect.error\":{\"kind\":\"ErrInvalidVars\"}}}}".to_owned(),
        "{\"script\":\"save\",\"it\":\"reads\",\"expect.parses\":false}".to_owned(),
    ];
    let cases = file(folder.path(), "cases.jsonl", &cases.join("\n"));
    check(&script(&["test", &cases]), 0, "4 passed, 0 failed");
    let output = script(&["test", "--profile", "interpreter", &cases]);
    check(&output, 1, "2 passed, 1 failed");
    check(&output, 1, "expected MissingFundsErr\n     got TypeError");
    let output = script(&["test", &cases, "--profile", "machine-2.0"]);
    check(&output, 1, "2 passed, 1 failed");
    check(&output, 1, "expected ErrInvalidVars\n     got TypeMismatch");
}

const TILL: &str = "\
vars {
  account $guest
  monetary $bill
}
send $bill (
  source = {
    @till
    $guest allowing overdraft up to [GOLD 50]
  }
  destination = {
    1/10 to @waiter
    remaining to @kitchen
  }
)
set_tx_meta(\"bill\", $bill)
";

#[test]
fn a_run_says_what_would_happen() {
    let folder = tempfile::tempdir().expect("a folder");
    let till = file(folder.path(), "till.num", TILL);
    let run = |more: &[&str]| {
        let plain = ["run", &till, "--var", "guest=ada", "--var", "bill=GOLD 30"];
        script(&[&plain, more].concat())
    };
    let output = run(&["--balance", "till=GOLD:5", "--json"]);
    check(&output, 0, "");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["postings"][2]["amount"], 25, "{said}");
    assert_eq!(said["txMeta"]["bill"], "GOLD 30");
    assert_eq!(said["balances"][0], serde_json::json!({"account": "ada", "asset": "GOLD", "amount": -25}));
    let output = run(&["--balance", "till=GOLD:5", "--explain"]);
    for said in [
        "till -> waiter  GOLD 3\n      3 from 7:5 @till\n      to 11:13 @waiter",
        "ada -> kitchen  GOLD 25\n      25 from 8:5 $guest allowing overdraft up to [GOLD 50]",
        "7:5 @till: asked for 30, gave 5: it held GOLD 5",
        "ada  GOLD -25",
        "bill = GOLD 30",
    ] {
        check(&output, 0, said);
    }
    let poor = ["--balance", "ada=GOLD:-40"];
    check(&run(&poor), 1, "6:12: error: Not enough funds. Needed [GOLD 30] (only [GOLD 10] available)");
    let output = run(&[&poor[..], &["--json"]].concat());
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["error"]["fields"]["Available"], "10", "{said}");
    let meta = file(folder.path(), "meta.num", "vars { number $n = meta(@a:b, \"k\") } print $n");
    check(&script(&["run", &meta, "--meta", "a:b.k=7"]), 0, "balances");
    check(&script(&["run", &meta]), 1, "MetadataNotFound");
    let colored = file(folder.path(), "c.num", "send [A 1] (source = @a \\ \"RED\" destination = @b)");
    check(&script(&["run", &colored, "--balance", "a=A\\RED:1"]), 0, "b  A \\ \"RED\" 1");
    check(&script(&["run", &colored, "--flag", "none"]), 1, "experimental-asset-colors");
    check(&script(&["run", &colored, "--flag", "nosuch"]), 2, "experimental-oneof");
    check(&script(&["run", &colored, "--balance", "a"]), 2, "ACCOUNT=ASSET:N");
    check(&script(&["run", "--profile", "other", &colored]), 2, "machine-2.0");
    check(&script(&["run"]), 2, "no file");
    check(&script(&["nosuch"]), 2, "unknown command");
    check(&script(&["--help"]), 0, "fmt FILE");
}

#[test]
fn a_check_points_at_the_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = file(folder.path(), "good.num", TILL);
    check(&script(&["check", &good]), 0, "");
    let advice = file(folder.path(), "advice.num", "vars { number $unused }\n");
    check(&script(&["check", &good, &advice]), 0, "1:15: warning: The variable '$unused' is never used");
    let bad = file(folder.path(), "bad.num", "send [GOLD 1] (\n  source = $nobody\n  destination = @b\n)\n");
    let output = script(&["check", &bad]);
    check(&output, 1, "bad.num:2:12: error: The variable '$nobody' was not declared [UnboundVariable]");
    check(&output, 1, "  2 |   source = $nobody\n    |            ^^^^^^^\n");
    let worse = file(folder.path(), "worse.num", "send [GOLD 1] (\n source = \n)\nsave\nsend [GOLD] ()\n");
    let output = script(&["check", &worse]);
    for place in ["3:1", "5:1", "5:11"] {
        check(&output, 1, &format!("worse.num:{place}: error: "));
    }
    check(&script(&["check", "/no/such/file"]), 2, "/no/such/file");
}

#[test]
fn a_layout_is_printed_checked_or_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = "// why\nsend[A 1](source=@a destination=@b)";
    let laid_out = "// why\nsend [A 1] (\n  source = @a\n  destination = @b\n)\n";
    let path = file(folder.path(), "plain.num", plain);
    check(&script(&["fmt", &path]), 0, laid_out);
    check(&script(&["fmt", "--check", &path]), 1, "");
    check(&script(&["fmt", "--write", &path]), 0, "");
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), laid_out);
    check(&script(&["fmt", "--check", &path]), 0, "");
    let bad = file(folder.path(), "bad.num", "send");
    check(&script(&["fmt", &bad]), 1, "bad.num:1:5: error: ");
}
