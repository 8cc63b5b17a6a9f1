//! The target `oauth_form` for the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::oauth_form::run(data));
