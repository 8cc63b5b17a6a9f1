//! Scripts on the command line.

mod cases;
mod cli;
mod data;
mod judge;
mod world;

pub use cli::{Ended, main};
