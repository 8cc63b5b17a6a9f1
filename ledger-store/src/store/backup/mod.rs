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
        let (journal, identity) = (&*engine.journal, &engine.identity);
        // All entries before the head are acknowledged or about to be, and the head is the end of a commit.
        let head = journal.head();
        let directory = match DataDirectory::open_existing(disk.clone(), to) {
            Err(DirectoryError::Missing { .. }) => begin(disk, to, identity)?,
            opened => opened.map_err(destination)?,
        };
        let backup = open_journal(&directory).map_err(destination)?;
        if !is_same(directory.identity(), identity) {
            return Err(BackupError::OtherStore);
        }
        check_history(journal, head, backup.head())?;
        let begun = backup.head();
        copy_until(journal, &backup, head.next)?;
        verify_from(&backup, begun).map_err(destination)?;
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
        let directory = DataDirectory::open_existing(real_disk(), backup.as_ref()).map_err(source)?;
        let journal = open_journal(&directory).map_err(source)?;
        let begin = genesis(directory.identity());
        verify_from(&journal, begin).map_err(source)?;
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
        restore_on(&real_disk(), backup.as_ref(), to.as_ref(), point)
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
}

fn restore_on(
    disk: &Arc<dyn Disk>,
    backup: &Path,
    to: &Path,
    point: RestorePoint,
) -> Result<BackupReport, BackupError> {
    let backup = DataDirectory::open_existing(disk.clone(), backup).map_err(source)?;
    let from = open_journal(&backup).map_err(source)?;
    let end = find_cut(&from, genesis(backup.identity()), point).map_err(source)?;
    let directory = DataDirectory::begin(disk.clone(), to, backup.identity()).map_err(destination)?;
    let journal = open_journal(&directory).map_err(destination)?;
    let begun = journal.head();
    copy_until(&from, &journal, end)?;
    verify_from(&journal, begun).map_err(destination)?;
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
