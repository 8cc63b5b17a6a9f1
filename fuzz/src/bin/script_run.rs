//! Entry point of the fuzz target `script_run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::script_run::run(data));
