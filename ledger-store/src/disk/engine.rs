//! The storage engine on top of a [`Disk`].
//!
//! redb is trusted with pages and commits, and not with damaged files: it
//! reads most of them without noticing, and answers others with a panic. So
//! every stored value carries a digest of its own, and every call that can
//! meet stored bytes runs in [`guarded`], which turns a panic into an error.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use redb::{Database, StorageBackend};

use super::{Disk, DiskFile, OpenMode};

/// Why the engine did not do what it was asked.
#[derive(Debug)]
pub(crate) enum EngineError {
    /// The disk failed, now or before: the engine latches the first failure.
    Io(io::Error),
    /// The file's bytes make no sense to the engine.
    Damaged(String),
    /// The file has no bytes.
    ZeroLength,
    /// The file was not closed cleanly, and was opened without the right to
    /// change it.
    NeedsRepair,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Damaged(what) => f.write_str(what),
            Self::ZeroLength => f.write_str("it has no bytes"),
            Self::NeedsRepair => f.write_str("it was not closed cleanly"),
        }
    }
}

impl From<io::Error> for EngineError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // Reading beyond the end means that the file was cut; the engine
            // reports a wrong magic number as invalid data.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => Self::Damaged(error.to_string()),
            _ => Self::Io(error),
        }
    }
}

impl From<redb::StorageError> for EngineError {
    fn from(error: redb::StorageError) -> Self {
        match error {
            redb::StorageError::Io(error) => error.into(),
            redb::StorageError::Corrupted(what) => Self::Damaged(what),
            // The rest are earlier failures and misuse; the enum is open.
            other => Self::Io(io::Error::other(other.to_string())),
        }
    }
}

