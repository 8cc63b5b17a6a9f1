//! Entry point of the fuzz target `ledger_model`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::ledger_model::run(data));
