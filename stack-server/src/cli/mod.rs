//! The command line: its commands, and what they do.

pub mod auth;
pub mod config;
pub mod copies;
mod directory;
mod progress;
pub mod serve;
pub mod verify;
