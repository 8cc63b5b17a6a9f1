//! Fuzz target: parsing, checking and formatting any text never panics. Formatting twice changes nothing, and
//! a formatted script has the same tree.

use ledger_core::script::{Profile, Program, check, format, parse};

/// Reads a script. Invalid UTF-8 is replaced.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (tree, errors) = parse(&text);
    // The checker also accepts half a script, because editors check while the user types.
    check(&tree, &text);
    for error in &errors {
        assert!(error.span.start <= error.span.end && error.span.end as usize <= text.len(), "{text:?}");
    }
    for profile in [Profile::Default, Profile::Interpreter, Profile::Machine] {
        let compiled = Program::compile(&text, profile);
        assert!(errors.is_empty() || profile == Profile::Interpreter || compiled.is_err(), "{text:?}");
    }
    match format(&text) {
        Ok(once) => {
            assert!(errors.is_empty());
            assert_eq!(format(&once).as_deref(), Ok(once.as_str()), "{text:?}");
            let (again, errors) = parse(&once);
            assert!(errors.is_empty(), "{text:?} {once:?}");
            assert_eq!(outline(&format!("{tree:?}")), outline(&format!("{again:?}")), "{text:?} {once:?}");
        }
        Err(_) => assert!(!errors.is_empty()),
    }
}

/// Returns a tree without its positions.
fn outline(tree: &str) -> String {
    const SPAN: &str = "Span { start: ";
    let mut outline = String::with_capacity(tree.len());
    let mut rest = tree;
    while let Some(at) = rest.find(SPAN) {
        outline.push_str(&rest[..at]);
        rest = rest[at..].split_once('}').map_or("", |(_, after)| after);
    }
    outline + rest
}
