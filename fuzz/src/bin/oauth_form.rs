//! Entry point of the fuzz target `oauth_form`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::oauth_form::run(data));
