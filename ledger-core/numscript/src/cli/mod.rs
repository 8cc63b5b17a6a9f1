//! The command line of scripts: checks, runs, formats and tests them without a ledger.

mod cases;
mod commands;
mod compare;
mod console;
mod data;
mod execute;
mod render;
mod show;
mod suggestion;
mod world;

pub use commands::main;
pub use suggestion::suggestion;
