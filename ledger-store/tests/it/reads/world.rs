//! A store and a model of it, to which the same random commands are given.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ledger_core::model::Model;
use ledger_core::{
    AccountAddress, Amount, Asset, Command, CompactString, CreateTransaction, FirstId, LedgerName,
    LedgerOptions, Metadata, MetadataValue, Overdraft, Posting, Postings, Reference, RevertDate,
    RevertTransaction, Target, Timestamp, TransactionId,
};
use ledger_store::{Atomicity, Detail, Mode, Options, Outcome, Request, Store, Submission, TimeSource};

/// Random numbers that a seed fixes.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn any(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.any() % end
    }

    pub(crate) fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

/// A clock that stands where it is set.
pub(crate) struct SetClock(AtomicI64);

impl TimeSource for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed))
    }
}

/// The last ones are seldom used, so that some have only moves that lie ahead.
pub(crate) const ADDRESSES: [&str; 17] = [
    "world",
    "users",
    "users:1",
    "users:2",
    "users:10",
    "users:1:main",
    "users:2:main",
    "users-x",
    "bank",
    "bank:fees",
    "Z",
    "rare:1",
    "rare:2",
    "rare:3",
    "rare:4",
    "rare:5",
    "rare:6",
];
pub(crate) const ASSETS: [&str; 4] = ["USD/2", "EUR/2", "COIN", "BTC/8"];
pub(crate) const KEYS: [&str; 3] = ["kind", "tier", "note"];
pub(crate) const VALUES: [&str; 4] = ["a", "b", "", "long value"];

pub(crate) fn address(text: &str) -> AccountAddress {
    AccountAddress::parse(text).expect("an address")
}

/// Where the store keeps its data.
pub(crate) enum Place {
    Memory,
    Directory(tempfile::TempDir),
}

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) model: Model,
    pub(crate) ledgers: Vec<LedgerName>,
    pub(crate) dice: Dice,
    pub(crate) now: i64,
    clock: Arc<SetClock>,
    options: Options,
    place: Place,
}

impl World {
    /// A store with two ledgers, the second of which counts from zero.
    pub(crate) fn new(seed: u64, place: Place, memory_budget: Option<usize>) -> Self {
        let now = 1_700_000_000_000_000;
        let clock = Arc::new(SetClock(AtomicI64::new(now)));
        let mut options = Options::default();
        options.clock = clock.clone();
        if let Some(bytes) = memory_budget {
            options.memory_budget = bytes;
        }
        let store = open(&place, &options);
        let mut model = Model::default();
        let mut ledgers = Vec::new();
        for (name, first_id) in [("one", FirstId::One), ("two", FirstId::Zero)] {
            let name = LedgerName::parse(name).expect("a name");
            let options = LedgerOptions { first_id, ..LedgerOptions::default() };
            store.create_ledger(name.clone(), options.clone()).expect("a new ledger");
            assert!(model.create(&name, options));
            ledgers.push(name);
        }
        Self { store, model, ledgers, dice: Dice::new(seed), now, clock, options, place }
    }

    /// Closes the store and opens it again.
    pub(crate) fn reopen(&mut self) {
        self.store.close().expect("it closes");
        self.store = Store::in_memory();
        self.store = open(&self.place, &self.options);
        assert_eq!(self.store.opening().rebuilt, None);
    }

    /// Gives both the same random commands, and compares what they answer.
    pub(crate) fn run(&mut self, submissions: usize) {
        for _ in 0..submissions {
            // Sometimes the clock stands still, and once in a while it steps back.
            self.now += match self.dice.below(8) {
                0 => 0,
                1 => -3,
                _ => self.dice.below(2_000_000) as i64,
            };
            self.clock.0.store(self.now, Ordering::Relaxed);
            let ledger = self.dice.pick(&self.ledgers);
            let commands: Vec<Command> = (0..=self.dice.below(3))
                .map(|_| random_command(&mut self.dice, self.now, &self.model, &ledger))
                .collect();
            let submission = Submission {
                ledger: ledger.clone(),
                requests: commands.iter().cloned().map(Request::from).collect(),
                atomicity: Atomicity::Independent,
                mode: Mode::Commit,
                detail: Detail::Entry,
            };
            let outcomes = self.store.apply(submission).expect("the store takes writes");
            for (command, outcome) in commands.iter().zip(outcomes) {
                let now = Timestamp::from_micros(self.now);
                match (outcome, self.model.execute(&ledger, command, None, false, now)) {
                    (Outcome::Done(receipt), Ok(answer)) => {
                        assert_eq!(receipt.entry.as_deref(), Some(&answer.entry), "{command:?}");
                    }
                    (Outcome::Refused(rejection), Err(expected)) => {
                        assert_eq!(rejection, expected, "{command:?}");
                    }
                    (outcome, expected) => panic!("{command:?}: {outcome:?}, expected {expected:?}"),
                }
            }
        }
    }

