//! Scripts on the command line.

mod cases;
mod cli;
mod data;
mod execute;
mod judge;
mod render;
mod show;
mod world;

pub use cli::{Console, Ended, main};
