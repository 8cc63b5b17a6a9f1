//! The commands that are measured: transfers between uniformly random accounts.

use ledger_core::{
    AccountAddress, Amount, Asset, Command, CreateTransaction, Features, HashLogs, LedgerName, LedgerOptions,
    Metadata, Posting, Reference, Timestamp,
};
use ledger_store::{Atomicity, Detail, Mode, Request, Submission};

/// `SplitMix64`: fast, and good enough to choose accounts. Equal seeds give equal runs.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Numbers from a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next of 2^64 numbers.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below a limit, which must not be 0; uniform as far as 64 bits allow.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(limit)) >> 64) as u64
    }
}

/// A bijection on 64-bit numbers: distinct arguments have distinct, random-looking values.
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// What a transaction carries beside its posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing; its ledger keeps no hash of its logs.
    Plain,
    /// A unique reference and two metadata pairs; its ledger hashes its logs.
    Rich,
}

impl Shape {
    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Rich => "rich",
        }
    }
}

/// What to generate.
#[derive(Clone, Debug)]
pub struct Profile {
    /// How many accounts there are, at least two.
    pub accounts: u64,
    /// What each transaction carries.
    pub shape: Shape,
    /// How many of a hundred transactions are dated up to 30 days back.
    pub backdated_percent: u64,
    /// How many of a hundred transactions go to account 0.
    pub hot_percent: u64,
    /// Whether addresses have a segment that a thousand of them share.
    pub grouped: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Self { accounts: 100_000, shape: Shape::Plain, backdated_percent: 0, hot_percent: 0, grouped: false }
    }
}

impl Profile {
    /// The address of an account by its number.
    pub fn address(&self, number: u64) -> AccountAddress {
        if !self.grouped {
            return address(number);
        }
        AccountAddress::parse(&format!("{}{number:07}", self.group(number)))
            .expect("segments of letters and digits are an address")
    }

    /// What the addresses of a group begin with, where they are [grouped](Self::grouped).
    pub fn group(&self, number: u64) -> String {
        format!("users:{:04}:", number / GROUP)
    }

    /// How its ledger is to be created.
    pub fn ledger_options(&self) -> LedgerOptions {
        let hash_logs = match self.shape {
            Shape::Plain => HashLogs::Disabled,
            Shape::Rich => HashLogs::Sync,
        };
        LedgerOptions { features: Features { hash_logs, ..Features::default() }, ..LedgerOptions::default() }
    }
}

/// Each account is funded with so much: more than the transfers of any run take out of it.
pub const FUNDING: u64 = 1_000_000_000;
/// So many accounts have a segment in common.
pub const GROUP: u64 = 1_000;
/// No transfer moves more than this.
const AMOUNT_MAX: u64 = 1_000;
const THIRTY_DAYS_MICROS: u64 = 30 * 86_400 * 1_000_000;

/// The name of the ledger that is measured.
pub fn ledger_name() -> LedgerName {
    LedgerName::parse("main").expect("a constant that is a name")
}

/// A submission of independent commands that is recorded and answered with ids.
pub fn submission(requests: Vec<Request>) -> Submission {
    Submission {
        ledger: ledger_name(),
        requests,
        atomicity: Atomicity::Independent,
        mode: Mode::Commit,
        detail: Detail::Ids,
    }
}

/// An endless stream of commands.
#[derive(Clone, Debug)]
pub struct Workload {
    profile: Profile,
    addresses: Vec<AccountAddress>,
    asset: Asset,
    random: Random,
    sequence: u64,
}

impl Workload {
    /// A stream by a seed.
    pub fn new(profile: Profile, seed: u64) -> Self {
        // Addresses of this length are stored inline: to copy one from here is cheaper than to format it.
        let addresses = (0..profile.accounts).map(|number| profile.address(number)).collect();
        Self { profile, addresses, asset: asset(), random: Random::new(seed), sequence: 0 }
    }

