//! An error on its way out.

use super::error::{ErrorKind, ScriptError};
use super::span::{Range, Span};

/// An error before its place is looked up, which takes the script's text.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: ErrorKind,
    pub(super) span: Option<Span>,
}

impl Fault {
    /// At a place of the text.
    #[cold]
    pub(super) fn at(span: Span, kind: ErrorKind) -> Self {
        Self { kind, span: Some(span) }
    }

    /// Without one.
    #[cold]
    pub(super) fn nowhere(kind: ErrorKind) -> Self {
        Self { kind, span: None }
    }

    /// With its place looked up in the text of the script.
    #[cold]
    pub(super) fn in_text(self, text: &str) -> ScriptError {
        ScriptError { kind: self.kind, range: self.span.map(|span| Range::of(span, text)) }
    }
}
