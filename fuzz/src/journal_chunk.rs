//! No bytes make the journal's decoders panic: of a chunk, and of the entries in it.

/// The bytes are a chunk, or the sections of one.
pub fn run(data: &[u8]) {
    let entries = ledger_store::testing::decode_chunk(data);
    // An entry takes at least its length, place, kind and flags.
    assert!(entries.is_none_or(|entries| entries * 4 <= data.len()), "{entries:?} of {} bytes", data.len());
}
