//! How the postings of a run came about: from which source, to which destination, and why a source gave less.

use compact_str::CompactString;

use super::span::Range;
use crate::amount::{Amount, Balance};
use crate::names::AccountAddress;

/// What happened in a run, in order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Trace {
    /// Every source that was asked for funds, and what it gave.
    pub drawn: Vec<Drawn>,
    /// For each posting, where its funds came from. As many as there are postings, in their order.
    pub postings: Vec<PostingTrace>,
}

/// A source clause that was asked for funds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// The clause.
    pub range: Range,
    /// The account that it names.
    pub account: AccountAddress,
    /// The asset.
    pub asset: CompactString,
    /// The colour, or empty.
    pub color: CompactString,
    /// How much it was asked for; `None` is everything it has.
    pub asked: Option<Amount>,
    /// How much it gave.
    pub gave: Amount,
    /// What bounded it.
    pub bound: Bound,
    /// Whether the funds were given back, because another branch of a `oneof` was taken.
    pub returned: bool,
}

/// What bounds a source clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Nothing: `@world`, or an unbounded overdraft.
    Nothing,
    /// Its balance at that point and the overdraft it is allowed.
    Balance {
        /// What it held, less what earlier clauses took.
        balance: Balance,
        /// How far below zero it may go.
        overdraft: Amount,
    },
}

/// Where the funds of one posting came from and went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostingTrace {
    /// The source clauses, each with what it contributed.
    pub sources: Vec<(Range, Amount)>,
    /// The destination clause. A posting of a conversion between precisions has none.
    pub destination: Option<Range>,
}
