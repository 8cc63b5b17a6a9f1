//! Embedded, durable double-entry ledger.

mod codec;
#[allow(dead_code, reason = "the writer and the readers above use it")]
mod journal;
