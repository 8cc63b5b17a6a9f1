//! Tests of the checker: its findings, and the types that it infers.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "numbers in tests are small"
)]

use ledger_numscript::{
    Checked, Diagnostic, ErrorKind, Options, Position, Profile, Program, Progress, Run, Scratch, ScriptError,
    Severity, Type, Variables, check, parse,
};

#[track_caller]
fn same(found: &[(String, bool)], expected: &[(&str, bool)]) {
    let found: Vec<(&str, bool)> = found.iter().map(|(text, fatal)| (text.as_str(), *fatal)).collect();
    assert_eq!(found, expected);
}

#[test]
fn reports_faults_without_a_run() {
    let found = |text: &str| -> Vec<(String, bool)> {
        let (tree, errors) = parse(text);
        assert!(errors.is_empty(), "{text}: {errors:?}");
        check(&tree, text)
            .into_iter()
            .map(|Diagnostic { kind, range, fatal, .. }| {
                let severity = if kind.severity() == Severity::Error { "error" } else { "warning" };
                (
                    format!("{}:{} {severity} {}", range.start.line + 1, range.start.column + 1, kind.name()),
                    fatal,
                )
            })
            .collect()
    };
    same(
        &found("vars { number $a number $a = 1 portion $p } set_tx_meta($p, $a, $c)"),
        &[
            ("1:25 error DuplicateVariable", true),
            ("1:57 error TypeMismatch", true),
            ("1:65 error UnboundVariable", true),
            ("1:65 error BadArity", true),
        ],
    );
    same(
        &found("send [PEAR 1] (source = { @world @a } destination = { 1/2 to @b 1/2 to @c remaining kept })"),
        &[("1:34 warning UnboundedAccountIsNotLast", false), ("1:75 warning RedundantRemaining", false)],
    );
    same(
        &found(
            "vars { monetary $m portion $p } send [PEAR 1] (source = { @a @a max $m from @a } destination = { $p to @b 1/3 kept })",
        ),
        &[
            ("1:62 warning EmptiedAccount", false),
            ("1:77 warning EmptiedAccount", false),
            ("1:98 warning FixedPortionVariable", false),
            ("1:17 warning BoundAsset", false),
        ],
    );
    same(
        &found(
            "send [PEAR 1] + [PLUM 1] (source = { remaining from @a 1/2 from @b } destination = @c) nosuch(1) balance(@a, PEAR)",
        ),
        &[
            ("1:17 error AssetMismatch", false),
            ("1:36 error RemainingIsNotLast", false),
            ("1:88 error UnknownFunction", true),
            ("1:98 error UnknownFunction", true),
        ],
    );
    same(
        &found(
            "// @version interpreter 0.0.14\nsend balance(@a, PEAR) (source = oneof { @a @b } destination = @c)",
        ),
        &[("2:6 error VersionMismatch", false), ("2:34 error VersionMismatch", false)],
    );
}

/// Returns line and column, from 0, of the last occurrence of `words` in `text`.
fn position_of(text: &str, words: &str) -> Position {
    let before = &text[..text.rfind(words).expect("it is there")];
    let line = before.rsplit('\n').next().unwrap_or_default();
    Position { line: before.matches('\n').count() as u32, column: line.chars().count() as u32 }
}

