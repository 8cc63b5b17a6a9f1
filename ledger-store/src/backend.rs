//! A file of a [`Disk`] as the storage engine of the index wants it.

use std::io;
use std::path::Path;

use ledger_journal::disk::{Disk, DiskFile, OpenMode, read_patiently};
use redb::StorageBackend;

/// The file `path` for the storage engine: a new one, or one that exists and has bytes. The engine would take one
/// without bytes for new, and so forget what it held.
///
/// # Errors
///
/// As [`Disk::open`], and `InvalidData` for an existing file without bytes.
pub(crate) fn backend(
    disk: &dyn Disk,
    path: &Path,
    mode: OpenMode,
) -> io::Result<impl StorageBackend + use<>> {
    let file = disk.open(path, mode)?;
    if mode == OpenMode::Existing && file.len()? == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it has no bytes"));
    }
    Ok(Backend { file })
}

#[derive(Debug)]
struct Backend {
    file: Box<dyn DiskFile>,
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    /// The engine latches the first failed read and refuses everything from
    /// then on. So a read that fails is tried once more.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_patiently(&*self.file, offset, out)
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
