//! Fuzz targets. Each is a function over bytes that must not panic; the bytes decide what is done.
//!
//! `cargo test` replays `corpus/` and some thousand inputs made of seeds, on stable Rust; `cargo fuzz` drives the
//! same functions for as long as one likes.

#![forbid(unsafe_code)]

pub mod address_filter;
pub mod cursor;
pub mod filter_parse;
pub mod import_line;
pub mod journal_chunk;
pub mod ledger_model;
pub mod request;
pub mod script_parse;
pub mod script_run;
pub mod timestamp;

/// Every target with its name, which is that of its corpus.
pub const TARGETS: [(&str, fn(&[u8])); 10] = [
    ("address_filter", address_filter::run),
    ("cursor", cursor::run),
    ("filter_parse", filter_parse::run),
    ("import_line", import_line::run),
    ("journal_chunk", journal_chunk::run),
    ("ledger_model", ledger_model::run),
    ("request", request::run),
    ("script_parse", script_parse::run),
    ("script_run", script_run::run),
    ("timestamp", timestamp::run),
];
