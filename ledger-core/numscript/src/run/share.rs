//! Divides an amount by shares.

use std::cmp::Ordering;

use dashu_int::IBig;
use smallvec::SmallVec;

use super::{Run, Step, Stop};
use crate::error::ErrorKind;
use crate::limits::SCRIPT_SHARE_BITS_MAX;
use crate::portion::{Portion, Total};
use crate::program::Expr;
use crate::span::Span;
use crate::tree::Share;

/// The parts of an amount, in the order of the shares.
pub(super) type Parts = SmallVec<[IBig; 4]>;

impl<'a> Run<'a> {
    /// Divides an amount. Each share gets its part rounded down. The first shares in written order get the
    /// rest, one unit each.
    pub(super) fn split(
        &mut self,
        span: Span,
        amount: &IBig,
        shares: impl ExactSizeIterator<Item = &'a Share<Expr>>,
    ) -> Step<Parts> {
        let mut parts = Parts::with_capacity(shares.len());
        let mut total = Total::zero();
        let mut left = amount.clone();
        let mut remaining = None;
        for (at, share) in shares.enumerate() {
            let expr = match share {
                Share::Portion(expr) => expr,
                Share::Remaining(span) => {
                    if remaining.replace(at).is_some() {
                        return Err(Stop::at(*span, ErrorKind::DuplicateRemaining));
                    }
                    parts.push(IBig::ZERO);
                    continue;
                }
            };
            let portion = self.portion_of(expr)?;
            if !portion.is_share() {
                let portion = portion.to_string();
                return Err(Stop::at(expr.span, ErrorKind::InvalidPortion { portion }));
            }
            if total.add(&portion, SCRIPT_SHARE_BITS_MAX).is_none() {
                let what = "the shares of an allotment have too many digits";
                return Err(Stop::at(span, ErrorKind::TooLarge { what }));
            }
            let part = part_of(amount, &portion);
            left -= &part;
            parts.push(part);
        }
        match (total.compare_one(), remaining) {
            (Ordering::Equal, _) => {}
            (Ordering::Less, Some(at)) => {
                parts[at] = part_of(amount, &total.rest());
                left -= &parts[at];
            }
            (Ordering::Less, None) | (Ordering::Greater, _) => {
                let actual = total.reduced().to_string();
                return Err(Stop::at(span, ErrorKind::InvalidAllotmentSum { actual }));
            }
        }
        for part in &mut parts {
            if left.is_zero() {
                break;
            }
            *part += 1;
            left -= 1;
        }
        Ok(parts)
    }
}

/// Returns the part of a whole, rounded down. Both arguments are zero or more.
fn part_of(whole: &IBig, portion: &Portion) -> IBig {
    let (over, under) = (portion.numerator(), portion.denominator());
    if let (Ok(whole), Ok(over), Ok(under)) =
        (u64::try_from(whole), u64::try_from(over), u64::try_from(under))
    {
        return IBig::from(u128::from(whole) * u128::from(over) / u128::from(under));
    }
    whole * over / under.as_ibig()
}
