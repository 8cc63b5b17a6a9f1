//! Embedded, durable double-entry ledger.

mod codec;
