//! The kinds of reads that the load program measures.

use std::time::{Duration, Instant};

use ledger_core::{
    AccountAddress, Asset, FilterError, FilterOf, LedgerName, Operator, Selects, Timestamp, TransactionId,
    Transactions,
};
use ledger_store::{
    Direction, LedgerView, PageRequest, Start, Store, TimeAxis, TransactionKey, TransactionOrder,
    TransactionQuery, VolumesQuery,
};

use crate::Failure;
use crate::histogram::Histogram;
use crate::report::Report;
use crate::workload::{Random, asset, ledger_name};

/// Number of rows of a page, the default of servers of this API.
const PAGE: usize = 15;

/// A kind of read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadKind {
    /// Reads the balance of an asset in an account.
    Balance,
    /// Reads the newest 15 transactions of an account.
    LastOfAccount,
    /// Reads the newest 15 of the transactions before a random one.
    Page,
    /// Reads the volumes of an account up to an effective date.
    VolumesByEffect,
    /// Reads the volumes of an account up to an insertion date.
    VolumesByInsertion,
}

impl ReadKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Balance, Self::LastOfAccount, Self::Page, Self::VolumesByEffect, Self::VolumesByInsertion];

    /// Returns the name of the kind in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Balance => "balance",
            Self::LastOfAccount => "last_15",
            Self::Page => "page_of_15",
            Self::VolumesByEffect => "volumes_by_effect",
            Self::VolumesByInsertion => "volumes_by_insertion",
        }
    }
}

/// Asks random questions about some accounts.
#[derive(Clone, Debug)]
pub struct Reader {
    addresses: Vec<AccountAddress>,
    asset: Asset,
    ledger: LedgerName,
    random: Random,
    /// The first and the last date to ask about, in microseconds.
    dates: (i64, i64),
}

impl Reader {
    /// Makes a reader that asks about these accounts, at least one, and about dates in this range.
    pub fn new(addresses: &[AccountAddress], from: Timestamp, to: Timestamp, seed: u64) -> Self {
        let dates = (from.as_micros(), to.as_micros());
        let random = Random::new(seed);
        Self { addresses: addresses.to_vec(), asset: asset(), ledger: ledger_name(), random, dates }
    }

    /// Reads once from the latest acknowledged state, and returns the number of rows.
    ///
    /// # Errors
    ///
    /// Fails if the ledger does not exist, or the read fails.
    pub fn ask(&mut self, store: &Store, kind: ReadKind) -> Result<usize, Failure> {
        let view = store.snapshot().ledger(&self.ledger).ok_or("the ledger does not exist")?;
        self.ask_view(&view, kind)
    }

    fn ask_view(&mut self, view: &LedgerView, kind: ReadKind) -> Result<usize, Failure> {
        let at = self.random.below(self.addresses.len() as u64) as usize;
        let address = &self.addresses[at];
        match kind {
            ReadKind::Balance => view.balance(address, &self.asset).map(|_| 1).map_err(Into::into),
            ReadKind::LastOfAccount => {
                let filter = address_filter("account", address)?;
                let page = PageRequest { size: PAGE, direction: Direction::Descending, start: Start::First };
                transactions(view, filter, page)
            }
            ReadKind::Page => {
                let id = TransactionId::new(1 + self.random.below(view.stats()?.transactions.max(1)));
                let start = Start::After(TransactionKey { timestamp: Timestamp::default(), id });
                let page = PageRequest { size: PAGE, direction: Direction::Descending, start };
                transactions(view, FilterOf::all(), page)
            }
            ReadKind::VolumesByEffect => self.volumes(view, at, TimeAxis::Effective),
            ReadKind::VolumesByInsertion => self.volumes(view, at, TimeAxis::Inserted),
        }
    }

