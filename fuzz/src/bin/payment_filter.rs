//! Entry point of the fuzz target `payment_filter`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::payment_filter::run(data));
