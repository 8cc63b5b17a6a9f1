//! From payments to the ledger: a script of the operator turns each payment of an installation into a transaction, in
//! the commit that records the payment.
//!
//! - [`rule`]: the script and the ledger of an installation.
//! - [`variables`]: the values that a payment gives to the script.
//! - [`posting`]: the transactions that a payment has made, or why it made none.
//! - [`plan`]: the commands that bring the ledger up to date with a payment.
//! - [`write`]: records payments with their transactions.
//! - [`run`]: posts what was stored before.
//! - [`explain`]: says what a payment made and why.

pub(crate) mod explain;
mod plan;
pub(crate) mod posting;
pub(crate) mod rule;
pub(crate) mod run;
mod transactions;
mod variables;
pub(crate) mod write;
