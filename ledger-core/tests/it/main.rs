//! Tests of the core through its public interface.

mod export;
mod fold;
mod legacy;
mod memory_ledger;
mod model;
mod properties;
mod scenario;
mod scenario_language;
mod script;
