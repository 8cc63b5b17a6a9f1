//! Entry point of the fuzz target `timestamp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::timestamp::run(data));
