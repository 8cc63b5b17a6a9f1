//! Prints findings and errors for people, with the line of the script that they concern.

use std::fmt::Write as _;

use crate::{Diagnostic, Range, ScriptError, Severity, SyntaxError};

/// Switch for colours in terminal output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint(bool);

impl Paint {
    pub(super) fn new(colored: bool) -> Self {
        Self(colored)
    }

    pub(super) fn error(self, text: &str) -> String {
        self.with("1;31", text)
    }

    pub(super) fn warning(self, text: &str) -> String {
        self.with("1;33", text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(super) fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Formats a finding of the checker.
pub(super) fn finding(file: &str, text: &str, found: &Diagnostic, paint: Paint) -> String {
    let severity = match found.kind.severity() {
        Severity::Error => paint.error("error"),
        Severity::Warning if found.fatal => paint.error("error"),
        Severity::Warning => paint.warning("warning"),
    };
    let what = format!("{severity}: {} [{}]", found.kind, found.kind.name());
    at(file, text, found.range, &what, paint)
}

/// Formats a syntax error.
pub(super) fn syntax_error(file: &str, text: &str, error: &SyntaxError, paint: Paint) -> String {
    let what = format!("{}: {} [Parsing]", paint.error("error"), error.message);
    at(file, text, Range::of(error.span, text), &what, paint)
}

/// Formats an error of a run.
pub(super) fn script_error(file: &str, text: &str, error: &ScriptError, paint: Paint) -> String {
    let what = format!("{}: {} [{}]", paint.error("error"), error.kind, error.kind.name());
    match error.range {
        Some(range) => at(file, text, range, &what, paint),
        None => format!("{file}: {what}\n"),
    }
}

/// Formats a message with its position, the line of the script, and marks below the characters that it
/// concerns.
fn at(file: &str, text: &str, range: Range, what: &str, paint: Paint) -> String {
    let number = range.start.line as usize + 1;
    let mut report = format!("{}:{number}:{}: {what}\n", paint.strong(file), range.start.column as usize + 1);
    let Some(line) = text.lines().nth(range.start.line as usize) else { return report };
    let length = line.chars().count();
    let start = (range.start.column as usize).min(length);
    let end =
        if range.end.line > range.start.line { length } else { (range.end.column as usize).min(length) };
    let gutter = " ".repeat(number.to_string().len());
    // Tabs stay tabs, so that the marks line up with the characters above.
    let blanks: String = line.chars().take(start).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let marks = "^".repeat(end.saturating_sub(start).max(1));
    // Writing to a String cannot fail.
    let _ = writeln!(report, "  {} {line}", paint.faint(&format!("{number} |")));
    let _ = writeln!(report, "  {} {blanks}{}", paint.faint(&format!("{gutter} |")), paint.error(&marks));
    report
}
