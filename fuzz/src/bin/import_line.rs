//! The target `import_line` for the fuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::import_line::run(data));
