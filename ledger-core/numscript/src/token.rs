//! The tokenizer: splits a text into tokens by longest match.
//!
//! White space and comments only separate tokens. An account literal is one token, because white space may
//! not occur inside it.

use super::span::Span;
use super::switches::Escapes;
use crate::limits::{SCRIPT_DEPTH_MAX, to_u32};

/// The kind of a token. The text of a token is the text of its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The end of the text.
    End,
    /// A character with which no token begins, and the reason.
    Bad(&'static str),
    Allowing,
    Destination,
    Feature,
    From,
    Kept,
    Max,
    OneOf,
    Overdraft,
    Remaining,
    Save,
    Scaling,
    Send,
    Source,
    Through,
    To,
    Unbounded,
    Up,
    Vars,
    With,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Comma,
    Equals,
    Star,
    Plus,
    Minus,
    Slash,
    Backslash,
    /// The token `#!`.
    HashBang,
    Percent,
    Number,
    Text,
    Identifier,
    Asset,
    Variable,
    Account,
}

impl Kind {
    /// Names the token in messages.
    pub(super) const fn describe(self) -> &'static str {
        match self {
            Self::End => "the end of the script",
            Self::Bad(_) => "an illegal character",
            Self::Allowing => "'allowing'",
            Self::Destination => "'destination'",
            Self::Feature => "'feature'",
            Self::From => "'from'",
            Self::Kept => "'kept'",
            Self::Max => "'max'",
            Self::OneOf => "'oneof'",
            Self::Overdraft => "'overdraft'",
            Self::Remaining => "'remaining'",
            Self::Save => "'save'",
            Self::Scaling => "'scaling'",
            Self::Send => "'send'",
            Self::Source => "'source'",
            Self::Through => "'through'",
            Self::To => "'to'",
            Self::Unbounded => "'unbounded'",
            Self::Up => "'up'",
            Self::Vars => "'vars'",
            Self::With => "'with'",
            Self::LeftParen => "'('",
            Self::RightParen => "')'",
            Self::LeftBracket => "'['",
            Self::RightBracket => "']'",
            Self::LeftBrace => "'{'",
            Self::RightBrace => "'}'",
            Self::Comma => "','",
            Self::Equals => "'='",
            Self::Star => "'*'",
            Self::Plus => "'+'",
            Self::Minus => "'-'",
            Self::Slash => "'/'",
            Self::Backslash => "'\\'",
            Self::HashBang => "'#!'",
            Self::Percent => "a percentage",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::Identifier => "a name",
            Self::Asset => "an asset",
            Self::Variable => "a variable",
            Self::Account => "an account",
        }
    }

    fn of_word(word: &[u8]) -> Self {
        match word {
            b"allowing" => Self::Allowing,
            b"destination" => Self::Destination,
            b"feature" => Self::Feature,
            b"from" => Self::From,
            b"kept" => Self::Kept,
            b"max" => Self::Max,
            b"oneof" => Self::OneOf,
            b"overdraft" => Self::Overdraft,
            b"remaining" => Self::Remaining,
            b"save" => Self::Save,
            b"scaling" => Self::Scaling,
            b"send" => Self::Send,
            b"source" => Self::Source,
            b"through" => Self::Through,
            b"to" => Self::To,
            b"unbounded" => Self::Unbounded,
            b"up" => Self::Up,
            b"vars" => Self::Vars,
            b"with" => Self::With,
            _ => Self::Identifier,
        }
    }
}

/// A token of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// Iterates over the tokens of a text. After the last one, every call returns [`Kind::End`].
pub(super) struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
    escapes: Escapes,
    comments: Vec<Span>,
    /// End of the line that was searched for quotes last, and its last quote.
    line_end: usize,
    last_quote: usize,
}

impl<'a> Tokens<'a> {
    /// Starts at the beginning of `text`. Skips a byte order mark.
    pub(super) fn new(text: &'a str, escapes: Escapes) -> Self {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { bytes: text.as_bytes(), at, escapes, comments: Vec::new(), line_end: 0, last_quote: 0 }
    }

