//! Schemas: their order among other commands, and their effect on commands.

use std::path::Path;
use std::sync::Arc;

use ledger_core::schema::{Enforcement, Schema};
use ledger_core::script::Language;
use ledger_core::{
    AccountAddress, Amount, Asset, Command, CreateTransaction, ErrorWording, FilterOf, InsertSchema,
    LedgerName, LedgerOptions, LogEntry, LogId, LogPayload, Metadata, Movement, Posting, Postings, Rejection,
    SchemaVersion, Target, VariableValue, WireHash,
};
use ledger_store::{
    Atomicity, Detail, Direction, Expand, ImportError, ImportedLog, LogHashes, LogQuery, LogView, Mode,
    Options, Outcome, PageRequest, Request, SchemaOrder, SchemaQuery, Start, Store, Submission,
};
use ledger_testkit::{Disk, SimDisk};

const PLAIN: &str = r#"{"chart":{"bank":{},"shops":{"$shop":{".pattern":"^s","fees":{},".self":{},
    ".metadata":{"level":{"default":"new"},"kind":{"default":"shop"}}}}}}"#;
const WITH_TEMPLATES: &str = r#"{"chart":{"shops":{"$shop":{}}},"transactions":{"pay":{
    "script":"vars { account $to }\nsend [EUR/2 7] (\n source = @world\n destination = $to\n)"}}}"#;

type Pairs = &'static [(&'static str, &'static str)];
type Edit<'a> = &'a dyn Fn(&mut Vec<LogEntry>);

fn name() -> LedgerName {
    LedgerName::parse("main").expect("a name")
}

fn version(text: &str) -> SchemaVersion {
    SchemaVersion::parse(text).expect("a version")
}

fn address(text: &str) -> AccountAddress {
    AccountAddress::parse(text).expect("an address")
}

fn open(disk: &SimDisk, enforcement: Enforcement) -> Store {
    let mut options = Options::default();
    options.schema_enforcement = enforcement;
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let store = Store::open_on_disk(disk, Path::new("data"), &options).expect("the store opens");
    // At a second opening, the ledger exists already.
    let _ = store.create_ledger(name(), LedgerOptions::default());
    store
}

fn insert(of: &str, text: &str) -> Request {
    let schema = Box::new(Schema::parse(text).expect("a schema"));
    Command::InsertSchema(InsertSchema { version: version(of), schema }).into()
}

fn under(of: &str, command: Command) -> Request {
    Request { schema_version: Some(Box::new(version(of))), ..Request::from(command) }
}

fn pay(destination: &str) -> Command {
    let posting = Posting {
        source: AccountAddress::world(),
        destination: address(destination),
        amount: Amount::from(5_u64),
        asset: Asset::parse("EUR/2").expect("an asset"),
    };
    Command::CreateTransaction(CreateTransaction::of([posting].into_iter().collect()))
}

fn by_template(name: &str, to: &str) -> Command {
    Command::CreateTransaction(CreateTransaction {
        movement: Movement::Template {
            name: name.into(),
            variables: [("to".to_owned(), VariableValue::Text(to.to_owned()))].into(),
            wording: ErrorWording::Machine,
            language: Language::NUMSCRIPT,
        },
        ..CreateTransaction::of(Postings::new())
    })
}

fn submit(store: &Store, requests: Vec<Request>, atomicity: Atomicity, mode: Mode) -> Vec<Outcome> {
    let submission = Submission { ledger: name(), requests, atomicity, mode, detail: Detail::Entry };
    store.apply(submission).expect("the write succeeds")
}

fn run(store: &Store, request: Request) -> Outcome {
    submit(store, vec![request], Atomicity::Independent, Mode::Commit).pop().expect("an outcome")
}

