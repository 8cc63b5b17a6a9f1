//! Entry point of the fuzz target `import_line`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::import_line::run(data));
