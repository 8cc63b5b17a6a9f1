//! Expressions compiled by the crate `regex`.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind};
use smol_str::SmolStr;

use super::ExpressionError;
use crate::limits::EXPRESSION_DEPTH_MAX;

/// A compiled expression that may match anywhere in a text. Matching takes time linear in the text.
#[derive(Clone)]
pub(crate) struct Program(Regex);

impl Program {
    /// Compiles a text into at most `bytes_max` bytes, or says why it is refused. Addresses are ASCII, and so are
    /// the classes.
    pub(crate) fn compile(text: &str, bytes_max: usize) -> Result<Self, ExpressionError> {
        let built = RegexBuilder::new(text)
            .unicode(false)
            .size_limit(bytes_max)
            .dfa_size_limit(bytes_max)
            .nest_limit(EXPRESSION_DEPTH_MAX)
            .build();
        built.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => ExpressionError("the pattern is too large".to_owned()),
            // The compiler prints several lines to show the position; the last one has the message.
            error => {
                let text = error.to_string();
                let reason = text.lines().last().unwrap_or_default().trim();
                ExpressionError(reason.strip_prefix("error: ").unwrap_or(reason).to_owned())
            }
        })
    }

    /// Tells whether any part of a text matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text.as_bytes())
    }

    /// Returns the text with which every match of an expression begins.
    pub(super) fn literal_prefix(text: &str) -> SmolStr {
        let mut parser =
            ParserBuilder::new().unicode(false).utf8(false).nest_limit(EXPRESSION_DEPTH_MAX).build();
        let mut prefix = Vec::new();
        if let Ok(expression) = parser.parse(text) {
            extend(&expression, &mut prefix);
        }
        let is_text = |byte: &u8| byte.is_ascii();
        let length = prefix.iter().position(|byte| !is_text(byte)).unwrap_or(prefix.len());
        String::from_utf8_lossy(&prefix[..length]).into()
    }
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Program {}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.0.as_str())
    }
}

/// Appends the text with which every match of a part begins. Returns whether that is the whole part.
fn extend(part: &Hir, prefix: &mut Vec<u8>) -> bool {
    match part.kind() {
        // Assertions consume no characters.
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => {
            prefix.extend_from_slice(&literal.0);
            true
        }
        HirKind::Class(_) => false,
        HirKind::Capture(group) => extend(&group.sub, prefix),
        HirKind::Concat(parts) => parts.iter().all(|part| extend(part, prefix)),
        HirKind::Repetition(repeated) => {
            repeated.min > 0 && extend(&repeated.sub, prefix) && repeated.min == 1 && repeated.max == Some(1)
        }
        HirKind::Alternation(branches) => {
            let mut common: Option<Vec<u8>> = None;
            for branch in branches {
                let mut own = Vec::new();
                extend(branch, &mut own);
                common = Some(match common {
                    None => own,
                    Some(mut common) => {
                        common.truncate(common.iter().zip(&own).take_while(|(a, b)| a == b).count());
                        common
                    }
                });
            }
            prefix.extend(common.unwrap_or_default());
            false
        }
    }
}
