//! Segment files before they get their name: new segments, and copies that replace a segment.

use std::path::PathBuf;
use std::sync::Arc;

use super::frame::FRAMES_START;
use super::offsets::Offsets;
use super::record::{Header, path_of};
use super::segment::{JournalLocation, OpenSegment, open_file, read_header, storage};
use super::tail::Tail;
use super::{Head, JournalError, Position};
use crate::disk::{DiskDir, DiskFile, OpenMode, Space, parent, temporary_name};

/// Creates a complete, empty segment under its temporary name, in a file of `len` bytes. Everything except the name is
/// durable. Removes an unfinished file of the same name.
pub(super) fn prepare(location: &JournalLocation, at: Head, len: u64) -> Result<(), JournalError> {
    let path = temporary_name(&path_of(&location.dir, at.next));
    let header = Header { store: location.identity.store, first: at.next, previous: at.chain };
    let work = || {
        if location.disk.exists(&path)? {
            location.disk.remove(&path)?;
        }
        let file = location.disk.open(&path, OpenMode::CreateNew)?;
        file.set_aside(0, len, Space::Zeroed)?;
        file.write_at(0, &header.encode(&location.identity.secret))?;
        file.sync()
    };
    work().map_err(|cause| {
        // Free the space that the file has already taken: the disk may be full.
        let _ = location.disk.remove(&path);
        storage(&path, "create", cause)
    })
}

/// Gives the segment that begins at `first` its name, durably. Its file is complete under the temporary name: either
/// [prepared](prepare), or a copy that replaces the segment of this name.
pub(super) fn publish(location: &JournalLocation, first: Position) -> Result<(), JournalError> {
    let path = path_of(&location.dir, first);
    let named = location.disk.rename(&temporary_name(&path), &path);
    named.and_then(|()| location.disk.sync_dir(parent(&path))).map_err(|cause| storage(&path, "name", cause))
}

/// A complete, empty segment with everything that is needed to give it its name. Publishing it opens no more files or
/// directories, so a process without file descriptors fails before anything has changed.
pub(super) struct Prepared {
    pub(super) header: Header,
    pub(super) tail: Tail,
    file: Box<dyn DiskFile>,
    dir: Box<dyn DiskDir>,
    path: PathBuf,
}

impl Prepared {
    /// [Prepares](prepare) a segment and opens it. The call may be repeated after a failure.
    pub(super) fn new(location: &JournalLocation, at: Head, len: u64) -> Result<Self, JournalError> {
        prepare(location, at, len)?;
        let path = path_of(&location.dir, at.next);
        let temporary = temporary_name(&path);
        let work = || {
            let file = open_file(&temporary, at.next, |path| location.disk.open_durable(path))?;
            let header = read_header(&*file, location, &path, at.next)?;
            let tail = Tail::open(&*file, at.next, FRAMES_START);
            let tail = tail.map_err(|cause| storage(&temporary, "read", cause))?;
            let dir = location.disk.open_dir(parent(&path));
            let dir = dir.map_err(|cause| storage(parent(&path), "open", cause))?;
            Ok(Self { header, tail, file, dir, path: path.clone() })
        };
        work().inspect_err(|_| {
            // Free its space until the next attempt.
            let _ = location.disk.remove(&temporary);
        })
    }

    /// Gives the segment its name, durably. After a failure, the segment may or may not have its name on disk: only
    /// reopening the journal shows which.
    pub(super) fn publish(
        self,
        location: &JournalLocation,
    ) -> Result<(Header, Tail, OpenSegment), JournalError> {
        let named = location.disk.rename(&temporary_name(&self.path), &self.path);
        named.and_then(|()| self.dir.sync()).map_err(|cause| storage(&self.path, "name", cause))?;
        let open = OpenSegment { file: Arc::from(self.file), offsets: Offsets::default(), end: FRAMES_START };
        Ok((self.header, self.tail, open))
    }
}
