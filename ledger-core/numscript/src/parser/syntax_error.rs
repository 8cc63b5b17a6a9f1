//! The error of the parser.

use crate::span::Span;

/// A place where a text does not follow the grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Position of the error.
    pub span: Span,
    /// The text that was found and the syntax that was expected.
    pub message: String,
}
