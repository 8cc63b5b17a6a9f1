//! Where the parser stands: the token before it, what is open, and what went wrong.

use super::SyntaxError;
use crate::limits::{SCRIPT_DEPTH_MAX, SCRIPT_ERRORS_MAX};
use crate::script::span::Span;
use crate::script::switches::Escapes;
use crate::script::token::{Kind, Token, Tokens};

/// An error was reported; whoever can go on does so.
pub(super) struct Reported;

pub(super) type Parsed<T> = Result<T, Reported>;

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: Tokens<'a>,
    pub(super) escapes: Escapes,
    /// The token to be read next.
    pub(super) token: Token,
    /// The end of the token read last.
    pub(super) end: u32,
    /// How many brackets are open.
    pub(super) open: usize,
    /// How many productions that can contain themselves are being read.
    pub(super) depth: usize,
    pub(super) errors: Vec<SyntaxError>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, escapes: Escapes) -> Self {
        let mut tokens = Tokens::new(text, escapes);
        let token = tokens.next();
        Self { text, tokens, escapes, token, end: 0, open: 0, depth: 0, errors: Vec::new() }
    }

    /// Takes the token.
    pub(super) fn bump(&mut self) -> Span {
        let Token { kind, span } = self.token;
        match kind {
            Kind::LeftParen | Kind::LeftBracket | Kind::LeftBrace => self.open += 1,
            Kind::RightParen | Kind::RightBracket | Kind::RightBrace => {
                self.open = self.open.saturating_sub(1);
            }
            _ => {}
        }
        self.end = span.end;
        self.token = self.tokens.next();
        span
    }

    /// Takes the token if it is of this kind.
    pub(super) fn eat(&mut self, kind: Kind) -> bool {
        let is = self.token.kind == kind;
        if is {
            self.bump();
        }
        is
    }

    pub(super) fn expect(&mut self, kind: Kind) -> Parsed<Span> {
        if self.token.kind == kind { Ok(self.bump()) } else { Err(self.unexpected(kind.describe())) }
    }

    /// From `start` to the token read last.
    pub(super) fn since(&self, start: Span) -> Span {
        Span::new(start.start, self.end.max(start.start))
    }

    /// Goes one deeper; whoever did so successfully goes back.
    pub(super) fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth <= SCRIPT_DEPTH_MAX {
            return Ok(());
        }
        let reported = self.fail(self.token.span, format!("nested deeper than {SCRIPT_DEPTH_MAX} levels"));
        self.stop();
        Err(reported)
    }

    #[cold]
    pub(super) fn error(&mut self, span: Span, message: String) {
        if self.errors.len() < SCRIPT_ERRORS_MAX {
            self.errors.push(SyntaxError { span, message });
        }
    }

    #[cold]
    pub(super) fn fail(&mut self, span: Span, message: String) -> Reported {
        self.error(span, message);
        Reported
    }

    /// The token is none of those that may stand here.
    #[cold]
    pub(super) fn unexpected(&mut self, expected: &str) -> Reported {
        let Token { kind, span } = self.token;
        let message = match kind {
            Kind::Bad(reason) => reason.to_owned(),
            _ => format!("expected {expected}, found {}", kind.describe()),
        };
        self.fail(span, message)
    }

    /// Nothing more is read.
    #[cold]
    pub(super) fn stop(&mut self) {
        let end = self.text.len() as u32;
        self.token = Token { kind: Kind::End, span: Span::new(end, end) };
        self.tokens = Tokens::new("", self.escapes);
    }

    /// Leaves what began at `start`, up to a word that begins a statement, or one that `begins` something where
    /// no bracket is open.
    #[cold]
    pub(super) fn recover(&mut self, start: Span, begins: impl Fn(Kind) -> bool) {
        self.depth = 0;
        loop {
            let kind = self.token.kind;
            let resumes = matches!(kind, Kind::Send | Kind::Save) || self.open == 0 && begins(kind);
            // What was refused is passed, or reading would not go on.
            if kind == Kind::End || resumes && self.token.span.start > start.start {
                return;
            }
            self.bump();
        }
    }
}
