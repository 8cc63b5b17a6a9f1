//! Delivers funds to destinations.

use dashu_int::IBig;

use super::{Run, Step};
use crate::options::Flag;
use crate::program::{AssetId, Expr};
use crate::span::Span;
use crate::switches::KeptFunds;
use crate::tree::{Destination, DestinationKind, Target};

impl<'a> Run<'a> {
    /// Delivers an amount of the funds that sources gave.
    pub(super) fn give(
        &mut self,
        destination: &'a Destination<Expr>,
        asset: AssetId,
        amount: &IBig,
    ) -> Step<()> {
        match &destination.kind {
            DestinationKind::Account(account) => {
                let account = self.account_of(account)?;
                self.deliver(account, amount, destination.span);
                Ok(())
            }
            DestinationKind::Allotment(items) => {
                let parts = self.split(destination.span, amount, items.iter().map(|item| &item.share))?;
                for (item, part) in items.iter().zip(&parts) {
                    self.give_target(&item.target, asset, part)?;
                }
                Ok(())
            }
            DestinationKind::InOrder(clauses) => {
                let mut left = amount.clone();
                for clause in &clauses.capped {
                    if left.is_zero() {
                        break;
                    }
                    let cap = self.amount_of(&clause.cap, asset)?;
                    if cap > IBig::ZERO {
                        let part = cap.min(left.clone());
                        self.give_target(&clause.target, asset, &part)?;
                        left -= part;
                    }
                }
                if left.is_zero() { Ok(()) } else { self.give_target(&clauses.remaining, asset, &left) }
            }
            DestinationKind::OneOf(clauses) => {
                self.require(Flag::OneOf, destination.span)?;
                for clause in &clauses.capped {
                    if self.amount_of(&clause.cap, asset)? >= *amount {
                        return self.give_target(&clause.target, asset, amount);
                    }
                }
                self.give_target(&clauses.remaining, asset, amount)
            }
        }
    }

    fn give_target(&mut self, target: &'a Target<Expr>, asset: AssetId, amount: &IBig) -> Step<()> {
        match target {
            Target::To(destination) => self.give(destination, asset, amount),
            Target::Kept(_) => {
                // Otherwise the amount is only counted, and the end of the send returns it.
                if self.switches.kept == KeptFunds::InPlace {
                    self.scratch.state.give_back(amount);
                }
                Ok(())
            }
        }
    }

    fn deliver(&mut self, account: super::AccountId, amount: &IBig, clause: Span) {
        let scratch = &mut *self.scratch;
        match &mut scratch.recorder {
            None => scratch.state.deliver(account, amount, |_, _, _| {}),
            Some(recorder) => scratch.state.deliver(account, amount, |begins, fund, part| {
                recorder.delivered(begins, fund, part, clause);
            }),
        }
    }
}
