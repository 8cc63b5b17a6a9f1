//! The writer.

mod accounts;
mod recent;
