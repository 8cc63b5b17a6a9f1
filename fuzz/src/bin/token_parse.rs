//! The target `token_parse` for the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::token_parse::run(data));
