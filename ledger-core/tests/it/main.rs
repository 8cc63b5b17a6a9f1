//! Tests of the core through its public interface.

mod books;
mod export;
mod legacy;
mod model;
mod properties;
mod scenario;
mod scenario_language;
mod script;
