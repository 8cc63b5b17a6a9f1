//! The context of one query: the reader of a ledger, its tables, and a meter of the work.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;

use ledger_codec::Corrupt;
use ledger_core::{Switch, Timestamp};
use ledger_index::{TableView, TransactionRow, for_each_run_table};

use super::limits::{Meter, ReadLimits};
use super::reader::LedgerReader;
use crate::error::ReadError;
use crate::feature::Feature;
use crate::fingerprint::{Fingerprints, KeyKind, key_space};
use crate::hashes::Hashes;
use crate::lookup::missing_in;
use crate::projection::holding_key;
use crate::view::LedgerHead;

/// Answers one query about one ledger in a snapshot. Not shared between threads.
pub(crate) struct Session {
    pub(crate) reader: LedgerReader,
    pub(crate) head: LedgerHead,
    pub(crate) fingerprints: Fingerprints,
    pub(crate) hashes: Arc<Hashes>,
    pub(crate) meter: Rc<Meter>,
    /// See [`Snapshot::with_page_bytes`](super::Snapshot::with_page_bytes).
    pub(super) page_bytes: usize,
    /// The last date that was looked up, with the last transaction recorded by then.
    pub(super) last_date: Cell<Option<(Timestamp, Option<TransactionRow>)>>,
    tables: OpenTables,
}

macro_rules! define_tables {
    ($($(#[$doc:meta])* $table:ident: $row:ty;)*) => {
        /// The tables that a query has asked for.
        #[derive(Default)]
        struct OpenTables {
            $($table: OnceCell<TableView<$row>>,)*
        }

        #[allow(dead_code, reason = "documents are read without a session")]
        impl Session {
            $(
                $(#[$doc])*
                pub(crate) fn $table(&self) -> &TableView<$row> {
                    self.tables.$table.get_or_init(|| self.reader.view.table(|memtable| &memtable.$table))
                }
            )*
        }
    };
}

for_each_run_table!(define_tables);

impl Session {
    /// Creates a session for the ledger of a reader with its head.
    pub(crate) fn new(
        reader: LedgerReader,
        head: LedgerHead,
        fingerprints: Fingerprints,
        hashes: Arc<Hashes>,
    ) -> Self {
        Self {
            reader,
            head,
            fingerprints,
            hashes,
            meter: Rc::new(Meter::start(ReadLimits::DEFAULT)),
            page_bytes: usize::MAX,
            last_date: Cell::new(None),
            tables: OpenTables::default(),
        }
    }

    /// Removes the limits on work, because no caller chose how much this read costs.
    pub(super) fn without_limits(mut self) -> Self {
        self.meter = Rc::new(Meter::start(ReadLimits::NONE));
        self
    }

    /// Returns the number of the ledger.
    pub(crate) fn ledger(&self) -> u32 {
        self.reader.ledger
    }

    /// Returns the number of the account with an address.
    ///
    /// An account is only reported absent if both the directory of addresses and the table of keys lack it. Filters
    /// answer nearly all of these lookups.
    pub(crate) fn account_number(&self, address: &str) -> Result<Option<u32>, ReadError> {
        if let Some(number) = self.reader.account_number(address)? {
            return Ok(Some(number));
        }
        let space = key_space(self.ledger(), KeyKind::Address);
        for account in self.keys().probe(space, self.fingerprints.of(space, address))? {
            let account = u32::try_from(account).map_err(|_| Corrupt { what: "number of an account" })?;
            if self.reader.address(account)?.as_str() == address {
                return Err(missing_in(&self.reader.view.index, "an address"));
            }
        }
        Ok(None)
    }

    /// Returns the key of a holding in the history tables.
    pub(crate) fn holding_key(&self, holding: u32) -> u64 {
        holding_key(self.ledger(), holding)
    }

    /// Refuses a query about past volumes if the ledger does not keep their history.
    pub(crate) fn need_moves_history(&self) -> Result<(), ReadError> {
        need(self.head.info.features.moves_history, Feature::MovesHistory)
    }

    /// Refuses a query about effective volumes if the ledger does not keep them.
    pub(crate) fn need_effective_volumes(&self) -> Result<(), ReadError> {
        need(self.head.info.features.effective_volumes, Feature::EffectiveVolumes)?;
        // Effective volumes are part of the history of moves.
        self.need_moves_history()
    }
}

fn need(switch: Switch, feature: Feature) -> Result<(), ReadError> {
    match switch {
        Switch::On => Ok(()),
        Switch::Off => Err(ReadError::MissingFeature { feature: feature.name() }),
    }
}

/// The time that a query is about: now, or a date with the journal positions that correspond to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsOf {
    /// The date, or `None` for now.
    pub(crate) at: Option<Timestamp>,
    /// Entries up to this position were recorded by the date.
    pub(crate) position: u64,
    /// The same for account metadata. Without its history, the current metadata is returned.
    pub(crate) account_metadata: u64,
    /// The same for transaction metadata.
    pub(crate) transaction_metadata: u64,
}

impl AsOf {
    /// Returns whether something with this effective date exists as of the date.
    pub(crate) fn shows(&self, date: Timestamp) -> bool {
        self.at.is_none_or(|at| date <= at)
    }
}
