//! Embeds the ledger.

fn main() {}
