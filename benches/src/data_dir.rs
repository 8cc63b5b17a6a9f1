//! The directory in which a run keeps its data, and the disk space that the data takes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A data directory: a temporary one, or one that the caller names and keeps.
#[derive(Debug)]
pub enum DataDir {
    /// A directory that is removed when this is dropped.
    Temporary(TempDir),
    /// A directory that is not removed.
    Kept(PathBuf),
}

impl DataDir {
    /// Makes the named directory, or a temporary one under `./target`, or else in the temporary directory of
    /// the system. It must be on a real disk, which is not checked: on an in-memory file system syncs are
    /// free, so the figures would be meaningless.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be made.
    pub fn new(named: Option<PathBuf>) -> std::io::Result<Self> {
        if let Some(path) = named {
            std::fs::create_dir_all(&path)?;
            return Ok(Self::Kept(path));
        }
        let target = Path::new("target");
        let parent = if target.is_dir() { target.canonicalize()? } else { std::env::temp_dir() };
        tempfile::Builder::new().prefix("load-").tempdir_in(parent).map(Self::Temporary)
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        match self {
            Self::Temporary(directory) => directory.path(),
            Self::Kept(path) => path,
        }
    }
}

/// Returns the disk space in bytes that the files below a directory occupy.
///
/// # Errors
///
/// Fails if the directory cannot be read.
pub fn disk_bytes(directory: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        // The unit of `blocks` is 512 bytes on every file system.
        bytes += if metadata.is_dir() { disk_bytes(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_named_directories_and_counts_files() {
        let outer = tempfile::tempdir().expect("a directory");
        let path = outer.path().join("data");
        let data_dir = DataDir::new(Some(path.clone())).expect("a directory");
        std::fs::create_dir(path.join("inner")).expect("a directory");
        std::fs::write(path.join("inner/file"), vec![1; 100_000]).expect("a file");
        let bytes = disk_bytes(data_dir.path()).expect("readable");
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
        drop(data_dir);
        assert!(path.is_dir());
    }

    #[test]
    fn removes_temporary_directories() {
        let data_dir = DataDir::new(None).expect("a directory");
        let path = data_dir.path().to_owned();
        assert!(path.is_dir());
        drop(data_dir);
        assert!(!path.exists());
    }
}
