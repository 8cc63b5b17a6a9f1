//! Lets redb, the storage engine of the index, use a file of a [`Disk`]. So tests can simulate failures of the disk
//! under the index.
//!
//! No other file of this crate calls redb. [`ledger_index`] puts a gate in front of this backend, which cuts redb off from
//! the file after a failure.

use std::io;
use std::path::Path;

use ledger_journal::disk::{Disk, DiskFile, OpenMode, read_with_retry};
use redb::StorageBackend;

/// A file of a [`Disk`] as redb reads and writes it.
#[derive(Debug)]
pub(crate) struct DiskBackend {
    file: Box<dyn DiskFile>,
}

impl DiskBackend {
    /// Opens the file `path`, or creates it, as `mode` says. Refuses an existing file of length 0: redb would take it for
    /// a new file, and the loss of its content would go unnoticed.
    ///
    /// # Errors
    ///
    /// The errors of [`Disk::open`], and `InvalidData` for an existing file of length 0.
    pub(crate) fn open(disk: &dyn Disk, path: &Path, mode: OpenMode) -> io::Result<Self> {
        let file = disk.open(path, mode)?;
        if mode == OpenMode::Existing && file.len()? == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it has no bytes"));
        }
        Ok(Self { file })
    }
}

impl StorageBackend for DiskBackend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    /// Reads, and tries a failed read once more. After one error redb refuses every later operation on the file.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_with_retry(&*self.file, offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, data)
    }
}
