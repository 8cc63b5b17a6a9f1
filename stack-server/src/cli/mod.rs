//! The command line and its commands.

pub mod auth;
pub mod config;
pub mod copies;
mod directory;
mod progress;
pub mod serve;
pub mod verify;
