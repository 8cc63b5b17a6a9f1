//! The state of the parser and its basic steps: reading the next token, reporting an error, and going on after one.

use super::syntax_error::SyntaxError;
use crate::limits::{SCRIPT_DEPTH_MAX, SCRIPT_ERRORS_MAX, to_u32};
use crate::span::Span;
use crate::switches::Escapes;
use crate::token::{Kind, Token, Tokens};

/// Marker that an error was already reported. Callers that can recover go on.
pub(super) struct Reported;

pub(super) type Parsed<T> = Result<T, Reported>;

/// A parser at some position in a script. The other files of this module add a method for each production of the
/// grammar.
pub(super) struct Parser<'a> {
    /// The whole script.
    pub(super) text: &'a str,
    /// The tokens after the next one.
    pub(super) tokens: Tokens<'a>,
    pub(super) escapes: Escapes,
    /// The next token to read.
    pub(super) token: Token,
    /// End of the last token.
    pub(super) end: u32,
    /// Number of open brackets.
    pub(super) open_brackets: usize,
    /// Number of nested recursive productions.
    pub(super) depth: usize,
    pub(super) errors: Vec<SyntaxError>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, escapes: Escapes) -> Self {
        let mut tokens = Tokens::new(text, escapes);
        let token = tokens.next();
        Self { text, tokens, escapes, token, end: 0, open_brackets: 0, depth: 0, errors: Vec::new() }
    }

    /// Consumes the next token.
    pub(super) fn bump(&mut self) -> Span {
        let Token { kind, span } = self.token;
        match kind {
            Kind::LeftParen | Kind::LeftBracket | Kind::LeftBrace => self.open_brackets += 1,
            Kind::RightParen | Kind::RightBracket | Kind::RightBrace => {
                self.open_brackets = self.open_brackets.saturating_sub(1);
            }
            _ => {}
        }
        self.end = span.end;
        self.token = self.tokens.next();
        span
    }

    /// Consumes the next token if it is of this kind.
    pub(super) fn eat(&mut self, kind: Kind) -> bool {
        let is = self.token.kind == kind;
        if is {
            self.bump();
        }
        is
    }

    /// Consumes the next token, or reports an error if it is not of this kind.
    pub(super) fn expect(&mut self, kind: Kind) -> Parsed<Span> {
        if self.token.kind == kind { Ok(self.bump()) } else { Err(self.unexpected(kind.describe())) }
    }

    /// Returns the span from `start` to the last token.
    pub(super) fn since(&self, start: Span) -> Span {
        Span::new(start.start, self.end.max(start.start))
    }

    /// Enters a nested production. After a success, the caller leaves it again.
    pub(super) fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth <= SCRIPT_DEPTH_MAX {
            return Ok(());
        }
        let reported = self.fail(self.token.span, format!("nested deeper than {SCRIPT_DEPTH_MAX} levels"));
        self.stop();
        Err(reported)
    }

    /// Adds an error, unless there are as many as the limit allows.
    #[cold]
    pub(super) fn error(&mut self, span: Span, message: String) {
        if self.errors.len() < SCRIPT_ERRORS_MAX {
            self.errors.push(SyntaxError { span, message });
        }
    }

    /// Adds an error, and returns the marker for the caller.
    #[cold]
    pub(super) fn fail(&mut self, span: Span, message: String) -> Reported {
        self.error(span, message);
        Reported
    }

    /// Reports that the next token is none of those allowed here.
    #[cold]
    pub(super) fn unexpected(&mut self, expected: &str) -> Reported {
        let Token { kind, span } = self.token;
        let message = match kind {
            Kind::Bad(reason) => reason.to_owned(),
            _ => format!("expected {expected}, found {}", kind.describe()),
        };
        self.fail(span, message)
    }

    /// Stops reading: the next token becomes the end.
    #[cold]
    pub(super) fn stop(&mut self) {
        let end = to_u32(self.text.len());
        self.token = Token { kind: Kind::End, span: Span::new(end, end) };
        self.tokens = Tokens::new("", self.escapes);
    }

    /// Skips the broken item that began at `start`. Stops at a word that begins a statement, or outside
    /// brackets at a token for which `begins` is true.
    #[cold]
    pub(super) fn recover(&mut self, start: Span, begins: impl Fn(Kind) -> bool) {
        self.depth = 0;
        loop {
            let kind = self.token.kind;
            let resumes = matches!(kind, Kind::Send | Kind::Save) || self.open_brackets == 0 && begins(kind);
            // Always skip at least the refused token, or the parser would not advance.
            if kind == Kind::End || resumes && self.token.span.start > start.start {
                return;
            }
            self.bump();
        }
    }
}
