//! Random work for a few ledgers: every kind of write that a store accepts.

mod scripts;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ledger_core::script::Language;
use ledger_core::{
    AccountAddress, Amount, BucketName, Command, CreateTransaction, ErrorWording, Idempotency,
    IdempotencyKey, InsertSchema, LedgerName, LedgerOptions, Metadata, MetadataValue, Movement, Overdraft,
    Posting, Postings, Preconditions, Reference, RevertDate, RevertTransaction, SmolStr, Target, Timestamp,
    TransactionId, VariableValue,
};
use ledger_store::{Atomicity, Detail, Mode, Request, Submission};

use crate::fixtures::{self, KEYS, VALUES};
use crate::{DocumentStep, Rng, document_model};

/// One step of the work.
#[derive(Clone, Debug)]
pub enum Step {
    /// Create a ledger. One with this name may exist already.
    Create(LedgerName, LedgerOptions),
    /// Set metadata of a ledger.
    Describe(LedgerName, Metadata),
    /// Remove a metadata key of a ledger.
    Undescribe(LedgerName, SmolStr),
    /// Set the mapping of a ledger.
    Map(LedgerName, String),
    /// Delete a bucket.
    DeleteBucket(BucketName),
    /// Undo the deletion of a bucket.
    RestoreBucket(BucketName),
    /// Permanently remove the ledgers that were deleted at least this long ago.
    RemoveDeleted(Duration),
    /// Free the space of removed ledgers. With a number, stop when the store asks for this time whether to stop.
    Reclaim(Option<u64>),
    /// Write commands.
    Submit(Submission),
    /// Change all of the documents or none.
    Documents(Vec<DocumentStep>),
    /// Import logs of another ledger.
    Import(ImportStep),
    /// Flush the memtables into the index.
    Flush,
    /// Close the store and open it again.
    Reopen,
}

/// Logs of one ledger that another one imports.
#[derive(Clone, Debug)]
pub struct ImportStep {
    /// The ledger whose logs are imported.
    pub from: LedgerName,
    /// The ledger that imports them.
    pub to: LedgerName,
    /// Maximum number of logs, in addition to those that the importing ledger already has.
    pub count: usize,
    /// The index of a log that is changed before the import, or `None`.
    pub damaged: Option<usize>,
    /// True if the import repeats the logs that the ledger already has.
    pub again: bool,
}

/// Generates steps, one after the other.
#[derive(Clone, Debug)]
pub struct Workload<'a> {
    rng: Rng<'a>,
    /// Number of accounts in addition to those of the fixtures.
    more_accounts: u64,
    /// Number of ledgers created so far.
    created: u64,
    /// Number of ledgers created for imports so far.
    copies: u64,
    /// Bucket of each ledger, as if every creation had succeeded.
    homes: BTreeMap<LedgerName, BucketName>,
    /// Deleted buckets, as if every step had succeeded.
    deleted: BTreeSet<BucketName>,
    /// Date of the last deletion of a bucket, in microseconds since 1970.
    deleted_at: i64,
    /// Number of commands so far.
    commands: u64,
    /// Time of the current step, in microseconds since 1970.
    now: i64,
    /// Number of idempotency keys used so far.
    keys: u64,
    /// The last submission with an idempotency key.
    last: Option<Submission>,
}

/// Maximum number of ledgers that do not import logs.
const LEDGERS: u64 = 4;
/// Maximum number of ledgers that import logs.
const COPIES: u64 = 4;

impl<'a> Workload<'a> {
    /// Creates work that `rng` determines.
    pub fn new(rng: Rng<'a>) -> Self {
        Self::with_accounts(rng, 0)
    }

    /// Creates work that uses `more_accounts` accounts in addition to those of the fixtures.
    pub fn with_accounts(rng: Rng<'a>, more_accounts: u64) -> Self {
        let now = 1_700_000_000_000_000;
        let (homes, deleted) = (BTreeMap::new(), BTreeSet::new());
        let (created, copies, commands, keys, deleted_at, last) = (0, 0, 0, 0, 0, None);
        Self { rng, more_accounts, created, copies, homes, deleted, deleted_at, commands, now, keys, last }
    }

    /// Returns whether the choices have used all bytes of a fuzzer. Always false if a seed determines them.
    pub fn is_exhausted(&self) -> bool {
        self.rng.is_exhausted()
    }

