//! An open file of the real file system.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use parking_lot::Mutex;

#[cfg(target_os = "linux")]
use crate::disk::BLOCK_BYTES;
use crate::disk::aligned::is_aligned;
use crate::disk::{AlignedBuffer, DiskFile, Space};

/// Number of bytes per write when space is filled with zeros. Other writes to the file can run in between.
const ZEROS_BYTES: usize = 256 << 10;

/// Options for files that only their owner may read and write.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// An open file of the real file system.
#[derive(Debug)]
pub(super) struct RealFile {
    file: File,
    /// A second handle to the same file that bypasses the page cache, if requested and supported.
    direct: Option<File>,
    /// True if a sync has failed. The system reports a failure to only one sync, so the success of a later sync proves
    /// nothing.
    has_failed: Mutex<bool>,
}

impl RealFile {
    /// Creates a file whose writes go through the page cache.
    pub(super) fn cached(file: File) -> Self {
        Self { file, direct: None, has_failed: Mutex::default() }
    }

    /// Creates a file whose durable writes bypass the page cache if the file system supports it.
    pub(super) fn durable(file: File, path: &Path) -> Self {
        Self { file, direct: open_direct(path), has_failed: Mutex::default() }
    }
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_exact_at(&self.file, offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        write_all_at(&self.file, offset, data)
    }

    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match &self.direct {
            Some(direct) if is_aligned(offset, data) => write_all_at(direct, offset, data),
            _ => {
                self.write_at(offset, data)?;
                self.sync()
            }
        }
    }

    fn set_aside(&self, from: u64, to: u64, space: Space) -> io::Result<()> {
        debug_assert!(from <= to);
        if preallocate(&self.file, from, to)? && space == Space::Promised {
            return self.sync();
        }
        let mut zeros = AlignedBuffer::default();
        zeros.reserve(ZEROS_BYTES);
        let filled = zeros.end().len() + ZEROS_BYTES;
        zeros.end().resize(filled, 0);
        let mut at = from;
        while at < to {
            let part = usize::try_from(to - at).map_or(ZEROS_BYTES, |left| left.min(ZEROS_BYTES));
            let part = &zeros.bytes()[..part];
            match &self.direct {
                Some(direct) if is_aligned(at, part) => write_all_at(direct, at, part)?,
                _ => self.write_at(at, part)?,
            }
            at += part.len() as u64;
        }
        self.sync()
    }

    #[cfg(target_os = "linux")]
    fn forget_cached(&self) -> io::Result<()> {
        Ok(rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed)?)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        let mut has_failed = self.has_failed.lock();
        if *has_failed {
            return Err(io::Error::other("an earlier sync of this file failed"));
        }
        let synced = self.file.sync_data();
        *has_failed = synced.is_err();
        synced
    }
}

/// Opens a file for writes that bypass the page cache and are durable when they return. Returns `None` if the file
/// system does not support them.
#[cfg(target_os = "linux")]
pub(super) fn open_direct(path: &Path) -> Option<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = (OFlags::DIRECT | OFlags::DSYNC).bits().cast_signed();
    let direct = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).ok()?;
    // Some file systems accept the flag but refuse the accesses, or require larger blocks.
    let mut block = AlignedBuffer::default();
    block.reserve(BLOCK_BYTES);
    block.end().push(0);
    block.pad_to_block();
    let start = block.end().len() - BLOCK_BYTES;
    std::os::unix::fs::FileExt::read_at(&direct, &mut block.end()[start..], 0).ok()?;
    Some(direct)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open_direct(_path: &Path) -> Option<File> {
    None
}

/// Asks the file system to allocate blocks for a part of a file. Returns whether it does.
#[cfg(target_os = "linux")]
fn preallocate(file: &File, from: u64, to: u64) -> io::Result<bool> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::empty(), from, to - from) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(true),
    }
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
fn preallocate(_file: &File, _from: u64, _to: u64) -> io::Result<bool> {
    Ok(false)
}

#[cfg(unix)]
fn read_exact_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(unix)]
fn write_all_at(file: &File, offset: u64, data: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, data, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
    while !out.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, out, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                out = &mut out[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}

#[cfg(windows)]
fn write_all_at(file: &File, mut offset: u64, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, data, offset)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => {
                data = &data[written..];
                offset += written as u64;
            }
        }
    }
    Ok(())
}
