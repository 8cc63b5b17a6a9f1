//! Removes deleted ledgers for good, and reclaims their space.
//!
//! An entry in the journal removes a ledger that has been deleted for long enough, by removing its document. From then
//! on no answer contains the ledger, it cannot be restored, and its name is free for another ledger. Its number is
//! never reused. Because an entry records the decision, a replay of the journal gives the same result.
//!
//! A *section* of the journal holds the entries of ledgers that were deleted together: a ledger that is created in a
//! bucket with deleted ledgers gets a new section. Only whole sections are removed, so a section never holds both
//! removed and kept data.
//!
//! [`Store::reclaim`] then frees the space of a removed ledger: the rows in the index, and the entries in its section.
//! The digest of a removed section stays in the journal, so the chain hash does not change. Reclaiming changes no
//! answer. If it is interrupted, it starts over.

use std::collections::BTreeSet;
use std::time::Duration;

use ledger_index::{Commit, DroppedLedgers, IndexError, IndexFile, purge_plain, purge_runs, tables};
use ledger_journal::SectionId;

use super::Store;
use super::writes::LEDGER_WORK_BYTES;
use crate::engine::{Engine, WorkItem, background};
use crate::error::{ReadError, WriteError};
use crate::query::LedgerInfo;
use crate::readers::ReadFuture;
use crate::tombstones::{self, Tombstone, key_ranges};

/// The space that [`Store::reclaim`] freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Number of removed ledgers whose data is now completely gone.
    pub ledgers: usize,
    /// Number of bytes by which the journal's files shrank.
    pub journal_bytes: u64,
    /// True if all removed ledgers are reclaimed. `false` if the call was stopped early.
    pub is_done: bool,
}

impl Store {
    /// Removes for good the ledgers that were deleted at least `retention` ago by the store's clock. From now on no
    /// answer contains them, they cannot be restored, and their names are free. Ledgers that were deleted together
    /// are removed together: if one of them was restored, or was deleted later, the others wait for it. Returns the
    /// descriptions of the removed ledgers. [`Store::reclaim`] frees their space. Blocks the thread;
    /// [`remove_deleted_async`](Self::remove_deleted_async) does not.
    ///
    /// Removes many ledgers in several commits. If the call is interrupted, the next one continues.
    ///
    /// # Errors
    ///
    /// The errors that any write can have.
    pub fn remove_deleted(&self, retention: Duration) -> Result<Vec<LedgerInfo>, WriteError> {
        let mut removed = Vec::new();
        loop {
            let some = self.run(LEDGER_WORK_BYTES, |done| WorkItem::RemoveDeleted(retention, done))?;
            if some.is_empty() {
                return Ok(removed);
            }
            removed.extend(some);
        }
    }

    /// Frees the space of ledgers that were removed for good: makes pages of the index available and replaces files
    /// of the journal by smaller ones. Reads and writes continue meanwhile, and no answer changes. Reads the journal
    /// once, and needs free space for one more of its files. Ends early if `should_stop` returns `true` or the store
    /// is closed. Blocks the thread; [`reclaim_async`](Self::reclaim_async) does not.
    ///
    /// The next call continues an interrupted one, even after the store was reopened.
    ///
    /// # Errors
    ///
    /// [`ReadError::Damaged`] if data that would have to be copied is damaged, [`ReadError::Io`] if the disk is full
    /// or fails. No data is lost in either case.
    pub fn reclaim(&self, should_stop: &dyn Fn() -> bool) -> Result<Reclaimed, ReadError> {
        // Excludes a verification, which reads the journal twice and must find the same entries.
        let engine = self.engine();
        let _journal = engine.journal_lock.lock();
        let view = engine.view();
        let reclaimed =
            tombstones::read(&view.index)?.iter().filter(|tombstone| tombstone.is_reclaimed).count();
        if reclaimed == view.heads.iter().filter(|head| head.is_removed).count() {
            return Ok(Reclaimed { is_done: true, ..Reclaimed::default() });
        }
        drop(view);
        // After this flush, the index durably records the removals so far.
        let sections = engine.removed_sections();
        let is_flushed = self.flush_all();
        if let Some(reason) = engine.stopped() {
            return Err(ReadError::Io(reason.into()));
        }
        if !is_flushed {
            return Err(ReadError::Io("the index cannot be written".into()));
        }
        reclaim(engine, &sections, &|| should_stop() || engine.is_stopping())
    }

