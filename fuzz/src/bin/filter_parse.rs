//! The target `filter_parse` for the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::filter_parse::run(data));
