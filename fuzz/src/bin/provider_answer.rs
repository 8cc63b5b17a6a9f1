//! Entry point of the fuzz target `provider_answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::provider_answer::run(data));
