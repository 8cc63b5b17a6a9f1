//! What an editor shows of the expression below its cursor.

use compact_str::CompactString;

use super::Checked;
use crate::script::span::{Place, Places, Range, Span};
use crate::script::types::Type;

/// An expression of a script, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedRange {
    /// Where it stands.
    pub range: Range,
    /// Where it stands, in bytes.
    pub span: Span,
    /// Its type.
    pub of: Type,
    /// For an asset or a monetary, which asset, if the script leaves no choice.
    pub asset: Option<CompactString>,
}

impl Checked<'_> {
    /// The innermost expression at a place; `None` where there is none, or its type is not known. Takes time by the
    /// length of the script.
    pub fn type_at(&self, place: Place) -> Option<TypedRange> {
        let places = Places::of(self.text);
        let at = places.offset(place)?;
        let exprs = self.script.exprs.iter().filter(|expr| (expr.span.start..expr.span.end).contains(&at));
        let expr = exprs.min_by_key(|expr| expr.span.end - expr.span.start)?;
        Some(TypedRange {
            range: places.range(expr.span),
            span: expr.span,
            of: expr.typed.of?,
            asset: expr.typed.asset.and_then(|asset| self.script.assets.name(asset)).cloned(),
        })
    }
}
