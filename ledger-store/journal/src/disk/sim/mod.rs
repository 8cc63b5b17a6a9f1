//! A disk in memory that fails, loses power and ignores syncs on demand.
//!
//! For files and for names, it keeps the synced state and the changes since then. A power cut keeps the synced state
//! and an arbitrary part of the changes: a seed decides whether each change is kept, dropped, swapped with another, or
//! torn at 512 bytes. Equal seeds give equal results.

#![allow(clippy::cast_possible_truncation, reason = "files are in memory")]

mod faults;
mod file;
mod handles;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

pub use self::faults::Faults;
use self::file::FileState;
use self::handles::{SimDir, SimFile, SimLock};
use self::state::{NameChange, Node, State};
use super::{BootId, Disk, DiskDir, DiskFile, DiskSpace, LockOutcome, OpenMode, parent};

/// A disk in memory. All clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl SimDisk {
    /// Creates an empty disk without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty disk with faults.
    pub fn with_faults(faults: Faults) -> Self {
        let disk = Self::default();
        disk.set_faults(faults);
        disk
    }

    /// Replaces the faults. The counts of operations continue.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
    }

    /// Returns the number of syncs of files and directories.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// Returns the number of openings of files and directories.
    pub fn opens(&self) -> u64 {
        self.state.lock().opens
    }

    /// Returns the number of writes and changes of length.
    pub fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    /// Returns every file with its bytes as programs see them.
    pub fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state.lock();
        let files = state.names.iter().filter_map(|(path, node)| match node {
            Node::File(file) => Some((path.clone(), state.files[*file].bytes.clone())),
            Node::Dir => None,
        });
        files.collect()
    }

    /// Returns the number of reads.
    pub fn reads(&self) -> u64 {
        self.state.lock().reads
    }

    /// Returns whether the power has failed. Then every operation fails.
    pub fn power_is_off(&self) -> bool {
        self.state.lock().power_is_off
    }

    /// Cuts the power, if that has not happened yet, and returns the disk after power returns: without faults, locks
    /// or open files. Call it several times with different seeds for different results.
    #[must_use]
    pub fn after_power_cut(&self, seed: u64) -> Self {
        let found = self.state.lock().after_power_cut(seed);
        Self { state: Arc::new(Mutex::new(found)) }
    }

    /// Returns a copy of the bytes of a file, as programs see them.
    ///
    /// # Errors
    ///
    /// `NotFound` if the file does not exist.
    pub fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state.lock();
        let file = state.file(path)?;
        Ok(state.files[file].bytes.clone())
    }

    /// Replaces the bytes of a file without telling whoever has it open, to simulate damage.
    ///
    /// # Errors
    ///
    /// `NotFound` if the file does not exist.
    pub fn set_bytes(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = state.file(path)?;
        state.files[file] = FileState { synced: bytes.clone(), bytes, ..FileState::default() };
        Ok(())
    }

    /// Makes every read of this file fail, and of no other. `None` makes all files readable.
    ///
    /// # Errors
    ///
    /// `NotFound` if the file does not exist.
    pub fn set_unreadable(&self, path: Option<&Path>) -> io::Result<()> {
        let mut state = self.state.lock();
        state.unreadable = path.map(|path| state.file(path)).transpose()?;
        Ok(())
    }

    /// Prevents this file from growing, and no other. `None` lets all files grow.
    ///
    /// # Errors
    ///
    /// `NotFound` if the file does not exist.
    pub fn set_full(&self, path: Option<&Path>) -> io::Result<()> {
        let mut state = self.state.lock();
        state.full = path.map(|path| state.file(path)).transpose()?;
        Ok(())
    }

    /// Returns a copy of the disk with everything synced, and without faults, locks or open files. After a process was
    /// killed, the next one finds such a disk.
    #[must_use]
    pub fn synced_copy(&self) -> Self {
        let copy = self.state.lock().synced_copy();
        Self { state: Arc::new(Mutex::new(copy)) }
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.powered()?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !state.has_dir(parent(path)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.writable()?;
        state.change_names(NameChange { gone: None, come: Some((path.to_owned(), Node::Dir)) });
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let state = self.state.lock();
        state.powered()?;
        if !state.has_dir(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = state.names.keys().filter(|path| path.as_path() != dir && parent(path) == dir);
        Ok(inside.filter_map(|path| path.file_name()).map(OsString::from).collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state.lock();
        state.powered()?;
        Ok(state.names.contains_key(path))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state.lock();
        state.count_open()?;
        let file = match mode {
            OpenMode::Existing => {
                let file = state.file(path)?;
                state.writable()?;
                file
            }
            OpenMode::CreateNew => {
                if state.names.contains_key(path) {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                if !state.has_dir(parent(path)) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                state.writable()?;
                let file = state.files.len();
                state.files.push(FileState::default());
                state
                    .change_names(NameChange { gone: None, come: Some((path.to_owned(), Node::File(file))) });
                file
            }
        };
        Ok(Box::new(SimFile { state: self.state.clone(), file }))
    }

    fn boot_id(&self) -> Option<BootId> {
        Some(BootId([self.state.lock().boots + 1; 16]))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.powered()?;
        state.file(path)?;
        state.writable()?;
        state.change_names(NameChange { gone: Some(path.to_owned()), come: None });
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        assert_eq!(parent(from), parent(to), "only inside a directory");
        let mut state = self.state.lock();
        state.powered()?;
        let file = state.file(from)?;
        state.writable()?;
        state.change_names(NameChange {
            gone: Some(from.to_owned()),
            come: Some((to.to_owned(), Node::File(file))),
        });
        Ok(())
    }

    fn space(&self, _dir: &Path) -> io::Result<Option<DiskSpace>> {
        Ok(self.state.lock().faults.space)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.open_dir(dir)?.sync()
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>> {
        self.state.lock().count_open()?;
        Ok(Box::new(SimDir { state: self.state.clone(), dir: dir.to_owned() }))
    }

    fn lock(&self, dir: &Path, text: &Path, holder: &str) -> io::Result<LockOutcome> {
        let mut state = self.state.lock();
        state.powered()?;
        if let Some(holder) = state.locks.get(dir) {
            return Ok(LockOutcome::Held { holder: holder.trim().to_owned() });
        }
        // As on a real disk, the directory is locked with or without the text.
        if !state.names.contains_key(text) && !state.faults.is_read_only {
            let file = state.files.len();
            state.files.push(FileState::default());
            state.change_names(NameChange { gone: None, come: Some((text.to_owned(), Node::File(file))) });
        }
        state.locks.insert(dir.to_owned(), holder.to_owned());
        Ok(LockOutcome::Taken(Box::new(SimLock { state: self.state.clone(), dir: dir.to_owned() })))
    }
}
