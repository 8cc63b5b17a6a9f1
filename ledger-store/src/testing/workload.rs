//! Random work for a few ledgers: everything that a store can be asked to write.

use ledger_core::{
    AccountAddress, Amount, Asset, BucketName, Command, CreateTransaction, FirstId, Idempotency,
    IdempotencyKey, LedgerName, LedgerOptions, Metadata, Movement, Overdraft, Posting, Postings, Reference,
    RevertDate, RevertTransaction, Script, Target, Timestamp, TransactionId,
};

use crate::submission::{Atomicity, Detail, Mode, Request, Submission};

/// Reproducible choices: from a seed, or from the bytes of a fuzzer while there are any.
#[derive(Clone, Debug)]
pub struct Dice<'a> {
    bytes: Option<std::slice::Iter<'a, u8>>,
    state: u64,
}

impl Dice<'static> {
    /// Choices that follow from a seed.
    pub fn from_seed(seed: u64) -> Self {
        Self { bytes: None, state: seed }
    }
}

impl<'a> Dice<'a> {
    /// Choices that are the bytes of `data`; zeros when they are used up.
    pub fn from_bytes(data: &'a [u8]) -> Self {
        Self { bytes: Some(data.iter()), state: 0 }
    }

    /// Whether the bytes are used up; never for a seed.
    pub fn is_exhausted(&self) -> bool {
        self.bytes.as_ref().is_some_and(|bytes| bytes.len() == 0)
    }

    /// A number below `limit`, which is at most 2^16 for bytes to reach all of them, and at least 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        let any = match &mut self.bytes {
            Some(bytes) if limit <= 256 => u64::from(bytes.next().copied().unwrap_or(0)),
            Some(bytes) => {
                let mut next = || u64::from(bytes.next().copied().unwrap_or(0));
                next() << 8 | next()
            }
            None => {
                // SplitMix64.
                self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = self.state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
        };
        any % limit
    }

    fn one_in(&mut self, chance: u64) -> bool {
        self.below(chance) == 0
    }
}

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Step {
    /// Create a ledger; it may exist.
    Create(LedgerName, LedgerOptions),
    /// Write.
    Submit(Submission),
    /// Flush what gathered into the index.
    Flush,
    /// Close the store and open it again.
    Reopen,
}

/// Makes steps, one after the other.
#[derive(Clone, Debug)]
pub struct Workload<'a> {
    dice: Dice<'a>,
    created: u64,
    now: i64,
    keys: u64,
}

const LEDGERS: u64 = 3;
const ACCOUNTS: u64 = 12;
const ASSETS: [&str; 3] = ["USD/2", "EUR/2", "COIN"];

impl<'a> Workload<'a> {
    /// Work as the dice fall.
    pub fn new(dice: Dice<'a>) -> Self {
        Self { dice, created: 0, now: 1_700_000_000_000_000, keys: 0 }
    }

    /// Whether nothing is left to decide by; never for a seed.
    pub fn is_exhausted(&self) -> bool {
        self.dice.is_exhausted()
    }

    /// The time of the next step. It goes back at times.
    pub fn tick(&mut self) -> Timestamp {
        if self.dice.one_in(10) {
            self.now -= self.dice.below(5_000) as i64;
        } else {
            self.now += self.dice.below(2_000) as i64;
        }
        Timestamp::from_micros(self.now)
    }

