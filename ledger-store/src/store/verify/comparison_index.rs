//! The file of the second index that a verification builds and compares with the real one.

use std::io;

use ledger_journal::disk::OpenMode;

use crate::directory::DataDirectory;
use crate::disk_backend::DiskBackend;

/// The name of the file, in the directory of the real index.
const WORKSPACE: &str = "verify.redb";

/// Creates the file.
///
/// # Errors
///
/// The error of the disk.
pub(crate) fn create(directory: &DataDirectory) -> io::Result<DiskBackend> {
    DiskBackend::open(&**directory.disk(), &directory.index_dir().join(WORKSPACE), OpenMode::CreateNew)
}

/// Removes the file, if an interrupted verification has left it.
///
/// # Errors
///
/// The error of the disk. It names the file.
pub(crate) fn clear(directory: &DataDirectory) -> io::Result<()> {
    let path = directory.index_dir().join(WORKSPACE);
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if directory.disk().exists(&path).map_err(failed)? {
        directory.disk().remove(&path).map_err(failed)?;
    }
    Ok(())
}
