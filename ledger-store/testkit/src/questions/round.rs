//! A round of questions about one ledger: its inputs, dates, expected refusals, and the walk through the pages of a
//! list.

use std::collections::BTreeMap;
use std::fmt::Debug;

use ledger_core::model::{Model, ModelAccount};
use ledger_core::{
    Asset, Features, LedgerName, LogEntry, LogPayload, Switch, Timestamp, TransactionId, Volumes,
};
use ledger_store::{Account, Direction, Expand, LedgerView, Page, PageRequest, ReadError, Start};

use crate::Rng;
use crate::failure::Failure;

/// Maximum number of pages for walking a list in each direction. Bounds the time of a round.
const PAGES_MAX: usize = 24;

/// The inputs of a round of questions about one ledger.
pub(super) struct Round<'a, 'd> {
    pub(super) rng: &'a mut Rng<'d>,
    /// Addresses of the ledger's accounts.
    pub(super) addresses: &'a [String],
    pub(super) model: &'a Model,
    pub(super) ledger: &'a LedgerName,
    pub(super) features: Features,
    pub(super) view: &'a LedgerView,
    pub(super) now: Timestamp,
    pub(super) asked: u64,
}

impl Round<'_, '_> {
    /// Returns a date that occurs in the ledger, or one right before or after it.
    pub(super) fn date(&mut self) -> Timestamp {
        let log = self.model.log(self.ledger);
        let near = match self.rng.below(8) {
            0 => self.now.as_micros() + 100_000_000,
            1 => 0,
            _ if log.is_empty() => self.now.as_micros(),
            choice => {
                let entry = &log[self.rng.below(log.len() as u64) as usize];
                match &entry.payload {
                    LogPayload::NewTransaction { transaction, .. }
                    | LogPayload::RevertedTransaction { transaction, .. }
                        if choice < 5 =>
                    {
                        transaction.timestamp.as_micros()
                    }
                    _ => entry.date.as_micros(),
                }
            }
        };
        Timestamp::from_micros(near + self.rng.below(3) as i64 - 1)
    }

    /// Returns the error for a question that needs the history of moves, if the ledger does not have it.
    pub(super) fn lacks_moves(&self, needs: bool) -> Option<ReadError> {
        let is_off = self.features.moves_history == Switch::Off;
        (needs && is_off).then_some(ReadError::MissingFeature { feature: "MOVES_HISTORY" })
    }

    /// Returns the error for a question that needs effective volumes, if the ledger does not have them. A ledger has
    /// them only together with the history of moves.
    pub(super) fn lacks_effective_volumes(&self, needs: bool) -> Option<ReadError> {
        let feature = "MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES";
        let is_off = self.features.effective_volumes == Switch::Off;
        (needs && is_off).then_some(ReadError::MissingFeature { feature }).or_else(|| self.lacks_moves(needs))
    }

    /// Returns the date of a question about the past, or `None` for one about the present.
    pub(super) fn at(&mut self) -> Option<Timestamp> {
        if self.rng.one_in(3) { None } else { Some(self.date()) }
    }

    /// Reads a whole list in pages, forwards to its end and backwards again. The list, or the refusal, must equal
    /// `expected`.
    pub(super) fn walk<T: Debug + PartialEq, K: Clone + Debug>(
        &mut self,
        what: &dyn Debug,
        key: impl Fn(&T) -> K,
        fetch: impl Fn(PageRequest<K>) -> Result<Page<T>, ReadError>,
        expected: Result<Vec<T>, ReadError>,
    ) -> Result<(), Failure> {
        self.asked += 1;
        let mut expected = match expected {
            Ok(expected) => expected,
            Err(refused) => {
                let found =
                    fetch(PageRequest { size: 3, direction: Direction::Ascending, start: Start::First });
                same!(found, Err(refused), "{what:?}");
                return Ok(());
            }
        };
        let size = self.rng.pick(&[1, 3, 1000]).max(expected.len().div_ceil(PAGES_MAX));
        let direction = self.rng.pick(&[Direction::Ascending, Direction::Descending]);
        if direction == Direction::Descending {
            expected.reverse();
        }
        let mut asked = 0;
        let mut ask = |start: Start<K>| {
            asked += 1;
            fetch(PageRequest { size, direction, start })
                .map_err(|error| Failure::from(error).during(format!("{what:?}")))
        };
        let mut start = Start::First;
        let mut seen = 0;
        loop {
            let page = ask(start)?;
            let left = &expected[seen..];
            let part = &left[..size.min(left.len())];
            same!(page.items.as_slice(), part, "{what:?}: {direction:?} by {size} from {seen}");
            let ends = (page.has_previous, page.has_next);
            same!(ends, (seen > 0, left.len() > size), "{what:?}: {direction:?} by {size} from {seen}");
            let Some(last) = page.items.last().filter(|_| page.has_next) else { break };
            seen += size;
            start = Start::After(key(last));
        }
        while seen > 0 {
            let page = ask(Start::Before(key(&expected[seen])))?;
            let from = seen.saturating_sub(size);
            let part = &expected[from..seen];
            same!(page.items.as_slice(), part, "{what:?}: {direction:?} by {size} before {seen}");
            let ends = (page.has_previous, page.has_next);
            same!(ends, (from > 0, true), "{what:?}: {direction:?} by {size} before {seen}");
            seen = from;
        }
        self.asked += asked;
        Ok(())
    }

    /// Returns the error for accounts with these volumes, if the ledger does not have them.
    pub(super) fn lacks_of(&self, expand: Expand) -> Option<ReadError> {
        let lacks = self.lacks_moves(expand.volumes || expand.effective_volumes);
        lacks.or_else(|| self.lacks_effective_volumes(expand.effective_volumes))
    }
}

/// Returns the account of the model in the form of an answer with these volumes.
pub(super) fn shown(account: ModelAccount, expand: Expand) -> Account {
    let volumes =
        |asked: bool, volumes: BTreeMap<Asset, Volumes>| asked.then(|| volumes.into_iter().collect());
    Account {
        address: account.address,
        metadata: account.metadata,
        first_usage: account.first_usage,
        insertion_date: account.insertion_date,
        updated_at: account.updated_at,
        volumes: volumes(expand.volumes, account.volumes),
        effective_volumes: volumes(expand.effective_volumes, account.effective_volumes),
    }
}

/// Returns the transaction that reverts another one.
pub(super) fn reverting(log: &[LogEntry], id: TransactionId) -> Option<TransactionId> {
    log.iter().find_map(|entry| match &entry.payload {
        LogPayload::RevertedTransaction { reverted, transaction, .. } if *reverted == id => {
            Some(transaction.id)
        }
        _ => None,
    })
}
