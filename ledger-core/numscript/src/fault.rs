//! The internal form of an error, with its position as a byte span.

use super::error::{ErrorKind, ScriptError};
use super::span::{Range, Span};

/// An error before its span is converted to lines and columns, which takes the script's text.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: ErrorKind,
    pub(super) span: Option<Span>,
}

impl Fault {
    /// Makes an error at a span of the text.
    #[cold]
    pub(super) fn at(span: Span, kind: ErrorKind) -> Self {
        Self { kind, span: Some(span) }
    }

    /// Makes an error without a position.
    #[cold]
    pub(super) fn nowhere(kind: ErrorKind) -> Self {
        Self { kind, span: None }
    }

    /// Converts the span to lines and columns of the script's text.
    #[cold]
    pub(super) fn in_text(self, text: &str) -> ScriptError {
        ScriptError { kind: self.kind, range: self.span.map(|span| Range::of(span, text)) }
    }
}
