//! The ledger model: a plain list of existing and removed ledgers, with which campaigns compare a store.
//!
//! A deleted ledger still exists: it keeps its name and can be restored, but requests do not find it. A removed ledger
//! no longer exists, and its name is free.

use std::borrow::Cow;
use std::convert::Infallible;
use std::time::Duration;

use ledger_core::{
    BucketName, Features, FilterOf, FilterSubject, HashLogs, LedgerName, LedgerOptions, Ledgers, Metadata,
    MetadataValue, SmolStr, Switch, TextField, Timestamp,
};
use ledger_store::{Deleted, Direction, LedgerInfo, PageRequest, Snapshot, Start, WriteError};

use crate::Rng;
use crate::failure::Failure;

/// An existing or removed ledger.
#[derive(Clone, Debug)]
struct TrackedLedger {
    info: LedgerInfo,
    /// True if the ledger accepts no more imported logs.
    is_in_use: bool,
    /// The mapping of API v1 as JSON text, if it was set: contracts, which say how far balances of accounts may fall.
    mapping: Option<String>,
    is_removed: bool,
}

/// Every ledger that was ever created, in order of creation. A ledger's number is its position in this order.
#[derive(Clone, Debug, Default)]
pub(crate) struct LedgerModel {
    all: Vec<TrackedLedger>,
}

impl LedgerModel {
    /// Returns the existing ledger with this name, even if it is deleted.
    fn existing_mut(&mut self, name: &LedgerName) -> Option<&mut TrackedLedger> {
        self.all.iter_mut().find(|ledger| !ledger.is_removed && ledger.info.name == *name)
    }

    /// Returns the ledger with this name unless it is deleted, as requests find it.
    ///
    /// # Errors
    ///
    /// The error of a request for a ledger that does not exist.
    fn visible_mut(&mut self, name: &LedgerName) -> Result<&mut TrackedLedger, WriteError> {
        let visible = self.existing_mut(name).filter(|ledger| ledger.info.deleted_at.is_none());
        visible.ok_or_else(|| WriteError::LedgerNotFound { ledger: name.clone() })
    }

    /// Creates a ledger unless its name is taken. A deleted ledger keeps its name, and a removed one does not.
    pub(crate) fn create(
        &mut self,
        name: &LedgerName,
        options: &LedgerOptions,
        now: Timestamp,
    ) -> Result<LedgerInfo, WriteError> {
        if self.existing_mut(name).is_some() {
            return Err(WriteError::LedgerExists);
        }
        let LedgerOptions { bucket, first_id, features, metadata } = options.clone();
        let id = self.all.len() as u32 + 1;
        let (name, added_at, deleted_at) = (name.clone(), now, None);
        let info = LedgerInfo { id, name, bucket, added_at, metadata, features, first_id, deleted_at };
        self.all.push(TrackedLedger {
            info: info.clone(),
            is_in_use: false,
            mapping: None,
            is_removed: false,
        });
        Ok(info)
    }

    /// Sets metadata keys of a ledger. Other keys stay unchanged.
    pub(crate) fn set_metadata(&mut self, name: &LedgerName, metadata: &Metadata) -> Result<(), WriteError> {
        self.visible_mut(name).map(|ledger| ledger.info.metadata.merge(metadata))
    }

    pub(crate) fn delete_metadata(&mut self, name: &LedgerName, key: &SmolStr) -> Result<(), WriteError> {
        self.visible_mut(name).map(|ledger| drop(ledger.info.metadata.remove(key)))
    }

    /// Sets the mapping of a ledger.
    pub(crate) fn set_mapping(&mut self, name: &LedgerName, mapping: &str) -> Result<(), WriteError> {
        self.visible_mut(name).map(|ledger| ledger.mapping = Some(mapping.to_owned()))
    }

    /// Deletes all ledgers of a bucket that are not deleted yet. Returns their number.
    pub(crate) fn delete(&mut self, bucket: &BucketName, now: Timestamp) -> u64 {
        let mut deleted = 0;
        for ledger in self.of_bucket(bucket).filter(|ledger| !ledger.is_removed) {
            if ledger.info.deleted_at.is_none() {
                ledger.info.deleted_at = Some(now);
                deleted += 1;
            }
        }
        deleted
    }

