//! The script profiles give the same results as the engines that they imitate, except for the listed differences.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skipping::skipped;

/// Cases in which a profile differs from its engine, given by the ends of their names, with the reason.
type Differences = &'static [(&'static [&'static str], &'static str)];

const INTERPRETER: Differences = &[
    (
        &[
            "exp allot over 1 single",
            "exp neg portion allot",
            "zero-allot sum >1 with remaining",
            "zero-allot two remaining",
            "TestOverflowingAllocation / const remaining + remaining",
        ],
        "the engine divides by shares that make no whole and moves other amounts than the script says",
    ),
    (
        &["misc dest first", "misc fail", "TestFail", "TestConstant"],
        "one grammar reads all scripts, also those with statements that only the machine knows",
    ),
    (&["syn mid balance after credit"], "a balance that was not asked for before forgets what was stored"),
];

const MACHINE: Differences = &[
    (
        &[
            "misc fn key var",
            "save save neg lit",
            "syn adjacent tokens",
            "syn allot missing in inorder hard fails",
            "syn dest remaining kept only",
            "syn empty source",
            "syn feature spacing",
            "syn minus spaces",
            "syn negative zero",
            "syn portion as var expr alloc",
            "syn var kw",
            "syn var names",
            "var empty vars",
            "var empty vars nl",
            "var only newline",
        ],
        "one grammar reads all scripts: line ends are blanks, keys are expressions, numbers have signs",
    ),
    (
        &["misc var number ' 1'", "misc var number '+1'", "var var number ' 1'", "var var number '01'"],
        "the text of a number is read as in the other profiles, not as JSON",
    ),
    (
        &["send neg max dest", "send neg max expr", "send neg send src"],
        "an amount below zero is refused, and bounds nothing, wherever it stands",
    ),
    (&["send world var"], "the account 'world' is that account, named by a variable too"),
    (
        &["misc balance() 2 assets same acct"],
        "the engine reads zero as the first of two balances of one account",
    ),
    (&["save save never used"], "the engine crashes"),
];

#[track_caller]
fn check(profile: &str, differences: Differences) {
    let beside_the_workspace = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance");
    let root = std::env::var_os("CONFORMANCE_DIR").map_or_else(beside_the_workspace, PathBuf::from);
    let suites = root.join("numscript");
    if !suites.exists() {
        skipped("no conformance data");
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_stack-server"))
        .args(["script", "test", "--profile", profile])
        .arg(&suites)
        .output()
        .expect("the binary runs");
    let said = String::from_utf8(output.stdout).expect("text");
    let listed: BTreeMap<&str, &str> =
        differences.iter().flat_map(|(names, reason)| names.iter().map(|name| (*name, *reason))).collect();
    let mut met = BTreeMap::new();
    for failed in said.lines().filter_map(|line| line.strip_prefix("FAILED ")) {
        let name = listed.keys().find(|name| failed.ends_with(&format!(" {name}")));
        *met.entry(*name.unwrap_or_else(|| panic!("{failed} is not listed:\n{said}"))).or_insert(0) += 1;
    }
    // A difference that no longer exists must be taken off the list.
    assert_eq!(met.keys().collect::<Vec<_>>(), listed.keys().collect::<Vec<_>>());
    let (passed, _) = said.trim_end().rsplit_once(" passed, ").expect("a summary");
    let passed: usize = passed.rsplit('\n').next().and_then(|count| count.parse().ok()).expect("a count");
    assert!(passed > 100, "{passed} cases are too few to tell");
}

#[test]
fn interpreter_profile_matches_its_release() {
    check("interpreter", INTERPRETER);
}

#[test]
fn machine_profile_matches_its_release() {
    check("machine-2.0", MACHINE);
}
