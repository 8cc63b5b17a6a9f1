//! Backups of a store, and stores that are restored from them.
//!
//! A backup is a data directory without an index. It holds the same journal, chunk by chunk, so a later backup into the
//! same directory adds what is new.

mod copy;
mod cut;
mod report;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use ledger_journal::disk::{Disk, RealDisk};
use ledger_journal::{
    ChainHash, Head, Identity, Journal, JournalReader, Position, SegmentOptions, SegmentedJournal,
};

use self::copy::{check_history, copy_until, verify_from};
use self::cut::find_cut;
pub use self::report::{BackupError, BackupReport, RestorePoint, RestorePointError};
use self::report::{destination, source};
use super::Store;
use crate::directory::{DataDirectory, DirectoryError};
use crate::error::OpenError;
use crate::progress::{LongWork, ProgressWatcher};
use crate::readers::{ReadFuture, Readers};

/// Backups.
impl Store {
    /// Copies everything that is acknowledged into a directory, while reads and writes continue. Blocks the thread;
    /// [`backup_async`](Self::backup_async) does not.
    ///
    /// The directory must be absent or empty, or hold an earlier backup of this store, to which the new entries are
    /// added. Every chunk is verified when it is read, and again after it was written. An interrupted backup leaves a
    /// valid backup of fewer entries, and can be repeated. The copy is on disk when this returns.
    ///
    /// A backup is a store. Open a [restored](Store::restore) copy of it, not the backup itself: after an entry of its own,
    /// it takes no more entries of this store.
    ///
    /// A backup contains the secret of the store. Entries of ledgers that are [removed](Store::remove_deleted) for
    /// good stay in existing backups; start a new backup to drop them.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let home = std::env::temp_dir().join(format!("ledger-backup-{}", std::process::id()));
    /// # std::fs::create_dir(&home)?;
    /// use ledger_store::{RestorePoint, Store};
    /// let store = Store::open(home.join("data"))?;
    /// let ledger = store.ledger("main")?;
    /// ledger.transaction().posting("world", "users:1", 100, "USD/2").commit()?;
    /// store.backup(home.join("backup"))?;
    /// ledger.transaction().posting("world", "users:1", 50, "USD/2").commit()?;
    /// let report = store.backup(home.join("backup"))?; // copies one entry
    /// assert_eq!(report.copied, 1);
    ///
    /// Store::restore(home.join("backup"), home.join("restored"), RestorePoint::End)?;
    /// let restored = Store::open(home.join("restored"))?;
    /// assert_eq!(restored.ledger("main")?.balance("users:1", "USD/2")?, 150);
    /// # drop((store, ledger, restored));
    /// # std::fs::remove_dir_all(&home)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BackupError`]. The store is not affected.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<BackupReport, BackupError> {
        self.backup_on(&real_disk(), to.as_ref())
    }

    /// As [`Store::backup`], without blocking. A thread of its own copies.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::backup`].
    pub fn backup_async(&self, to: impl AsRef<Path>) -> ReadFuture<Result<BackupReport, BackupError>> {
        let to = to.as_ref().to_owned();
        self.run_async(move |store| store.backup(to))
    }

    pub(crate) fn backup_on(&self, disk: &Arc<dyn Disk>, to: &Path) -> Result<BackupReport, BackupError> {
        let engine = self.engine();
        let (journal, identity) = (engine.reader(), &engine.identity);
        // All entries before the head are acknowledged or about to be, and the head is the end of a commit.
        let head = journal.head();
        let directory = match DataDirectory::open_existing(disk.clone(), to) {
            Err(DirectoryError::Missing { .. }) => begin(disk, to, identity)?,
            opened => opened.map_err(destination)?,
        };
        let backup = Arc::new(open_journal(&directory).map_err(destination)?);
        if !is_same(directory.identity(), identity) {
            return Err(BackupError::OtherStore);
        }
        check_history(&*journal, head, backup.head())?;
        let begun = backup.head();
        copy_until(&*engine.progress.watch(journal, LongWork::CopyJournal), &backup, head.next)?;
        let copied = engine.progress.watch(backup.clone(), LongWork::VerifyCopy);
        verify_from(&*copied, begun).map_err(destination)?;
        backup.close().map_err(destination)?;
        Ok(BackupReport::new(begun, backup.head()))
    }

    /// Reads a whole backup, and checks every entry against the chain of hashes. Blocks the thread;
    /// [`verify_backup_async`](Self::verify_backup_async) does not.
    ///
    /// # Errors
    ///
    /// [`BackupError::Source`] with the first defect.
    pub fn verify_backup(backup: impl AsRef<Path>) -> Result<BackupReport, BackupError> {
        Self::verify_backup_with(backup, &ProgressWatcher::default())
    }

    /// As [`Store::verify_backup`], and reports its progress. Blocks the thread;
    /// [`verify_backup_with_async`](Self::verify_backup_with_async) does not.
    ///
    /// # Errors
    ///
    /// As [`Store::verify_backup`].
    pub fn verify_backup_with(
        backup: impl AsRef<Path>,
        progress: &ProgressWatcher,
    ) -> Result<BackupReport, BackupError> {
        let directory = DataDirectory::open_existing(real_disk(), backup.as_ref()).map_err(source)?;
        let journal = Arc::new(open_journal(&directory).map_err(source)?);
        let begin = genesis(directory.identity());
        let watched = progress.watch(journal.clone(), LongWork::ReadBackup);
        verify_from(&*watched, begin).map_err(source)?;
        journal.close().map_err(source)?;
        let report = BackupReport::new(begin, journal.head());
        Ok(BackupReport { copied: 0, ..report })
    }

    /// As [`Store::verify_backup`], without blocking. A thread of its own reads.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::verify_backup`].
    pub fn verify_backup_async(backup: impl AsRef<Path>) -> ReadFuture<Result<BackupReport, BackupError>> {
        let backup = backup.as_ref().to_owned();
        Readers::run_alone(move || Self::verify_backup(backup))
    }

    /// As [`Store::verify_backup_with`], without blocking. A thread of its own reads.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::verify_backup`].
    pub fn verify_backup_with_async(
        backup: impl AsRef<Path>,
        progress: ProgressWatcher,
    ) -> ReadFuture<Result<BackupReport, BackupError>> {
        let backup = backup.as_ref().to_owned();
        Readers::run_alone(move || Self::verify_backup_with(backup, &progress))
    }

    /// Creates a store from a backup, or from the directory of a closed store. The new directory must be absent or
    /// empty. Blocks the thread; [`restore_async`](Self::restore_async) does not.
    ///
    /// A restore point never divides a commit: an atomic batch is restored as a whole or not at all. The store ends at
    /// the last end of a commit before the point that can be recognised. That may be some commits earlier, if several
    /// commits have the same date or contain only documents.
    ///
    /// The restored store has the identity and the secret of the original. Its index is built when it is opened.
    ///
    /// # Errors
    ///
    /// [`BackupError`]; a damaged backup is [`BackupError::Source`]. A directory in which a restore failed is not a
    /// store: remove it and try again.
    pub fn restore(
        backup: impl AsRef<Path>,
        to: impl AsRef<Path>,
        point: RestorePoint,
    ) -> Result<BackupReport, BackupError> {
        Self::restore_with(backup, to, point, &ProgressWatcher::default())
    }

    /// As [`Store::restore`], and reports its progress. Blocks the thread;
    /// [`restore_with_async`](Self::restore_with_async) does not.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let home = std::env::temp_dir().join(format!("ledger-restore-{}", std::process::id()));
    /// # std::fs::create_dir(&home)?;
    /// use ledger_store::{ProgressWatcher, RestorePoint, Store};
    /// # let store = Store::open(home.join("data"))?;
    /// # store.ledger("main")?.transaction().posting("world", "users:1", 100, "USD/2").commit()?;
    /// # store.backup(home.join("backup"))?;
    /// let watcher = ProgressWatcher::new(|progress| {
    ///     println!("{}: {} of {} entries", progress.work.text(), progress.done, progress.total);
    /// });
    /// Store::verify_backup_with(home.join("backup"), &watcher)?;
    /// Store::restore_with(home.join("backup"), home.join("restored"), RestorePoint::End, &watcher)?;
    /// # drop(store);
    /// # std::fs::remove_dir_all(&home)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Store::restore`].
    pub fn restore_with(
        backup: impl AsRef<Path>,
        to: impl AsRef<Path>,
        point: RestorePoint,
        progress: &ProgressWatcher,
    ) -> Result<BackupReport, BackupError> {
        restore_on(&real_disk(), backup.as_ref(), to.as_ref(), point, progress)
    }

    /// As [`Store::restore`], without blocking. A thread of its own copies.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::restore`].
    pub fn restore_async(
        backup: impl AsRef<Path>,
        to: impl AsRef<Path>,
        point: RestorePoint,
    ) -> ReadFuture<Result<BackupReport, BackupError>> {
        let (backup, to) = (backup.as_ref().to_owned(), to.as_ref().to_owned());
        Readers::run_alone(move || Self::restore(backup, to, point))
    }

    /// As [`Store::restore_with`], without blocking. A thread of its own copies.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::restore`].
    pub fn restore_with_async(
        backup: impl AsRef<Path>,
        to: impl AsRef<Path>,
        point: RestorePoint,
        progress: ProgressWatcher,
    ) -> ReadFuture<Result<BackupReport, BackupError>> {
        let (backup, to) = (backup.as_ref().to_owned(), to.as_ref().to_owned());
        Readers::run_alone(move || Self::restore_with(backup, to, point, &progress))
    }
}

