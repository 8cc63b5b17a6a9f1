//! Generates the commands of all measurements: transfers between random accounts, a percentage of them to a hot
//! account. Equal parameters and seeds give equal commands.

use ledger_core::{
    AccountAddress, Amount, Asset, Command, CreateTransaction, Features, HashLogs, LedgerName, LedgerOptions,
    Metadata, Posting, Reference, Timestamp,
};
use ledger_store::{Atomicity, Detail, Mode, Request, Submission};

/// `SplitMix64`, a fast random generator that is good enough to choose accounts. Equal seeds give equal numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Makes a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next random number, any of the 2^64 with equal probability.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Returns a number below a limit greater than 0. Uniform as far as 64 bits allow.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(limit)) >> 64) as u64
    }
}

/// Computes a bijection on 64-bit numbers: distinct arguments have distinct values that look random.
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The content of a transaction besides its posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// No content besides the posting.
    Plain,
    /// A unique reference and two metadata pairs.
    Rich,
}

impl Content {
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Rich => "rich",
        }
    }
}

/// The parameters of a workload.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Number of accounts, at least two.
    pub accounts: u64,
    /// Content of each transaction.
    pub content: Content,
    /// Percentage of transactions with a date up to 30 days in the past.
    pub backdated_percent: u64,
    /// Percentage of transactions directed at account 0, the hot account. The others choose their accounts at random.
    pub hot_percent: u64,
    /// Gives each 1,000 consecutive accounts a common segment in their addresses. Filters can select a group by it.
    pub grouped: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            accounts: 100_000,
            content: Content::Plain,
            backdated_percent: 0,
            hot_percent: 0,
            grouped: false,
        }
    }
}

impl Profile {
    /// Returns the address of an account by its number.
    pub fn address(&self, number: u64) -> AccountAddress {
        if !self.grouped {
            return address(number);
        }
        AccountAddress::parse(&format!("{}{number:07}", self.group_prefix_of(number)))
            .expect("segments of letters and digits are an address")
    }

    /// Returns the prefix that all addresses in the group of this account share if they are [grouped](Self::grouped).
    pub fn group_prefix_of(&self, account: u64) -> String {
        format!("users:{:04}:", account / GROUP)
    }

    /// Returns the options of the ledger. It hashes its logs if the transactions are [rich](Content::Rich).
    pub fn ledger_options(&self) -> LedgerOptions {
        let hash_logs = match self.content {
            Content::Plain => HashLogs::Disabled,
            Content::Rich => HashLogs::Sync,
        };
        LedgerOptions { features: Features { hash_logs, ..Features::default() }, ..LedgerOptions::default() }
    }
}

/// Initial balance of each account. Larger than the sum that a run takes from it, so that no transfer is refused.
pub const FUNDING: u64 = 1_000_000_000;
/// Number of accounts in a group, which share a segment of their addresses.
pub const GROUP: u64 = 1_000;
/// Maximum amount of a transfer.
const AMOUNT_MAX: u64 = 1_000;
const THIRTY_DAYS_MICROS: u64 = 30 * 86_400 * 1_000_000;

/// Returns the name of the ledger under test.
pub fn ledger_name() -> LedgerName {
    LedgerName::parse("main").expect("a constant that is a name")
}

/// Makes a submission of independent commands. Its answer contains only ids, not the recorded entries.
pub fn submission(requests: Vec<Request>) -> Submission {
    Submission {
        ledger: ledger_name(),
        requests,
        atomicity: Atomicity::Independent,
        mode: Mode::Commit,
        detail: Detail::Ids,
    }
}

/// An endless stream of transfers.
#[derive(Clone, Debug)]
pub struct Workload {
    profile: Profile,
    addresses: Vec<AccountAddress>,
    asset: Asset,
    random: Random,
    /// Number of the last rich transaction, which determines its reference and order number.
    sequence: u64,
}

impl Workload {
    /// Makes a stream from a seed.
    pub fn new(profile: Profile, seed: u64) -> Self {
        // Format each address once. Later copies are cheap, because addresses of this length are stored inline.
        let addresses = (0..profile.accounts).map(|number| profile.address(number)).collect();
        Self { profile, addresses, asset: asset(), random: Random::new(seed), sequence: 0 }
    }

