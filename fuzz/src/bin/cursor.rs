//! The target `cursor` for the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::cursor::run(data));
