//! Open files, open directories and locks of a simulated disk.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::file::Change;
use super::state::State;
use crate::disk::{DiskDir, DiskFile, DiskLock};

/// An open directory of a simulated disk.
#[derive(Debug)]
pub(super) struct SimDir {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) dir: PathBuf,
}

impl DiskDir for SimDir {
    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
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

/// An open file of a simulated disk.
#[derive(Debug)]
pub(super) struct SimFile {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) file: usize,
}

impl SimFile {
    fn change(&self, change: Change) -> io::Result<()> {
        let mut state = self.state.lock();
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
        let state = self.state.lock();
        state.powered()?;
        Ok(state.files[self.file].bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.state.lock();
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
        let mut state = self.state.lock();
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
        let mut state = self.state.lock();
        state.powered()?;
        let file = &mut state.files[self.file];
        file.bytes = file.uncached();
        Ok(())
    }
}

/// A lock on a simulated disk.
#[derive(Debug)]
pub(super) struct SimLock {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) dir: PathBuf,
}

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.state.lock().locks.remove(&self.dir);
    }
}
