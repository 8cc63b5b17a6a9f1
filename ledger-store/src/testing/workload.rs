//! Random work for a few ledgers: everything that a store can be asked to write.

use ledger_core::{
    AccountAddress, Amount, BucketName, Command, CompactString, CreateTransaction, FirstId, Idempotency,
    IdempotencyKey, InsertSchema, LedgerName, LedgerOptions, Metadata, MetadataValue, Movement, Overdraft,
    Posting, Postings, Reference, RevertDate, RevertTransaction, Runtime, Script, Target, Timestamp,
    TransactionId, VariableValue,
};

use super::cast::{self, KEYS, VALUES};
use super::{Dice, DocumentStep, ImportStep, shelf};
use crate::submission::{Atomicity, Detail, Mode, Request, Submission};

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Step {
    /// Create a ledger; it may exist.
    Create(LedgerName, LedgerOptions),
    /// Set metadata of a ledger.
    Describe(LedgerName, Metadata),
    /// Remove a metadata key of a ledger.
    Undescribe(LedgerName, CompactString),
    /// Write.
    Submit(Submission),
    /// Change documents, all or none.
    Documents(Vec<DocumentStep>),
    /// Take over logs of another ledger.
    Import(ImportStep),
    /// Flush what gathered into the index.
    Flush,
    /// Close the store and open it again.
    Reopen,
}

/// Makes steps, one after the other.
#[derive(Clone, Debug)]
pub struct Workload<'a> {
    dice: Dice<'a>,
    /// So many accounts beside those that meet often.
    more_accounts: u64,
    created: u64,
    copies: u64,
    commands: u64,
    now: i64,
    keys: u64,
}

const LEDGERS: u64 = 3;
const COPIES: u64 = 4;

impl<'a> Workload<'a> {
    /// Work as the dice fall.
    pub fn new(dice: Dice<'a>) -> Self {
        Self::with_accounts(dice, 0)
    }

    /// Work that also meets so many other accounts.
    pub fn with_accounts(dice: Dice<'a>, more_accounts: u64) -> Self {
        let now = 1_700_000_000_000_000;
        Self { dice, more_accounts, created: 0, copies: 0, commands: 0, now, keys: 0 }
    }

    /// Whether nothing is left to decide by; never for a seed.
    pub fn is_exhausted(&self) -> bool {
        self.dice.is_exhausted()
    }

    /// How many commands were made.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// The time of the next step. It stands still or goes back at times.
    pub fn tick(&mut self) -> Timestamp {
        self.now += match self.dice.below(10) {
            0 => 0,
            1 => -(self.dice.below(5_000) as i64),
            _ => self.dice.below(2_000) as i64 * 1_000,
        };
        Timestamp::from_micros(self.now)
    }

    /// The next step.
    pub fn step(&mut self) -> Step {
        if self.created < LEDGERS && (self.created == 0 || self.dice.one_in(6)) {
            self.created += 1;
            return Step::Create(cast::ledger(self.created - 1), options(self.created - 1));
        }
        match self.dice.below(48) {
            1 => Step::Flush,
            2 => Step::Reopen,
            3 if self.created == LEDGERS && self.copies < COPIES => {
                self.copies += 1;
                Step::Create(cast::copy(self.copies - 1), options(original(self.copies - 1)))
            }
            4 => Step::Create(cast::ledger(0), LedgerOptions::default()),
            5..9 => Step::Documents((0..=self.dice.below(4)).map(|_| shelf::draft(&mut self.dice)).collect()),
            9..13 if self.copies > 0 => self.import(),
            13 => {
                let ledger = self.ledger();
                let mut metadata = self.metadata();
                metadata.insert_text("owner", self.dice.pick(&VALUES));
                Step::Describe(ledger, metadata)
            }
            14 => Step::Undescribe(self.ledger(), self.dice.pick(&KEYS).into()),
            _ => Step::Submit(self.submission()),
        }
    }

    fn ledger(&mut self) -> LedgerName {
        // What is written to a copy ends its importing.
        if self.copies > 0 && self.dice.one_in(25) {
            return cast::copy(self.dice.below(self.copies));
        }
        cast::ledger(self.dice.below(self.created))
    }

