//! Fuzz target: decoding any bytes as a journal chunk or its entries never panics.

/// Reads a chunk, or the sections of one.
pub fn run(data: &[u8]) {
    let entries = ledger_testkit::decode_chunk(data);
    // An entry takes at least four bytes: length, position, kind and flags.
    assert!(entries.is_none_or(|entries| entries * 4 <= data.len()), "{entries:?} of {} bytes", data.len());
}
