//! A disk in memory that can be reopened, copied and damaged.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

use crate::error::IndexError;
use crate::file::{IndexFile, IndexOptions};

/// All clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk(Arc<Mutex<Vec<u8>>>);

impl Disk {
    /// Returns a disk with the same bytes, as a crash would leave them now.
    pub(super) fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().clone())))
    }

    /// Returns whether another disk has the same bytes.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        *self.0.lock() == *other.0.lock()
    }

    pub(super) fn length(&self) -> usize {
        self.0.lock().len()
    }

    pub(super) fn flip(&self, byte: usize, bit: u32) {
        self.0.lock()[byte] ^= 1 << bit;
    }

    pub(super) fn create(&self) -> IndexFile {
        IndexFile::create(self.clone(), OPTIONS).unwrap()
    }

    pub(super) fn open(&self) -> Result<IndexFile, IndexError> {
        IndexFile::open(self.clone(), OPTIONS)
    }
}

/// Small caches, so that tests cause misses and evictions.
const OPTIONS: IndexOptions = IndexOptions { cache_bytes: 256 << 10, filter_bytes: 30_000 };

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64, io::Error> {
        Ok(self.0.lock().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        let bytes = self.0.lock();
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let source = start.checked_add(out.len()).and_then(|end| bytes.get(start..end));
        out.copy_from_slice(source.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<(), io::Error> {
        if length > 1 << 30 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.lock().resize(length as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        let mut bytes = self.0.lock();
        let start = offset as usize;
        let target = bytes.get_mut(start..start + data.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        target.copy_from_slice(data);
        Ok(())
    }
}
