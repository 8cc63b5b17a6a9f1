//! The metadata of a segment: its file name, its header and its seal.

use std::path::{Path, PathBuf};

use ledger_codec::{Corrupt, Reader};

use super::{ChainHash, Head, Identity, JournalError, Position, Secret, StoreId};
use crate::disk::TEMPORARY_SUFFIX;

/// Part of the digest of a header, to distinguish it from a seal.
const HEADER: u8 = 0;
/// Part of the digest of a seal.
const SEAL: u8 = 1;

/// The newest version of a segment's layout.
const FORMAT_VERSION: u8 = 1;

/// The extension of segment files.
const SUFFIX: &str = ".log";

/// The name of the file that records how far the journal was acknowledged: see [`super::head_file`].
pub(super) const HEAD_FILE: &str = "HEAD";

/// The kinds of file names in the journal's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileName {
    /// A segment with this first position.
    Segment(Position),
    /// A segment that was never finished.
    Unfinished(Position),
    /// The file that records how far the journal was acknowledged.
    Mark,
    /// The same file while it is being replaced.
    UnfinishedHead,
}

impl FileName {
    /// Parses a file name. Returns `None` if it does not belong to a journal.
    pub(super) fn parse(name: &str) -> Option<Self> {
        if name == HEAD_FILE {
            return Some(Self::Mark);
        }
        if name.strip_suffix(TEMPORARY_SUFFIX) == Some(HEAD_FILE) {
            return Some(Self::UnfinishedHead);
        }
        let (name, kind): (_, fn(Position) -> Self) = match name.strip_suffix(TEMPORARY_SUFFIX) {
            Some(name) => (name, Self::Unfinished),
            None => (name, Self::Segment),
        };
        let digits = name.strip_suffix(SUFFIX)?;
        if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Position::new(digits.parse().ok()?).map(kind)
    }
}

/// Returns the path of the segment with this first position.
pub(super) fn path_of(dir: &Path, first: Position) -> PathBuf {
    dir.join(format!("{:020}{SUFFIX}", first.get()))
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) store: StoreId,
    pub(super) first: Position,
    pub(super) previous: ChainHash,
}

impl Header {
    /// Size of an encoded header in bytes.
    pub(super) const BYTES: usize = 16 + 1 + 16 + 8 + 32;

    /// Returns the end of a segment without chunks.
    pub(super) fn head(&self) -> Head {
        Head { next: self.first, chain: self.previous }
    }
    /// Encodes the header.
    pub(super) fn encode(&self, secret: &Secret) -> Vec<u8> {
        let mut bytes = vec![FORMAT_VERSION];
        bytes.extend_from_slice(&self.store.0);
        bytes.extend_from_slice(&self.first.get().to_be_bytes());
        bytes.extend_from_slice(&self.previous.0);
        with_digest(HEADER, &bytes, secret)
    }

    /// Decodes the header of the segment `path`, which must agree with the position `first` in its name.
    pub(super) fn decode(
        record: &[u8],
        identity: &Identity,
        path: &Path,
        first: Position,
    ) -> Result<Self, JournalError> {
        let (digest, body) = split_digest(record, path, first)?;
        let mut reader = Reader::new(body);
        let corrupt = |corrupt: Corrupt| damage(path, first, corrupt.what);
        let version = reader.u8().map_err(corrupt)?;
        if version > FORMAT_VERSION {
            let path = path.to_owned();
            return Err(JournalError::NewerFormat { path, found: version, supported: FORMAT_VERSION });
        }
        // Check this before the digest, for which another store uses another key.
        let store = StoreId(reader.array().map_err(corrupt)?);
        if store != identity.store {
            let path = path.to_owned();
            return Err(JournalError::ForeignStore { path, expected: identity.store, found: store });
        }
        if identity.secret.digest(&[&[HEADER], body]) != digest {
            return Err(damage(path, first, DIGEST_FAILS));
        }
        if Position::new(reader.u64().map_err(corrupt)?) != Some(first) {
            return Err(damage(path, first, "it was written under another name"));
        }
        Ok(Self { store, first, previous: ChainHash(reader.array().map_err(corrupt)?) })
    }
}

/// The seal of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal {
    /// The end of the segment.
    pub(super) end: Head,
    /// The offset of its last frame of offsets, or 0.
    pub(super) offsets: u64,
}

