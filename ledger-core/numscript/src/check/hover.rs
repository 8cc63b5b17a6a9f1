//! Type information for the expression under an editor's cursor.

use smol_str::SmolStr;

use super::Checked;
use crate::span::{Position, PositionIndex, Range, Span};
use crate::types::Type;

/// An expression of a script with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedRange {
    /// Position of the expression in lines and columns.
    pub range: Range,
    /// Position of the expression in bytes.
    pub span: Span,
    /// Type of the expression.
    pub of: Type,
    /// Asset of an asset or monetary, if the script allows only one.
    pub asset: Option<SmolStr>,
}

impl Checked<'_> {
    /// Finds the innermost expression at a position. Returns `None` if there is none or its type is unknown.
    /// Takes time in proportion to the length of the script.
    pub fn type_at(&self, position: Position) -> Option<TypedRange> {
        let positions = PositionIndex::of(self.text);
        let at = positions.offset(position)?;
        let exprs = self.script.exprs.iter().filter(|expr| (expr.span.start..expr.span.end).contains(&at));
        let expr = exprs.min_by_key(|expr| expr.span.end - expr.span.start)?;
        Some(TypedRange {
            range: positions.range(expr.span),
            span: expr.span,
            of: expr.typed.of?,
            asset: expr.typed.asset.and_then(|asset| self.script.assets.name(asset)).cloned(),
        })
    }
}