    fn import(&mut self) -> Step {
        let to = self.dice.below(self.copies);
        let count = self.dice.below(30) as usize;
        Step::Import(ImportStep {
            from: cast::ledger(original(to)),
            to: cast::copy(to),
            count,
            damaged: (self.dice.one_in(6) && count > 0).then(|| self.dice.below(count as u64) as usize),
            again: self.dice.one_in(8),
        })
    }

    fn submission(&mut self) -> Submission {
        let count = match self.dice.below(10) {
            0 => 0,
            1 => 20,
            few => few.div_ceil(3),
        };
        let atomicity = match self.dice.below(4) {
            1 => Atomicity::StopAtRefusal,
            2 | 3 => Atomicity::AllOrNothing,
            _ => Atomicity::Independent,
        };
        Submission {
            ledger: self.ledger(),
            requests: (0..count).map(|_| self.request()).collect(),
            atomicity,
            mode: if self.dice.one_in(8) { Mode::DryRun } else { Mode::Commit },
            detail: Detail::Entry,
        }
    }

    fn request(&mut self) -> Request {
        self.commands += 1;
        let command = self.command();
        let idempotency = self.dice.one_in(3).then(|| {
            // Sometimes a key that was used, at times with another request.
            let key = if self.dice.one_in(3) { self.dice.below(self.keys + 1) } else { self.keys };
            self.keys = self.keys.max(key + 1);
            let hash = if self.dice.one_in(6) { "another" } else { "request" };
            Box::new(Idempotency {
                key: IdempotencyKey::parse(&format!("key-{key}")).expect("a key"),
                hash: format!("{hash}-{key}").into(),
            })
        });
        let schema_version = self.dice.one_in(4).then(|| cast::version(&mut self.dice));
        Request { command, idempotency, schema_version: schema_version.map(Box::new) }
    }

    fn command(&mut self) -> Command {
        match self.dice.below(48) {
            0 => Command::InsertSchema(InsertSchema {
                version: cast::version(&mut self.dice),
                schema: Box::new(cast::schema(&mut self.dice)),
            }),
            1..6 => Command::RevertTransaction(RevertTransaction {
                id: self.transaction(),
                overdraft: if self.dice.one_in(3) { Overdraft::Allow } else { Overdraft::Refuse },
                dated: if self.dice.one_in(2) { RevertDate::OfOriginal } else { RevertDate::Now },
                metadata: self.metadata(),
                rules: ledger_core::Rules::Current,
            }),
            6..10 => Command::SetMetadata { target: self.target(), metadata: self.metadata() },
            10..14 => Command::DeleteMetadata { target: self.target(), key: self.dice.pick(&KEYS).into() },
            _ => Command::CreateTransaction(self.transaction_to_create()),
        }
    }

    fn transaction_to_create(&mut self) -> CreateTransaction {
        let count = if self.dice.one_in(4) { self.dice.below(5) } else { 1 };
        let postings: Postings = (0..count).map(|_| self.posting()).collect();
        let mut create = CreateTransaction::of(postings);
        match self.dice.below(20) {
            1..5 => create.movement = Movement::Script(self.script()),
            5 => create.movement = self.by_template(),
            _ => {}
        }
        create.metadata = self.metadata();
        if self.dice.one_in(6) {
            create.account_metadata.insert(self.address(), self.metadata());
        }
        if self.dice.one_in(3) {
            let distance = (self.dice.below(40_000) as i64 - 20_000) * 1_000;
            // Coarse, so that several transactions have the same date.
            let displaced = (self.now + distance) / 4_000_000 * 4_000_000;
            create.timestamp = Some(Timestamp::from_micros(displaced));
        }
        if self.dice.one_in(4) {
            let reference = format!("ref-{}", self.dice.below(60 + self.commands / 2));
            create.reference = Some(Reference::parse(&reference).expect("a reference"));
        }
        if self.dice.one_in(6) {
            create.overdraft = Overdraft::Allow;
        }
        create
    }

    fn by_template(&mut self) -> Movement {
        let variables = [
            ("to".to_owned(), VariableValue::Text(self.address().to_string())),
            ("amount".to_owned(), VariableValue::Text(format!("COIN {}", self.dice.below(100)))),
        ];
        let name = if self.dice.one_in(6) { "refund" } else { "pay" };
        Movement::Template { name: name.into(), variables: variables.into(), runtime: Runtime::default() }
    }

