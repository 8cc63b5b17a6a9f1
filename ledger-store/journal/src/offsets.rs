//! Offsets of chunks in a segment file: an index of some of them by position.
//!
//! A frame of offsets is written when a segment is sealed and when the journal is closed:
//!
//! ```text
//! 16  digest   keyed, over the rest
//!  8  before   offset of the previous frame of offsets, or 0
//!  v  count    then for each chunk: position and offset as `v`, each minus the one before
//! ```
//!
//! `v` is a varint. Each frame lists the chunks since the previous frame of offsets.

use ledger_codec::{Corrupt, Reader, put_varint};

use super::Secret;

/// Minimum distance in bytes between two listed chunks. Bounds the bytes that a lookup walks over, and the list to
/// 131,072 chunks for each GiB of a segment.
const SPACING_BYTES: u64 = 8 << 10;

const DIGEST_BYTES: usize = 16;

/// The offsets of some chunks of a segment, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Offsets {
    /// First position of each listed chunk, and the offset of its frame.
    noted: Vec<(u64, u64)>,
    /// Number of listed chunks that a frame of offsets contains already.
    stored: usize,
    /// The offset of the newest frame of offsets, or 0.
    pub(super) newest_frame: u64,
}

impl Offsets {
    /// Lists the next chunk of the segment, unless it is too close to the last listed one.
    pub(super) fn note(&mut self, position: u64, offset: u64) {
        if self.noted.last().is_none_or(|(_, last)| offset >= last + SPACING_BYTES) {
            self.noted.push((position, offset));
        }
    }

    /// Returns the offset at which to start the search for the chunk that holds `position`: that of the last listed
    /// chunk that begins at or before it. `None` if there is no such chunk.
    pub(super) fn search_start(&self, position: u64) -> Option<u64> {
        let after = self.noted.partition_point(|(first, _)| *first <= position);
        after.checked_sub(1).map(|at| self.noted[at].1)
    }

    /// Returns position and offset of the listed chunk at which to start reading so that everything from `offset` on is
    /// read: the last listed one at or before `offset`. If all are after it, returns the first listed one.
    pub(super) fn at_or_before_or_first(&self, offset: u64) -> Option<(u64, u64)> {
        let after = self.noted.partition_point(|(_, at)| *at <= offset);
        self.noted.get(after.saturating_sub(1)).copied()
    }

    /// Returns whether a new frame of offsets would list any chunks.
    pub(super) fn has_news(&self) -> bool {
        self.stored < self.noted.len()
    }

    /// Encodes a frame of offsets with the chunks since the last one.
    pub(super) fn encode(&self, secret: &Secret) -> Vec<u8> {
        let mut bytes = vec![0; DIGEST_BYTES];
        bytes.extend_from_slice(&self.newest_frame.to_be_bytes());
        let news = &self.noted[self.stored..];
        put_varint(&mut bytes, news.len() as u64);
        let mut last = (0, 0);
        for (position, offset) in news {
            put_varint(&mut bytes, position - last.0);
            put_varint(&mut bytes, offset - last.1);
            last = (*position, *offset);
        }
        let digest = secret.digest(&[b"offsets", &bytes[DIGEST_BYTES..]]);
        bytes[..DIGEST_BYTES].copy_from_slice(&digest);
        bytes
    }

    /// Records that a frame with the chunks since the last one was written at `offset`.
    pub(super) fn set_stored(&mut self, offset: u64) {
        self.stored = self.noted.len();
        self.newest_frame = offset;
    }

    /// Adds the content of the frame of offsets at `offset`, which must be before all frames that were added so far.
    /// Returns the offset of the frame before it, or 0.
    pub(super) fn prepend(&mut self, body: &[u8], offset: u64, secret: &Secret) -> Result<u64, Corrupt> {
        let (before, mut noted) = decode(body, secret)?;
        if before >= offset || noted.last().is_some_and(|(_, last)| *last >= offset) {
            return Err(Corrupt { what: "offsets that point forward" });
        }
        if self.noted.is_empty() {
            self.newest_frame = offset;
        }
        noted.append(&mut self.noted);
        self.noted = noted;
        self.stored = self.noted.len();
        Ok(before)
    }
}

/// Decodes the body of a frame of offsets. Returns the offset of the frame before it, and the listed chunks.
pub(super) fn decode(body: &[u8], secret: &Secret) -> Result<(u64, Vec<(u64, u64)>), Corrupt> {
    let mut reader = Reader::new(body);
    let digest: [u8; DIGEST_BYTES] = reader.array()?;
    if secret.digest(&[b"offsets", reader.rest()]) != digest {
        return Err(Corrupt { what: "a list of offsets does not match its digest" });
    }
    let before = reader.u64()?;
    let count = usize::try_from(reader.varint()?)
        .map_err(|_| Corrupt { what: "count of offsets exceeds the address space" })?;
    let mut noted = Vec::with_capacity(count.min(reader.remaining()));
    let mut last = (0_u64, 0_u64);
    for _ in 0..count {
        let next = (last.0.checked_add(reader.varint()?), last.1.checked_add(reader.varint()?));
        let (Some(position), Some(offset)) = next else {
            return Err(Corrupt { what: "an offset beyond 64 bits" });
        };
        last = (position, offset);
        noted.push(last);
    }
    reader.finish()?;
    Ok((before, noted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_offsets_join_again() {
        let secret = Secret([5; 32]);
        let mut written = Offsets::default();
        let mut frames = Vec::new();
        for position in 1..400_u64 {
            written.note(position, 512 + position * 3000);
            if position % 130 == 0 {
                let offset = 512 + position * 3000 + 1000;
                frames.push((offset, written.encode(&secret)));
                written.set_stored(offset);
                assert!(!written.has_news());
            }
        }
        let mut read = Offsets::default();
        let mut at = written.newest_frame;
        while at > 0 {
            let (_, body) = frames.iter().find(|(offset, _)| *offset == at).unwrap();
            at = read.prepend(body, at, &secret).unwrap();
        }
        assert_eq!(read.newest_frame, written.newest_frame);
        assert_eq!(read.noted, written.noted[..written.stored]);
        assert_eq!(read.search_start(1), Some(3512));
        assert_eq!(read.search_start(0), None);
        for position in 1..390 {
            let offset = read.search_start(position).unwrap();
            assert!(offset <= 512 + position * 3000 && offset + SPACING_BYTES + 3000 > 512 + position * 3000);
        }
        let (_, body) = &frames[1];
        for bit in 0..body.len() * 8 {
            let mut changed = body.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            decode(&changed, &secret).unwrap_err();
        }
    }
}
