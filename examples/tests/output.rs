//! Runs every example, and compares its output with the block in its header.

use std::path::Path;
use std::process::Command;

/// Returns the lines of the first `text` block in the comment at the top of a source file.
fn announced(source: &str) -> String {
    let header = source.lines().map_while(|line| line.strip_prefix("//!"));
    let lines = header.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let block = lines.skip_while(|line| *line != "```text").skip(1);
    let block: Vec<_> = block.take_while(|line| *line != "```").collect();
    block.join("\n") + "\n"
}

#[test]
fn every_example_prints_its_announcement() {
    let programs = Path::new(env!("CARGO_BIN_EXE_embed")).parent().expect("it lies in a directory");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let mut compared = 0;
    for entry in std::fs::read_dir(sources).expect("the examples are readable") {
        let path = entry.expect("the examples are readable").path();
        let source = std::fs::read_to_string(&path).expect("the example is readable");
        assert!(source.lines().count() <= 120, "{} is too long for an example", path.display());
        let program = programs.join(path.file_stem().expect("a file has a name"));
        let output = Command::new(&program).output().expect("the example starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && !printed.is_empty(), "{}: {output:?}", program.display());
        assert_eq!(printed, announced(&source), "{}", path.display());
        compared += 1;
    }
    assert!(compared >= 11, "only {compared} examples were found");
}