#[track_caller]
fn done(outcome: Outcome) -> LogEntry {
    match outcome {
        Outcome::Done(receipt) => *receipt.entry.expect("an entry"),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(outcome: Outcome) -> Rejection {
    match outcome {
        Outcome::Refused(rejection) => rejection,
        other => panic!("{other:?}"),
    }
}

fn metadata(store: &Store, account: &str) -> Option<Metadata> {
    let view = store.snapshot().ledger(&name()).expect("the ledger exists");
    let account = view.account(&address(account), None, Expand::default()).expect("the read succeeds");
    account.map(|account| account.metadata)
}

fn versions(store: &Store, order: SchemaOrder, direction: Direction, size: usize) -> Vec<String> {
    let view = store.snapshot().ledger(&name()).expect("the ledger exists");
    let filter = FilterOf::all();
    let mut found = Vec::new();
    let mut start = Start::First;
    loop {
        let page = PageRequest { size, direction, start };
        let page =
            view.schemas(&SchemaQuery { filter: filter.clone(), order, page }).expect("the read succeeds");
        assert_eq!(page.has_previous, !found.is_empty());
        found.extend(page.items.iter().map(|schema| schema.version.to_string()));
        match page.items.last().filter(|_| page.has_next) {
            Some(last) => start = Start::After(last.key.clone()),
            None => return found,
        }
    }
}

fn logs(store: &Store) -> Vec<LogView> {
    let view = store.snapshot().ledger(&name()).expect("the ledger exists");
    let page = PageRequest { size: 100, direction: Direction::Ascending, start: Start::First };
    let query = LogQuery { filter: FilterOf::all(), hashes: LogHashes::Wire, page };
    view.logs(&query).expect("the read succeeds").items
}

#[track_caller]
fn verified(store: &Store) {
    let report = store.verify().expect("the verification runs");
    assert!(report.is_clean(), "{}", report.to_json_lines());
}

#[test]
fn schema_applies_to_later_commands_unless_undone() {
    let store = open(&SimDisk::new(), Enforcement::Audit);
    let asked = || vec![insert("v1", WITH_TEMPLATES), under("v1", by_template("pay", "shops:1"))];
    for (atomicity, mode) in [(Atomicity::Independent, Mode::DryRun), (Atomicity::AllOrNothing, Mode::DryRun)]
    {
        let outcomes = submit(&store, asked(), atomicity, mode);
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Done(_))), "{outcomes:?}");
    }
    let mut undone = asked();
    undone.push(under("v1", by_template("nosuch", "shops:1")));
    let outcomes = submit(&store, undone, Atomicity::AllOrNothing, Mode::Commit);
    assert!(matches!(outcomes[2], Outcome::Refused(Rejection::TemplateNotFound { .. })), "{outcomes:?}");
    assert_eq!(versions(&store, SchemaOrder::Created, Direction::Descending, 9), Vec::<String>::new());
    assert_eq!(
        refused(run(&store, under("v1", by_template("pay", "shops:1")))),
        Rejection::SchemaNotFound { version: version("v1") }
    );
    // The same name now means another schema, because the first one was undone.
    done(run(&store, insert("v1", PLAIN)));
    let unknown = refused(run(&store, under("v1", by_template("pay", "shops:1"))));
    assert!(matches!(unknown, Rejection::TemplateNotFound { .. }), "{unknown:?}");
    let again = refused(run(&store, insert("v1", WITH_TEMPLATES)));
    assert_eq!(again, Rejection::SchemaExists { version: version("v1") });
    assert_eq!(logs(&store).len(), 1);
    verified(&store);
}

#[test]
fn lists_versions_by_age_and_name_after_rebuild() {
    let disk = SimDisk::new();
    let added = ["b", "a", "a\n2", "ü", "c"];
    {
        let store = open(&disk, Enforcement::Audit);
        for of in added {
            done(run(&store, insert(of, PLAIN)));
        }
        store
            .create_ledger(LedgerName::parse("other").expect("a name"), LedgerOptions::default())
            .expect("new");
        store.close().expect("the store closes");
    }
    disk.remove(Path::new("data/index/index.redb")).expect("there is an index");
    let store = open(&disk, Enforcement::Audit);
    let mut by_name = added;
    by_name.sort_unstable();
    for size in [1, 2, 9] {
        assert_eq!(versions(&store, SchemaOrder::Created, Direction::Ascending, size), added);
        assert_eq!(versions(&store, SchemaOrder::Version, Direction::Ascending, size), by_name);
        let mut newest_first = versions(&store, SchemaOrder::Created, Direction::Descending, size);
        newest_first.reverse();
        assert_eq!(newest_first, added);
    }
    let view = store.snapshot().ledger(&name()).expect("the ledger exists");
    let schema = view.schema(&version("ü")).expect("the read succeeds").expect("a schema");
    assert!(matches!(&logs(&store)[3].entry.payload,
        LogPayload::InsertedSchema { schema: text } if *text == schema.text));
    assert_eq!(view.schema(&version("x")).expect("the read succeeds"), None);
    let other =
        store.snapshot().ledger(&LedgerName::parse("other").expect("a name")).expect("the ledger exists");
    assert_eq!(other.schema(&version("a")).expect("the read succeeds"), None);
    let outcome = run(&store, under("b", pay("shops:s1")));
    assert_eq!(done(outcome).defaults.len(), 1);
    verified(&store);
}

