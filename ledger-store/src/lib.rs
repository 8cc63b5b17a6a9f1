//! Embedded, durable double-entry ledger.

mod codec;
#[allow(dead_code, unused_imports)]
mod index;
