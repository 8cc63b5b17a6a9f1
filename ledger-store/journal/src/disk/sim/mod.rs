//! A disk in memory that loses power, fails and lies on demand.
//!
//! For each file it keeps what was synced and the changes since then, and the
//! same for names. A power cut keeps what was synced and of the rest an
//! arbitrary part: each change is kept, dropped, swapped with another or torn
//! at 512 bytes, as a seed decides. Equal seeds give equal survivors.

mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use self::file::{Change, FileState, Random};
use super::{BootId, Disk, DiskDir, DiskFile, DiskLock, DiskRoom, LockOutcome, OpenMode, parent};

/// Faults to come. Operations are counted from 1, over all files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Power fails at this sync, before it takes effect.
    pub cut_at_sync: Option<u64>,
    /// This sync fails. The unsynced changes of its file are still seen, as if
    /// they were clean, and no later sync makes them durable: so do real
    /// kernels.
    pub fail_sync: Option<u64>,
    /// This write or change of length fails and has no effect.
    pub fail_write: Option<u64>,
    /// This read fails.
    pub fail_read: Option<u64>,
    /// This read fails, and all after it.
    pub fail_reads_from: Option<u64>,
    /// This opening of a file or a directory fails, as it does for a process without descriptors.
    pub fail_open: Option<u64>,
    /// No file can grow.
    pub is_full: bool,
    /// No file can be opened, since all are opened to be written too, and no name changes: so does a file system that is
    /// mounted for reading only.
    pub is_read_only: bool,
    /// Syncs succeed and do nothing. No store survives that: it shows that a
    /// test would notice a missing sync.
    pub lying_syncs: bool,
    /// The room that the disk reports.
    pub room: Option<DiskRoom>,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    faults: Faults,
    files: Vec<FileState>,
    /// The names as programs see them.
    names: BTreeMap<PathBuf, Node>,
    durable_names: BTreeMap<PathBuf, Node>,
    pending_names: Vec<NameChange>,
    locks: BTreeMap<PathBuf, String>,
    syncs: u64,
    writes: u64,
    reads: u64,
    opens: u64,
    unreadable: Option<usize>,
    full: Option<usize>,
    /// How often the power has returned.
    boots: u8,
    power_is_off: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Dir,
    File(usize),
}

/// A change of one directory; both names of a renamed file are in it.
#[derive(Clone, Debug)]
struct NameChange {
    gone: Option<PathBuf>,
    come: Option<(PathBuf, Node)>,
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, Node>) {
        if let Some(path) = &self.gone {
            names.remove(path);
        }
        if let Some((path, node)) = &self.come {
            names.insert(path.clone(), *node);
        }
    }

    fn dir(&self) -> &Path {
        let path = self.gone.as_ref().or(self.come.as_ref().map(|(path, _)| path));
        parent(path.expect("a change of names has a name"))
    }
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
        let mut state = self.state.lock();
        state.power_is_off = true;
        let mut random = Random(seed);
        // Nothing, something or everything of what was not synced.
        let keep_percent = [0, 10, 50, 90, 100][random.below(5)];

        let mut names = state.durable_names.clone();
        for change in &state.pending_names {
            if random.percent(keep_percent) {
                change.apply(&mut names);
            }
        }
        // What is in a directory that did not survive is gone with it.
        let reachable = |path: &Path| {
            let mut dir = parent(path);
            loop {
                if dir == parent(dir) || dir == Path::new(".") {
                    return true;
                }
                if names.get(dir) != Some(&Node::Dir) {
                    return false;
                }
                dir = parent(dir);
            }
        };
        let survivors: BTreeMap<_, _> = names
            .iter()
            .filter(|(path, _)| reachable(path))
            .map(|(path, node)| (path.clone(), *node))
            .collect();

        let files = state
            .files
            .iter()
            .map(|file| {
                let bytes = file.survivor(keep_percent, &mut random);
                FileState { synced: bytes.clone(), bytes, ..FileState::default() }
            })
            .collect();
        let found = State {
            files,
            names: survivors.clone(),
            durable_names: survivors,
            boots: state.boots + 1,
            ..State::default()
        };
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
        let state = self.state.lock();
        let files = state
            .files
            .iter()
            .map(|file| FileState {
                synced: file.bytes.clone(),
                bytes: file.bytes.clone(),
                ..FileState::default()
            })
            .collect();
        let copy = State {
            files,
            names: state.names.clone(),
            durable_names: state.names.clone(),
            boots: state.boots,
            ..State::default()
        };
        Self { state: Arc::new(Mutex::new(copy)) }
    }
}

