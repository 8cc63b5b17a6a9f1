//! The trace of a run: the source and destination clauses of each posting, and what each source gave.

use smol_str::SmolStr;

use super::span::Range;
use ledger_values::{AccountAddress, Amount, Balance};

/// The events of a run, in order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Trace {
    /// Every source clause that was asked for funds.
    pub withdrawals: Vec<Withdrawal>,
    /// The origins and the destination of each posting, in the order of the postings.
    pub postings: Vec<PostingTrace>,
}

/// A source clause that was asked for funds, and its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// Position of the clause.
    pub range: Range,
    /// The account that the clause names.
    pub account: AccountAddress,
    /// The requested asset.
    pub asset: SmolStr,
    /// The requested colour, or an empty text.
    pub color: SmolStr,
    /// The requested amount, or `None` for everything available.
    pub asked: Option<Amount>,
    /// The amount that the source gave.
    pub gave: Amount,
    /// The limit of the source.
    pub bound: Bound,
    /// True if the funds went back because a `oneof` took another branch.
    pub returned: bool,
}

/// The limit of a source clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// No limit: `@world`, or an unbounded overdraft.
    Nothing,
    /// The balance of the account and its allowed overdraft at that point.
    Balance {
        /// The balance less the amounts that earlier clauses took.
        balance: Balance,
        /// The maximum debt of the account.
        overdraft: Amount,
    },
}

/// The clauses that made a posting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostingTrace {
    /// The source clauses, each with its contribution.
    pub sources: Vec<(Range, Amount)>,
    /// The destination clause. Postings of a conversion between precisions have none.
    pub destination: Option<Range>,
}