#[test]
fn infers_types_and_assets_of_expressions() {
    let text = "vars {
  monetary $cost
  monetary $free
  account $shop = meta(@shops, \"first\")
}
send $cost (
  source = { max [PEAR/2 5] + [PEAR/2 1] from $shop @é
  }
)
send $cost (
  source = { max ([PEAR/2 5] + [PEAR/2 1]) from $shop @u:$shop }
  destination = { 1/8 to @a (2 - 1) / 2 to @b remaining kept }
)
print $free
print balance(@c, PLUM)
print $nobody + \"x\"
";
    // The checker also accepts half a script.
    let (tree, errors) = parse(text);
    assert_eq!(errors.len(), 1, "{errors:?}");
    let checked = Checked::of(&tree, text);
    let printed = |words: &str, from: usize| {
        let mut position = position_of(text, words);
        position.column += from as u32;
        let found = checked.type_at(position)?;
        let asset = found.asset.map(|asset| format!(" of {asset}")).unwrap_or_default();
        Some(format!("{}: {}{asset}", found.span.of(text), found.of.name()))
    };
    for (words, from, expected) in [
        ("$cost", 0, Some("$cost: monetary of PEAR/2")),
        ("$cost", 4, Some("$cost: monetary of PEAR/2")),
        ("$cost", 5, None),
        ("([PEAR/2 5]", 0, Some("([PEAR/2 5] + [PEAR/2 1]): monetary of PEAR/2")),
        ("([PEAR/2 5]", 1, Some("[PEAR/2 5]: monetary of PEAR/2")),
        ("([PEAR/2 5]", 2, Some("PEAR/2: asset of PEAR/2")),
        ("5] + [PEAR", 0, Some("5: number")),
        ("@u:$shop", 0, Some("@u:$shop: account")),
        ("@u:$shop", 3, Some("$shop: account")),
        ("1/8", 1, Some("1/8: portion")),
        ("(2 - 1)", 3, Some("(2 - 1): number")),
        ("meta(@shops", 0, Some("meta(@shops, \"first\"): account")),
        ("\"first\"", 0, Some("\"first\": string")),
        ("$free", 0, Some("$free: monetary")),
        ("balance(@c", 0, Some("balance(@c, PLUM): monetary of PLUM")),
        ("$nobody", 0, None),
        ("send", 0, None),
        ("remaining", 0, None),
    ] {
        assert_eq!(printed(words, from).as_deref(), expected, "{words} from {from}");
    }
    let range = checked.type_at(position_of(text, "$free")).expect("it has a type").range;
    assert_eq!((range.start.line, range.start.column, range.end.column), (13, 6, 11));
    assert_eq!(checked.type_at(Position { line: 99, column: 0 }), None);
    let fatal: Vec<&str> =
        checked.diagnostics().iter().filter(|found| found.fatal).map(|found| found.kind.name()).collect();
    assert_eq!(fatal, ["UnboundVariable"]);
}

fn run(text: &str, profile: Profile, given: &[(&str, &str)]) -> Result<String, ScriptError> {
    let program = Program::compile(text, profile)?;
    let variables: Variables =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut scratch = Scratch::default();
    let mut run = Run::new(&program, &variables, Options::default(), &mut scratch);
    while run.advance()? == Progress::Needs {
        let Ok(()) = run.answer(&mut ledger_numscript::EmptyLedger);
    }
    let metadata = run.outcome().metadata;
    let printed: Vec<String> =
        metadata.iter().map(|(key, value)| format!("{key}={}", value.text())).collect();
    Ok(printed.join(" "))
}

#[test]
fn only_unchecked_profiles_run_wrong_scripts() {
    let kind = |result: Result<String, ScriptError>| result.expect_err("it is wrong").kind;
    let ill_typed = "set_tx_meta(\"a\", 1) set_tx_meta(2, 1)";
    for profile in [Profile::Default, Profile::Machine] {
        let expected = ErrorKind::TypeMismatch { expected: "string", got: "number" };
        assert_eq!(kind(run(ill_typed, profile, &[])), expected);
    }
    let error = run(ill_typed, Profile::Interpreter, &[]).expect_err("it is wrong");
    assert_eq!(error.kind, ErrorKind::TypeError { expected: "string", value: "2".into() });
    assert_eq!(error.range.map(|range| range.start.column), Some(32));
    for (text, name) in [
        ("print 1/0", "DivideByZero"),
        ("print $later", "UnboundVariableErr"),
        ("vars { number $a = nosuch(1) }", "UnboundFunctionErr"),
        ("set_tx_meta(\"a\")", "BadArityErr"),
        ("vars { money $m } print $m", "InvalidTypeErr"),
        ("fail print $later", "ScriptFailed"),
    ] {
        assert_eq!(kind(run(text, Profile::Interpreter, &[("m", "1")])).name(), name, "{text}");
    }
    // Of two declarations of one name, code after both sees the last one, and code between them the first.
    let twice = "vars { number $n = 1  number $before = $n + 10  string $n = \"x\" } \
                 set_tx_meta(\"n\", $n) set_tx_meta(\"before\", $before)";
    let free = run(twice, Profile::Interpreter, &[]);
    assert_eq!(free.as_deref(), Ok("before=11 n=x"));
    assert_eq!(kind(run(twice, Profile::Default, &[])).name(), "DuplicateVariable");
    assert_eq!(Type::from_name("string"), Some(Type::Text));
}
