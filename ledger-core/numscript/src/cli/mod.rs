//! The command line of scripts: checks, runs, formats and tests them without a ledger.

mod cases;
mod commands;
mod compare;
mod console;
mod data;
mod execute;
mod ledger_state;
mod render;
mod show;
mod suggestion;

pub use commands::main;
pub use suggestion::suggestion;