#[test]
fn new_accounts_get_default_metadata_of_the_chart() {
    let disk = SimDisk::new();
    let store = open(&disk, Enforcement::Audit);
    done(run(&store, insert("v1", PLAIN)));
    done(run(&store, pay("shops:s0").into()));
    let Command::CreateTransaction(mut create) = pay("shops:s1") else { unreachable!() };
    create.account_metadata = [
        (address("shops:s1"), [("level", "old")].into_iter().collect()),
        (address("shops:s2"), Metadata::EMPTY),
    ]
    .into();
    let entry = done(run(&store, under("v1", Command::CreateTransaction(create))));
    assert!(matches!(&entry.payload, LogPayload::NewTransaction { account_metadata, .. }
        if account_metadata.len() == 2 && account_metadata[1].1.is_empty()));
    let set = |account: &str| Command::SetMetadata {
        target: Target::Account(address(account)),
        metadata: [("kind", "kiosk")].into_iter().collect(),
    };
    done(run(&store, under("v1", set("shops:s3"))));
    done(run(&store, under("v1", set("shops:s1"))));
    done(run(&store, under("v1", pay("shops:s0"))));
    done(run(&store, under("v1", pay("shops:s4:fees"))));
    let removed = Command::DeleteMetadata { target: Target::Account(address("shops:s9")), key: "k".into() };
    done(run(&store, under("v1", removed)));
    // The store executes a command that breaks a rule, and reports the violation.
    let outcome = run(&store, under("v1", pay("shops:x")));
    assert!(matches!(&outcome, Outcome::Done(receipt) if receipt.violation.is_some()), "{outcome:?}");
    let expected: [(&str, Option<Pairs>); 9] = [
        ("shops:s0", Some(&[])),
        ("shops:s1", Some(&[("level", "old"), ("kind", "kiosk")])),
        ("shops:s2", Some(&[("level", "new"), ("kind", "shop")])),
        ("shops:s3", Some(&[("level", "new"), ("kind", "kiosk")])),
        ("shops:s4", None),
        ("shops:s4:fees", Some(&[])),
        ("shops:s9", None),
        ("shops:x", Some(&[])),
        ("world", Some(&[])),
    ];
    let check = |store: &Store| {
        for (account, pairs) in expected {
            let expected = pairs.map(|pairs| pairs.iter().copied().collect());
            assert_eq!(metadata(store, account), expected, "{account}");
        }
        verified(store);
    };
    check(&store);
    // As on other servers, a log names its schema version, and an import finds the defaults in that schema.
    let copy = open(&SimDisk::new(), Enforcement::Strict);
    let exported: Vec<ImportedLog> = logs(&store)
        .into_iter()
        .map(|log| ImportedLog {
            original_updated_at: None,
            tells_volumes: true,
            entry: LogEntry { defaults: Vec::new(), ..log.entry },
            hash: log.hash.map(WireHash::from_bytes),
        })
        .collect();
    copy.import(&name(), &exported).expect("the import succeeds");
    check(&copy);
    assert_eq!(logs(&copy), logs(&store));
    store.close().expect("the store closes");
    drop(store);
    disk.remove(Path::new("data/index/index.redb")).expect("there is an index");
    check(&open(&disk, Enforcement::Audit));
}

