//! Scaling: pays in one precision of an asset with funds in other precisions.

use dashu_int::IBig;
use smallvec::SmallVec;

use super::{Run, Step, Stop};
use crate::error::ErrorKind;
use crate::limits::{SCRIPT_PRECISIONS_MAX, SCRIPT_SCALE_DISTANCE_MAX};
use crate::program::{AccountId, AssetId, Expr, WORLD_ID};
use crate::span::Span;

/// Conversion factor between two precisions.
enum Factor {
    /// One unit counts as this many.
    Times(IBig),
    /// This many units count as one.
    Parts(IBig),
}

impl<'a> Run<'a> {
    /// Converts the missing amount by exchanging it with the account `through`, then takes funds as from any
    /// account.
    pub(super) fn take_scaled(
        &mut self,
        span: Span,
        asset: AssetId,
        wanted: Option<&IBig>,
        account: &'a Expr,
        through: &'a Expr,
    ) -> Step<IBig> {
        let owner = self.account_of(account)?;
        let exchange = self.account_of(through)?;
        if owner == WORLD_ID {
            return Err(Stop::at(account.span, ErrorKind::InvalidScaling));
        }
        let held = self.scratch.state.holding(owner, asset, 0);
        let have = self.balance(held)?;
        let needed = wanted.map(|wanted| wanted - &have);
        let mut total = IBig::ZERO;
        for (owned, factor) in self.other_precisions(span, owner, asset)? {
            let rest = needed.as_ref().map(|needed| needed - &total);
            if rest.as_ref().is_some_and(|rest| *rest <= IBig::ZERO) {
                break;
            }
            let balance = self.balance(owned)?;
            if balance <= IBig::ZERO {
                continue;
            }
            let (paid, got) = match factor {
                Factor::Times(times) => {
                    let worth = &balance * &times;
                    let target = rest.map_or(worth.clone(), |rest| rest.min(worth));
                    // Round up: the last unit is exchanged whole.
                    let paid: IBig = (target + &times - 1) / &times;
                    (paid.clone(), paid * times)
                }
                Factor::Parts(parts) => {
                    let worth = balance / &parts;
                    let got = rest.map_or(worth.clone(), |rest| rest.min(worth));
                    (&got * &parts, got)
                }
            };
            if paid.is_zero() {
                continue;
            }
            let asset = self.scratch.state.holdings[owned].asset;
            let to = self.scratch.state.holding(exchange, asset, 0);
            self.scratch.state.move_now(owned, to, paid);
            self.explain_conversion(span);
            total += got;
        }
        if !total.is_zero() {
            let from = self.scratch.state.holding(exchange, asset, 0);
            self.scratch.state.move_now(from, held, total);
            self.explain_conversion(span);
        }
        let available = self.balance(held)?.max(IBig::ZERO);
        let amount = match wanted {
            Some(wanted) if *wanted < available => wanted.clone(),
            _ => available,
        };
        if let Some(recorder) = &mut self.scratch.recorder {
            let balance = self.scratch.state.balance(held).unwrap_or_default();
            recorder.drew(span, held, wanted, &amount, Some((balance, IBig::ZERO)));
        }
        self.scratch.state.take(held, amount.clone(), span);
        Ok(amount)
    }

    /// Lists the account's holdings of the same asset in other precisions, the finest first.
    fn other_precisions(
        &mut self,
        span: Span,
        owner: AccountId,
        asset: AssetId,
    ) -> Step<Vec<(usize, Factor)>> {
        let name = self.asset_name(asset).clone();
        let (base, scale) = precision(&name);
        let family = SmallVec::<[usize; 8]>::from(self.family(owner, base));
        if family.len() > SCRIPT_PRECISIONS_MAX {
            let what = "an account that pays by scaling has too many precisions of an asset";
            return Err(Stop::at(span, ErrorKind::TooLarge { what }));
        }
        let mut found = Vec::new();
        for at in family {
            let held = &self.scratch.state.holdings[at];
            let is_empty = self.scratch.state.balance(at).is_some_and(|balance| balance <= IBig::ZERO);
            if held.asset == asset || is_empty {
                continue;
            }
            let name = self.asset_name(held.asset);
            let (_, other) = precision(name);
            match (scale, other) {
                (Some(scale), Some(other)) if scale.abs_diff(other) <= SCRIPT_SCALE_DISTANCE_MAX => {
                    let power = IBig::from(10).pow(scale.abs_diff(other) as usize);
                    let factor = if scale > other { Factor::Times(power) } else { Factor::Parts(power) };
                    found.push((other, at, factor));
                }
                _ => return Err(Stop::at(span, ErrorKind::ScaleOutOfRange { asset: name.clone() })),
            }
        }
        found.sort_by_key(|(scale, ..)| std::cmp::Reverse(*scale));
        Ok(found.into_iter().map(|(_, at, factor)| (at, factor)).collect())
    }

    /// Returns the indexes of an account's uncoloured holdings in any precision of `base`.
    fn family(&mut self, account: AccountId, base: &str) -> &[usize] {
        let before = self.scratch.families.last_seen(account);
        let mut last = before;
        while let Some(at) = self.scratch.state.next_of_account(account, last) {
            let held = &self.scratch.state.holdings[at];
            if held.color == 0 {
                let name = self.asset_name(held.asset).clone();
                let base = name.split_once('/').map_or(name.as_str(), |(base, _)| base);
                self.scratch.families.add(account, base, at);
            }
            last = Some(at);
        }
        if let (Some(last), true) = (last, last != before) {
            self.scratch.families.mark_seen(account, last);
        }
        self.scratch.families.of(account, base)
    }

    fn explain_conversion(&mut self, clause: Span) {
        if let Some(recorder) = &mut self.scratch.recorder {
            let flow = self.scratch.state.flows.last().expect("the exchange above has created a flow");
            recorder.converted(clause, &flow.amount);
        }
    }
}

/// Splits an asset into its name and its precision. The precision is `None` if it has too many digits.
fn precision(asset: &str) -> (&str, Option<u32>) {
    match asset.split_once('/') {
        None => (asset, Some(0)),
        Some((base, digits)) => (base, digits.parse().ok()),
    }
}
