//! Records how the postings of a run come about.

use dashu_int::IBig;

use super::state::Fund;
use crate::span::Span;

/// A [`Trace`](crate::trace::Trace) with numbers and spans in place of names and positions.
#[derive(Debug, Default)]
pub(super) struct TraceRecorder {
    pub(super) withdrawals: Vec<SourceDraw>,
    pub(super) postings: Vec<PostingRecord>,
}

#[derive(Debug)]
pub(super) struct SourceDraw {
    pub(super) clause: Span,
    pub(super) holding: usize,
    pub(super) asked: Option<IBig>,
    pub(super) gave: IBig,
    /// The balance and the overdraft that limited the source, if any did.
    pub(super) bound: Option<(IBig, IBig)>,
    pub(super) returned: bool,
}

#[derive(Debug)]
pub(super) struct PostingRecord {
    pub(super) sources: Vec<(Span, IBig)>,
    pub(super) destination: Option<Span>,
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
        self.withdrawals.push(SourceDraw {
            clause,
            holding,
            asked: asked.cloned(),
            gave: gave.clone(),
            bound,
            returned: false,
        });
    }

    /// Returns how many sources were asked so far.
    pub(super) fn withdrawals(&self) -> usize {
        self.withdrawals.len()
    }

    /// Records that the funds of the sources since `withdrawals` went back, and truncates the postings.
    pub(super) fn returned_since(&mut self, withdrawals: usize, postings: usize) {
        for draw in &mut self.withdrawals[withdrawals..] {
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
        let posting = self.postings.last_mut().expect("a part begins a posting or continues one");
        posting.sources.push((fund.clause, part.clone()));
    }
}
