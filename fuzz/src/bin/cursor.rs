//! Entry point of the fuzz target `cursor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::cursor::run(data));
