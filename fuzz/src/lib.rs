//! Fuzz targets. Each is a function that takes any bytes and must not panic.
//!
//! `cargo test` replays `corpus/` and a few thousand generated inputs on stable Rust. `cargo fuzz` runs the same
//! functions without a time limit.

#![forbid(unsafe_code)]

pub mod address_filter;
pub mod authorization_header;
pub mod cursor;
pub mod filter_parse;
pub mod import_line;
pub mod journal_chunk;
pub mod ledger_model;
pub mod oauth_form;
pub mod payment_filter;
pub mod provider_answer;
pub mod request;
pub mod script_parse;
pub mod script_run;
pub mod timestamp;
pub mod token_parse;

/// All targets by name. The corpus of a target has the same name.
pub const TARGETS: [(&str, fn(&[u8])); 15] = [
    ("address_filter", address_filter::run),
    ("authorization_header", authorization_header::run),
    ("cursor", cursor::run),
    ("filter_parse", filter_parse::run),
    ("import_line", import_line::run),
    ("journal_chunk", journal_chunk::run),
    ("ledger_model", ledger_model::run),
    ("oauth_form", oauth_form::run),
    ("payment_filter", payment_filter::run),
    ("provider_answer", provider_answer::run),
    ("request", request::run),
    ("script_parse", script_parse::run),
    ("script_run", script_run::run),
    ("timestamp", timestamp::run),
    ("token_parse", token_parse::run),
];
