//! Entry point of the fuzz target `journal_chunk` for libFuzzer: decodes any bytes as a chunk of the journal.
//! [`fuzz::journal_chunk`] states the properties that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::journal_chunk::run(data));
