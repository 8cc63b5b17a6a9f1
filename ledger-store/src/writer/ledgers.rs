//! All ledgers of the writer's state: by number and by name, by bucket and journal section, removed ones included.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use ledger_codec::Corrupt;
use ledger_core::{BucketName, LedgerName, Metadata, Timestamp};

use super::ledger_state::LedgerState;
use crate::documents::read_ledger_name;
use crate::names::Names;
use crate::query::LedgerInfo;
use crate::sections::SectionLedgers;
use crate::tombstones::Tombstone;
use crate::view::{Counters, Directory, LedgerHead};

/// The ledgers, numbered from 1 without a gap. Indexing with a number that no ledger has panics.
#[derive(Default)]
pub(crate) struct Ledgers {
    by_number: Vec<LedgerState>,
    directory: Directory,
    /// The section of the journal of each bucket's latest ledger. Section 0 is for documents.
    buckets: BTreeMap<BucketName, u32>,
    /// The sections that were ever assigned to a ledger.
    sections: BTreeMap<u32, SectionLedgers>,
    /// Ledgers that changed since the last flush began, and the latest of them.
    changed: BTreeSet<u32>,
    last_changed: u32,
}

impl Index<u32> for Ledgers {
    type Output = LedgerState;

    #[inline]
    fn index(&self, number: u32) -> &LedgerState {
        &self.by_number[number as usize - 1]
    }
}

impl IndexMut<u32> for Ledgers {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut LedgerState {
        &mut self.by_number[number as usize - 1]
    }
}

