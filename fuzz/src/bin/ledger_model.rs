//! The target `ledger_model` for the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::ledger_model::run(data));