#[test]
fn strict_mode_requires_version_and_chart_accounts() {
    let store = open(&SimDisk::new(), Enforcement::Strict);
    done(run(&store, pay("anything").into()));
    done(run(&store, insert("v1", PLAIN)));
    assert_eq!(refused(run(&store, pay("bank").into())), Rejection::SchemaNotSpecified);
    done(run(&store, under("v1", pay("bank"))));
    let outside = Rejection::AccountOutsideChart { account: address("anything"), version: version("v1") };
    assert_eq!(refused(run(&store, under("v1", pay("anything")))), outside);
    let revert = Command::RevertTransaction(ledger_core::RevertTransaction {
        id: ledger_core::TransactionId::new(1),
        overdraft: ledger_core::Overdraft::Refuse,
        dated: ledger_core::RevertDate::Now,
        metadata: Metadata::EMPTY,
        rules: ledger_core::Rules::Current,
    });
    assert_eq!(refused(run(&store, revert.clone().into())), Rejection::SchemaNotSpecified);
    // A transaction from before the schema can be reverted.
    done(run(&store, under("v1", revert)));
    done(run(&store, insert("v2", PLAIN)));
    verified(&store);
}

#[test]
fn transaction_names_its_template() {
    let disk = SimDisk::new();
    let store = open(&disk, Enforcement::Audit);
    done(run(&store, insert("v1", WITH_TEMPLATES)));
    let entry = done(run(&store, under("v1", by_template("pay", "shops:1"))));
    let LogPayload::NewTransaction { transaction, .. } = &entry.payload else { panic!("{entry:?}") };
    assert_eq!(transaction.template.as_deref(), Some("pay"));
    assert_eq!(entry.schema_version.as_deref(), Some("v1"));
    let missing = refused(run(&store, by_template("pay", "shops:1").into()));
    assert_eq!(missing, Rejection::TemplateWithoutVersion { template: "pay".into() });
    let plain = refused(run(&store, under("v1", pay("shops:1"))));
    assert_eq!(plain, Rejection::TemplateRequired { version: version("v1") });
    store.close().expect("the store closes");
    drop(store);
    let store = open(&disk, Enforcement::Audit);
    assert_eq!(logs(&store)[1].entry, entry);
    done(run(&store, under("v1", by_template("pay", "shops:2"))));
}

#[test]
fn import_refuses_malformed_or_missing_schema() {
    let store = open(&SimDisk::new(), Enforcement::Audit);
    done(run(&store, insert("v1", PLAIN)));
    done(run(&store, under("v1", pay("bank"))));
    let good = logs(&store);
    let import = |edit: &dyn Fn(&mut Vec<LogEntry>)| {
        let store = open(&SimDisk::new(), Enforcement::Audit);
        let mut entries: Vec<LogEntry> = good.iter().map(|log| log.entry.clone()).collect();
        edit(&mut entries);
        let mut chain = ledger_core::HashChain::default();
        let logs: Vec<ImportedLog> = entries
            .into_iter()
            .map(|entry| ImportedLog {
                hash: Some(chain.append(&entry)),
                entry,
                original_updated_at: None,
                tells_volumes: true,
            })
            .collect();
        let outcome = store.import(&name(), &logs);
        (store, outcome)
    };
    let unfit_script = r#"{"chart":{},"transactions":{"t":{"script":"sned"}},"version":"v1"}"#;
    let edits: [Edit<'_>; 5] = [
        &|entries| entries[0].payload = LogPayload::InsertedSchema { schema: unfit_script.into() },
        &|entries| drop(entries.remove(0)),
        &|entries| entries[0].payload = LogPayload::InsertedSchema { schema: r#"{"version":"v1"}"#.into() },
        &|entries| entries[0].payload = LogPayload::InsertedSchema { schema: r#"{"chart":{}}"#.into() },
        &|entries| {
            entries[1] = LogEntry { id: LogId::new(2), schema_version: None, ..entries[0].clone() };
        },
    ];
    for (at, edit) in edits.into_iter().enumerate() {
        let (store, outcome) = import(edit);
        assert!(matches!(outcome, Err(ImportError::Refused { .. })), "{at}: {outcome:?}");
        verified(&store);
    }
    let (copy, outcome) = import(&|_| {});
    outcome.expect("the import succeeds");
    assert_eq!(logs(&copy), good);
}