impl From<redb::DatabaseError> for EngineError {
    fn from(error: redb::DatabaseError) -> Self {
        match error {
            redb::DatabaseError::Storage(error) => error.into(),
            redb::DatabaseError::RepairAborted => Self::NeedsRepair,
            // A version of the engine's own format that it does not know.
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<redb::TransactionError> for EngineError {
    fn from(error: redb::TransactionError) -> Self {
        match error {
            redb::TransactionError::Storage(error) => error.into(),
            other => Self::Io(io::Error::other(other.to_string())),
        }
    }
}

impl From<redb::TableError> for EngineError {
    fn from(error: redb::TableError) -> Self {
        match error {
            redb::TableError::Storage(error) => error.into(),
            // A table that must be there is not, or has other types.
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<redb::CommitError> for EngineError {
    fn from(error: redb::CommitError) -> Self {
        match error {
            redb::CommitError::Storage(error) => error.into(),
            other => Self::Io(io::Error::other(other.to_string())),
        }
    }
}

/// Runs `work`, which may meet damaged bytes, and gives an error for a panic.
///
/// What a panic leaves half done stays inside the engine: it poisons its own
/// locks, or needs repair at the next open, and we keep nothing of ours in
/// there. Hence the assertion that unwinding is safe.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(EngineError::Damaged(format!("the storage engine panicked: {}", panic_text(&*panic))))
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

/// An open redb file.
///
/// Dropping it closes it; [`EngineFile::close`] also says if that went well.
#[derive(Debug)]
pub(crate) struct EngineFile {
    /// Present until it is closed.
    database: Option<Database>,
    failed: Arc<AtomicBool>,
}

impl EngineFile {
    /// Creates the file `path`, which must not exist, with an empty database.
    ///
    /// Its bytes are on disk when this returns, its name is not: that takes a
    /// sync of the directory.
    pub(crate) fn create(disk: &dyn Disk, path: &Path, cache_bytes: usize) -> Result<Self, EngineError> {
        let file = disk.open(path, OpenMode::CreateNew)?;
        let failed = Arc::default();
        Self::start(Writable { file, failed: Arc::clone(&failed) }, failed, cache_bytes, true)
    }

    /// Opens the file `path`, which must exist and have bytes. After a crash
    /// this reads all of it.
    pub(crate) fn open(disk: &dyn Disk, path: &Path, cache_bytes: usize) -> Result<Self, EngineError> {
        let file = existing(disk, path)?;
        let failed = Arc::default();
        Self::start(Writable { file, failed: Arc::clone(&failed) }, failed, cache_bytes, true)
    }

    /// Opens the file `path`, which must exist and have bytes, so that not a
    /// bit of it changes: what the engine writes for its own housekeeping is
    /// kept in memory and forgotten.
    ///
    /// [`EngineError::NeedsRepair`] if it was not closed cleanly.
    pub(crate) fn open_frozen(disk: &dyn Disk, path: &Path, cache_bytes: usize) -> Result<Self, EngineError> {
        let file = existing(disk, path)?;
        let len = file.len()?;
        let overlay = RwLock::new(Overlay { len, file_len: len, pages: BTreeMap::new() });
        Self::start(Frozen { file, overlay }, Arc::default(), cache_bytes, false)
    }

    fn start(
        backend: impl StorageBackend,
        failed: Arc<AtomicBool>,
        cache_bytes: usize,
        repair: bool,
    ) -> Result<Self, EngineError> {
        guarded(move || {
            let mut builder = Database::builder();
            builder.set_cache_size(cache_bytes);
            if !repair {
                builder.set_repair_callback(redb::RepairSession::abort);
            }
            let database = builder.create_with_backend(backend)?;
            Ok(Self { database: Some(database), failed })
        })
    }

    /// Makes the file as small as what is in it allows. Nobody else may be
    /// using it.
    pub(crate) fn compact(&mut self) -> Result<(), EngineError> {
        let database = self.database.as_mut().expect("only closing takes the database out");
        guarded(|| match database.compact() {
            Ok(_) => Ok(()),
            Err(redb::CompactionError::Storage(error)) => Err(error.into()),
            Err(other) => Err(EngineError::Io(io::Error::other(other.to_string()))),
        })
    }

    /// Closes the file, so that its next open needs no repair.
    ///
    /// An error says that it may need one. What was committed stays so.
    pub(crate) fn close(mut self) -> Result<(), EngineError> {
        self.shut()?;
        if self.failed.load(Ordering::Relaxed) {
            return Err(EngineError::Io(io::Error::other("the disk failed while the file was open")));
        }
        Ok(())
    }

    fn shut(&mut self) -> Result<(), EngineError> {
        let database = self.database.take();
        // Closing writes, and so meets the bytes of a damaged file.
        guarded(move || {
            drop(database);
            Ok(())
        })
    }
}

impl Deref for EngineFile {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.database.as_ref().expect("only closing takes the database out")
    }
}

impl Drop for EngineFile {
    fn drop(&mut self) {
        // Nobody is left to tell; whoever opens the file next will see.
        let _ = self.shut();
    }
}

/// A file that must exist and have bytes. The engine would take one without
/// bytes for new, and so forget what it held.
fn existing(disk: &dyn Disk, path: &Path) -> Result<Box<dyn DiskFile>, EngineError> {
    let file = disk.open(path, OpenMode::Existing)?;
    if file.len()? == 0 {
        return Err(EngineError::ZeroLength);
    }
    Ok(file)
}

/// The file `path` for an engine that somebody else runs: a new one, or one that exists and has bytes.
pub(crate) fn backend(
    disk: &dyn Disk,
    path: &Path,
    new: bool,
) -> Result<impl StorageBackend + use<>, EngineError> {
    let file = if new { disk.open(path, OpenMode::CreateNew)? } else { existing(disk, path)? };
    Ok(Writable { file, failed: Arc::default() })
}

/// A file that the engine reads and writes.
#[derive(Debug)]
struct Writable {
    file: Box<dyn DiskFile>,
    /// Set by the first failure; closing cannot report one otherwise.
    failed: Arc<AtomicBool>,
}

impl Writable {
    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl StorageBackend for Writable {
    fn len(&self) -> io::Result<u64> {
        self.note(self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.note(self.file.read_at(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.note(self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.note(self.file.sync())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.note(self.file.write_at(offset, data))
    }
}

/// A file that is only read, below what the engine believes to have written.
#[derive(Debug)]
struct Frozen {
    file: Box<dyn DiskFile>,
    overlay: RwLock<Overlay>,
}

#[derive(Debug)]
struct Overlay {
    /// What the engine believes the length to be.
    len: u64,
    /// How much of the file still shows through.
    file_len: u64,
    /// The pages that differ from the file.
    pages: BTreeMap<u64, Box<[u8]>>,
}

const OVERLAY_PAGE_BYTES: usize = 4096;

impl Frozen {
    /// Splits a range of bytes into (page, offset in it, length).
    fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
        let page_bytes = OVERLAY_PAGE_BYTES as u64;
        let mut at = offset;
        let end = offset + len as u64;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let page = at / page_bytes;
            let inside = (at % page_bytes) as usize;
            let piece = (OVERLAY_PAGE_BYTES - inside).min((end - at) as usize);
            at += piece as u64;
            Some((page, inside, piece))
        })
    }

    /// Reads from the file, and zeros where it does not show through.
    fn read_file(&self, file_len: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let shown = file_len.saturating_sub(offset).min(out.len() as u64) as usize;
        let (from_file, beyond) = out.split_at_mut(shown);
        beyond.fill(0);
        if from_file.is_empty() { Ok(()) } else { self.file.read_at(offset, from_file) }
    }
}

impl StorageBackend for Frozen {
    fn len(&self) -> io::Result<u64> {
        Ok(self.overlay.read().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let overlay = self.overlay.read();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > overlay.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_file(overlay.file_len, offset, out)?;
        let mut done = 0;
        for (page, inside, piece) in Self::pieces(offset, out.len()) {
            if let Some(bytes) = overlay.pages.get(&page) {
                out[done..done + piece].copy_from_slice(&bytes[inside..inside + piece]);
            }
            done += piece;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut overlay = self.overlay.write();
        overlay.len = len;
        // What was cut off reads as zeros if the length grows again.
        overlay.file_len = overlay.file_len.min(len);
        overlay.pages.retain(|page, _| page * (OVERLAY_PAGE_BYTES as u64) < len);
        if let Some(bytes) = overlay.pages.get_mut(&(len / OVERLAY_PAGE_BYTES as u64)) {
            bytes[(len % OVERLAY_PAGE_BYTES as u64) as usize..].fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut overlay = self.overlay.write();
        let mut done = 0;
        for (page, inside, piece) in Self::pieces(offset, data.len()) {
            if !overlay.pages.contains_key(&page) {
                let mut bytes = vec![0; OVERLAY_PAGE_BYTES].into_boxed_slice();
                self.read_file(overlay.file_len, page * OVERLAY_PAGE_BYTES as u64, &mut bytes)?;
                overlay.pages.insert(page, bytes);
            }
            let bytes = overlay.pages.get_mut(&page).expect("put there just above");
            bytes[inside..inside + piece].copy_from_slice(&data[done..done + piece]);
            done += piece;
        }
        overlay.len = overlay.len.max(offset + data.len() as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use redb::{ReadableDatabase, TableDefinition};

    use super::*;
    use crate::disk::SimDisk;

    const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("table");

    /// A file of one row, closed, on a disk of its own.
    fn file() -> (SimDisk, &'static Path) {
        let (disk, path) = (SimDisk::new(), Path::new("file.redb"));
        let file = EngineFile::create(&disk, path, 1 << 16).unwrap();
        put(&file, 1);
        file.close().unwrap();
        (disk, path)
    }

    fn put(file: &EngineFile, key: u64) {
        let write_txn = file.begin_write().unwrap();
        write_txn.open_table(TABLE).unwrap().insert(key, &b"value"[..]).unwrap();
        write_txn.commit().unwrap();
    }

    fn has(file: &EngineFile, key: u64) -> bool {
        file.begin_read().unwrap().open_table(TABLE).unwrap().get(key).unwrap().is_some()
    }

    #[test]
    fn a_frozen_file_takes_writes_and_does_not_change() {
        let (disk, path) = file();
        let before = disk.bytes(path).unwrap();
        let frozen = EngineFile::open_frozen(&disk, path, 1 << 16).unwrap();
        for key in 2..50 {
            put(&frozen, key);
        }
        assert!((1..50).all(|key| has(&frozen, key)), "it believes in its own writes");
        frozen.close().unwrap();
        assert!(disk.bytes(path).unwrap() == before);
        let again = EngineFile::open_frozen(&disk, path, 1 << 16).unwrap();
        assert!(has(&again, 1) && !has(&again, 2));
    }

    #[test]
    fn an_overlay_reads_as_a_file_would() {
        let disk = SimDisk::new();
        let path = Path::new("bytes");
        let mut model: Vec<u8> = (0..20_000_u32).map(|i| (i % 251) as u8).collect();
        disk.open(path, OpenMode::CreateNew).unwrap();
        disk.set_bytes(path, model.clone()).unwrap();
        let len = model.len() as u64;
        let overlay = RwLock::new(Overlay { len, file_len: len, pages: BTreeMap::new() });
        let frozen = Frozen { file: disk.open(path, OpenMode::Existing).unwrap(), overlay };
        for step in 0..400_usize {
            let place = step * 7919 % 24_000;
            match step % 5 {
                0 if step % 3 == 0 => {
                    frozen.set_len(place as u64).unwrap();
                    model.resize(place, 0);
                }
                _ => {
                    let data = vec![step as u8; step * 31 % 9000];
                    frozen.write(place as u64, &data).unwrap();
                    model.resize(model.len().max(place + data.len()), 0);
                    model[place..place + data.len()].copy_from_slice(&data);
                }
            }
            assert_eq!(frozen.len().unwrap(), model.len() as u64);
            let mut read = vec![0xee; model.len()];
            frozen.read(0, &mut read).unwrap();
            assert!(read == model, "step {step}");
            assert!(frozen.read(1, &mut read).is_err(), "beyond the end");
        }
    }

    #[test]
    fn a_file_that_was_not_closed_needs_the_right_to_change() {
        let (disk, path) = file();
        let open = EngineFile::open(&disk, path, 1 << 16).unwrap();
        put(&open, 2);
        disk.sync_dir(Path::new(".")).unwrap();
        let found = disk.after_power_cut(0);
        let frozen = EngineFile::open_frozen(&found, path, 1 << 16);
        assert!(matches!(frozen.unwrap_err(), EngineError::NeedsRepair));
        assert!(has(&EngineFile::open(&found, path, 1 << 16).unwrap(), 2));
        assert!(has(&EngineFile::open_frozen(&found, path, 1 << 16).unwrap(), 2), "closing repaired it");
        // The first opening has no disk left to close on, and is silent.
        drop(open);
    }

    #[test]
    fn a_panic_becomes_an_error() {
        let panicked: Result<(), _> = guarded(|| panic!("page {} is not there", 7));
        match panicked.unwrap_err() {
            EngineError::Damaged(what) => assert!(what.ends_with("page 7 is not there"), "{what}"),
            other => panic!("{other}"),
        }
    }
}
