//! Noting how the postings of a run come about.

use dashu_int::IBig;

use super::Run;
use super::books::Fund;
use crate::amount::{Amount, Balance};
use crate::script::span::{Places, Span};
use crate::script::trace::{Bound, Drawn, PostingTrace, Trace};

/// A [`Trace`] before its places and names are looked up.
#[derive(Debug, Default)]
pub(super) struct Explained {
    drawn: Vec<Draw>,
    postings: Vec<Made>,
}

#[derive(Debug)]
struct Draw {
    clause: Span,
    holding: usize,
    asked: Option<IBig>,
    gave: IBig,
    /// The balance and the overdraft, where they bound it.
    bound: Option<(IBig, IBig)>,
    returned: bool,
}

#[derive(Debug)]
struct Made {
    sources: Vec<(Span, IBig)>,
    destination: Option<Span>,
}

impl Explained {
    /// A source was asked for funds.
    pub(super) fn drew(
        &mut self,
        clause: Span,
        holding: usize,
        asked: Option<&IBig>,
        gave: &IBig,
        bound: Option<(IBig, IBig)>,
    ) {
        self.drawn.push(Draw {
            clause,
            holding,
            asked: asked.cloned(),
            gave: gave.clone(),
            bound,
            returned: false,
        });
    }

    /// How many sources were asked so far.
    pub(super) fn drawn(&self) -> usize {
        self.drawn.len()
    }

    /// What was drawn since then went back, and only so many postings are left.
    pub(super) fn returned_since(&mut self, drawn: usize, postings: usize) {
        for draw in &mut self.drawn[drawn..] {
            draw.returned = true;
        }
        self.postings.truncate(postings);
    }

    /// Funds were exchanged: a posting that no destination asked for.
    pub(super) fn converted(&mut self, clause: Span, amount: &IBig) {
        self.postings.push(Made { sources: vec![(clause, amount.clone())], destination: None });
    }

    /// A send moved nothing, and that was posted.
    pub(super) fn posted_nothing(&mut self, clause: Span, destination: Span) {
        self.postings.push(Made { sources: vec![(clause, IBig::ZERO)], destination: Some(destination) });
    }

    /// A part of some funds was delivered.
    pub(super) fn delivered(&mut self, begins: bool, fund: &Fund, part: &IBig, destination: Span) {
        if begins {
            self.postings.push(Made { sources: Vec::new(), destination: Some(destination) });
        }
        let made = self.postings.last_mut().expect("a piece begins a posting or goes on with one");
        made.sources.push((fund.clause, part.clone()));
    }

    /// With names and places.
    pub(super) fn into_trace(self, run: &Run<'_>) -> Trace {
        let places = Places::of(&run.program.text);
        let range = |span: Span| places.range(span);
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
        let postings = self.postings.into_iter().map(|made| PostingTrace {
            sources: made
                .sources
                .into_iter()
                .map(|(span, amount)| (range(span), Amount::of_integer(&amount)))
                .collect(),
            destination: made.destination.map(range),
        });
        Trace { drawn: drawn.collect(), postings: postings.collect() }
    }
}
