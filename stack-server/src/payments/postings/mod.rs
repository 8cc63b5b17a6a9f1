//! Posts payments to the ledger. A script of the operator turns each payment of an installation into a transaction. The
//! commit that records the payment also contains its transaction.
//!
//! - [`rule`]: the script and the ledger of an installation.
//! - [`variables`]: the values that a script receives from a payment.
//! - [`posting`]: the transactions of a payment, or the reason why it has none.
//! - [`plan`]: the commands that bring the ledger up to date with a payment.
//! - [`write`]: records payments with their transactions.
//! - [`run`]: posts payments that were stored before.
//! - [`explain`]: explains the transactions of a payment.

pub(crate) mod explain;
mod plan;
pub(crate) mod posting;
pub(crate) mod rule;
pub(crate) mod run;
mod transactions;
mod variables;
pub(crate) mod write;
