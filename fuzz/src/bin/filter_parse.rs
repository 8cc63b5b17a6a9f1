//! Entry point of the fuzz target `filter_parse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::filter_parse::run(data));