    /// Restores the ledgers of a bucket. Returns their number.
    pub(crate) fn restore(&mut self, bucket: &BucketName) -> Result<u64, WriteError> {
        let had_any = self.of_bucket(bucket).next().is_some();
        if had_any && self.of_bucket(bucket).all(|ledger| ledger.is_removed) {
            return Err(WriteError::BucketRemoved);
        }
        let mut restored = 0;
        for ledger in self.of_bucket(bucket).filter(|ledger| !ledger.is_removed) {
            restored += u64::from(ledger.info.deleted_at.take().is_some());
        }
        Ok(restored)
    }

    /// Removes the ledgers that were deleted at least `retention` ago. Returns them, and the number of documents that
    /// this removes from the store: one for each ledger, and one for each mapping.
    pub(crate) fn remove(&mut self, retention: Duration, now: Timestamp) -> (Vec<LedgerInfo>, u64) {
        let until = now.as_micros() - retention.as_micros() as i64;
        let mut removed = Vec::new();
        let mut documents = 0;
        for ledger in self.all.iter_mut().filter(|ledger| !ledger.is_removed) {
            if ledger.info.deleted_at.is_some_and(|deleted_at| deleted_at.as_micros() <= until) {
                ledger.is_removed = true;
                documents += 1 + u64::from(ledger.mapping.is_some());
                removed.push(ledger.info.clone());
            }
        }
        (removed, documents)
    }

    fn of_bucket(&mut self, bucket: &BucketName) -> impl Iterator<Item = &mut TrackedLedger> {
        self.all.iter_mut().filter(move |ledger| ledger.info.bucket == *bucket)
    }

    /// Records that a ledger was written to other than by import.
    pub(crate) fn mark_in_use(&mut self, name: &LedgerName) {
        if let Some(ledger) = self.existing_mut(name) {
            ledger.is_in_use = true;
        }
    }

    /// Returns the description of the ledger with this name, unless it is deleted.
    pub(crate) fn info(&self, name: &LedgerName) -> Option<&LedgerInfo> {
        self.existing()
            .map(|ledger| &ledger.info)
            .find(|info| info.name == *name && info.deleted_at.is_none())
    }

    pub(crate) fn is_in_use(&self, name: &LedgerName) -> bool {
        self.existing().any(|ledger| ledger.info.name == *name && ledger.is_in_use)
    }

    /// Returns whether a ledger that had this name was removed.
    pub(crate) fn was_removed(&self, name: &LedgerName) -> bool {
        self.all.iter().any(|ledger| ledger.is_removed && ledger.info.name == *name)
    }

    /// Returns the number of the existing ledger with this name, even if it is deleted.
    pub(crate) fn number(&self, name: &LedgerName) -> Option<u32> {
        self.existing().find(|ledger| ledger.info.name == *name).map(|ledger| ledger.info.id)
    }

    /// Returns the existing ledgers, including deleted ones.
    fn existing(&self) -> impl Iterator<Item = &TrackedLedger> {
        self.all.iter().filter(|ledger| !ledger.is_removed)
    }

    /// Returns the names of the ledgers that exist in this state and no longer in a later one.
    pub(crate) fn removed_since<'a>(&'a self, later: &'a Self) -> impl Iterator<Item = &'a LedgerName> {
        let is_removed = |info: &LedgerInfo| later.all[info.id as usize - 1].is_removed;
        self.existing().map(|ledger| &ledger.info).filter(move |info| is_removed(info)).map(|info| &info.name)
    }

    /// Compares a snapshot of the store with the model: the list of ledgers, each ledger that is found by its name, and
    /// which ledgers are removed.
    ///
    /// # Errors
    ///
    /// Returns the difference.
    pub(crate) fn compare(&self, snapshot: &Snapshot) -> Result<(), Failure> {
        let page = PageRequest { size: 1_000, direction: Direction::Ascending, start: Start::First };
        let all = FilterOf::all();
        let found = snapshot.ledgers(&page, &all, Deleted::Shown)?;
        let expected: Vec<&LedgerInfo> = self.existing().map(|ledger| &ledger.info).collect();
        if !found.items.iter().eq(expected.iter().copied()) {
            return Err(format!("ledgers {:?}, expected {expected:?}", found.items).into());
        }
        for TrackedLedger { info, mapping, is_removed, .. } in &self.all {
            if snapshot.is_removed(info.id) != *is_removed {
                return Err(format!("ledger {} is removed or is not: expected {is_removed}", info.id).into());
            }
            let found = snapshot.ledger(&info.name);
            let expected = self.info(&info.name);
            if found.as_ref().map(ledger_store::LedgerView::info) != expected {
                return Err(format!("ledger {}: expected {expected:?}", info.name).into());
            }
            let found = found.as_ref().and_then(|view| view.mapping()).map(|mapping| &**mapping);
            if !is_removed && info.deleted_at.is_none() && found != mapping.as_deref() {
                return Err(format!("the mapping of {}: {found:?}, expected {mapping:?}", info.name).into());
            }
        }
        Ok(())
    }