    fn volumes(&mut self, view: &LedgerView, account: usize, axis: TimeAxis) -> Result<usize, Failure> {
        let (from, to) = self.dates;
        let date = from + self.random.below(to.abs_diff(from).max(1)) as i64;
        let query = VolumesQuery {
            filter: address_filter("address", &self.addresses[account])?,
            from: None,
            to: Some(Timestamp::from_micros(date)),
            axis,
            group_by: 0,
            page: PageRequest { size: PAGE, direction: Direction::Ascending, start: Start::First },
        };
        Ok(view.volumes(&query)?.items.len())
    }

    /// Asks and measures each kind in turn, at most `rate` times per second; 0 means no limit. Before each turn, passes
    /// the number of reads so far to `until`, and ends if that returns `true`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Reader::ask`].
    pub fn run(
        &mut self,
        store: &Store,
        kinds: &[ReadKind],
        rate: u64,
        until: impl Fn(u64) -> bool,
    ) -> Result<Vec<(ReadKind, Histogram)>, Failure> {
        let mut measured: Vec<_> = kinds.iter().map(|kind| (*kind, Histogram::default())).collect();
        let begin = Instant::now();
        let mut asked = 0;
        while !until(asked) {
            for (kind, latency) in &mut measured {
                if rate > 0 {
                    let scheduled = begin + Duration::from_secs_f64(asked as f64 / rate as f64);
                    std::thread::sleep(scheduled.saturating_duration_since(Instant::now()));
                }
                let begin = Instant::now();
                self.ask(store, *kind)?;
                latency.record(begin.elapsed());
                asked += 1;
            }
        }
        Ok(measured)
    }
}

/// Reports and prints the latencies of a reader.
pub fn note(report: &mut Report, prefix: &str, measured: &[(ReadKind, Histogram)]) {
    for (kind, latency) in measured {
        let name = kind.name();
        report.latency(
            &format!("{prefix}{name}_"),
            &format!("{prefix}{name} ({})", latency.count()),
            latency,
        );
    }
}

fn address_filter<R: Selects>(field: &str, address: &AccountAddress) -> Result<FilterOf<R>, FilterError> {
    FilterOf::field(field, Operator::Match, address.as_str())
}

fn transactions(
    view: &LedgerView,
    filter: FilterOf<Transactions>,
    page: PageRequest<TransactionKey>,
) -> Result<usize, Failure> {
    let order = TransactionOrder::Id;
    let query = TransactionQuery { filter, at: None, effective_volumes: false, order, page };
    Ok(view.transactions(&query)?.items.len())
}

#[cfg(test)]
mod tests {
    use ledger_store::{SystemClock, TimeSource};

    use super::*;
    use crate::in_flight::InFlight;
    use crate::workload::{Content, Profile, Workload, submission};

    #[test]
    fn answers_every_kind_of_read() {
        let store = Store::in_memory();
        let profile =
            Profile { accounts: 3, content: Content::Rich, backdated_percent: 10, ..Profile::default() };
        store.create_ledger(ledger_name(), profile.ledger_options()).expect("a new ledger");
        let mut workload = Workload::new(profile, 1);
        let submissions = InFlight::new(1);
        let from = SystemClock.now();
        for requests in workload.funding(3).collect::<Vec<_>>().into_iter().chain([workload.batch(97, from)])
        {
            submissions.apply(&store, submission(requests));
        }
        submissions.finish().expect("all are recorded");
        let to = Timestamp::from_micros(SystemClock.now().as_micros() + 1_000_000);
        let mut reader = Reader::new(workload.addresses(), to, to, 1);
        let rows: Vec<_> =
            ReadKind::ALL.into_iter().map(|kind| reader.ask(&store, kind).expect("an answer")).collect();
        assert_eq!((rows[0], rows[1], rows[3], rows[4]), (1, 15, 1, 1), "{rows:?}");
        let measured = reader.run(&store, &ReadKind::ALL, 0, |asked| asked >= 10).expect("answers");
        assert!(measured.iter().all(|(_, latency)| latency.count() == 2));
    }
}