    /// As [`Store::reclaim`], without blocking. A thread of its own does the work.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`Store::reclaim`].
    pub fn reclaim_async(
        &self,
        should_stop: impl Fn() -> bool + Send + 'static,
    ) -> ReadFuture<Result<Reclaimed, ReadError>> {
        self.run_async(move |store| store.reclaim(&should_stop))
    }
}

/// Removes the rows and journal sections of removed ledgers. `sections` are those of which every ledger is removed.
fn reclaim(
    engine: &Engine,
    sections: &BTreeSet<u32>,
    should_stop: &dyn Fn() -> bool,
) -> Result<Reclaimed, ReadError> {
    let mut left: Vec<Tombstone> = tombstones::read(&engine.view().index)?
        .into_iter()
        .filter(|tombstone| !tombstone.is_reclaimed)
        .collect();
    let mut reclaimed = Reclaimed { is_done: true, ..Reclaimed::default() };
    if left.is_empty() {
        return Ok(reclaimed);
    }
    let unfinished = |reclaimed| Ok(Reclaimed { is_done: false, ..reclaimed });
    let dropped: DroppedLedgers = left.iter().map(|tombstone| tombstone.info.id).collect();
    let index = engine.index();
    let is_purged = purge_runs(&index, &dropped, should_stop).and_then(|is_done| {
        Ok(is_done && purge_plain(&index, dropped.iter().copied().flat_map(key_ranges), should_stop)?)
    });
    if !is_purged.inspect_err(|error| index.note(error))? {
        return unfinished(reclaimed);
    }
    background::install_snapshot(engine, &index)?;
    // Start merges that became due meanwhile.
    background::want_merges(engine);
    let whole: BTreeSet<SectionId> = left
        .iter()
        .map(|tombstone| tombstone.section)
        .filter(|section| sections.contains(section))
        .map(SectionId)
        .collect();
    let freed = engine.journal.remove_sections(&whole, should_stop)?;
    reclaimed.journal_bytes = freed.bytes;
    if !freed.is_done {
        return unfinished(reclaimed);
    }
    left.retain(|tombstone| whole.contains(&SectionId(tombstone.section)));
    reclaimed.ledgers = left.len();
    let written = note_reclaimed(&index, left).and_then(|()| background::install_snapshot(engine, &index));
    written.inspect_err(|error| index.note(error))?;
    Ok(reclaimed)
}

