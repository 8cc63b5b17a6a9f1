//! Fixtures for random work: names that occur often, and schemas for them.

use ledger_core::schema::Schema;
use ledger_core::{
    AccountAddress, Amount, Asset, BucketName, Features, FirstId, HashLogs, LedgerName, LedgerOptions,
    Metadata, Movement, Overdraft, OverdraftLimit, SchemaVersion, Switch,
};

use crate::Rng;

/// Addresses. Some are prefixes of others, and their byte order is not the natural one. The last ones are rare, so that
/// some accounts only have postdated moves.
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
/// Number of addresses at the beginning of [`ADDRESSES`] that occur often.
const FREQUENT: usize = 11;

/// Assets.
pub(crate) const ASSETS: [&str; 4] = ["USD/2", "EUR/2", "COIN", "BTC/8"];
/// Metadata keys.
pub(crate) const KEYS: [&str; 3] = ["kind", "tier", "note"];
/// Metadata values.
pub(crate) const VALUES: [&str; 4] = ["a", "b", "", "long value"];
/// Names of schema versions. Their byte order is not that of their numbers.
pub(crate) const VERSIONS: [&str; 4] = ["v1", "v2", "v10", "next"];

/// Schemas whose charts contain some of the addresses. The last one has a template, `pay`.
const SCHEMAS: [&str; 3] = [
    r#"{"chart":{"users":{".self":{},"$id":{".pattern":"^[0-9]+$",".self":{},
        ".metadata":{"tier":{"default":"a"},"kind":{"default":"b"}},
        "main":{".metadata":{"kind":{"default":"a"}}}}},"bank":{".self":{},"fees":{}}}}"#,
    r#"{"chart":{"bank":{},"Z":{},"users":{".self":{},"$any":{".self":{},"main":{}}},
        "rare":{"$n":{".metadata":{"note":{"default":"long value"}}}}}}"#,
    r#"{"chart":{"users":{".self":{},"$id":{".self":{},".metadata":{"tier":{"default":"b"}},"main":{}}}},
        "transactions":{"pay":{"script":
        "vars {\n account $to\n monetary $amount\n}\nsend $amount (\n source = @world\n destination = $to\n)"}}}"#,
];

pub(crate) fn schema(rng: &mut Rng<'_>) -> Schema {
    Schema::parse(rng.pick(&SCHEMAS)).expect("every schema of the list parses")
}

/// Returns a permission to go below zero: mostly none, for some amounts a small limit for the last source. Takes one number
/// of `rng`, whatever it returns.
pub(crate) fn overdraft(rng: &mut Rng<'_>, movement: &Movement) -> Overdraft {
    if rng.one_in(6) {
        return Overdraft::Allow;
    }
    let Movement::Postings(postings) = movement else { return Overdraft::Refuse };
    let limited =
        postings.last().filter(|posting| posting.amount.to_u64().is_some_and(|amount| amount % 4 == 0));
    match limited {
        None => Overdraft::Refuse,
        Some(posting) => Overdraft::UpTo(vec![OverdraftLimit {
            account: posting.source.clone(),
            asset: posting.asset.clone(),
            limit: Amount::from(200_u64),
        }]),
    }
}

pub(crate) fn version(rng: &mut Rng<'_>) -> SchemaVersion {
    SchemaVersion::parse(rng.pick(&VERSIONS)).expect("every version of the list parses")
}

pub(crate) fn address(text: &str) -> AccountAddress {
    AccountAddress::parse(text).expect("the addresses of random work are well-formed")
}

pub(crate) fn asset(rng: &mut Rng<'_>) -> Asset {
    Asset::parse(rng.pick(&ASSETS)).expect("every asset of the list parses")
}

/// Returns one of the addresses, or one of `more` numbered ones.
pub(crate) fn any_address(rng: &mut Rng<'_>, more: u64) -> AccountAddress {
    if more > 0 && rng.one_in(2) {
        let number = rng.below(more);
        let last = ["main", "fees", "x"][number as usize % 3];
        return address(&format!("users:{}:{last}", number / 2));
    }
    address(if rng.one_in(8) { rng.pick(&ADDRESSES) } else { rng.pick(&ADDRESSES[..FREQUENT]) })
}

/// Names of buckets. The first is never deleted, so that some logs grow long. The last is deleted most often.
pub(crate) const BUCKETS: [&str; 4] = ["kept", "shared", "other", "brief"];

/// Returns a bucket that may be deleted.
pub(crate) fn bucket(rng: &mut Rng<'_>) -> BucketName {
    let name = if rng.one_in(2) { "brief" } else { rng.pick(&BUCKETS[1..]) };
    BucketName::parse(name).expect("the names of random work are well-formed")
}

/// Returns random features. Each one is on or off.
fn features(rng: &mut Rng<'_>) -> Features {
    let mut switch = |sides| if rng.one_in(sides) { Switch::Off } else { Switch::On };
    let (moves_history, effective_volumes) = (switch(3), switch(3));
    let (account_metadata_history, transaction_metadata_history) = (switch(2), switch(2));
    Features {
        hash_logs: rng.pick(&[HashLogs::Sync, HashLogs::Sync, HashLogs::Async, HashLogs::Disabled]),
        legacy_hashes: rng.pick(&[Switch::On, Switch::Off]),
        moves_history,
        effective_volumes,
        account_metadata_history,
        transaction_metadata_history,
    }
}

/// Returns random options for a ledger. Half of all ledgers have every feature.
pub(crate) fn options(rng: &mut Rng<'_>, is_first: bool) -> LedgerOptions {
    let kept = BucketName::parse(BUCKETS[0]).expect("the names of random work are well-formed");
    let mut metadata = Metadata::EMPTY;
    if rng.one_in(3) {
        metadata.insert_text(rng.pick(&KEYS), rng.pick(&VALUES));
    }
    LedgerOptions {
        bucket: if is_first { kept } else { bucket(rng) },
        first_id: rng.pick(&[FirstId::One, FirstId::One, FirstId::Zero]),
        features: if rng.one_in(2) { Features::default() } else { features(rng) },
        metadata,
    }
}

pub(crate) fn ledger(number: u64) -> LedgerName {
    LedgerName::parse(&format!("ledger-{number}")).expect("the names of random work are well-formed")
}

/// Returns the name of a ledger that imports the logs of another one.
pub(crate) fn copy(number: u64) -> LedgerName {
    LedgerName::parse(&format!("copy-{number}")).expect("the names of random work are well-formed")
}