    /// Returns the number of commands so far.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// Returns the time of the next step. It is sometimes equal to the previous time or earlier.
    pub fn tick(&mut self) -> Timestamp {
        self.now += match self.rng.below(10) {
            0 => 0,
            1 => -(self.rng.below(5_000) as i64),
            _ => self.rng.below(2_000) as i64 * 1_000,
        };
        Timestamp::from_micros(self.now)
    }

    /// Returns the next step.
    pub fn step(&mut self) -> Step {
        if self.created < LEDGERS && (self.created == 0 || self.rng.one_in(6)) {
            self.created += 1;
            return self.create(fixtures::ledger(self.created - 1));
        }
        if !self.deleted.is_empty() && self.rng.one_in(5) {
            return self.after_deletion();
        }
        match self.rng.below(48) {
            1 => Step::Flush,
            2 => Step::Reopen,
            3 if self.created == LEDGERS && self.copies < COPIES => {
                self.copies += 1;
                self.create(fixtures::copy(self.copies - 1))
            }
            4 => {
                let again = fixtures::ledger(self.rng.below(self.created));
                self.create(again)
            }
            5..9 => Step::Documents(
                (0..=self.rng.below(4)).map(|_| document_model::draft(&mut self.rng)).collect(),
            ),
            9..13 if self.copies > 0 => self.import(),
            13 => {
                let ledger = self.ledger();
                let mut metadata = self.metadata();
                metadata.insert_text("owner", self.rng.pick(&VALUES));
                Step::Describe(ledger, metadata)
            }
            14 => Step::Undescribe(self.ledger(), self.rng.pick(&KEYS).into()),
            15 => {
                let mapping = format!("[{}]", self.rng.below(9));
                Step::Map(self.ledger(), mapping)
            }
            16 => {
                let bucket = fixtures::bucket(&mut self.rng);
                self.deleted.insert(bucket.clone());
                self.deleted_at = self.now;
                Step::DeleteBucket(bucket)
            }
            17 if self.rng.one_in(4) => self.after_deletion(),
            _ => Step::Submit(self.submission()),
        }
    }

    fn create(&mut self, name: LedgerName) -> Step {
        let options = fixtures::options(&mut self.rng, name == fixtures::ledger(0));
        self.homes.entry(name.clone()).or_insert_with(|| options.bucket.clone());
        Step::Create(name, options)
    }

    /// Returns a step that restores a deleted bucket, permanently removes one, or creates a ledger with the name of a
    /// removed one.
    fn after_deletion(&mut self) -> Step {
        let deleted: Vec<BucketName> = self.deleted.iter().cloned().collect();
        let bucket =
            if deleted.is_empty() { fixtures::bucket(&mut self.rng) } else { self.rng.pick(&deleted) };
        match self.rng.below(16) {
            0..3 => {
                self.deleted.remove(&bucket);
                Step::RestoreBucket(bucket)
            }
            3..6 => Step::RemoveDeleted(Duration::ZERO),
            6 | 15 => {
                // The last deletion is due now, or in a microsecond.
                let since = self.now - self.deleted_at + self.rng.below(2) as i64;
                Step::RemoveDeleted(Duration::from_micros(since.max(0) as u64))
            }
            7 => Step::DeleteBucket(bucket),
            8..10 => {
                let stops = self.rng.one_in(3).then(|| self.rng.below(12));
                Step::Reclaim(stops)
            }
            _ => {
                let names = self.homes.iter().filter(|(_, home)| **home == bucket);
                let names: Vec<LedgerName> = names.map(|(name, _)| name.clone()).collect();
                if names.is_empty() {
                    self.deleted.remove(&bucket);
                    return Step::RestoreBucket(bucket);
                }
                let name = self.rng.pick(&names);
                // If the name is not free yet, later steps try it again.
                if self.rng.one_in(2) {
                    self.homes.remove(&name);
                }
                self.create(name)
            }
        }
    }

    /// Returns the name of a ledger that usually exists.
    fn ledger(&mut self) -> LedgerName {
        let mut name = self.any_ledger();
        for _ in 0..3 {
            if !self.homes.get(&name).is_some_and(|home| self.deleted.contains(home)) {
                break;
            }
            name = self.any_ledger();
        }
        name
    }

    fn any_ledger(&mut self) -> LedgerName {
        // A write to a copy ends its import.
        if self.copies > 0 && self.rng.one_in(25) {
            return fixtures::copy(self.rng.below(self.copies));
        }
        fixtures::ledger(self.rng.below(self.created))
    }

