//! Removes sections of sealed segments. Replaces each file that contains some by a copy in which they are reduced to
//! their digests.

use std::collections::BTreeSet;
use std::path::Path;

use super::chunk::encode_without;
use super::frame::{FRAMES_START, Kind};
use super::offsets::Offsets;
use super::prepared::publish;
use super::record::Seal;
use super::segment::{JournalLocation, NOT_CONTINUED, Segment, storage};
use super::tail::Tail;
use super::{Chunk, Head, JournalError, SectionId};
use crate::disk::{DiskFile, OpenMode, temporary_name};

/// Number of bytes of a segment that are copied at a time.
const COPY_BYTES: usize = 4 << 20;

impl Segment {
    /// Replaces the file of this sealed segment, which ends at `end`, by a copy in which the sections are reduced to
    /// their digests. Returns the segment that reads the copy, or `None` if it was told to stop.
    ///
    /// The copy takes over the name in one step, once it is complete and durable: a power cut leaves one file or the
    /// other. Reads of the old file continue.
    pub(super) fn without(
        &self,
        location: &JournalLocation,
        end: Head,
        sections: &BTreeSet<SectionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, JournalError> {
        let path = temporary_name(self.path());
        let copied = self.copy_without(location, &path, end, sections, should_stop);
        if !matches!(copied, Ok(true)) {
            // If this fails, the next opening removes the file.
            let _ = location.disk.remove(&path);
            return copied.map(|_| None);
        }
        publish(location, self.header.first)?;
        let (segment, seal) = Self::open_sealed(location, self.header.first)?;
        if seal.is_none_or(|seal| seal.end != end) || segment.header != self.header {
            return Err(self.damage(self.header.first, "a copy of it is not what was written"));
        }
        Ok(Some(segment))
    }

    /// Returns the size of its file in bytes.
    pub(super) fn file_bytes(&self, location: &JournalLocation) -> Result<u64, JournalError> {
        let file = location.disk.open(self.path(), OpenMode::Existing);
        file.and_then(|file| file.len()).map_err(|cause| storage(self.path(), "measure", cause))
    }

    fn copy_without(
        &self,
        location: &JournalLocation,
        path: &Path,
        end: Head,
        sections: &BTreeSet<SectionId>,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<bool, JournalError> {
        let failed = |cause| storage(path, "copy to", cause);
        let mut copy = Copy::begin(self, location, path).map_err(failed)?;
        let mut head = self.header.head();
        while head.next < end.next {
            if should_stop() {
                return Ok(false);
            }
            let mut chunks = Vec::new();
            self.scan(location, head.next, end.next, &mut { COPY_BYTES }, &mut chunks)?;
            for chunk in &chunks {
                if (chunk.first(), chunk.previous()) != (head.next, head.chain) {
                    return Err(self.damage(chunk.first(), NOT_CONTINUED));
                }
                head = Head { next: chunk.next(), chain: chunk.chain() };
                copy.put(chunk, sections, location);
            }
            copy.flush().map_err(failed)?;
        }
        if head != end {
            return Err(self.damage(head.next, "it does not end where it says"));
        }
        copy.finish(end, location).map_err(failed)?;
        Ok(true)
    }
}

/// A copy of a segment while it is being written.
struct Copy {
    file: Box<dyn DiskFile>,
    tail: Tail,
    offsets: Offsets,
}

impl Copy {
    fn begin(of: &Segment, location: &JournalLocation, path: &Path) -> std::io::Result<Self> {
        if location.disk.exists(path)? {
            location.disk.remove(path)?;
        }
        let file = location.disk.open(path, OpenMode::CreateNew)?;
        file.write_at(0, &of.header.encode(&location.identity.secret))?;
        file.set_len(FRAMES_START)?;
        let tail = Tail::open(&*file, of.header.first, FRAMES_START)?;
        Ok(Self { file, tail, offsets: Offsets::default() })
    }

    fn put(&mut self, chunk: &Chunk, sections: &BTreeSet<SectionId>, location: &JournalLocation) {
        let secret = &location.identity.secret;
        let bytes = encode_without(chunk, sections, secret);
        let mut write = self.tail.begin(1, bytes.len() + 1024);
        let offset = self.tail.put(&mut write, Kind::Chunk, secret, |out| out.extend_from_slice(&bytes));
        self.offsets.note(chunk.first().get(), offset);
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.tail.write(&*self.file)
    }

    fn finish(mut self, end: Head, location: &JournalLocation) -> std::io::Result<()> {
        self.tail.seal(&*self.file, &mut self.offsets, end, &location.identity.secret).map(|_: Seal| ())
    }
}