/// Marks these ledgers as reclaimed.
fn note_reclaimed(index: &IndexFile, ledgers: Vec<Tombstone>) -> Result<(), IndexError> {
    let write = index.begin_write(Commit::Durable)?;
    let mut table = write.table(tables::REMOVED)?;
    for tombstone in ledgers {
        let key = tombstone.info.id.to_be_bytes();
        table.put(&key, &Tombstone { is_reclaimed: true, ..tombstone }.encode())?;
    }
    drop(table);
    write.commit()
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;
    use std::path::Path;

    use ledger_core::schema::Schema;
    use ledger_core::{
        BucketName, Command, InsertSchema, LedgerName, LedgerOptions, SchemaVersion, Timestamp,
    };
    use ledger_index::{DocumentRow, IndexSnapshot, Row, TableView, Way, for_each_run_table};

    use super::*;
    use crate::options::Options;
    use crate::tombstones::ledger_of;

    #[test]
    fn a_section_that_is_gone_without_a_removal_is_damage() {
        let home = tempfile::tempdir().expect("a directory");
        let store = Store::open(home.path()).expect("it opens");
        let pay = |ledger: &str| {
            let ledger = store.ledger(ledger).expect("a name");
            ledger.transaction().posting("world", "a", 1, "USD").commit().expect("recorded")
        };
        pay("one");
        let options = LedgerOptions { bucket: BucketName::parse("b").expect("a name"), ..Default::default() };
        store.create_ledger(LedgerName::parse("two").expect("a name"), options).expect("created");
        pay("two");
        store.flush();
        let sections = BTreeSet::from([SectionId(2)]);
        let freed = store.engine().journal.remove_sections(&sections, &|| false).expect("room");
        assert!(freed.is_done);
        let report = store.verify().expect("room");
        assert!(!report.is_clean() && !report.complete, "{}", report.to_json_lines());
        drop(store);
        let index = home.path().join("index/index.redb");
        std::fs::remove_file(&index).expect("it is there");
        let refused = Store::open_with(Path::new(home.path()), &Options::default()).err();
        assert!(refused.is_some_and(|error| error.to_string().contains("section 2")));
    }

    fn rows_of<R: Row>(index: &IndexSnapshot, ledger: u32) -> usize {
        let rows = TableView::<R>::new(Vec::new(), index.clone());
        let of_ledger = rows
            .cursor(R::first_key(), R::last_key(), Way::Ascending)
            .map(|row| row.expect("it can be read"));
        of_ledger.filter(|row| R::ledger_of(&row.key()) == ledger).count()
    }

    /// Returns how much of a ledger is left in the index: numbers of rows, and of values in plain tables.
    fn left_of(store: &Store, ledger: u32) -> (Vec<usize>, Vec<usize>) {
        let index = &store.engine().view().index;
        macro_rules! rows_of_all {
            ($($(#[$doc:meta])* $table:ident: $row:ty;)*) => {
                [$((<$row>::TABLE, rows_of::<$row>(index, ledger))),*]
            };
        }
        // The documents of callers belong to no ledger.
        let rows = for_each_run_table!(rows_of_all).into_iter();
        let rows = rows.filter(|(table, _)| *table != DocumentRow::TABLE).map(|(_, rows)| rows);
        let of_ledgers = |table: &&&str| ![tables::REMOVED, tables::ABOUT].contains(*table);
        let plain = tables::PLAIN.iter().filter(of_ledgers).map(|table| {
            let all = index.range(table, Bound::Unbounded, Bound::Unbounded).expect("it can be read");
            let keys = all.map(|entry| entry.expect("it can be read").0);
            keys.filter(|key| ledger_of(table, key) == Some(ledger)).count()
        });
        (rows.collect(), plain.collect())
    }

    #[test]
    fn removed_ledger_leaves_no_rows_in_the_index() {
        let store = Store::in_memory();
        let ledgers = ["one", "two", "three"];
        for name in ledgers {
            let bucket = BucketName::parse(if name == "two" { "b" } else { "a" }).expect("a name");
            let options = LedgerOptions { bucket, ..LedgerOptions::default() };
            store.create_ledger(LedgerName::parse(name).expect("a name"), options).expect("created");
            let schema = Box::new(Schema::parse(r#"{"chart":{"u":{}}}"#).expect("a schema"));
            let version = SchemaVersion::parse("v").expect("a version");
            let insert = Command::InsertSchema(InsertSchema { version, schema });
            store.ledger(name).expect("a name").apply(vec![insert]).expect("inserted");
        }
        // Creates several runs of each table, and merged runs.
        for round in 0..20 {
            for name in ledgers {
                let ledger = store.ledger(name).expect("a name");
                for payment in 0..15_u32 {
                    let user = format!("u:{}", (round * 7 + payment) % 300);
                    let paid = ledger.transaction().posting("world", &user, 1, "USD").metadata("k", "v");
                    let paid = paid.timestamp(Timestamp::from_micros(i64::from(payment)));
                    let paid = paid.reference(format!("{round}-{payment}")).commit().expect("recorded");
                    if payment == 3 {
                        ledger.revert(paid.id).commit().expect("reverted");
                    }
                }
            }
            store.flush();
        }
        let kept = [left_of(&store, 1), left_of(&store, 3)];
        let (rows, plain) = left_of(&store, 2);
        assert!(rows.iter().chain(&plain).all(|count| *count > 0), "{rows:?} {plain:?}");
        store.delete_bucket(&BucketName::parse("b").expect("a name")).expect("deleted");
        assert_eq!(store.remove_deleted(Duration::ZERO).expect("removed").len(), 1);
        assert!(!store.reclaim(&|| true).expect("it answers").is_done);
        assert!(store.reclaim(&|| false).expect("it answers").is_done);
        assert_eq!(left_of(&store, 2), (vec![0; 8], vec![0; 8]));
        assert_eq!([left_of(&store, 1), left_of(&store, 3)], kept);
        assert!(store.verify().expect("room").is_clean());
    }
}
