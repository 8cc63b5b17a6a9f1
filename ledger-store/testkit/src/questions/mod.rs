//! Asks a snapshot and the model every kind of question, and compares the answers.

/// Compares an answer of the store with that of the model.
macro_rules! same {
    ($found:expr, $expected:expr, $($what:tt)+) => {{
        let (found, expected) = (&$found, &$expected);
        if found != expected {
            return Err(format!("{}: {found:?}, expected {expected:?}", format_args!($($what)+)).into());
        }
    }};
}

mod filters;
mod lists;
mod points;
mod round;

use ledger_core::{LedgerName, LogEntry, LogPayload, Timestamp};
use ledger_store::Snapshot;

use self::round::Round;
use crate::failure::Failure;
use crate::filters::filter_of_ledgers;
use crate::{Oracle, Rng};

impl Oracle {
    /// Asks a snapshot every kind of question about a ledger, once in each of `rounds` rounds, and returns the number
    /// of questions. The snapshot must show the state that the oracle knows. `now` is close to the dates of the latest
    /// writes.
    ///
    /// # Errors
    ///
    /// Fails if an answer differs. The error names the question and both answers.
    pub fn ask(
        &self,
        snapshot: &Snapshot,
        rng: &mut Rng<'_>,
        now: Timestamp,
        rounds: u32,
    ) -> Result<u64, Failure> {
        let ledgers: Vec<&LedgerName> = self.model.ledgers().collect();
        let mut asked = 0;
        for _ in 0..rounds {
            self.documents.compare(snapshot, rng)?;
            self.ledgers.compare_page(snapshot, &filter_of_ledgers(rng), rng)?;
            asked += 2;
            if ledgers.is_empty() {
                continue;
            }
            let ledger = rng.pick(&ledgers);
            let (view, info) = match (snapshot.ledger(ledger), self.ledgers.info(ledger)) {
                (Some(view), Some(info)) => (view, info),
                // The ledger is deleted, and neither side finds it.
                (None, None) => continue,
                (found, _) => return Err(format!("{ledger} is found: {}", found.is_some()).into()),
            };
            let features = info.features;
            let addresses = addresses_of(self.model.log(ledger));
            let (model, addresses) = (&self.model, addresses.as_slice());
            let mut round = Round { rng, model, ledger, features, view: &view, addresses, now, asked: 0 };
            round.ask_all().map_err(|failure| failure.during(format!("in ledger {ledger}")))?;
            asked += round.asked;
        }
        Ok(asked)
    }
}

/// Counts the answers of a store whose files may be damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamagedAnswers {
    /// Groups of questions with right answers only.
    pub right: u64,
    /// Groups of questions in which an answer is an error that names the damage.
    pub errors: u64,
}

impl DamagedAnswers {
    /// Counts the result of a group of questions.
    ///
    /// # Errors
    ///
    /// Fails if an answer is wrong. The error names the difference.
    pub fn note<T>(&mut self, asked: Result<T, Failure>) -> Result<(), Failure> {
        match asked {
            Ok(_) => self.right += 1,
            Err(failure) if failure.names_damage() => self.errors += 1,
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}

impl Oracle {
    /// Asks a snapshot of a store with possibly damaged files every kind of question about every ledger. Each answer
    /// must be right, or an error that names the damage.
    ///
    /// # Errors
    ///
    /// Fails if an answer is wrong. The error names the question and both answers.
    pub fn ask_damaged(
        &self,
        snapshot: &Snapshot,
        rng: &mut Rng<'_>,
        now: Timestamp,
    ) -> Result<DamagedAnswers, Failure> {
        let mut answers = DamagedAnswers::default();
        answers.note(self.documents.compare(snapshot, rng))?;
        answers.note(self.ledgers.compare_page(snapshot, &filter_of_ledgers(rng), rng))?;
        for ledger in self.model.ledgers() {
            let (view, info) = match (snapshot.ledger(ledger), self.ledgers.info(ledger)) {
                (Some(view), Some(info)) => (view, info),
                (None, None) => continue,
                (found, _) => return Err(format!("{ledger} is found: {}", found.is_some()).into()),
            };
            let (features, addresses) = (info.features, addresses_of(self.model.log(ledger)));
            let (model, addresses) = (&self.model, addresses.as_slice());
            let mut round = Round { rng, model, ledger, features, view: &view, addresses, now, asked: 0 };
            for ask in [
                Round::points,
                Round::points,
                Round::accounts,
                Round::accounts,
                Round::transactions,
                Round::transactions,
                Round::logs,
                Round::balances,
                Round::volumes,
                Round::schemas,
            ] {
                let noted = answers.note(ask(&mut round));
                noted.map_err(|failure| failure.during(format!("in ledger {ledger}")))?;
            }
        }
        Ok(answers)
    }
}

/// Returns the addresses in the transactions of a log.
fn addresses_of(log: &[LogEntry]) -> Vec<String> {
    let mut all = std::collections::BTreeSet::new();
    for entry in log {
        if let LogPayload::NewTransaction { transaction, .. } = &entry.payload {
            all.extend(transaction.postings.iter().map(|posting| posting.destination.as_str()));
        }
    }
    all.into_iter().map(str::to_owned).collect()
}

impl Round<'_, '_> {
    /// Asks every kind of question once.
    fn ask_all(&mut self) -> Result<(), Failure> {
        self.points()?;
        self.accounts()?;
        self.transactions()?;
        self.logs()?;
        self.balances()?;
        self.volumes()?;
        self.schemas()
    }
}