    fn import(&mut self) -> Step {
        let to = self.rng.below(self.copies);
        let count = self.rng.below(30) as usize;
        Step::Import(ImportStep {
            from: fixtures::ledger(original(to)),
            to: fixtures::copy(to),
            count,
            damaged: (self.rng.one_in(6) && count > 0).then(|| self.rng.below(count as u64) as usize),
            again: self.rng.one_in(8),
        })
    }

    fn submission(&mut self) -> Submission {
        if let Some(last) = &self.last
            && self.rng.one_in(10)
        {
            let last = last.clone();
            self.commands += last.requests.len() as u64;
            return last;
        }
        let count = match self.rng.below(10) {
            0 => 0,
            1 => 20,
            few => few.div_ceil(3),
        };
        let atomicity = match self.rng.below(6) {
            1 => Atomicity::StopAtRefusal,
            2 | 3 => Atomicity::AllOrNothing,
            4 | 5 => Atomicity::AsOne,
            _ => Atomicity::Independent,
        };
        let mut requests: Vec<Request> = (0..count).map(|_| self.request()).collect();
        if matches!(atomicity, Atomicity::AllOrNothing | Atomicity::AsOne) && !self.rng.one_in(3) {
            for request in &mut requests {
                self.simplify(request);
            }
        }
        if atomicity == Atomicity::AsOne {
            self.keep_one_key(&mut requests);
        }
        let submission = Submission {
            ledger: self.ledger(),
            requests,
            atomicity,
            mode: if self.rng.one_in(8) { Mode::DryRun } else { Mode::Commit },
            detail: Detail::Entry,
        };
        let has_key = submission.requests.iter().any(|request| request.idempotency.is_some());
        if has_key && (atomicity == Atomicity::AsOne || self.rng.one_in(3)) {
            self.last = Some(submission.clone());
        }
        submission
    }

    fn request(&mut self) -> Request {
        self.commands += 1;
        let command = self.command();
        let idempotency = self.rng.one_in(3).then(|| Box::new(self.idempotency()));
        let schema_version = self.rng.one_in(4).then(|| fixtures::version(&mut self.rng));
        let schema_version = schema_version.map(Box::new);
        let preconditions = self.rng.one_in(12).then(|| Box::new(self.preconditions()));
        Request { command, idempotency, schema_version, preconditions }
    }

    /// Removes the parts of a request that most often cause a refusal. One refused request undoes its whole group, so
    /// without this few groups would be recorded.
    fn simplify(&mut self, request: &mut Request) {
        request.schema_version = None;
        request.preconditions = None;
        match &mut request.command {
            Command::CreateTransaction(create) => {
                create.reference = None;
                create.overdraft = Overdraft::Allow;
                if !matches!(&create.movement, Movement::Postings(postings) if !postings.is_empty()) {
                    create.movement = Movement::Postings([self.posting()].into_iter().collect());
                }
            }
            Command::SetMetadata { target: Target::Account(_), .. } => {}
            command => {
                let target = Target::Account(self.address());
                *command = Command::SetMetadata { target, metadata: self.metadata() };
            }
        }
    }

    /// Leaves at most one idempotency key for several requests, whose hash covers all of them.
    fn keep_one_key(&mut self, requests: &mut [Request]) {
        let count = requests.len();
        let Some((first, others)) = requests.split_first_mut() else { return };
        for other in others {
            other.idempotency = None;
        }
        if first.idempotency.is_none() && !self.rng.one_in(4) {
            first.idempotency = Some(Box::new(self.idempotency()));
        }
        if let Some(idempotency) = &mut first.idempotency
            && count > 1
        {
            idempotency.hash = format!("{}-of-{count}", idempotency.hash).into();
        }
    }

    fn preconditions(&mut self) -> Preconditions {
        let account = vec![self.address()];
        match self.rng.below(4) {
            0 => Preconditions { new: account, ..Preconditions::default() },
            1 => Preconditions { new: account, existing: vec![self.address()] },
            _ => Preconditions { existing: account, ..Preconditions::default() },
        }
    }

    fn idempotency(&mut self) -> Idempotency {
        // Sometimes uses an earlier key, at times with another request.
        let next = self.keys;
        let key = if self.rng.one_in(3) { self.rng.below(next + 1) } else { next };
        self.keys = next.max(key + 1);
        let hash = match self.rng.below(12) {
            0..3 => format!("another-{key}"),
            _ => format!("request-{key}"),
        };
        let key = IdempotencyKey::parse(&format!("key-{key}")).expect("a word and a number form a key");
        Idempotency { key, hash: hash.into() }
    }

