//! Records how the postings of a run come about.

use dashu_int::IBig;

use super::Run;
use super::books::Fund;
use crate::span::{PositionIndex, Span};
use crate::trace::{Bound, Drawn, PostingTrace, Trace};
use ledger_values::{Amount, Balance};

/// A [`Trace`] with numbers and spans in place of names and positions.
#[derive(Debug, Default)]
pub(super) struct TraceRecorder {
    drawn: Vec<SourceDraw>,
    postings: Vec<PostingRecord>,
}

#[derive(Debug)]
struct SourceDraw {
    clause: Span,
    holding: usize,
    asked: Option<IBig>,
    gave: IBig,
    /// The balance and the overdraft that limited the source, if any did.
    bound: Option<(IBig, IBig)>,
    returned: bool,
}

#[derive(Debug)]
struct PostingRecord {
    sources: Vec<(Span, IBig)>,
    destination: Option<Span>,
}

impl TraceRecorder {
    /// Records that a source was asked for funds.
    pub(super) fn drew(
        &mut self,
        clause: Span,
        holding: usize,
        asked: Option<&IBig>,
        gave: &IBig,
        bound: Option<(IBig, IBig)>,
    ) {
        self.drawn.push(SourceDraw {
            clause,
            holding,
            asked: asked.cloned(),
            gave: gave.clone(),
            bound,
            returned: false,
        });
    }

    /// Returns how many sources were asked so far.
    pub(super) fn drawn(&self) -> usize {
        self.drawn.len()
    }

    /// Records that the funds of the sources since `drawn` went back, and truncates the postings.
    pub(super) fn returned_since(&mut self, drawn: usize, postings: usize) {
        for draw in &mut self.drawn[drawn..] {
            draw.returned = true;
        }
        self.postings.truncate(postings);
    }

    /// Records a conversion between precisions: a posting without a destination clause.
    pub(super) fn converted(&mut self, clause: Span, amount: &IBig) {
        self.postings.push(PostingRecord { sources: vec![(clause, amount.clone())], destination: None });
    }

    /// Records a posting of zero for a send that moved nothing.
    pub(super) fn posted_nothing(&mut self, clause: Span, destination: Span) {
        self.postings
            .push(PostingRecord { sources: vec![(clause, IBig::ZERO)], destination: Some(destination) });
    }

    /// Records that a destination received a part of some funds.
    pub(super) fn delivered(&mut self, begins: bool, fund: &Fund, part: &IBig, destination: Span) {
        if begins {
            self.postings.push(PostingRecord { sources: Vec::new(), destination: Some(destination) });
        }
        let posting = self.postings.last_mut().expect("a piece begins a posting or goes on with one");
        posting.sources.push((fund.clause, part.clone()));
    }

    /// Resolves names and positions.
    pub(super) fn into_trace(self, run: &Run<'_>) -> Trace {
        let positions = PositionIndex::of(&run.program.text);
        let range = |span: Span| positions.range(span);
        let books = &run.scratch.books;
        let drawn = self.drawn.into_iter().map(|draw| {
            let holding = &books.holdings[draw.holding];
            Drawn {
                range: range(draw.clause),
                account: run.account(holding.account).clone(),
                asset: run.asset_name(holding.asset).clone(),
                color: run.scratch.colors.get(holding.color).clone(),
                asked: draw.asked.as_ref().map(Amount::of_integer),
                gave: Amount::of_integer(&draw.gave),
                bound: match draw.bound {
                    None => Bound::Nothing,
                    Some((balance, overdraft)) => Bound::Balance {
                        balance: Balance::of_integer(balance),
                        overdraft: Amount::of_integer(&overdraft),
                    },
                },
                returned: draw.returned,
            }
        });
        let postings = self.postings.into_iter().map(|posting| PostingTrace {
            sources: posting
                .sources
                .into_iter()
                .map(|(span, amount)| (range(span), Amount::of_integer(&amount)))
                .collect(),
            destination: posting.destination.map(range),
        });
        Trace { drawn: drawn.collect(), postings: postings.collect() }
    }
}
