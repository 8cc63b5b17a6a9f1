//! Entry point of the fuzz target `script_parse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::script_parse::run(data));
