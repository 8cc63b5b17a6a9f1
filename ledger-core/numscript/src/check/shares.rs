//! Checks whether the shares of an allotment can add up to one.

use std::cmp::Ordering;

use dashu_int::IBig;
use smallvec::SmallVec;

use super::typed::ExprId;
use super::{Checker, Remaining};
use crate::diagnostic::DiagnosticKind;
use crate::limits::SCRIPT_SHARE_BITS_MAX;
use crate::portion::{Portion, Total};
use crate::span::Span;
use crate::tree::{Expr, ExprKind, Share, Sign};
use crate::types::Type;

/// The shares of an allotment, by expression.
pub(super) type Shares = SmallVec<[Share<ExprId>; 8]>;

impl<'t> Checker<'t> {
    /// Checks the shares of the allotment at `block` in order.
    pub(super) fn shares(&mut self, block: Span, shares: impl ExactSizeIterator<Item = &'t Share>) -> Shares {
        let count = shares.len();
        let mut typed = Shares::with_capacity(count);
        let mut total = Total::zero();
        let mut unknown = Vec::new();
        let mut invalid = None;
        let mut remaining = None;
        let mut computable = true;
        for (at, share) in shares.enumerate() {
            match share {
                Share::Remaining(span) => {
                    let is_last = at + 1 == count;
                    if !is_last {
                        self.report(block, DiagnosticKind::RemainingIsNotLast);
                    }
                    if remaining.is_some() && self.remaining == Remaining::AnyPosition {
                        self.report(*span, DiagnosticKind::DuplicateRemaining);
                    }
                    if is_last || self.remaining == Remaining::AnyPosition {
                        remaining = Some((*span, is_last));
                    }
                    typed.push(Share::Remaining(*span));
                }
                Share::Portion(expr) => {
                    typed.push(Share::Portion(self.expect(expr, Type::Portion).id));
                    match self.constant_share(expr) {
                        Some(portion) => {
                            computable &= total.add(&portion, SCRIPT_SHARE_BITS_MAX).is_some();
                            if !portion.is_share() && invalid.is_none() {
                                invalid = Some((expr.span, portion));
                            }
                        }
                        None => unknown.push(expr.span),
                    }
                }
            }
        }
        if computable {
            self.check_sum(block, &total, remaining, &unknown);
        }
        if let (Some((span, portion)), Remaining::AnyPosition) = (invalid, self.remaining) {
            self.report(span, DiagnosticKind::InvalidPortion { portion: portion.to_string() });
        }
        typed
    }

    fn check_sum(&mut self, block: Span, total: &Total, remaining: Option<(Span, bool)>, unknown: &[Span]) {
        let bad = |over| DiagnosticKind::BadAllotmentSum { sum: total.reduced().to_string(), over };
        match (total.compare_one(), remaining, unknown) {
            (Ordering::Greater, _, _) => self.report(block, bad(true)),
            (Ordering::Less, None, []) => self.report(block, bad(false)),
            (Ordering::Less, None, [only]) => {
                let rest = total.rest();
                let value = Portion::new(rest.numerator().clone(), rest.denominator().clone().into());
                let value = value.map(|value| value.to_string()).unwrap_or_default();
                self.report(*only, DiagnosticKind::FixedPortionVariable { value });
            }
            // `remaining` or the values of variables can make up the difference.
            (Ordering::Less, ..) => {}
            (Ordering::Equal, remaining, unknown) => {
                for span in unknown {
                    self.report(*span, DiagnosticKind::FixedPortionVariable { value: "0/1".to_owned() });
                }
                if let Some((span, true)) = remaining {
                    self.report(span, DiagnosticKind::RedundantRemaining);
                }
            }
        }
    }

    /// Returns the value of a share without variables.
    fn constant_share(&mut self, expr: &Expr) -> Option<Portion> {
        match &expr.kind {
            ExprKind::Percent(portion) => Some(Portion::clone(portion)),
            ExprKind::Parens(inner) => self.constant_share(inner),
            ExprKind::Divide(over, under) => {
                let [under] = under.as_slice() else { return None };
                let (over, under) = (constant_number(over)?, constant_number(under)?);
                let portion = Portion::new(over.clone(), under);
                if portion.is_none() {
                    self.report(expr.span, DiagnosticKind::DivByZero { numerator: over.to_string() });
                }
                portion
            }
            _ => None,
        }
    }
}

/// Returns the value of a number literal.
fn constant_number(expr: &Expr) -> Option<IBig> {
    match &expr.kind {
        ExprKind::Number(number) => Some(number.clone()),
        ExprKind::Parens(inner) => constant_number(inner),
        ExprKind::Negate(inner) => constant_number(inner).map(|number| -number),
        ExprKind::Sum(first, rest) => {
            let mut sum = constant_number(first)?;
            for (sign, term) in rest {
                match sign {
                    Sign::Plus => sum += constant_number(term)?,
                    Sign::Minus => sum -= constant_number(term)?,
                }
            }
            Some(sum)
        }
        _ => None,
    }
}
