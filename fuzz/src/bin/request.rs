//! Entry point of the fuzz target `request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::request::run(data));
