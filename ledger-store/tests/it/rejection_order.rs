//! The order in which commands with several faults are refused.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ledger_core::limits::{ADDRESS_BYTES_MAX, METADATA_BYTES_MAX, POSTINGS_MAX, PRECONDITIONS_MAX};
use ledger_core::schema::{Enforcement, Schema};
use ledger_core::script::Language;
use ledger_core::{
    AccountAddress, Amount, Asset, Command, CreateTransaction, ErrorWording, Idempotency, IdempotencyKey,
    InsertSchema, LedgerName, LedgerOptions, LegacyRules, Mapping, Metadata, Movement, Overdraft, PastDates,
    Posting, Preconditions, Reference, Rejection, RevertDate, RevertTransaction, Rules, SchemaVersion,
    Script, Target, Timestamp, TransactionId,
};
use ledger_store::{Atomicity, Detail, Mode, Options, Outcome, Request, Store, Submission};
use ledger_testkit::{Disk, SimDisk};

/// Maximum number of assets in a ledger.
const ASSETS: usize = 65_536;

/// Returns the rank of a variant in the documented order.
const fn rank(rejection: &Rejection) -> usize {
    match rejection {
        Rejection::TooManyPreconditions { .. } => 0,
        Rejection::TooManyPostings { .. } => 1,
        Rejection::MetadataTooLarge { .. } => 2,
        Rejection::IdempotencyMismatch { .. } => 3,
        Rejection::AccountNotFound { .. } => 4,
        Rejection::AccountExists { .. } => 5,
        // This build reads every schema; `examples/tests/plain_build.rs` has the request for the second.
        Rejection::SchemaNotFound { .. } | Rejection::SchemaUnreadable { .. } => 6,
        Rejection::TemplateWithoutVersion { .. } => 7,
        Rejection::TemplateNotFound { .. } => 8,
        Rejection::TemplateRequired { .. } => 9,
        Rejection::SchemaNotSpecified => 10,
        Rejection::Script { .. } => 11,
        Rejection::MetadataOverride { .. } => 12,
        Rejection::TooManyAssets => 13,
        Rejection::TransactionTooLarge { .. } => 14,
        Rejection::TransactionNotFound { .. } => 15,
        Rejection::MetadataKeyNotFound { .. } => 16,
        Rejection::AlreadyReverted { .. } => 17,
        Rejection::PastDate { .. } => 18,
        Rejection::InsufficientFunds { .. } => 19,
        Rejection::NoPostings => 20,
        Rejection::ReferenceTaken { .. } => 21,
        Rejection::SchemaExists { .. } => 22,
        Rejection::AccountOutsideChart { .. } => 23,
    }
}

fn name(text: &str) -> LedgerName {
    LedgerName::parse(text).expect("a name")
}

fn account(text: &str) -> AccountAddress {
    AccountAddress::parse(text).expect("an address")
}

fn posting(source: &str, destination: &str, asset: &str) -> Posting {
    let (source, destination) = (account(source), account(destination));
    Posting {
        source,
        destination,
        amount: Amount::from(1_u64),
        asset: Asset::parse(asset).expect("an asset"),
    }
}

/// Returns a payment from an account without funds.
fn poor() -> CreateTransaction {
    CreateTransaction::of([posting("poor", "shop", "EUR")].into_iter().collect())
}

fn with_postings(postings: impl IntoIterator<Item = Posting>) -> CreateTransaction {
    CreateTransaction::of(postings.into_iter().collect())
}

fn with_script(text: &str) -> CreateTransaction {
    let script = Script { plain: text.to_owned(), ..Script::default() };
    CreateTransaction { movement: Movement::Script(script), ..with_postings([]) }
}

fn by_template(name: &str) -> CreateTransaction {
    let (variables, wording, language) = (BTreeMap::default(), ErrorWording::Machine, Language::NUMSCRIPT);
    let movement = Movement::Template { name: name.into(), variables, wording, language };
    CreateTransaction { movement, ..with_postings([]) }
}

/// Returns payments from an account without funds, one more than a transaction may have.
fn many() -> CreateTransaction {
    with_postings(vec![posting("poor", "a", "B"); POSTINGS_MAX + 1])
}

/// Adds metadata.
fn noted(create: CreateTransaction) -> CreateTransaction {
    CreateTransaction { metadata: Metadata::from([("k", "v")]), ..create }
}