impl Ledgers {
    /// Returns how many ledgers were ever created, which is the highest number.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.by_number.len()).expect("ledgers have 32-bit numbers")
    }

    /// Returns the ledgers in order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &LedgerState> {
        self.by_number.iter()
    }

    /// Returns the ledger with a number, if there is one.
    pub(crate) fn get(&self, number: u32) -> Option<&LedgerState> {
        self.by_number.get((number as usize).wrapping_sub(1))
    }

    /// Returns the names of the ledgers, shared with the readers.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the number of a ledger, deleted or not, unless it was removed for good.
    pub(crate) fn number_of(&self, name: &LedgerName) -> Option<u32> {
        self.directory.get(name)
    }

    /// Returns the number of a ledger that is not deleted.
    pub(crate) fn live_number_of(&self, name: &LedgerName) -> Option<u32> {
        self.number_of(name).filter(|number| self[*number].head.info.deleted_at.is_none())
    }

    /// Records that a ledger changed, so that the next flush writes its head.
    pub(crate) fn note_change(&mut self, number: u32) {
        if self.last_changed != number {
            self.last_changed = number;
            self.changed.insert(number);
        }
    }

    /// Returns the heads that the flush that begins now must write.
    pub(crate) fn take_changed_heads(&mut self) -> Vec<(u32, LedgerHead)> {
        self.last_changed = 0;
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|number| (number, self[number].head.clone())).collect()
    }

    /// Adds or replaces a ledger that a document describes.
    pub(crate) fn put(&mut self, info: LedgerInfo, section: u32, counters: impl FnOnce() -> Counters) {
        let at = info.id as usize - 1;
        self.buckets.insert(info.bucket.clone(), section);
        self.directory.insert(info.name.clone(), info.id);
        self.sections.entry(section).or_default().add(&info);
        let info = Arc::new(info);
        if let Some(ledger) = self.by_number.get_mut(at) {
            if let Some(before) = self.sections.get_mut(&ledger.head.section) {
                before.subtract(&ledger.head.info);
            }
            ledger.head.info = info;
        } else {
            assert_eq!(at, self.by_number.len(), "ledgers are numbered without a gap");
            let head = LedgerHead {
                info,
                section,
                assets: Names::default(),
                keys: Names::default(),
                counters: counters(),
                mapping: None,
                is_removed: false,
            };
            self.by_number.push(LedgerState::new(head));
        }
    }

    /// Sets the mapping of a ledger.
    pub(crate) fn put_mapping(&mut self, name: &[u8], text: &[u8]) -> Result<(), Corrupt> {
        let corrupt = Corrupt { what: "mapping of a ledger" };
        let number = self.number_of(&read_ledger_name(name)?).ok_or(corrupt)?;
        let text = std::str::from_utf8(text).map_err(|_| corrupt)?;
        self.note_change(number);
        self[number].head.mapping = Some(text.into());
        Ok(())
    }

    /// Removes a ledger for good. Its number stays used.
    pub(crate) fn remove(&mut self, number: u32) {
        let head = &self[number].head;
        let info = LedgerInfo { metadata: Metadata::EMPTY, ..LedgerInfo::clone(&head.info) };
        let in_section = self.sections.entry(head.section).or_default();
        in_section.subtract(&info);
        in_section.removed += 1;
        self.directory.remove(&info.name);
        let ledger = &mut self[number];
        ledger.head = removed_head(Arc::new(info), ledger.head.section);
        ledger.forget_names();
    }

    /// Adds a ledger that was removed before this opening.
    pub(crate) fn put_tombstone(&mut self, tombstone: Tombstone) {
        let Tombstone { info, section, .. } = tombstone;
        assert_eq!(info.id, self.len() + 1, "ledgers are numbered without a gap");
        self.sections.entry(section).or_default().removed += 1;
        self.by_number.push(LedgerState::new(removed_head(info, section)));
    }

    /// Returns the section for a new ledger of a bucket. It contains no deleted or removed ledgers, because the
    /// section of those will be removed as a whole.
    pub(crate) fn section_for(&self, bucket: &BucketName) -> u32 {
        let have = self.buckets.get(bucket);
        let usable = have.filter(|section| self.section(**section).takes_more());
        usable.copied().unwrap_or_else(|| self.sections.keys().last().map_or(1, |last| last + 1))
    }

    /// Returns whether all ledgers that a bucket ever had are removed or being removed.
    pub(crate) fn is_bucket_removed(&self, bucket: &BucketName) -> bool {
        let heads = self.iter().map(|ledger| &ledger.head);
        let mut of_bucket = heads.filter(|head| head.info.bucket == *bucket).peekable();
        of_bucket.peek().is_some() && of_bucket.all(|head| self.section(head.section).removal_has_begun())
    }

    /// Returns how many ledgers of a section are in which state.
    pub(crate) fn section(&self, section: u32) -> SectionLedgers {
        self.sections.get(&section).copied().unwrap_or_default()
    }

    /// Returns the sections of which every ledger is removed.
    pub(crate) fn removed_sections(&self) -> BTreeSet<u32> {
        self.sections
            .iter()
            .filter(|(_, ledgers)| ledgers.is_removed())
            .map(|(section, _)| *section)
            .collect()
    }

    /// Returns ledgers to remove, up to a limit: those that were deleted at or before `until`, if that is true for all
    /// ledgers of their section.
    pub(crate) fn removable(&self, until: Timestamp, most: usize) -> Vec<u32> {
        let left = || self.iter().map(|ledger| &ledger.head).filter(|head| !head.is_removed);
        let is_waiting =
            |head: &&LedgerHead| head.info.deleted_at.is_none_or(|deleted_at| deleted_at > until);
        let waiting: BTreeSet<u32> = left().filter(is_waiting).map(|head| head.section).collect();
        let due = left().filter(|head| !waiting.contains(&head.section));
        due.take(most).map(|head| head.info.id).collect()
    }
}

/// Returns the head that stays in memory for a removed ledger.
fn removed_head(info: Arc<LedgerInfo>, section: u32) -> LedgerHead {
    LedgerHead {
        info,
        section,
        assets: Names::default(),
        keys: Names::default(),
        counters: Counters::NEW,
        mapping: None,
        is_removed: true,
    }
}
