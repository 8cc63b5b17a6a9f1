//! A journal in memory, for stores that need not outlive the process.

use std::collections::BTreeSet;

use parking_lot::Mutex;

use super::chunk::{decode, encode, encode_without};
use super::journal::check_append;
use super::{
    ChainHash, Chunk, ChunkDraft, Freed, Head, Identity, Journal, JournalError, JournalReader, Position,
    SectionId,
};

/// A journal that ends with the process.
#[derive(Debug)]
pub struct MemoryJournal {
    identity: Identity,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    head: Head,
    chunks: Vec<Chunk>,
}

impl MemoryJournal {
    /// Creates an empty journal for the store with this identity.
    pub fn new(identity: Identity) -> Self {
        let head = Head { next: Position::FIRST, chain: ChainHash::genesis(identity.store) };
        Self { identity, state: Mutex::new(State { head, chunks: Vec::new() }) }
    }
}

impl State {
    /// Returns the index of the chunk that holds `at`, which must be before the head.
    fn index_of(&self, at: Position) -> usize {
        self.chunks.partition_point(|chunk| chunk.next() <= at)
    }
}

impl JournalReader for MemoryJournal {
    fn head(&self) -> Head {
        self.state.lock().head
    }

    fn read(&self, at: Position) -> Result<Option<Chunk>, JournalError> {
        let state = self.state.lock();
        Ok(state.chunks.get(state.index_of(at)).cloned())
    }

    fn scan(&self, from: Position, max_bytes: usize) -> Result<Vec<Chunk>, JournalError> {
        let state = self.state.lock();
        let mut gathered = 0;
        let mut chunks = Vec::new();
        for chunk in &state.chunks[state.index_of(from)..] {
            chunks.push(chunk.clone());
            gathered += chunk.weight();
            if gathered >= max_bytes {
                break;
            }
        }
        Ok(chunks)
    }
}

impl Journal for MemoryJournal {
    fn append(&self, expected: Position, chunks: &[ChunkDraft]) -> Result<Head, JournalError> {
        let mut state = self.state.lock();
        check_append(state.head, expected, chunks)?;
        // Encode and decode each chunk, so that both implementations return the same fields.
        let mut bytes = Vec::new();
        for draft in chunks {
            bytes.clear();
            encode(draft, state.head.chain, &self.identity.secret, &mut bytes);
            let chunk = decode(&bytes, &self.identity.secret).expect("an encoded chunk can be decoded");
            state.head = Head { next: chunk.next(), chain: chunk.chain() };
            state.chunks.push(chunk);
        }
        Ok(state.head)
    }

    fn remove_sections(
        &self,
        removed: &BTreeSet<SectionId>,
        _should_stop: &dyn Fn() -> bool,
    ) -> Result<Freed, JournalError> {
        let mut state = self.state.lock();
        let mut bytes = 0;
        for chunk in state.chunks.iter_mut().filter(|chunk| chunk.has_any(removed)) {
            let before = chunk.payload_bytes();
            let reduced = encode_without(chunk, removed, &self.identity.secret);
            *chunk = decode(&reduced, &self.identity.secret).expect("an encoded chunk can be decoded");
            bytes += (before - chunk.payload_bytes()) as u64;
        }
        Ok(Freed { bytes, is_done: true })
    }
}
