//! Tests with the export of a real ledger from another server: the hashes, volumes and metadata must be
//! equal.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use ledger_core::model::{Model, MoveDate, Window};
use ledger_core::{
    AccountAddress, Asset, Condition, Field, Filter, FilterNode, FilterValue, HashChain, Idempotency,
    IdempotencyKey, LedgerName, LogEntry, LogId, LogPayload, Metadata, Operator, Posting, Reference,
    Resource, Target, Timestamp, Transaction, TransactionId, Volumes, WireHash,
};
use serde_json::value::RawValue;

use crate::fold::apply;
use crate::memory_ledger::MemoryLedger;

type Object<'a> = BTreeMap<String, &'a RawValue>;

/// Reads a file of the recorded ledger. Prints a note and returns `None` where the recordings are absent.
fn marketplace(file: &str) -> Option<String> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance");
    let folder = std::env::var_os("CONFORMANCE_DIR").map_or(beside, PathBuf::from);
    if !folder.is_dir() {
        // Write past the test runner, which hides the output of passing tests.
        let _ = writeln!(std::io::stderr(), "skipped: no conformance data");
        return None;
    }
    let path = folder.join("exports/marketplace").join(file);
    Some(std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

macro_rules! parse {
    ($type:ty, $raw:expr) => {
        serde_json::from_str::<$type>($raw.get()).unwrap()
    };
}

fn text(object: &Object<'_>, member: &str) -> String {
    object.get(member).map(|raw| parse!(String, raw)).unwrap_or_default()
}

fn metadata(raw: &RawValue) -> Metadata {
    parse!(BTreeMap<String, String>, raw).into_iter().collect()
}

fn transaction(raw: &RawValue) -> Box<Transaction> {
    let object: Object<'_> = parse!(_, raw);
    let timestamp = Timestamp::parse(&text(&object, "timestamp")).unwrap();
    let posting = |raw: &RawValue| {
        let posting: Object<'_> = parse!(_, raw);
        Posting {
            source: AccountAddress::parse(&text(&posting, "source")).unwrap(),
            destination: AccountAddress::parse(&text(&posting, "destination")).unwrap(),
            amount: posting["amount"].get().parse().unwrap(),
            asset: Asset::parse(&text(&posting, "asset")).unwrap(),
        }
    };
    Box::new(Transaction {
        id: TransactionId::new(parse!(u64, object["id"])),
        postings: parse!(Vec<&RawValue>, object["postings"]).into_iter().map(posting).collect(),
        metadata: metadata(object["metadata"]),
        timestamp,
        reference: Reference::parse(&text(&object, "reference")).ok(),
        template: None,
        inserted_at: timestamp,
        updated_at: timestamp,
        reverted_at: None,
        post_commit_volumes: Vec::new(),
    })
}

fn target(data: &Object<'_>) -> Target {
    match text(data, "targetType").as_str() {
        "ACCOUNT" => Target::Account(AccountAddress::parse(&text(data, "targetId")).unwrap()),
        "TRANSACTION" => Target::Transaction(TransactionId::new(parse!(u64, data["targetId"]))),
        other => panic!("no target is called {other}"),
    }
}

fn payload(kind: &str, data: &Object<'_>) -> LogPayload {
    match kind {
        "NEW_TRANSACTION" => LogPayload::NewTransaction {
            transaction: transaction(data["transaction"]),
            account_metadata: parse!(Object<'_>, data["accountMetadata"])
                .iter()
                .map(|(address, raw)| (AccountAddress::parse(address).unwrap(), metadata(raw)))
                .collect(),
            effective_volumes: None,
        },
        "REVERTED_TRANSACTION" => {
            let original: Object<'_> = parse!(_, data["revertedTransaction"]);
            LogPayload::RevertedTransaction {
                reverted: TransactionId::new(parse!(u64, original["id"])),
                transaction: transaction(data["transaction"]),
                effective_volumes: None,
            }
        }
        "SET_METADATA" => {
            LogPayload::SetMetadata { target: target(data), metadata: metadata(data["metadata"]) }
        }
        "DELETE_METADATA" => {
            LogPayload::DeleteMetadata { target: target(data), key: text(data, "key").into() }
        }
        other => panic!("no log is called {other}"),
    }
}

/// Parses a line of an export: the entry and its hash.
fn entry(line: &str) -> (LogEntry, WireHash) {
    let object: Object<'_> = serde_json::from_str(line).unwrap();
    let idempotency = IdempotencyKey::parse(&text(&object, "idempotencyKey")).ok();
    let schema_version = text(&object, "schemaVersion");
    let entry = LogEntry {
        request_hash: None,
        defaults: Vec::new(),
        id: LogId::new(parse!(u64, object["id"])),
        date: Timestamp::parse(&text(&object, "date")).unwrap(),
        idempotency: idempotency
            .map(|key| Idempotency { key, hash: text(&object, "idempotencyHash").into() }),
        schema_version: (!schema_version.is_empty()).then(|| schema_version.into()),
        payload: payload(&text(&object, "type"), &parse!(Object<'_>, object["data"])),
    };
    (entry, WireHash::from_base64(&text(&object, "hash")).unwrap())
}

#[test]
fn recomputes_every_hash_of_a_recorded_ledger() {
    let Some(lines) = marketplace("logs.ndjson") else { return };
    let mut chain = HashChain::default();
    let mut hashed = 0;
    for line in lines.lines() {
        let (entry, hash) = entry(line);
        assert_eq!(chain.append(&entry), hash, "at {line}");
        hashed += 1;
    }
    assert_eq!(hashed, 2_374);
}

/// Parses rows of volumes by account and asset.
fn rows(raw: &RawValue) -> BTreeMap<(AccountAddress, Asset), Volumes> {
    let row = |row: &Object<'_>| {
        let account = AccountAddress::parse(&text(row, "account")).unwrap();
        let asset = Asset::parse(&text(row, "asset")).unwrap();
        ((account, asset), volumes(row))
    };
    parse!(Vec<Object<'_>>, raw).iter().map(row).collect()
}

fn volumes(row: &Object<'_>) -> Volumes {
    Volumes { input: row["input"].get().parse().unwrap(), output: row["output"].get().parse().unwrap() }
}

#[test]
fn rebuilds_a_recorded_ledger_from_its_log() {
    let (Some(lines), Some(expect)) = (marketplace("logs.ndjson"), marketplace("expect.json")) else {
        return;
    };
    let mut books = MemoryLedger::default();
    for line in lines.lines() {
        apply(&entry(line).0, &mut books);
    }
    let expect: Object<'_> = serde_json::from_str(&expect).unwrap();

    assert_eq!(books.volumes, rows(expect["volumes"]));

    let accounts: BTreeMap<_, _> = parse!(Object<'_>, expect["accounts"])
        .iter()
        .map(|(address, raw)| (AccountAddress::parse(address).unwrap(), metadata(raw)))
        .collect();
    assert_eq!(books.accounts, accounts);

    for row in parse!(Vec<Object<'_>>, expect["last_transactions"]) {
        let id = TransactionId::new(parse!(u64, row["id"]));
        let reverted = parse!(bool, row["reverted"]);
        let known = &books.transactions[&id];
        assert_eq!((&known.metadata, known.reverted), (&metadata(row["metadata"]), reverted), "{id:?}");
    }
}

#[test]
fn model_answers_like_the_recorded_server() {
    let (Some(lines), Some(expect)) = (marketplace("logs.ndjson"), marketplace("expect.json")) else {
        return;
    };
    let expect: Object<'_> = serde_json::from_str(&expect).unwrap();
    let ledger = LedgerName::parse("marketplace").unwrap();
    let mut model = Model::default();
    for line in lines.lines() {
        model.record(&ledger, entry(line).0);
    }

    let stats: BTreeMap<String, usize> = parse!(_, expect["stats"]);
    assert_eq!(model.stats(&ledger), (stats["transactions"], stats["accounts"]));

    for (pattern, sums) in parse!(Object<'_>, expect["aggregate"]) {
        let resource = Resource::AggregatedBalances;
        let field = Field::parse(resource, "address").unwrap();
        let condition = Condition::new(&field, Operator::Match, FilterValue::Text(pattern.as_str().into()));
        let filter = Filter::new(resource, FilterNode::Is(condition.unwrap())).unwrap();
        let have: BTreeMap<_, _> = model
            .aggregated_balances(&ledger, &filter, None, MoveDate::Effective)
            .into_iter()
            .map(|(asset, sum)| (asset.to_string(), sum.to_string()))
            .collect();
        let want: BTreeMap<_, _> =
            parse!(Object<'_>, sums).into_iter().map(|(asset, sum)| (asset, sum.get().to_owned())).collect();
        assert_eq!(have, want, "{pattern}");
    }

    let pit = Timestamp::parse(&text(&expect, "pit")).unwrap();
    let window = Window::until(Some(pit), MoveDate::Effective);
    let have: BTreeMap<_, _> = model
        .volumes(&ledger, &Filter::all(Resource::Volumes), window, None)
        .into_iter()
        .map(|row| ((row.account, row.asset), row.volumes))
        .collect();
    assert_eq!(have, rows(expect["volumes_at_pit_effective"]));

    for row in parse!(Vec<Object<'_>>, expect["accounts_with_volumes"]) {
        let address = AccountAddress::parse(&text(&row, "address")).unwrap();
        let account = model.account(&ledger, &address, None).unwrap();
        let want = |member: &str| -> BTreeMap<Asset, Volumes> {
            let Some(raw) = row.get(member) else { return BTreeMap::new() };
            let held = parse!(BTreeMap<String, Object<'_>>, raw);
            held.iter().map(|(asset, row)| (Asset::parse(asset).unwrap(), volumes(row))).collect()
        };
        assert_eq!(account.volumes, want("volumes"), "{address}");
        assert_eq!(account.effective_volumes, want("effectiveVolumes"), "{address}");
        for (member, have) in [
            ("firstUsage", account.first_usage),
            ("insertionDate", account.insertion_date),
            ("updatedAt", account.updated_at),
        ] {
            assert_eq!(have.to_string(), text(&row, member), "{member} of {address}");
        }
    }
}
