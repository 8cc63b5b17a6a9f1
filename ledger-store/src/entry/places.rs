//! Where the entries of a chunk stand, for who reads many of one chunk.

use super::record::Record;
use super::section::{Entry, SectionReader};
use crate::codec::{Corrupt, Reader};
use crate::journal::{Chunk, Position, Section};

/// The places of all entries of a chunk, by position.
pub(crate) struct EntryPlaces(Vec<EntryPlace>);

/// An entry of which the head is read, without its bytes.
struct EntryPlace {
    position: u64,
    kind: u8,
    flags: u64,
    ledger: u32,
    log: u64,
    transaction: u64,
    date: i64,
    /// The section's place among those of the chunk.
    section: usize,
    /// Where its content begins in the section, and where it ends.
    start: usize,
    end: usize,
}

impl EntryPlaces {
    /// Those of a chunk.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the head of an entry cannot be read.
    pub(crate) fn of(chunk: &Chunk) -> Result<Self, Corrupt> {
        let mut places = Vec::new();
        for (section, (_, content)) in chunk.sections().iter().enumerate() {
            let Section::Present(bytes) = content else { continue };
            let mut reader = SectionReader::new(chunk.first(), bytes)?;
            while let Some(entry) = reader.advance()? {
                let Entry { position, kind, flags, ledger, log, transaction, date, content } = entry;
                // An entry ends where the rest of its section begins.
                let end = bytes.len() - reader.rest.remaining();
                let start = end - content.remaining();
                places.push(EntryPlace {
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
        places.sort_unstable_by_key(|place| place.position);
        Ok(Self(places))
    }

    /// The record at a position of the chunk that this is of; `None` where its section was removed.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] if the entry cannot be read.
    pub(crate) fn find<'a>(
        &self,
        chunk: &'a Chunk,
        position: Position,
    ) -> Result<Option<Record<'a>>, Corrupt> {
        let found = self.0.binary_search_by_key(&position.get(), |place| place.position);
        let Ok(found) = found else { return Ok(None) };
        let EntryPlace { position, kind, flags, ledger, log, transaction, date, section, start, end } =
            self.0[found];
        let Some((_, Section::Present(bytes))) = chunk.sections().get(section) else { return Ok(None) };
        let content = Reader::new(bytes.get(start..end).ok_or(Corrupt { what: "place of an entry" })?);
        let entry = Entry { position, kind, flags, ledger, log, transaction, date, content };
        SectionReader::decode(&entry).map(Some)
    }
}
