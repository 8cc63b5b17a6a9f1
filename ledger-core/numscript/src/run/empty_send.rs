//! Records zero postings for a send that moves nothing.

use dashu_int::IBig;

use super::state::Flow;
use super::{Run, Step};
use crate::program::{AccountId, AssetId, Expr};
use crate::span::Span;
use crate::tree::{Clauses, Destination, DestinationKind, Send, Source, SourceKind, Target};

/// An account of a source, the colour of its funds, and the clause that names it.
type Origin = (AccountId, u32, Span);

impl<'a> Run<'a> {
    /// Posts zero from the first account of the source to each account of the destination.
    pub(super) fn record_empty_send(&mut self, send: &'a Send<Expr>, asset: AssetId) -> Step<()> {
        match self.first_account(&send.source)? {
            Some(origin) => self.nothing_to(&send.destination, asset, origin),
            None => Ok(()),
        }
    }

    fn first_account(&mut self, source: &'a Source<Expr>) -> Step<Option<Origin>> {
        let mut first = |sources: &mut dyn Iterator<Item = &'a Source<Expr>>| {
            for source in sources {
                if let Some(found) = self.first_account(source)? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        };
        match &source.kind {
            SourceKind::InOrder(sources) | SourceKind::OneOf(sources) => first(&mut sources.iter()),
            SourceKind::Allotment(items) => first(&mut items.iter().map(|item| &item.source)),
            SourceKind::Capped { source, .. } => self.first_account(source),
            SourceKind::Scaled { account, .. } => Ok(Some((self.account_of(account)?, 0, source.span))),
            SourceKind::Account { account, color, .. } => {
                Ok(Some((self.account_of(account)?, self.color_of(color.as_ref())?, source.span)))
            }
        }
    }

    fn nothing_to(&mut self, destination: &'a Destination<Expr>, asset: AssetId, origin: Origin) -> Step<()> {
        match &destination.kind {
            DestinationKind::Account(account) => {
                let account = self.account_of(account)?;
                let (source, color, clause) = origin;
                let flow = Flow { source, destination: account, asset, color, amount: IBig::ZERO };
                self.scratch.state.flows.push(flow);
                if let Some(recorder) = &mut self.scratch.recorder {
                    recorder.posted_nothing(clause, destination.span);
                }
                Ok(())
            }
            DestinationKind::Allotment(items) => {
                items.iter().try_for_each(|item| self.nothing_to_target(&item.target, asset, origin))
            }
            DestinationKind::InOrder(Clauses { capped, remaining })
            | DestinationKind::OneOf(Clauses { capped, remaining }) => {
                // Zero is within every bound, so the first clause receives all of it.
                let first = capped.first().map_or(&**remaining, |clause| &clause.target);
                self.nothing_to_target(first, asset, origin)
            }
        }
    }

    fn nothing_to_target(&mut self, target: &'a Target<Expr>, asset: AssetId, origin: Origin) -> Step<()> {
        match target {
            Target::To(destination) => self.nothing_to(destination, asset, origin),
            Target::Kept(_) => Ok(()),
        }
    }
}
