//! The disk of the operating system's file system.

mod file;
mod lock;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::path::Path;

use self::file::{RealFile, options};
use super::{Disk, DiskDir, DiskFile, LockOutcome, OpenMode};

/// The real file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

/// An open directory. `None` if the system cannot open directories.
#[derive(Debug)]
struct RealDir(Option<File>);

impl DiskDir for RealDir {
    fn sync(&self) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), File::sync_all)
    }
}

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has the mode"))]
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let file = match mode {
            OpenMode::CreateNew => options().create_new(true).open(path)?,
            OpenMode::Existing => options().open(path)?,
        };
        Ok(Box::new(RealFile::cached(file)))
    }

    fn open_durable(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = options().open(path)?;
        Ok(Box::new(RealFile::durable(file, path)))
    }

    #[cfg(target_os = "linux")]
    fn boot_id(&self) -> Option<super::BootId> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        (digits.len() == 32).then_some(())?;
        u128::from_str_radix(&digits, 16).ok().map(|number| super::BootId(number.to_be_bytes()))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    #[cfg(unix)]
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    #[cfg(unix)]
    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>> {
        Ok(Box::new(RealDir(Some(File::open(dir)?))))
    }

    #[cfg(not(unix))]
    fn open_dir(&self, _dir: &Path) -> io::Result<Box<dyn DiskDir>> {
        Ok(Box::new(RealDir(None)))
    }

    /// On other systems a directory cannot be opened as a file, and the file system makes names durable itself.
    #[cfg(not(unix))]
    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    #[cfg(unix)]
    fn space(&self, dir: &Path) -> io::Result<Option<super::DiskSpace>> {
        let of = rustix::fs::statvfs(dir)?;
        let bytes = |blocks: u64| blocks.saturating_mul(of.f_frsize);
        Ok(Some(super::DiskSpace { total: bytes(of.f_blocks), free: bytes(of.f_bavail) }))
    }

    fn lock(&self, dir: &Path, text: &Path, holder: &str) -> io::Result<LockOutcome> {
        lock::lock(dir, text, holder)
    }
}
