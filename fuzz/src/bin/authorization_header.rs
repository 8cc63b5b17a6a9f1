//! Entry point of the fuzz target `authorization_header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::authorization_header::run(data));