    /// The next step.
    pub fn step(&mut self) -> Step {
        if self.created < LEDGERS && (self.created == 0 || self.dice.one_in(6)) {
            let options = LedgerOptions {
                bucket: BucketName::parse(if self.created == 1 { "other" } else { "shared" })
                    .expect("a name"),
                first_id: if self.created == 2 { FirstId::Zero } else { FirstId::One },
                ..LedgerOptions::default()
            };
            self.created += 1;
            return Step::Create(ledger(self.created - 1), options);
        }
        match self.dice.below(40) {
            1 => Step::Flush,
            2 => Step::Reopen,
            3 => Step::Create(ledger(0), LedgerOptions::default()),
            _ => Step::Submit(self.submission()),
        }
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
            ledger: ledger(self.dice.below(self.created)),
            requests: (0..count).map(|_| self.request()).collect(),
            atomicity,
            mode: if self.dice.one_in(8) { Mode::DryRun } else { Mode::Commit },
            detail: Detail::Entry,
        }
    }

    fn request(&mut self) -> Request {
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
        Request { command, idempotency, schema_version: None }
    }

    fn command(&mut self) -> Command {
        match self.dice.below(12) {
            8 => Command::RevertTransaction(RevertTransaction {
                id: self.transaction(),
                overdraft: if self.dice.one_in(3) { Overdraft::Allow } else { Overdraft::Refuse },
                dated: if self.dice.one_in(2) { RevertDate::OfOriginal } else { RevertDate::Now },
                metadata: self.metadata(),
                rules: ledger_core::Rules::Current,
            }),
            9 => Command::SetMetadata { target: self.target(), metadata: self.metadata() },
            10 => {
                let key = format!("key{}", self.dice.below(4));
                Command::DeleteMetadata { target: self.target(), key: key.into() }
            }
            _ => Command::CreateTransaction(self.transaction_to_create()),
        }
    }

    fn transaction_to_create(&mut self) -> CreateTransaction {
        let count = if self.dice.one_in(4) { self.dice.below(5) } else { 1 };
        let postings: Postings = (0..count).map(|_| self.posting()).collect();
        let mut create = CreateTransaction::of(postings);
        if self.dice.one_in(5) {
            create.movement = Movement::Script(self.script());
        }
        create.metadata = self.metadata();
        if self.dice.one_in(6) {
            create.account_metadata.insert(self.address(), self.metadata());
        }
        if self.dice.one_in(4) {
            let back = self.dice.below(60_000) as i64 * 100 - 1_000_000;
            create.timestamp = Some(Timestamp::from_micros(self.now - back));
        }
        if self.dice.one_in(4) {
            let reference = format!("reference-{}", self.dice.below(200));
            create.reference = Some(Reference::parse(&reference).expect("a reference"));
        }
        if self.dice.one_in(8) {
            create.overdraft = Overdraft::Allow;
        }
        create
    }

    fn script(&mut self) -> Script {
        let asset = ASSETS[self.dice.below(ASSETS.len() as u64) as usize];
        let other = ASSETS[self.dice.below(ASSETS.len() as u64) as usize];
        let (a, b, c) = (self.address(), self.address(), self.address());
        let key = self.dice.below(4);
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
                "send $amount (source = @world destination = $to) set_account_meta($to, \"key{key}\", $amount)"
            ),
            4 => format!(
                "set_tx_meta(\"key{key}\", overdraft(@{b}, {other})) send $amount (source = @world destination = @{b})"
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
                "vars {{ account $to monetary $amount string $read = meta(@{a}, \"key{key}\") }} {statement} set_tx_meta(\"read\", $read)"
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
        let source = if self.dice.one_in(2) { world() } else { self.address() };
        let amount = match self.dice.below(20) {
            // Sums leave 64 bits, and 128.
            1 => "18446744073709551615".parse().expect("digits"),
            2 => "9".repeat(60).parse().expect("digits"),
            _ => Amount::from(self.dice.below(1_000)),
        };
        let asset = ASSETS[self.dice.below(ASSETS.len() as u64) as usize];
        Posting { source, destination: self.address(), amount, asset: Asset::parse(asset).expect("an asset") }
    }

    fn address(&mut self) -> AccountAddress {
        let number = self.dice.below(ACCOUNTS + 1);
        if number == ACCOUNTS {
            return world();
        }
        AccountAddress::parse(&format!("users:{:03}:main", number * number)).expect("an address")
    }

    fn transaction(&mut self) -> TransactionId {
        TransactionId::new(self.dice.below(60))
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
            let key = format!("key{}", self.dice.below(4));
            // Long enough at times that chunks and segments come to an end.
            let length = if self.dice.one_in(10) { 2_000 } else { 5 };
            let value = format!("{:0length$}", self.dice.below(7));
            metadata.insert_text(&key, &value);
        }
        metadata
    }
}

fn ledger(number: u64) -> LedgerName {
    LedgerName::parse(&format!("ledger-{number}")).expect("a name")
}

fn world() -> AccountAddress {
    AccountAddress::parse("world").expect("an address")
}