/// Adds metadata above its limit.
fn large(create: CreateTransaction) -> CreateTransaction {
    let mut metadata = Metadata::EMPTY;
    metadata.insert_text("k", &"x".repeat(METADATA_BYTES_MAX));
    CreateTransaction { metadata, ..create }
}

/// Adds the reference of an earlier transaction.
fn taken(create: CreateTransaction) -> CreateTransaction {
    CreateTransaction { reference: Some(Reference::parse("taken").expect("a reference")), ..create }
}

fn legacy(create: CreateTransaction) -> CreateTransaction {
    let rules = LegacyRules { mapping: Mapping::new(Vec::new()), past_dates: PastDates::Refuse };
    CreateTransaction {
        rules: Rules::Legacy(Arc::new(rules)),
        timestamp: Some(Timestamp::from_micros(1)),
        ..create
    }
}

/// Returns postings with addresses of maximum length, which exceed the size of an entry.
fn long(asset: impl Fn(usize) -> String) -> Vec<Posting> {
    let address = |at: usize| format!("{at:0>width$}", width = ADDRESS_BYTES_MAX.min(500));
    (0..POSTINGS_MAX).map(|at| posting(&address(at), &address(at + POSTINGS_MAX), &asset(at))).collect()
}

fn create(create: CreateTransaction) -> Request {
    Command::CreateTransaction(create).into()
}

fn under(version: &str, create: CreateTransaction) -> Request {
    let version = SchemaVersion::parse(version).expect("a version");
    Request { schema_version: Some(Box::new(version)), ..Command::CreateTransaction(create).into() }
}

/// Returns a request under an unknown schema version that requires accounts to exist, and others to be new.
fn requiring(existing: &[&str], new: &[&str], create: CreateTransaction) -> Request {
    let accounts = |names: &[&str]| names.iter().map(|name| account(name)).collect();
    let preconditions = Preconditions { existing: accounts(existing), new: accounts(new) };
    Request { preconditions: Some(Box::new(preconditions)), ..under("none", create) }
}

fn insert(version: &str, schema: &str) -> Request {
    let version = SchemaVersion::parse(version).expect("a version");
    let schema = Box::new(Schema::parse(schema).expect("a schema"));
    Command::InsertSchema(InsertSchema { version, schema }).into()
}

