//! Removed ledgers in the writer's state, and the states of the sections that hold their entries.

use std::collections::BTreeSet;
use std::sync::Arc;

use ledger_core::{BucketName, Metadata, Timestamp};

use super::ledgers::LedgerState;
use super::state::State;
use crate::query::LedgerInfo;
use crate::removed::Tombstone;
use crate::sections::SectionLedgers;
use crate::view::{Counters, LedgerHead};

/// Returns the head that stays in memory for a removed ledger.
fn removed_head(info: Arc<LedgerInfo>, section: u32) -> LedgerHead {
    LedgerHead {
        info,
        section,
        assets: crate::names::Names::default(),
        keys: crate::names::Names::default(),
        counters: Counters::NEW,
        mapping: None,
        is_removed: true,
    }
}

impl State {
    /// Removes a ledger for good. Its number stays used.
    pub(crate) fn remove_ledger(&mut self, number: u32) {
        let head = &mut self.ledgers[number as usize - 1].head;
        let info = LedgerInfo { metadata: Metadata::EMPTY, ..LedgerInfo::clone(&head.info) };
        let section = self.sections.entry(head.section).or_default();
        section.take(&info);
        section.removed += 1;
        self.directory.remove(&info.name);
        *head = removed_head(Arc::new(info), head.section);
        self.ledgers[number as usize - 1].forget_names();
        self.schemas.clear();
    }

    /// Adds a ledger that was removed before this opening.
    pub(crate) fn put_tombstone(&mut self, tombstone: Tombstone) {
        let Tombstone { info, section, .. } = tombstone;
        assert_eq!(info.id as usize, self.ledgers.len() + 1, "ledgers are numbered without a gap");
        self.sections.entry(section).or_default().removed += 1;
        self.ledgers.push(LedgerState::new(removed_head(info, section)));
    }

    /// Returns the section for a new ledger of a bucket. It contains no deleted or removed ledgers, because the
    /// section of those will be removed as a whole.
    pub(crate) fn section_for(&self, bucket: &BucketName) -> u32 {
        let have = self.buckets.get(bucket);
        let usable = have.filter(|section| self.section(**section).takes_more());
        usable.copied().unwrap_or_else(|| self.sections.keys().last().map_or(1, |last| last + 1))
    }

    /// Returns whether all ledgers that a bucket ever had are removed or being removed.
    pub(crate) fn is_bucket_gone(&self, bucket: &BucketName) -> bool {
        let heads = self.ledgers.iter().map(|ledger| &ledger.head);
        let mut of_bucket = heads.filter(|head| head.info.bucket == *bucket).peekable();
        of_bucket.peek().is_some() && of_bucket.all(|head| self.section(head.section).is_going())
    }

    /// Returns how many ledgers of a section are in which state.
    pub(crate) fn section(&self, section: u32) -> SectionLedgers {
        self.sections.get(&section).copied().unwrap_or_default()
    }

    /// Returns the sections of which every ledger is removed.
    pub(crate) fn removed_sections(&self) -> BTreeSet<u32> {
        self.sections.iter().filter(|(_, ledgers)| ledgers.is_gone()).map(|(section, _)| *section).collect()
    }

    /// Returns ledgers to remove, up to a limit: those that were deleted at or before `until`, if that is true for all
    /// ledgers of their section.
    pub(crate) fn removable(&self, until: Timestamp, most: usize) -> Vec<u32> {
        let mut waiting = BTreeSet::new();
        for ledger in self.ledgers.iter().filter(|ledger| !ledger.head.is_removed) {
            if ledger.head.info.deleted_at.is_none_or(|deleted_at| deleted_at > until) {
                waiting.insert(ledger.head.section);
            }
        }
        let heads = self.ledgers.iter().map(|ledger| &ledger.head);
        let due = heads.filter(|head| !head.is_removed && !waiting.contains(&head.section));
        due.take(most).map(|head| head.info.id).collect()
    }
}