    fn command(&mut self) -> Command {
        match self.rng.below(48) {
            0 => Command::InsertSchema(InsertSchema {
                version: fixtures::version(&mut self.rng),
                schema: Box::new(fixtures::schema(&mut self.rng)),
            }),
            1..6 => Command::RevertTransaction(RevertTransaction {
                id: self.transaction(),
                overdraft: if self.rng.one_in(3) { Overdraft::Allow } else { Overdraft::Refuse },
                dated: if self.rng.one_in(2) { RevertDate::OfOriginal } else { RevertDate::Now },
                metadata: self.metadata(),
                rules: ledger_core::Rules::Current,
            }),
            6..10 => Command::SetMetadata { target: self.target(), metadata: self.metadata() },
            10..14 => Command::DeleteMetadata { target: self.target(), key: self.rng.pick(&KEYS).into() },
            _ => Command::CreateTransaction(self.transaction_to_create()),
        }
    }

    fn transaction_to_create(&mut self) -> CreateTransaction {
        let count = if self.rng.one_in(4) { self.rng.below(5) } else { 1 };
        let postings: Postings = (0..count).map(|_| self.posting()).collect();
        let mut create = CreateTransaction::of(postings);
        match self.rng.below(20) {
            1..5 => create.movement = Movement::Script(self.script()),
            5 => create.movement = self.by_template(),
            _ => {}
        }
        create.metadata = self.metadata();
        if self.rng.one_in(6) {
            create.account_metadata.insert(self.address(), self.metadata());
        }
        if self.rng.one_in(3) {
            let distance = (self.rng.below(40_000) as i64 - 20_000) * 1_000;
            // Round the date, so that several transactions have the same one.
            let rounded = (self.now + distance) / 4_000_000 * 4_000_000;
            create.timestamp = Some(Timestamp::from_micros(rounded));
        }
        if self.rng.one_in(4) {
            let reference = format!("ref-{}", self.rng.below(60 + self.commands / 2));
            create.reference =
                Some(Reference::parse(&reference).expect("a word and a number form a reference"));
        }
        create.overdraft = fixtures::overdraft(&mut self.rng, &create.movement);
        create
    }

    fn by_template(&mut self) -> Movement {
        let variables = [
            ("to".to_owned(), VariableValue::Text(self.address().to_string())),
            ("amount".to_owned(), VariableValue::Text(format!("COIN {}", self.rng.below(100)))),
        ];
        let name = if self.rng.one_in(6) { "refund" } else { "pay" }.into();
        let (wording, language) = (ErrorWording::default(), Language::NUMSCRIPT);
        Movement::Template { name, variables: variables.into(), wording, language }
    }

    fn posting(&mut self) -> Posting {
        let source = if self.rng.one_in(2) { AccountAddress::world() } else { self.address() };
        let amount = match self.rng.below(20) {
            // The sums of these amounts exceed 64 bits, and 128 bits.
            1 => "18446744073709551615".parse().expect("the text consists of digits"),
            2 => "9".repeat(60).parse().expect("the text consists of digits"),
            3 => Amount::ZERO,
            _ => Amount::from(self.rng.below(1_000)),
        };
        Posting { source, destination: self.address(), amount, asset: fixtures::asset(&mut self.rng) }
    }

    fn address(&mut self) -> AccountAddress {
        fixtures::any_address(&mut self.rng, self.more_accounts)
    }

    fn transaction(&mut self) -> TransactionId {
        TransactionId::new(self.rng.below(10 + self.commands / LEDGERS))
    }

    fn target(&mut self) -> Target {
        if self.rng.one_in(2) {
            Target::Account(self.address())
        } else {
            Target::Transaction(self.transaction())
        }
    }

    fn metadata(&mut self) -> Metadata {
        let mut metadata = Metadata::EMPTY;
        for _ in 0..self.rng.below(3) {
            let value = match self.rng.below(20) {
                // A long text, so that a few entries fill a chunk or a segment.
                0 => MetadataValue::Text(format!("{:02000}", self.rng.below(7)).into()),
                1..4 => MetadataValue::Json("true".into()),
                _ => MetadataValue::Text(self.rng.pick(&VALUES).into()),
            };
            metadata.insert(self.rng.pick(&KEYS), value);
        }
        metadata
    }
}

/// Returns the number of the ledger from which a copy imports.
const fn original(copy: u64) -> u64 {
    (copy % 2) * 2
}
