//! Runs the examples in the documentation of the script language.

use std::path::Path;
use std::process::Command;

/// Splits a command line into words. Quotes keep spaces together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            other => word.push(other),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[test]
fn every_function_is_documented_and_coloured() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let read = |name: &str| std::fs::read_to_string(docs.join(name)).expect(name);
    let (guide, grammar) = (read("script-language.md"), read("script-language.tmLanguage.json"));
    for name in ledger_numscript::function_names() {
        assert!(guide.contains(&format!("{name}(")), "docs/script-language.md does not describe {name}");
        let is_coloured = grammar.split(['(', ')', '|']).any(|word| word == name);
        assert!(is_coloured, "docs/script-language.tmLanguage.json does not colour {name}");
    }
}

#[test]
fn every_flag_is_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/script-language.md");
    let guide = std::fs::read_to_string(path).expect("the documentation is there");
    for flag in ledger_numscript::Flag::ALL {
        let row = format!("| `{}` |", flag.name());
        assert!(guide.contains(&row), "docs/script-language.md has no row {row}");
    }
}

#[test]
fn every_documented_example_runs_as_shown() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/script-language.md");
    let text = std::fs::read_to_string(path).expect("the documentation is there");
    let folder = tempfile::tempdir().expect("a folder");
    let mut examples = 0;
    for block in text.split("\n```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').expect("a block has a first line");
        match kind {
            "numscript" => {
                std::fs::write(folder.path().join("example.num"), format!("{body}\n"))
                    .expect("the file is written");
            }
            "console" => {
                let (command, said) = body.split_once('\n').unwrap_or((body, ""));
                let line = command.strip_prefix("$ stack-server ").expect("a command");
                let server = env!("CARGO_BIN_EXE_stack-server");
                let output = Command::new(server).args(words(line)).current_dir(folder.path()).output();
                let output = output.expect("the binary runs");
                let printed = [output.stdout, output.stderr].concat();
                let printed = String::from_utf8(printed).expect("text");
                assert_eq!(printed.trim_end(), said.trim_end(), "{command}");
                examples += 1;
            }
            other => panic!("a block of {other}"),
        }
    }
    assert!(examples > 10, "{examples} examples");
}
