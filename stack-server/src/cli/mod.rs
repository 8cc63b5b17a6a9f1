//! The command line: options and their texts.

pub mod auth;
pub mod config;
pub mod copies;