impl Seal {
    /// Size of an encoded seal in bytes.
    pub(super) const BYTES: usize = 16 + 8 + 32 + 8;

    /// Encodes the body of the frame that ends the segment.
    pub(super) fn encode(&self, secret: &Secret) -> Vec<u8> {
        let mut bytes = self.end.next.get().to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.end.chain.0);
        bytes.extend_from_slice(&self.offsets.to_be_bytes());
        with_digest(SEAL, &bytes, secret)
    }

    /// Decodes the seal of the segment `path`.
    pub(super) fn decode(
        record: &[u8],
        secret: &Secret,
        path: &Path,
        first: Position,
    ) -> Result<Self, JournalError> {
        let (digest, body) = split_digest(record, path, first)?;
        if secret.digest(&[&[SEAL], body]) != digest {
            return Err(damage(path, first, DIGEST_FAILS));
        }
        let mut reader = Reader::new(body);
        let corrupt = |corrupt: Corrupt| damage(path, first, corrupt.what);
        let next = Position::new(reader.u64().map_err(corrupt)?);
        let next = next.ok_or_else(|| damage(path, first, "its seal names no position"))?;
        let chain = ChainHash(reader.array().map_err(corrupt)?);
        Ok(Self { end: Head { next, chain }, offsets: reader.u64().map_err(corrupt)? })
    }
}

const DIGEST_FAILS: &str = "a record about the segment does not match its digest";

fn with_digest(key: u8, body: &[u8], secret: &Secret) -> Vec<u8> {
    let mut record = secret.digest(&[&[key], body]).to_vec();
    record.extend_from_slice(body);
    record
}

fn split_digest<'a>(
    record: &'a [u8],
    path: &Path,
    first: Position,
) -> Result<([u8; 16], &'a [u8]), JournalError> {
    let mut reader = Reader::new(record);
    let digest = reader.array().map_err(|corrupt| damage(path, first, corrupt.what))?;
    Ok((digest, reader.rest()))
}

fn damage(path: &Path, first: Position, what: &str) -> JournalError {
    JournalError::Damaged { path: path.to_owned(), position: Some(first), what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Position = Position::FIRST;

    fn identity() -> Identity {
        Identity { store: StoreId([3; 16]), secret: Secret([4; 32]) }
    }

    #[test]
    fn file_names_read_back() {
        let path = path_of(Path::new("journal"), Position::new(u64::MAX).unwrap());
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(FileName::parse(name), Position::new(u64::MAX).map(FileName::Segment));
        let unfinished = FileName::parse("00000000000000000012.log.new");
        assert_eq!(unfinished, Position::new(12).map(FileName::Unfinished));
        for other in ["", ".log", "12.log", "00000000000000000000.log", "0000000000000000001+.log", "x.new"] {
            assert_eq!(FileName::parse(other), None, "{other}");
        }
        assert_eq!(FileName::parse("99999999999999999999.log"), None, "above 64 bits");
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_noticed() {
        let path = Path::new("segment");
        let header = Header { store: identity().store, first: FIRST, previous: ChainHash([1; 32]) };
        let mut bytes = header.encode(&identity().secret);
        assert_eq!(bytes.len(), Header::BYTES);
        assert_eq!(Header::decode(&bytes, &identity(), path, FIRST).unwrap(), header);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            Header::decode(&bytes, &identity(), path, FIRST).unwrap_err();
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for len in 0..bytes.len() {
            Header::decode(&bytes[..len], &identity(), path, FIRST).unwrap_err();
        }
        Header::decode(&bytes, &identity(), path, FIRST.next()).unwrap_err();

        let end = Head { next: FIRST.next(), chain: ChainHash([2; 32]) };
        let sealed = Seal { end, offsets: 700 };
        let mut seal = sealed.encode(&identity().secret);
        assert_eq!(seal.len(), Seal::BYTES);
        assert_eq!(Seal::decode(&seal, &identity().secret, path, FIRST).unwrap(), sealed);
        for bit in 0..seal.len() * 8 {
            seal[bit / 8] ^= 1 << (bit % 8);
            Seal::decode(&seal, &identity().secret, path, FIRST).unwrap_err();
            seal[bit / 8] ^= 1 << (bit % 8);
        }
        // A header is not a seal, although both have a correct digest.
        Seal::decode(&bytes, &identity().secret, path, FIRST).unwrap_err();
    }
}
