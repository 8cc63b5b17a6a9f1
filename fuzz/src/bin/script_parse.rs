//! Entry point of the fuzz target `script_parse` for libFuzzer: parses, checks and formats any bytes as a Numscript.
//! [`fuzz::script_parse`] states the properties that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::script_parse::run(data));
