//! The target `journal_chunk` for the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::journal_chunk::run(data));