    /// One of several streams whose references differ; each has 2^40 of them.
    #[must_use]
    pub fn part(mut self, number: u64) -> Self {
        self.sequence = number << 40;
        self
    }

    /// What is generated.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The addresses of all accounts.
    pub fn addresses(&self) -> &[AccountAddress] {
        &self.addresses
    }

    /// What gives money to each account, in batches.
    pub fn funding(&self, batch: usize) -> impl Iterator<Item = Vec<Request>> {
        self.addresses.chunks(batch).map(|addresses| {
            addresses
                .iter()
                .map(|address| self.request(AccountAddress::world(), address.clone(), Amount::from(FUNDING)))
                .collect()
        })
    }

    /// The next transfers. The date is that which backdated ones lie before.
    pub fn batch(&mut self, size: usize, now: Timestamp) -> Vec<Request> {
        (0..size).map(|_| self.transfer(now)).collect()
    }

    fn transfer(&mut self, now: Timestamp) -> Request {
        let accounts = self.profile.accounts;
        let hot = self.profile.hot_percent > 0 && self.random.below(100) < self.profile.hot_percent;
        let (source, destination) = if hot {
            (1 + self.random.below(accounts - 1), 0)
        } else {
            let source = self.random.below(accounts);
            (source, (source + 1 + self.random.below(accounts - 1)) % accounts)
        };
        let amount = Amount::from(1 + self.random.below(AMOUNT_MAX));
        let [source, destination] = [source, destination].map(|at| self.addresses[at as usize].clone());
        let mut request = self.request(source, destination, amount);
        let Command::CreateTransaction(create) = &mut request.command else { return request };
        if self.profile.backdated_percent > 0 && self.random.below(100) < self.profile.backdated_percent {
            let back = self.random.below(THIRTY_DAYS_MICROS) as i64;
            create.timestamp = Some(Timestamp::from_micros(now.as_micros() - back));
        }
        if self.profile.shape == Shape::Rich {
            self.sequence += 1;
            let unique = mix(self.sequence);
            create.reference = Some(reference(unique));
            let mut metadata = Metadata::with_capacity(2);
            metadata.insert_text("channel", CHANNELS[(unique % 10) as usize]);
            with_hex(ORDER, !unique, |order| metadata.insert_text("order", order));
            create.metadata = metadata;
        }
        request
    }

    fn request(&self, source: AccountAddress, destination: AccountAddress, amount: Amount) -> Request {
        let posting = Posting { source, destination, amount, asset: self.asset.clone() };
        let postings = [posting].into_iter().collect();
        Request::from(Command::CreateTransaction(CreateTransaction::of(postings)))
    }
}

const CHANNELS: [&str; 10] =
    ["web", "ios", "android", "branch", "phone", "partner", "batch", "card", "terminal", "internal"];

/// The asset of all transfers.
pub fn asset() -> Asset {
    Asset::parse("USD/2").expect("a constant that is an asset")
}

/// The address of an account by its number.
pub fn address(number: u64) -> AccountAddress {
    AccountAddress::parse(&format!("users:{number:07}:main"))
        .expect("segments of letters and digits are an address")
}

/// Reference and order of the rich transaction with this number in its stream, from 1.
pub fn marks(sequence: u64) -> (Reference, String) {
    (reference(mix(sequence)), order(mix(sequence)))
}

const ORDER: [u8; 20] = *b"ord-0000000000000000";

fn order(unique: u64) -> String {
    with_hex(ORDER, !unique, str::to_owned)
}

fn reference(unique: u64) -> Reference {
    let reference = with_hex(*b"ref-0000000000000000", unique, Reference::parse);
    reference.expect("a short word is a reference")
}

