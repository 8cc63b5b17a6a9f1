//! Entry point of the fuzz target `journal_chunk`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::journal_chunk::run(data));