impl State {
    fn powered(&self) -> io::Result<()> {
        if self.power_is_off { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        match self.names.get(path) {
            Some(Node::File(file)) => Ok(*file),
            Some(Node::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Whether `dir` can hold names: it was created, or lies outside of what
    /// a store creates.
    fn has_dir(&self, dir: &Path) -> bool {
        dir == parent(dir) || dir == Path::new(".") || self.names.get(dir) == Some(&Node::Dir)
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    /// Counts a sync; `Ok(true)` if it shall take effect.
    fn count_sync(&mut self) -> io::Result<bool> {
        self.powered()?;
        self.syncs += 1;
        if self.faults.cut_at_sync == Some(self.syncs) {
            self.power_is_off = true;
            return self.powered().map(|()| false);
        }
        Ok(!self.faults.lying_syncs)
    }

    fn sync_fails(&self) -> io::Result<()> {
        if self.faults.fail_sync == Some(self.syncs) {
            return Err(io::Error::other("injected failure of a sync"));
        }
        Ok(())
    }

    /// Refuses like a file system that is mounted for reading only.
    fn writable(&self) -> io::Result<()> {
        if self.faults.is_read_only { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }

    fn count_read(&mut self, file: usize) -> io::Result<()> {
        self.powered()?;
        self.reads += 1;
        let fails_on = self.faults.fail_reads_from.is_some_and(|from| from <= self.reads);
        if fails_on || self.faults.fail_read == Some(self.reads) || self.unreadable == Some(file) {
            return Err(io::Error::other("injected failure of a read"));
        }
        Ok(())
    }

    fn count_open(&mut self) -> io::Result<()> {
        self.powered()?;
        self.opens += 1;
        if self.faults.fail_open == Some(self.opens) {
            return Err(io::Error::other("injected failure of an opening"));
        }
        Ok(())
    }

    fn count_write(&mut self) -> io::Result<()> {
        self.powered()?;
        self.writes += 1;
        if self.faults.fail_write == Some(self.writes) {
            return Err(io::Error::other("injected failure of a write"));
        }
        Ok(())
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
        Ok(Box::new(SimFile { disk: self.clone(), file }))
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
        Ok(Box::new(SimDir { disk: self.clone(), dir: dir.to_owned() }))
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
        Ok(LockOutcome::Taken(Box::new(SimLock { disk: self.clone(), dir: dir.to_owned() })))
    }
}

/// An open directory of a [`SimDisk`].
#[derive(Debug)]
struct SimDir {
    disk: SimDisk,
    dir: PathBuf,
}

impl DiskDir for SimDir {
    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        if !state.count_sync()? {
            return Ok(());
        }
        state.sync_fails()?;
        let pending = std::mem::take(&mut state.pending_names);
        let (now, later): (Vec<_>, Vec<_>) = pending.into_iter().partition(|change| change.dir() == self.dir);
        for change in now {
            change.apply(&mut state.durable_names);
        }
        state.pending_names = later;
        Ok(())
    }
}

/// An open file of a [`SimDisk`].
#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    file: usize,
}

impl SimFile {
    fn change(&self, change: Change) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.count_write()?;
        let is_full = state.faults.is_full || state.full == Some(self.file);
        let file = &mut state.files[self.file];
        if is_full && change.end() > file.bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        change.apply(&mut file.bytes);
        file.pending.push(change);
        Ok(())
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        let state = self.disk.state.lock();
        state.powered()?;
        Ok(state.files[self.file].bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.count_read(self.file)?;
        let bytes = &state.files[self.file].bytes;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(out.len());
        let found = bytes.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Change::Write { offset: offset as usize, data: data.to_vec() })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::SetLen(len as usize))
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        if !state.count_sync()? {
            return Ok(());
        }
        let failure = state.sync_fails();
        let file = &mut state.files[self.file];
        for change in std::mem::take(&mut file.pending) {
            if failure.is_ok() {
                change.apply(&mut file.synced);
            }
        }
        failure
    }

    fn forget_cached(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.powered()?;
        let file = &mut state.files[self.file];
        file.bytes = file.uncached();
        Ok(())
    }
}

/// A lock on a [`SimDisk`].
#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    dir: PathBuf,
}

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.state.lock().locks.remove(&self.dir);
    }
}
