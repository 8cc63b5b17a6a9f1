//! Entry point of the fuzz target `token_parse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::token_parse::run(data));
