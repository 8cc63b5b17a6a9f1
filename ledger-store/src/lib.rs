//! Embedded, durable double-entry ledger.