    /// A date that matters, or one right beside it.
    pub(crate) fn date(&mut self, ledger: &LedgerName) -> Timestamp {
        let log = self.model.log(ledger);
        let near = match self.dice.below(8) {
            0 => self.now + 100_000_000,
            1 => 0,
            _ if log.is_empty() => self.now,
            choice => {
                let entry = &log[self.dice.below(log.len() as u64) as usize];
                match &entry.payload {
                    ledger_core::LogPayload::NewTransaction { transaction, .. }
                    | ledger_core::LogPayload::RevertedTransaction { transaction, .. }
                        if choice < 5 =>
                    {
                        transaction.timestamp.as_micros()
                    }
                    _ => entry.date.as_micros(),
                }
            }
        };
        Timestamp::from_micros(near + self.dice.below(3) as i64 - 1)
    }
}

fn open(place: &Place, options: &Options) -> Store {
    match place {
        Place::Memory => Store::in_memory_with(options),
        Place::Directory(directory) => {
            let path: PathBuf = directory.path().join("data");
            Store::open_with(path, options).expect("it opens")
        }
    }
}

fn random_metadata(dice: &mut Dice) -> Metadata {
    let mut metadata = Metadata::EMPTY;
    for _ in 0..dice.below(3) {
        let value = CompactString::from(dice.pick(&VALUES));
        let json = dice.one_in(6);
        let value = if json { MetadataValue::Json("true".into()) } else { MetadataValue::Text(value) };
        metadata.insert(dice.pick(&KEYS), value);
    }
    metadata
}

/// One of the addresses; seldom a rare one.
fn random_address(dice: &mut Dice) -> AccountAddress {
    address(if dice.one_in(8) { dice.pick(&ADDRESSES) } else { dice.pick(&ADDRESSES[..11]) })
}

fn random_target(dice: &mut Dice, next: u64) -> Target {
    if dice.one_in(2) {
        Target::Account(address(dice.pick(&ADDRESSES)))
    } else {
        Target::Transaction(TransactionId::new(dice.below(next + 2)))
    }
}

fn random_postings(dice: &mut Dice) -> Postings {
    (0..=dice.below(3))
        .map(|_| {
            let amount = match dice.below(12) {
                0 => Amount::ZERO,
                1 => "340282366920938463463374607431768211456000".parse().expect("digits"),
                _ => Amount::from(dice.below(100)),
            };
            Posting {
                source: if dice.one_in(2) { AccountAddress::world() } else { random_address(dice) },
                destination: random_address(dice),
                amount,
                asset: Asset::parse(dice.pick(&ASSETS)).expect("an asset"),
            }
        })
        .collect()
}

fn random_command(dice: &mut Dice, now: i64, model: &Model, ledger: &LedgerName) -> Command {
    let next = model.stats(ledger).0 as u64;
    match dice.below(10) {
        0 => Command::SetMetadata { target: random_target(dice, next), metadata: random_metadata(dice) },
        1 => Command::DeleteMetadata { target: random_target(dice, next), key: dice.pick(&KEYS).into() },
        2 => Command::RevertTransaction(RevertTransaction {
            id: TransactionId::new(dice.below(next + 2)),
            overdraft: if dice.one_in(2) { Overdraft::Allow } else { Overdraft::Refuse },
            dated: if dice.one_in(2) { RevertDate::Now } else { RevertDate::OfOriginal },
            metadata: random_metadata(dice),
            rules: ledger_core::Rules::Current,
        }),
        _ => {
            let displaced = |dice: &mut Dice| {
                let distance = dice.below(40_000_000) as i64 - 20_000_000;
                // Coarse, so that several transactions have the same date.
                Timestamp::from_micros((now + distance) / 4_000_000 * 4_000_000)
            };
            Command::CreateTransaction(CreateTransaction {
                metadata: random_metadata(dice),
                account_metadata: if dice.one_in(5) {
                    BTreeMap::from([(random_address(dice), random_metadata(dice))])
                } else {
                    BTreeMap::new()
                },
                timestamp: dice.one_in(3).then(|| displaced(dice)),
                reference: dice
                    .one_in(3)
                    .then(|| Reference::parse(&format!("ref-{}", dice.below(60))).expect("a reference")),
                overdraft: if dice.one_in(4) { Overdraft::Allow } else { Overdraft::Refuse },
                ..CreateTransaction::of(random_postings(dice))
            })
        }
    }
}
