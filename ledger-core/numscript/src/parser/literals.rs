//! Reads the values of tokens.

use dashu_int::IBig;
use smol_str::{SmolStr, SmolStrBuilder};

use super::cursor::{Parsed, Parser, Reported};
use crate::limits::{SCRIPT_DIGITS_MAX, to_u32};
use crate::portion::natural;
use crate::span::Span;
use crate::switches::Escapes;
use crate::token::Kind;
use crate::tree::{ExprKind, Name, Part};
use ledger_values::AccountAddress;

impl Parser<'_> {
    pub(super) fn name(&mut self, kind: Kind, expected: &'static str) -> Parsed<Name> {
        if self.token.kind != kind {
            return Err(self.unexpected(expected));
        }
        let span = self.bump();
        Ok(Name { span, text: span.of(self.text).trim_start_matches('$').into() })
    }

    pub(super) fn number(&mut self, span: Span) -> Parsed<IBig> {
        let word = span.of(self.text);
        let number = if word.contains('_') { natural(&word.replace('_', "")) } else { natural(word) };
        number.map(IBig::from).ok_or_else(|| self.too_many_digits(span))
    }

    pub(super) fn too_many_digits(&mut self, span: Span) -> Reported {
        self.fail(span, format!("a number has at most {SCRIPT_DIGITS_MAX} digits"))
    }

    pub(super) fn account(&mut self, span: Span) -> Parsed<ExprKind> {
        let word = &span.of(self.text)[1..];
        if !word.contains('$') {
            return match AccountAddress::parse(word) {
                Ok(address) => Ok(ExprKind::Account(address)),
                Err(_) => Err(self.fail(span, "this account's address is too long".to_owned())),
            };
        }
        let mut at = span.start + 1;
        let mut parts = Vec::new();
        for part in word.split(':') {
            let span = Span::new(at, at + to_u32(part.len()));
            at = span.end + 1;
            parts.push(match part.strip_prefix('$') {
                Some(name) => Part::Variable(Name { span, text: name.into() }),
                None => Part::Text(part.into()),
            });
        }
        Ok(ExprKind::Interpolated(parts))
    }

    /// Returns the content of a string with its escapes replaced.
    pub(super) fn unescaped(&mut self, span: Span) -> Parsed<SmolStr> {
        let word = span.of(self.text);
        let raw = &word[1..word.len() - 1];
        if self.escapes == Escapes::Raw || !raw.contains('\\') {
            return Ok(raw.into());
        }
        let mut text = SmolStrBuilder::with_capacity(raw.len());
        let mut characters = raw.chars();
        while let Some(character) = characters.next() {
            if character != '\\' {
                text.push(character);
                continue;
            }
            let replaced = match characters.next() {
                Some(quoted @ ('"' | '\\')) => Some(quoted),
                Some('n') => Some('\n'),
                Some('r') => Some('\r'),
                Some('t') => Some('\t'),
                Some('u') => {
                    let digits = characters.as_str().get(..4).unwrap_or_default();
                    let code = u32::from_str_radix(digits, 16).ok();
                    characters.nth(3);
                    // `from_str_radix` would accept a plus sign.
                    code.filter(|_| digits.bytes().all(|b| b.is_ascii_hexdigit())).and_then(char::from_u32)
                }
                _ => None,
            };
            let Some(character) = replaced else {
                let known = "unknown escape in a string: only \\\" \\\\ \\n \\r \\t \\uNNNN are known";
                return Err(self.fail(span, known.to_owned()));
            };
            text.push(character);
        }
        Ok(text.finish())
    }
}
