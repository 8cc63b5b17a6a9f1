//! A disk in memory that loses power, fails and lies on demand.
//!
//! For each file it keeps what was synced and the changes since then, and the
//! same for names. A power cut keeps what was synced and of the rest an
//! arbitrary part: each change is kept, dropped, swapped with another or torn
//! at 512 bytes, as a seed decides. Equal seeds give equal survivors.

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
use super::{BootId, Disk, DiskDir, DiskFile, DiskRoom, LockOutcome, OpenMode, parent};

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl SimDisk {
    /// An empty disk that works.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty disk on which these things go wrong.
    pub fn with_faults(faults: Faults) -> Self {
        let disk = Self::default();
        disk.set_faults(faults);
        disk
    }

    /// Decides anew what shall go wrong; counting goes on.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
    }

    /// How many syncs there were, of files and directories.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// How many openings of files and directories there were.
    pub fn opens(&self) -> u64 {
        self.state.lock().opens
    }

    /// How many writes and changes of length there were.
    pub fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    /// Every file there is, with its bytes as programs see them.
    pub fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state.lock();
        let files = state.names.iter().filter_map(|(path, node)| match node {
            Node::File(file) => Some((path.clone(), state.files[*file].bytes.clone())),
            Node::Dir => None,
        });
        files.collect()
    }

    /// How many reads there were.
    pub fn reads(&self) -> u64 {
        self.state.lock().reads
    }

    /// Whether the power has failed. Then every operation does.
    pub fn power_is_off(&self) -> bool {
        self.state.lock().power_is_off
    }

    /// Cuts the power, if that has not happened, and gives the disk as it is
    /// found when power returns: without faults, locks or open files. Can be
    /// asked several times, with one seed for each possible past.
    #[must_use]
    pub fn after_power_cut(&self, seed: u64) -> Self {
        let found = self.state.lock().after_power_cut(seed);
        Self { state: Arc::new(Mutex::new(found)) }
    }

    /// A copy of the bytes of a file, as programs see them.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such file.
    pub fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state.lock();
        let file = state.file(path)?;
        Ok(state.files[file].bytes.clone())
    }

    /// Replaces the bytes of a file behind everyone's back, as damage does.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such file.
    pub fn set_bytes(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = state.file(path)?;
        state.files[file] = FileState { synced: bytes.clone(), bytes, ..FileState::default() };
        Ok(())
    }

    /// Fails every read of this file and of no other; `None` lets all be read again.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such file.
    pub fn set_unreadable(&self, path: Option<&Path>) -> io::Result<()> {
        let mut state = self.state.lock();
        state.unreadable = path.map(|path| state.file(path)).transpose()?;
        Ok(())
    }

    /// Lets this file grow no more, and any other; `None` lets all grow again.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such file.
    pub fn set_full(&self, path: Option<&Path>) -> io::Result<()> {
        let mut state = self.state.lock();
        state.full = path.map(|path| state.file(path)).transpose()?;
        Ok(())
    }

    /// A working disk with the same names and bytes, all of them synced, as a
    /// process finds it that is started after another was killed.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copy = self.state.lock().copy();
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

    fn room(&self, _dir: &Path) -> io::Result<Option<DiskRoom>> {
        Ok(self.state.lock().faults.room)
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
        // As on a real disk: the directory is locked, with or without the text.
        if !state.names.contains_key(text) && !state.faults.is_read_only {
            let file = state.files.len();
            state.files.push(FileState::default());
            state.change_names(NameChange { gone: None, come: Some((text.to_owned(), Node::File(file))) });
        }
        state.locks.insert(dir.to_owned(), holder.to_owned());
        Ok(LockOutcome::Taken(Box::new(SimLock { state: self.state.clone(), dir: dir.to_owned() })))
    }
}
