//! The state of a simulated disk: its names and files, its faults, and the effect of a power cut.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::faults::Faults;
use super::file::{FileState, Random};
use crate::disk::parent;

/// Everything that a simulated disk holds and counts.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) faults: Faults,
    pub(super) files: Vec<FileState>,
    /// The names as programs see them.
    pub(super) names: BTreeMap<PathBuf, Node>,
    pub(super) durable_names: BTreeMap<PathBuf, Node>,
    pub(super) pending_names: Vec<NameChange>,
    pub(super) locks: BTreeMap<PathBuf, String>,
    pub(super) syncs: u64,
    pub(super) writes: u64,
    pub(super) reads: u64,
    pub(super) opens: u64,
    pub(super) unreadable: Option<usize>,
    pub(super) full: Option<usize>,
    /// Number of times that power has returned.
    pub(super) boots: u8,
    pub(super) power_is_off: bool,
}

/// A directory, or a file by its index in [`State::files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Dir,
    File(usize),
}

/// A change of one directory. Renaming a file changes both names at once.
#[derive(Clone, Debug)]
pub(super) struct NameChange {
    pub(super) gone: Option<PathBuf>,
    pub(super) come: Option<(PathBuf, Node)>,
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<PathBuf, Node>) {
        if let Some(path) = &self.gone {
            names.remove(path);
        }
        if let Some((path, node)) = &self.come {
            names.insert(path.clone(), *node);
        }
    }

    pub(super) fn dir(&self) -> &Path {
        let path = self.gone.as_ref().or(self.come.as_ref().map(|(path, _)| path));
        parent(path.expect("a change of names adds a name, removes one, or both"))
    }
}

impl State {
    pub(super) fn powered(&self) -> io::Result<()> {
        if self.power_is_off { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    pub(super) fn file(&self, path: &Path) -> io::Result<usize> {
        match self.names.get(path) {
            Some(Node::File(file)) => Ok(*file),
            Some(Node::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns whether `dir` can hold names: it was created, or it is outside the directories that a store creates.
    pub(super) fn has_dir(&self, dir: &Path) -> bool {
        dir == parent(dir) || dir == Path::new(".") || self.names.get(dir) == Some(&Node::Dir)
    }

    pub(super) fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    /// Counts a sync. Returns `Ok(true)` if it takes effect.
    pub(super) fn count_sync(&mut self) -> io::Result<bool> {
        self.powered()?;
        self.syncs += 1;
        if self.faults.cut_at_sync == Some(self.syncs) {
            self.power_is_off = true;
            return self.powered().map(|()| false);
        }
        Ok(!self.faults.lying_syncs)
    }

    pub(super) fn sync_fails(&self) -> io::Result<()> {
        if self.faults.fail_sync == Some(self.syncs) {
            return Err(io::Error::other("injected failure of a sync"));
        }
        Ok(())
    }

    /// Fails if the file system is read-only.
    pub(super) fn writable(&self) -> io::Result<()> {
        if self.faults.is_read_only { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }

    pub(super) fn count_read(&mut self, file: usize) -> io::Result<()> {
        self.powered()?;
        self.reads += 1;
        let fails_on = self.faults.fail_reads_from.is_some_and(|from| from <= self.reads);
        if fails_on || self.faults.fail_read == Some(self.reads) || self.unreadable == Some(file) {
            return Err(io::Error::other("injected failure of a read"));
        }
        Ok(())
    }

    pub(super) fn count_open(&mut self) -> io::Result<()> {
        self.powered()?;
        self.opens += 1;
        if self.faults.fail_open == Some(self.opens) {
            return Err(io::Error::other("injected failure of an opening"));
        }
        Ok(())
    }

    pub(super) fn count_write(&mut self) -> io::Result<()> {
        self.powered()?;
        self.writes += 1;
        if self.faults.fail_write == Some(self.writes) {
            return Err(io::Error::other("injected failure of a write"));
        }
        Ok(())
    }

    /// Cuts the power, and returns the disk after power returns. The seed decides which of the unsynced changes
    /// survive.
    pub(super) fn after_power_cut(&mut self, seed: u64) -> Self {
        self.power_is_off = true;
        let mut random = Random(seed);
        // How much of the unsynced data survives: nothing, a part, or everything.
        let keep_percent = [0, 10, 50, 90, 100][random.below(5)];

        let mut names = self.durable_names.clone();
        for change in &self.pending_names {
            if random.percent(keep_percent) {
                change.apply(&mut names);
            }
        }
        // If a directory did not survive, its content did not either.
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

        let files = self
            .files
            .iter()
            .map(|file| {
                let bytes = file.survivor(keep_percent, &mut random);
                FileState { synced: bytes.clone(), bytes, ..FileState::default() }
            })
            .collect();
        Self {
            files,
            names: survivors.clone(),
            durable_names: survivors,
            boots: self.boots + 1,
            ..Self::default()
        }
    }

    /// Returns a disk without faults that has the same names and bytes, all synced.
    pub(super) fn synced_copy(&self) -> Self {
        let files = self
            .files
            .iter()
            .map(|file| FileState {
                synced: file.bytes.clone(),
                bytes: file.bytes.clone(),
                ..FileState::default()
            })
            .collect();
        Self {
            files,
            names: self.names.clone(),
            durable_names: self.names.clone(),
            boots: self.boots,
            ..Self::default()
        }
    }
}