/// Creates a store with two ledgers: `free` without a schema and with the maximum number of assets, and `strict` with
/// two schema versions. In both, transaction 1 has the reference `taken` and is reverted, and an idempotency key is
/// used.
fn store() -> Store {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
    let mut options = Options::default();
    options.schema_enforcement = Enforcement::Strict;
    let store = Store::open_on_disk(disk, Path::new("data"), &options).expect("the store opens");
    for ledger in ["free", "strict"] {
        store.create_ledger(name(ledger), LedgerOptions::default()).expect("a new ledger");
        let first = keyed(create(taken(with_postings([posting("world", "a", "EUR")]))), "first");
        done(&store, ledger, first);
        let spent = create(with_postings([posting("a", "b", "EUR")]));
        done(&store, ledger, spent);
        done(&store, ledger, create(with_postings([posting("world", "a", "EUR")])));
        done(&store, ledger, revert());
    }
    let mut assets = 1;
    while assets < ASSETS {
        let part = (ASSETS - assets).min(POSTINGS_MAX);
        let names = (assets..assets + part).map(|number| posting("world", "rich", &format!("A{number}")));
        done(&store, "free", create(with_postings(names)));
        assets += part;
    }
    done(&store, "strict", insert("plain", r#"{"chart":{"shop":{}}}"#));
    let templates = r#"{"chart":{"shop":{}},"transactions":{"pay":{"script":"print 1"}}}"#;
    done(&store, "strict", insert("templates", templates));
    store
}

fn keyed(request: Request, hash: &str) -> Request {
    let key = IdempotencyKey::parse("key").expect("a key");
    Request { idempotency: Some(Box::new(Idempotency { key, hash: hash.into() })), ..request }
}

fn revert() -> Request {
    Command::RevertTransaction(RevertTransaction {
        id: TransactionId::new(1),
        overdraft: Overdraft::Refuse,
        dated: RevertDate::Now,
        metadata: Metadata::EMPTY,
        rules: Rules::Current,
    })
    .into()
}

fn delete(id: u64) -> Request {
    let target = Target::Transaction(TransactionId::new(id));
    Command::DeleteMetadata { target, key: "none".into() }.into()
}

fn run(store: &Store, ledger: &str, request: Request) -> Outcome {
    let submission = Submission {
        ledger: name(ledger),
        requests: vec![request],
        atomicity: Atomicity::Independent,
        mode: Mode::Commit,
        detail: Detail::Ids,
    };
    store.apply(submission).expect("the write succeeds").pop().expect("an outcome")
}

#[track_caller]
fn done(store: &Store, ledger: &str, request: Request) {
    let outcome = run(store, ledger, request);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
}

/// Returns requests in the order of the variants of [`Rejection`]. Each has the defect of its variant and, if
/// possible, the defect of a later variant.
fn requests() -> Vec<(&'static str, Request)> {
    let old = |_| "EUR".to_owned();
    let new = |at: usize| format!("B{at}");
    let override_ = r#"send [EUR 1] (source = @world destination = @a) set_tx_meta("k", "v")"#;
    vec![
        ("strict", keyed(requiring(&["none"; PRECONDITIONS_MAX], &["a"], many()), "second")),
        ("strict", keyed(requiring(&["none"], &["a"], large(many())), "second")),
        ("strict", keyed(requiring(&["none"], &["a"], large(poor())), "second")),
        ("strict", keyed(requiring(&["none"], &["a"], poor()), "second")),
        ("strict", requiring(&["a", "none"], &["a"], poor())),
        ("strict", requiring(&["a"], &["none", "a"], poor())),
        ("strict", under("none", by_template("none"))),
        ("free", create(taken(by_template("none")))),
        ("strict", under("templates", taken(by_template("none")))),
        ("strict", under("templates", taken(poor()))),
        ("strict", create(taken(poor()))),
        ("free", create(taken(with_script("nonsense")))),
        ("free", create(taken(noted(with_script(override_))))),
        ("free", create(with_postings(long(new)))),
        ("free", create(taken(with_postings(long(old))))),
        ("free", delete(999)),
        ("free", delete(1)),
        ("free", revert()),
        ("free", create(legacy(taken(poor())))),
        ("free", create(taken(poor()))),
        ("free", create(taken(with_postings([])))),
        ("strict", under("plain", taken(with_postings([posting("world", "b", "EUR")])))),
        ("strict", insert("plain", "{\"chart\":{}}")),
        ("strict", under("plain", with_postings([posting("world", "b", "EUR")]))),
    ]
}

#[test]
fn refusals_follow_the_documented_order() {
    let store = store();
    let requests = requests();
    assert_eq!(requests.len(), 24, "one for each rank");
    for (expected, (ledger, request)) in requests.into_iter().enumerate() {
        match run(&store, ledger, request) {
            Outcome::Refused(rejection) => assert_eq!(rank(&rejection), expected, "{rejection:?}"),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn ledger_full_of_assets_accepts_what_adds_none() {
    let store = store();
    let target = Target::Account(account("noted"));
    done(&store, "free", Command::SetMetadata { target, metadata: Metadata::from([("k", "v")]) }.into());
    let mut known = with_postings([posting("world", "newcomer", "EUR")]);
    known.account_metadata.insert(account("gifted"), Metadata::from([("k", "v")]));
    done(&store, "free", create(known));
    let outcome = run(&store, "free", create(with_postings([posting("world", "newcomer", "B")])));
    assert!(matches!(outcome, Outcome::Refused(Rejection::TooManyAssets)), "{outcome:?}");
}

#[test]
fn counts_what_a_script_adds() {
    let store = store();
    let mut create_ =
        with_script(r#"send [EUR 1] (source = @world destination = @a) set_tx_meta("note", "more")"#);
    create_.metadata.insert_text("k", &"x".repeat(METADATA_BYTES_MAX - "k".len()));
    let outcome = run(&store, "free", create(create_));
    let bytes = METADATA_BYTES_MAX + "notemore".len();
    assert!(
        matches!(outcome, Outcome::Refused(Rejection::MetadataTooLarge { bytes: found }) if found == bytes),
        "{outcome:?}"
    );
}
