//! Who takes part in random work: names that meet often, and schemas for them.

use ledger_core::schema::Schema;
use ledger_core::{
    AccountAddress, Asset, BucketName, Features, FirstId, HashLogs, LedgerName, LedgerOptions, Metadata,
    SchemaVersion, Switch,
};

use super::Dice;

/// Prefixes of each other, and in bytewise order not as they would be read. The last ones are seldom used, so that
/// some have only moves that lie ahead.
pub(super) const ADDRESSES: [&str; 17] = [
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
const FREQUENT: usize = 11;

pub(super) const ASSETS: [&str; 4] = ["USD/2", "EUR/2", "COIN", "BTC/8"];
pub(super) const KEYS: [&str; 3] = ["kind", "tier", "note"];
pub(super) const VALUES: [&str; 4] = ["a", "b", "", "long value"];
pub(super) const VERSIONS: [&str; 4] = ["v1", "v2", "v10", "next"];

/// Charts that know some of the addresses; the last has a template, `pay`.
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

pub(super) fn schema(dice: &mut Dice<'_>) -> Schema {
    Schema::parse(dice.pick(&SCHEMAS)).expect("a schema")
}

pub(super) fn version(dice: &mut Dice<'_>) -> SchemaVersion {
    SchemaVersion::parse(dice.pick(&VERSIONS)).expect("a version")
}

pub(super) fn address(text: &str) -> AccountAddress {
    AccountAddress::parse(text).expect("an address")
}

pub(super) fn asset(dice: &mut Dice<'_>) -> Asset {
    Asset::parse(dice.pick(&ASSETS)).expect("an asset")
}

/// One of the addresses, and of `more` besides them.
pub(super) fn any_address(dice: &mut Dice<'_>, more: u64) -> AccountAddress {
    if more > 0 && dice.one_in(2) {
        let number = dice.below(more);
        let last = ["main", "fees", "x"][number as usize % 3];
        return address(&format!("users:{}:{last}", number / 2));
    }
    address(if dice.one_in(8) { dice.pick(&ADDRESSES) } else { dice.pick(&ADDRESSES[..FREQUENT]) })
}

/// The first is never deleted, so that some logs grow long; the last is more often than the others.
pub(super) const BUCKETS: [&str; 4] = ["kept", "shared", "other", "brief"];

/// A bucket that may be deleted.
pub(super) fn bucket(dice: &mut Dice<'_>) -> BucketName {
    let name = if dice.one_in(2) { "brief" } else { dice.pick(&BUCKETS[1..]) };
    BucketName::parse(name).expect("a name")
}

/// What a ledger may keep, each of it or not.
fn features(dice: &mut Dice<'_>) -> Features {
    let mut switch = |sides| if dice.one_in(sides) { Switch::Off } else { Switch::On };
    let (moves_history, effective_volumes) = (switch(3), switch(3));
    let (account_metadata_history, transaction_metadata_history) = (switch(2), switch(2));
    Features {
        hash_logs: dice.pick(&[HashLogs::Sync, HashLogs::Sync, HashLogs::Async, HashLogs::Disabled]),
        legacy_hashes: dice.pick(&[Switch::On, Switch::Off]),
        moves_history,
        effective_volumes,
        account_metadata_history,
        transaction_metadata_history,
    }
}

/// What a ledger shall be. Half of them keep everything.
pub(super) fn options(dice: &mut Dice<'_>, is_first: bool) -> LedgerOptions {
    let kept = BucketName::parse(BUCKETS[0]).expect("a name");
    let mut metadata = Metadata::EMPTY;
    if dice.one_in(3) {
        metadata.insert_text(dice.pick(&KEYS), dice.pick(&VALUES));
    }
    LedgerOptions {
        bucket: if is_first { kept } else { bucket(dice) },
        first_id: dice.pick(&[FirstId::One, FirstId::One, FirstId::Zero]),
        features: if dice.one_in(2) { Features::default() } else { features(dice) },
        metadata,
    }
}

pub(super) fn ledger(number: u64) -> LedgerName {
    LedgerName::parse(&format!("ledger-{number}")).expect("a name")
}

/// A ledger that takes logs of another.
pub(super) fn copy(number: u64) -> LedgerName {
    LedgerName::parse(&format!("copy-{number}")).expect("a name")
}
