//! Finds entries in a chunk, for readers that need many entries of one chunk.

use ledger_codec::{Corrupt, Reader};

use super::record::Record;
use super::section::{Entry, SectionReader};
use crate::{Chunk, Position, Section};

/// The byte ranges of all entries of a chunk, by position.
pub struct EntryOffsets(Vec<EntryOffset>);

/// The header of an entry, and where its content is.
struct EntryOffset {
    position: u64,
    kind: u8,
    flags: u64,
    ledger: u32,
    log: u64,
    transaction: u64,
    date: i64,
    /// Index of the entry's section in the chunk.
    section: usize,
    /// Byte range of the content in the section: `start..end`.
    start: usize,
    end: usize,
}

impl EntryOffsets {
    /// Reads the headers of all entries of a chunk.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the header of an entry cannot be read.
    pub fn of(chunk: &Chunk) -> Result<Self, Corrupt> {
        let mut offsets = Vec::new();
        for (section, (_, content)) in chunk.sections().iter().enumerate() {
            let Section::Present(bytes) = content else { continue };
            let mut reader = SectionReader::new(chunk.first(), bytes)?;
            while let Some(entry) = reader.advance()? {
                let Entry { position, kind, flags, ledger, log, transaction, date, content } = entry;
                // An entry ends where the unread rest of its section begins.
                let end = bytes.len() - reader.rest.remaining();
                let start = end - content.remaining();
                offsets.push(EntryOffset {
                    position,
                    kind,
                    flags,
                    ledger,
                    log,
                    transaction,
                    date,
                    section,
                    start,
                    end,
                });
            }
        }
        offsets.sort_unstable_by_key(|place| place.position);
        Ok(Self(offsets))
    }

    /// Returns the record at a position of `chunk`, the chunk from which [`EntryOffsets::of`] read the headers. Returns
    /// `None` if the section of the entry was removed.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the entry cannot be read.
    pub fn find<'a>(&self, chunk: &'a Chunk, position: Position) -> Result<Option<Record<'a>>, Corrupt> {
        let found = self.0.binary_search_by_key(&position.get(), |place| place.position);
        let Ok(found) = found else { return Ok(None) };
        let EntryOffset { position, kind, flags, ledger, log, transaction, date, section, start, end } =
            self.0[found];
        let Some((_, Section::Present(bytes))) = chunk.sections().get(section) else { return Ok(None) };
        let content = Reader::new(bytes.get(start..end).ok_or(Corrupt { what: "place of an entry" })?);
        let entry = Entry { position, kind, flags, ledger, log, transaction, date, content };
        SectionReader::decode(&entry).map(Some)
    }
}
