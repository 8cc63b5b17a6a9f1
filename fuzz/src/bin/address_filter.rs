//! Entry point of the fuzz target `address_filter`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::address_filter::run(data));
