//! The command line and its commands.

pub mod auth;
pub mod config;
pub mod copies;
mod directory;
pub mod exit;
mod progress;
pub mod serve;
pub mod verify;