/// Does something with a prefix and the digits of a number. Without the machinery of formatting, which would take a
/// tenth of the time that the ledger takes for a transaction.
fn with_hex<T>(mut text: [u8; 20], number: u64, then: impl FnOnce(&str) -> T) -> T {
    for (at, digit) in text[4..].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (60 - 4 * at)) as usize & 15];
    }
    then(std::str::from_utf8(&text).expect("the text is ASCII"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn profile(shape: Shape, backdated_percent: u64) -> Profile {
        Profile { accounts: 10, shape, backdated_percent, ..Profile::default() }
    }

    fn creates(requests: Vec<Request>) -> Vec<CreateTransaction> {
        let create = |request: Request| match request.command {
            Command::CreateTransaction(create) => create,
            other => panic!("not a transaction: {other:?}"),
        };
        requests.into_iter().map(create).collect()
    }

    fn posting(create: &CreateTransaction) -> &Posting {
        match &create.movement {
            ledger_core::Movement::Postings(postings) => &postings[0],
            ledger_core::Movement::Script(_) | ledger_core::Movement::Template { .. } => panic!("a script"),
        }
    }

    #[test]
    fn equal_seeds_give_equal_commands_and_others_give_others() {
        let now = Timestamp::from_micros(0);
        let mut streams = [7, 7, 8].map(|seed| Workload::new(profile(Shape::Rich, 10), seed));
        let [first, same, other] = streams.each_mut().map(|stream| creates(stream.batch(100, now)));
        assert_eq!(first, same);
        assert_ne!(first, other);
    }

    #[test]
    fn a_transfer_is_between_two_accounts_and_all_accounts_take_part() {
        let mut stream = Workload::new(profile(Shape::Plain, 0), 1);
        let creates = creates(stream.batch(1_000, Timestamp::from_micros(0)));
        let mut seen = HashSet::new();
        for create in &creates {
            let posting = posting(create);
            assert_ne!(posting.source, posting.destination);
            assert!(create.reference.is_none() && create.metadata.is_empty() && create.timestamp.is_none());
            seen.insert(posting.source.as_str().to_owned());
        }
        assert_eq!(seen.len(), 10);
        assert!(seen.contains("users:0000009:main"));
    }

    #[test]
    fn references_are_unique_and_a_tenth_is_backdated() {
        let now = Timestamp::from_micros(1_000_000_000_000_000);
        let mut stream = Workload::new(profile(Shape::Rich, 10), 1);
        let creates = creates(stream.batch(10_000, now));
        let references: HashSet<_> = creates.iter().map(|create| create.reference.clone()).collect();
        assert_eq!(references.len(), 10_000);
        assert!(creates.iter().all(|create| create.metadata.len() == 2));
        let dates: Vec<_> = creates.iter().filter_map(|create| create.timestamp).collect();
        assert!((900..1_100).contains(&dates.len()), "{} are backdated", dates.len());
        let span = now.as_micros() - THIRTY_DAYS_MICROS as i64..=now.as_micros();
        assert!(dates.iter().all(|date| span.contains(&date.as_micros())));
    }

    #[test]
    fn a_hot_account_gets_its_part() {
        let profile = Profile { hot_percent: 50, accounts: 1_000, ..Profile::default() };
        let mut stream = Workload::new(profile, 1);
        let creates = creates(stream.batch(1_000, Timestamp::from_micros(0)));
        let hot = creates.iter().filter(|create| posting(create).destination == address(0)).count();
        assert!((400..600).contains(&hot), "{hot}");
    }

    #[test]
    fn parts_share_no_reference() {
        let now = Timestamp::from_micros(0);
        let mut references = HashSet::new();
        for number in 0..3 {
            let mut part = Workload::new(profile(Shape::Rich, 0), 1).part(number);
            references.extend(creates(part.batch(100, now)).into_iter().map(|create| create.reference));
        }
        assert_eq!(references.len(), 300);
    }

    #[test]
    fn funding_reaches_each_account_once() {
        let stream = Workload::new(profile(Shape::Plain, 0), 1);
        let batches: Vec<_> = stream.funding(4).collect();
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
        let funded: HashSet<_> = batches
            .into_iter()
            .flat_map(creates)
            .map(|create| {
                assert!(posting(&create).source.is_world());
                posting(&create).destination.as_str().to_owned()
            })
            .collect();
        assert_eq!(funded.len(), 10);
    }
}