    /// Returns the comments so far, in order.
    pub(super) fn into_comments(self) -> Vec<Span> {
        self.comments
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|byte| wanted(*byte)) {
            self.at += 1;
        }
    }

    /// Returns the span from `start` up to the current position.
    fn span_from(&self, start: usize) -> Span {
        Span::new(to_u32(start), to_u32(self.at))
    }

    /// Returns the next token.
    pub(super) fn next(&mut self) -> Token {
        if let Err((start, fault)) = self.skip_space() {
            self.at = self.bytes.len();
            return Token { kind: Kind::Bad(fault), span: self.span_from(start) };
        }
        let start = self.at;
        let kind = self.scan();
        Token { kind, span: self.span_from(start) }
    }

    fn scan(&mut self) -> Kind {
        let Some(&first) = self.bytes.get(self.at) else { return Kind::End };
        self.at += 1;
        match first {
            b'a'..=b'z' => {
                let start = self.at - 1;
                self.skip_while(|byte| byte.is_ascii_lowercase() || byte == b'_');
                Kind::of_word(&self.bytes[start..self.at])
            }
            b'A'..=b'Z' => {
                self.skip_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
                if self.peek(0) == b'/' && self.peek(1).is_ascii_digit() {
                    self.at += 1;
                    self.skip_while(|byte| byte.is_ascii_digit());
                }
                Kind::Asset
            }
            b'0'..=b'9' => self.scan_number(),
            b'$' => self.scan_variable(),
            b'@' => self.scan_account(),
            b'"' => self.scan_text(),
            b'(' => Kind::LeftParen,
            b')' => Kind::RightParen,
            b'[' => Kind::LeftBracket,
            b']' => Kind::RightBracket,
            b'{' => Kind::LeftBrace,
            b'}' => Kind::RightBrace,
            b',' => Kind::Comma,
            b'=' => Kind::Equals,
            b'*' => Kind::Star,
            b'+' => Kind::Plus,
            b'-' => Kind::Minus,
            b'/' => Kind::Slash,
            b'\\' => Kind::Backslash,
            b'#' if self.peek(0) == b'!' => {
                self.at += 1;
                Kind::HashBang
            }
            b':' => Kind::Bad("a ':' stands between two parts of an account, without white space"),
            _ => {
                // Take the remaining bytes of a multi-byte character along.
                self.skip_while(|byte| byte & 0xC0 == 0x80);
                Kind::Bad("this character has no meaning here")
            }
        }
    }

    fn scan_number(&mut self) -> Kind {
        self.skip_while(|byte| byte.is_ascii_digit());
        let whole = self.at;
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        if self.peek(0) == b'%' {
            self.at += 1;
            return Kind::Percent;
        }
        self.at = whole;
        while self.peek(0) == b'_' && self.peek(1).is_ascii_digit() {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        Kind::Number
    }

    fn scan_variable(&mut self) -> Kind {
        if !(self.peek(0).is_ascii_lowercase() || self.peek(0) == b'_') {
            return Kind::Bad("a variable's name begins with a small letter or '_'");
        }
        self.skip_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        Kind::Variable
    }

    fn scan_account(&mut self) -> Kind {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        loop {
            if self.peek(0) == b'$' {
                self.at += 1;
                if let bad @ Kind::Bad(_) = self.scan_variable() {
                    return bad;
                }
            } else if is_part(self.peek(0)) {
                self.skip_while(is_part);
            } else {
                return Kind::Bad("a part of an account is missing: letters, digits, '_', '-' or a variable");
            }
            if self.peek(0) != b':' {
                return Kind::Account;
            }
            self.at += 1;
        }
    }

    fn scan_text(&mut self) -> Kind {
        loop {
            match self.bytes.get(self.at) {
                None | Some(b'\n' | b'\r') => return Kind::Bad("this string has no end on its line"),
                Some(b'"') => {
                    self.at += 1;
                    return Kind::Text;
                }
                Some(b'\\') => {
                    let escaped = self.peek(1);
                    // A string never contains a line end, escaped or not.
                    let pair = match self.escapes {
                        Escapes::Replace => !matches!(escaped, b'\n' | b'\r' | 0),
                        // Longest match: a quote ends the string only if no later quote on the line can.
                        Escapes::Raw => escaped == b'"' && self.last_quote_of_line() > self.at + 1,
                    };
                    self.at += 1 + usize::from(pair);
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// Returns the offset of the last quote on the line. Searches each line once.
    fn last_quote_of_line(&mut self) -> usize {
        if self.line_end <= self.at {
            let rest = &self.bytes[self.at..];
            let length = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
            self.line_end = self.at + length;
            self.last_quote =
                rest[..length].iter().rposition(|byte| *byte == b'"').map_or(0, |at| self.at + at);
        }
        self.last_quote
    }

    fn skip_space(&mut self) -> Result<(), (usize, &'static str)> {
        loop {
            match self.peek(0) {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'/' if self.peek(1) == b'/' => {
                    let start = self.at;
                    self.skip_while(|byte| byte != b'\n' && byte != b'\r');
                    self.comments.push(self.span_from(start));
                }
                b'/' if self.peek(1) == b'*' => self.skip_block_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_block_comment(&mut self) -> Result<(), (usize, &'static str)> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                    if depth > SCRIPT_DEPTH_MAX {
                        return Err((start, "comments are nested too deeply"));
                    }
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        self.comments.push(self.span_from(start));
                        return Ok(());
                    }
                }
                _ if self.at >= self.bytes.len() => return Err((start, "unterminated comment")),
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(Kind, &str)]) {
        let mut tokens = Tokens::new(text, Escapes::Replace);
        for (kind, word) in expected {
            let token = tokens.next();
            assert_eq!((token.kind, token.span.of(text)), (*kind, *word), "{text:?}");
        }
        assert_eq!(tokens.next().kind, Kind::End, "{text:?}");
    }

    #[test]
    fn prefers_the_longest_match() {
        use Kind::{Account, Asset, Identifier, Minus, Number, Percent, Slash, Variable};
        check(
            "1_000 1.5% 7%-2",
            &[(Number, "1_000"), (Percent, "1.5%"), (Percent, "7%"), (Minus, "-"), (Number, "2")],
        );
        check("USD/2 USD / 2", &[(Asset, "USD/2"), (Asset, "USD"), (Slash, "/"), (Number, "2")]);
        check("@a:$b:-9 @0a_$x", &[(Account, "@a:$b:-9"), (Account, "@0a_"), (Variable, "$x")]);
        check("max maximum $max", &[(Kind::Max, "max"), (Identifier, "maximum"), (Variable, "$max")]);
        check("// x\n/* a /* b */ c */ ", &[]);
    }

    #[test]
    fn strings_end_on_their_line() {
        check(
            r#""a\"b" "\\" "é""#,
            &[(Kind::Text, r#""a\"b""#), (Kind::Text, r#""\\""#), (Kind::Text, "\"é\"")],
        );
        for bad in ["\"a", "\"a\n\"", "\"a\\\n\"", "\"\\"] {
            assert!(matches!(Tokens::new(bad, Escapes::Replace).next().kind, Kind::Bad(_)), "{bad:?}");
        }
    }

    #[test]
    fn raw_strings_end_at_the_last_quote() {
        for (text, word) in [
            (r#""a\"b" 1"#, r#""a\"b""#),
            (r#""\\" 1"#, r#""\\""#),
            (r#""a\" 1"#, r#""a\""#),
            ("\"a\\\"\n\"", "\"a\\\""),
        ] {
            let token = Tokens::new(text, Escapes::Raw).next();
            assert_eq!((token.kind, token.span.of(text)), (Kind::Text, word), "{text:?}");
        }
    }

    #[test]
    fn refuses_unknown_characters() {
        for bad in ["é", ";", "@", "@ a", "@a:", "@a: b", ":", "$1", "$A", "#", "!", "_", "/* a", ".5%"] {
            assert!(matches!(Tokens::new(bad, Escapes::Replace).next().kind, Kind::Bad(_)), "{bad:?}");
        }
        let deep = "/*".repeat(SCRIPT_DEPTH_MAX + 1);
        assert!(matches!(Tokens::new(&deep, Escapes::Replace).next().kind, Kind::Bad(_)));
    }

    #[test]
    fn skips_byte_order_mark_and_last_comment() {
        check("\u{feff}send // the last line", &[(Kind::Send, "send")]);
    }
}