fn restore_on(
    disk: &Arc<dyn Disk>,
    backup: &Path,
    to: &Path,
    point: RestorePoint,
    progress: &ProgressWatcher,
) -> Result<BackupReport, BackupError> {
    let backup = DataDirectory::open_existing(disk.clone(), backup).map_err(source)?;
    let from = Arc::new(open_journal(&backup).map_err(source)?);
    let read = progress.watch(from.clone(), LongWork::ReadBackup);
    let end = find_cut(&*read, genesis(backup.identity()), point).map_err(source)?;
    let directory = DataDirectory::begin(disk.clone(), to, backup.identity()).map_err(destination)?;
    let journal = Arc::new(open_journal(&directory).map_err(destination)?);
    let begun = journal.head();
    copy_until(&*progress.watch(from.clone(), LongWork::CopyJournal), &journal, end)?;
    let copied = progress.watch(journal.clone(), LongWork::VerifyCopy);
    verify_from(&*copied, begun).map_err(destination)?;
    journal.close().map_err(destination)?;
    // From here on the directory is a store.
    directory.write_manifest().map_err(destination)?;
    from.close().map_err(source)?;
    Ok(BackupReport::new(begun, journal.head()))
}

fn real_disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

/// Begins a backup in an empty directory. It is a valid backup at once, so that an interrupted one can be continued.
fn begin(disk: &Arc<dyn Disk>, to: &Path, identity: &Identity) -> Result<DataDirectory, BackupError> {
    let directory = DataDirectory::begin(disk.clone(), to, identity).map_err(destination)?;
    directory.write_manifest().map_err(destination)?;
    Ok(directory)
}

/// Opens the journal of a copy without a cache, so that a verification reads the disk.
fn open_journal(directory: &DataDirectory) -> Result<SegmentedJournal, OpenError> {
    let options = SegmentOptions { cache_bytes: 0, ..SegmentOptions::default() };
    Ok(directory.open_journal(options)?)
}

fn is_same(one: &Identity, two: &Identity) -> bool {
    (one.store, one.secret.0) == (two.store, two.secret.0)
}

fn genesis(identity: &Identity) -> Head {
    Head { next: Position::FIRST, chain: ChainHash::genesis(identity.store) }
}