    /// Numbers the rich transactions within the range of this number, which has room for 2^40 of them. Workloads with
    /// different ranges never send the same reference. References and metadata differ; accounts, amounts and dates
    /// depend only on the seed (and `now`).
    #[must_use]
    pub fn with_sequence_range(mut self, number: u64) -> Self {
        self.sequence = number << 40;
        self
    }

    /// Returns the parameters of the workload.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the addresses of all accounts.
    pub fn addresses(&self) -> &[AccountAddress] {
        &self.addresses
    }

    /// Iterates over batches of commands that each move [`FUNDING`] from `world` to an account.
    pub fn funding(&self, batch: usize) -> impl Iterator<Item = Vec<Request>> {
        self.addresses.chunks(batch).map(|addresses| {
            addresses
                .iter()
                .map(|address| self.request(AccountAddress::world(), address.clone(), Amount::from(FUNDING)))
                .collect()
        })
    }

    /// Returns the next transfers. Backdated ones have a date before `now`, and the others have none.
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
        let address = |at: u64| self.addresses[at as usize].clone();
        let (source, destination) = (address(source), address(destination));
        let mut request = self.request(source, destination, amount);
        let Command::CreateTransaction(create) = &mut request.command else { return request };
        if self.profile.backdated_percent > 0 && self.random.below(100) < self.profile.backdated_percent {
            let back = self.random.below(THIRTY_DAYS_MICROS) as i64;
            create.timestamp = Some(Timestamp::from_micros(now.as_micros() - back));
        }
        if self.profile.content == Content::Rich {
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

/// Returns the asset of all transfers.
pub fn asset() -> Asset {
    Asset::parse("USD/2").expect("a constant that is an asset")
}

/// Returns the address of an account by its number.
pub fn address(number: u64) -> AccountAddress {
    AccountAddress::parse(&format!("users:{number:07}:main"))
        .expect("segments of letters and digits are an address")
}

/// Returns the reference and the metadata value `order` of a rich transaction. `sequence` is its number
/// in sequence range 0, from 1.
pub fn reference_and_order(sequence: u64) -> (Reference, String) {
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

/// Replaces the zeros after a prefix of 4 bytes by the hexadecimal digits of a number, and passes the text to `then`.
/// Avoids `std::fmt`, which would take a tenth of the time that the ledger takes for a transaction.
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

    fn profile(content: Content, backdated_percent: u64) -> Profile {
        Profile { accounts: 10, content, backdated_percent, ..Profile::default() }
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
    fn equal_seeds_give_equal_commands() {
        let now = Timestamp::from_micros(0);
        let mut streams = [7, 7, 8].map(|seed| Workload::new(profile(Content::Rich, 10), seed));
        let [first, same, other] = streams.each_mut().map(|stream| creates(stream.batch(100, now)));
        assert_eq!(first, same);
        assert_ne!(first, other);
    }

    #[test]
    fn transfers_use_all_accounts() {
        let mut stream = Workload::new(profile(Content::Plain, 0), 1);
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
    fn references_are_unique_and_some_dates_earlier() {
        let now = Timestamp::from_micros(1_000_000_000_000_000);
        let mut stream = Workload::new(profile(Content::Rich, 10), 1);
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
    fn hot_account_receives_its_percentage() {
        let profile = Profile { hot_percent: 50, accounts: 1_000, ..Profile::default() };
        let mut stream = Workload::new(profile, 1);
        let creates = creates(stream.batch(1_000, Timestamp::from_micros(0)));
        let hot = creates.iter().filter(|create| posting(create).destination == address(0)).count();
        assert!((400..600).contains(&hot), "{hot}");
    }

    #[test]
    fn sequence_ranges_share_no_reference() {
        let now = Timestamp::from_micros(0);
        let mut references = HashSet::new();
        for number in 0..3 {
            let mut stream = Workload::new(profile(Content::Rich, 0), 1).with_sequence_range(number);
            references.extend(creates(stream.batch(100, now)).into_iter().map(|create| create.reference));
        }
        assert_eq!(references.len(), 300);
    }

    #[test]
    fn funds_each_account_once() {
        let stream = Workload::new(profile(Content::Plain, 0), 1);
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
