//! Where a run keeps its data.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A data directory: a temporary one, or one that the caller names and keeps.
#[derive(Debug)]
pub enum Place {
    /// Removed when it is dropped.
    Temporary(TempDir),
    /// Left as it is.
    Kept(PathBuf),
}

impl Place {
    /// The directory that is named, or a fresh one under `./target` or, without that, where the system has
    /// temporary files. That must be on a real disk, or durability costs nothing.
    ///
    /// # Errors
    ///
    /// If the directory cannot be made.
    pub fn new(named: Option<PathBuf>) -> std::io::Result<Self> {
        if let Some(path) = named {
            std::fs::create_dir_all(&path)?;
            return Ok(Self::Kept(path));
        }
        let target = Path::new("target");
        let parent = if target.is_dir() { target.canonicalize()? } else { std::env::temp_dir() };
        tempfile::Builder::new().prefix("load-").tempdir_in(parent).map(Self::Temporary)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        match self {
            Self::Temporary(directory) => directory.path(),
            Self::Kept(path) => path,
        }
    }
}

/// How many bytes of disk the files below a directory occupy.
///
/// # Errors
///
/// If it cannot be read.
pub fn disk_bytes(directory: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        // Blocks of 512 bytes, whatever the file system's own are.
        bytes += if metadata.is_dir() { disk_bytes(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_place_stays_and_its_files_count_with_those_below() {
        let outer = tempfile::tempdir().expect("a directory");
        let path = outer.path().join("data");
        let place = Place::new(Some(path.clone())).expect("a place");
        std::fs::create_dir(path.join("inner")).expect("a directory");
        std::fs::write(path.join("inner/file"), vec![1; 100_000]).expect("a file");
        let bytes = disk_bytes(place.path()).expect("readable");
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
        drop(place);
        assert!(path.is_dir());
    }

    #[test]
    fn a_temporary_place_vanishes() {
        let place = Place::new(None).expect("a place");
        let path = place.path().to_owned();
        assert!(path.is_dir());
        drop(place);
        assert!(!path.exists());
    }
}
