//! Entry point of the fuzz target `cursor` for libFuzzer: parses any bytes as a cursor, the text with which a client
//! requests the next page of a list. `stack_server::testing::cursor_laws` states the properties that it checks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::cursor::run(data));
