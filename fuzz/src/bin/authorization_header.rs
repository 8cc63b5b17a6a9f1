//! The target `authorization_header` for the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::authorization_header::run(data));