    /// Asks the snapshot for a random page of the list of ledgers, and compares the answer with the model.
    ///
    /// # Errors
    ///
    /// Returns the difference.
    pub(crate) fn compare_page(
        &self,
        snapshot: &Snapshot,
        filter: &FilterOf<Ledgers>,
        rng: &mut Rng<'_>,
    ) -> Result<(), Failure> {
        let deleted = rng.pick(&[Deleted::Hidden, Deleted::Shown]);
        let direction = rng.pick(&[Direction::Ascending, Direction::Descending]);
        let size = 1 + rng.below(4) as usize;
        let from = rng.below(self.all.len() as u64 + 2) as u32;
        let start = match rng.below(3) {
            0 => Start::First,
            1 => Start::After(from),
            _ => Start::Before(from),
        };
        let mut list: Vec<&LedgerInfo> = self
            .existing()
            .map(|ledger| &ledger.info)
            .filter(|info| deleted == Deleted::Shown || info.deleted_at.is_none())
            .filter(|info| filter.matches(&LedgerSubject(info)) == Ok(true))
            .collect();
        if direction == Direction::Descending {
            list.reverse();
        }
        let is_before = |info: &LedgerInfo, border: u32| match direction {
            Direction::Ascending => info.id < border,
            Direction::Descending => info.id > border,
        };
        let count_before = |border: u32| list.iter().take_while(|info| is_before(info, border)).count();
        let (begin, end) = match start {
            Start::First => (0, size),
            Start::After(border) => {
                let begin = count_before(border) + usize::from(list.iter().any(|info| info.id == border));
                (begin, begin + size)
            }
            Start::Before(border) => (count_before(border).saturating_sub(size), count_before(border)),
        };
        let expected = &list[begin.min(list.len())..end.min(list.len())];
        let page = PageRequest { size, direction, start };
        let found = snapshot.ledgers(&page, filter, deleted)?;
        if found.items.iter().eq(expected.iter().copied()) {
            return Ok(());
        }
        let names = |items: &mut dyn Iterator<Item = &LedgerInfo>| {
            items.map(|info| format!("{} {}", info.id, info.name)).collect::<Vec<_>>()
        };
        Err(format!(
            "ledgers {deleted:?} {page:?} {filter:?}: {:?}, expected {:?}",
            names(&mut found.items.iter()),
            names(&mut expected.iter().copied())
        )
        .into())
    }
}

/// A ledger as the subject of a filter.
struct LedgerSubject<'a>(&'a LedgerInfo);

impl FilterSubject for LedgerSubject<'_> {
    type Error = Infallible;

    fn metadata(&self, key: &str) -> Result<Option<Cow<'_, str>>, Infallible> {
        Ok(self.0.metadata.get(key).map(MetadataValue::as_shown))
    }

    fn text(&self, field: TextField) -> Result<Option<Cow<'_, str>>, Infallible> {
        Ok(match field {
            TextField::Name => Some(Cow::Borrowed(self.0.name.as_str())),
            TextField::Bucket => Some(Cow::Borrowed(self.0.bucket.as_str())),
            _ => None,
        })
    }

    fn feature(&self, name: &str) -> Result<Option<Cow<'_, str>>, Infallible> {
        let Features {
            hash_logs,
            legacy_hashes: _,
            moves_history,
            effective_volumes,
            account_metadata_history,
            transaction_metadata_history,
        } = self.0.features;
        let history = |switch| if switch == Switch::On { "SYNC" } else { "DISABLED" };
        let value = match name {
            "HASH_LOGS" => match hash_logs {
                HashLogs::Sync => "SYNC",
                HashLogs::Async => "ASYNC",
                HashLogs::Disabled => "DISABLED",
            },
            "MOVES_HISTORY" if moves_history == Switch::On => "ON",
            "MOVES_HISTORY" => "OFF",
            "MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES" => history(effective_volumes),
            "ACCOUNT_METADATA_HISTORY" => history(account_metadata_history),
            "TRANSACTION_METADATA_HISTORY" => history(transaction_metadata_history),
            _ => return Ok(None),
        };
        Ok(Some(Cow::Borrowed(value)))
    }
}