    fn script(&mut self) -> Script {
        let (asset, other) = (cast::asset(&mut self.dice), cast::asset(&mut self.dice));
        let (a, b, c) = (self.address(), self.address(), self.address());
        let key = self.dice.pick(&KEYS);
        let amount = self.dice.below(1_000);
        let statement = match self.dice.below(8) {
            0 => format!("send [{asset} *] (source = {{ @{a} @{b} }} destination = @{c})"),
            1 => format!(
                "send $amount (source = {{ max [{asset} 9] from @{a} @{b} @world }}
                 destination = {{ 1/3 to @{c} 1/7 kept remaining to $to }})"
            ),
            2 => format!(
                "send $amount (source = @{a} allowing overdraft up to [{asset} 500] destination = $to)"
            ),
            3 => format!(
                "send $amount (source = @world destination = $to) set_account_meta($to, \"{key}\", $amount)"
            ),
            4 => format!(
                "set_tx_meta(\"{key}\", overdraft(@{b}, {other})) send $amount (source = @world destination = @{b})"
            ),
            5 => format!(
                "send $amount (source = oneof {{ @{a} @{b} {{ @{a} @{b} @{c} }} }} destination = $to)"
            ),
            6 => format!("save [{asset} 100] from @{a} send [{asset} *] (source = @{a} destination = $to)"),
            _ => format!(
                "send $amount (source = @world \\ \"RED\" destination = @{a}) send [{asset} *] (source = @{a} \\ \"RED\" destination = $to)"
            ),
        };
        let plain = match self.dice.below(6) {
            0 => format!(
                "vars {{ account $to monetary $amount monetary $known = balance(@{a}, {other}) }} {statement} set_tx_meta(\"known\", $known)"
            ),
            1 => format!(
                "vars {{ account $to monetary $amount string $read = meta(@{a}, \"{key}\") }} {statement} set_tx_meta(\"read\", $read)"
            ),
            _ => format!("vars {{ account $to monetary $amount }} {statement}"),
        };
        let variables = [
            ("to".to_owned(), self.address().to_string()),
            ("amount".to_owned(), format!("{asset} {amount}")),
        ];
        Script::new(plain, variables.into())
    }

    fn posting(&mut self) -> Posting {
        let source = if self.dice.one_in(2) { AccountAddress::world() } else { self.address() };
        let amount = match self.dice.below(20) {
            // Sums leave 64 bits, and 128.
            1 => "18446744073709551615".parse().expect("digits"),
            2 => "9".repeat(60).parse().expect("digits"),
            3 => Amount::ZERO,
            _ => Amount::from(self.dice.below(1_000)),
        };
        Posting { source, destination: self.address(), amount, asset: cast::asset(&mut self.dice) }
    }

    fn address(&mut self) -> AccountAddress {
        cast::any_address(&mut self.dice, self.more_accounts)
    }

    fn transaction(&mut self) -> TransactionId {
        TransactionId::new(self.dice.below(10 + self.commands / LEDGERS))
    }

    fn target(&mut self) -> Target {
        if self.dice.one_in(2) {
            Target::Account(self.address())
        } else {
            Target::Transaction(self.transaction())
        }
    }

    fn metadata(&mut self) -> Metadata {
        let mut metadata = Metadata::EMPTY;
        for _ in 0..self.dice.below(3) {
            let value = match self.dice.below(20) {
                // Long enough that chunks and segments come to an end.
                0 => MetadataValue::Text(format!("{:02000}", self.dice.below(7)).into()),
                1..4 => MetadataValue::Json("true".into()),
                _ => MetadataValue::Text(self.dice.pick(&VALUES).into()),
            };
            metadata.insert(self.dice.pick(&KEYS), value);
        }
        metadata
    }
}

/// The options of a ledger: two buckets, and ids from one or zero.
fn options(number: u64) -> LedgerOptions {
    LedgerOptions {
        bucket: BucketName::parse(if number == 1 { "other" } else { "shared" }).expect("a name"),
        first_id: if number == 2 { FirstId::Zero } else { FirstId::One },
        ..LedgerOptions::default()
    }
}

/// The number of the ledger that a copy is of.
const fn original(copy: u64) -> u64 {
    (copy % 2) * 2
}
