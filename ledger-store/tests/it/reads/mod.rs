//! Reads compared with the model. Both get the same commands and then every kind of question, with random filters,
//! dates and pages, while the store's files and memory are in various states.

use std::sync::Arc;

use ledger_core::{
    AccountAddress, Balance, Condition, Features, Field, FilterNode, FilterOf, FilterValue, LedgerName,
    LedgerOptions, Operator, Resource, Switch, Timestamp,
};
use ledger_store::{
    AccountOrder, AccountQuery, BalancesQuery, Deleted, Direction, Expand, LedgerView, Options, PageRequest,
    ReadError, Snapshot, Start, Store, TimeAxis, VolumesQuery,
};
use ledger_testkit::{Oracle, Rng, SetClock, Step, Workload};

mod page_bytes;

/// A store in memory and its oracle. Both get the same random commands.
struct World {
    store: Store,
    oracle: Oracle,
    work: Workload<'static>,
    rng: Rng<'static>,
    clock: Arc<SetClock>,
    now: Timestamp,
}

impl World {
    fn new(seed: u64, memory_budget: usize) -> Self {
        let clock = Arc::<SetClock>::default();
        let mut options = Options::default();
        options.clock = clock.clone();
        options.memory_budget = memory_budget;
        let work = Workload::with_accounts(Rng::from_seed(seed), seed % 2 * 60);
        Self {
            store: Store::in_memory_with(&options),
            oracle: Oracle::default(),
            work,
            rng: Rng::from_seed(seed + 1),
            clock,
            now: Timestamp::from_micros(0),
        }
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.now = self.work.tick();
            self.clock.set(self.now);
            let step = self.work.step();
            // The test decides when the store flushes.
            if !matches!(step, Step::Flush | Step::Reopen) {
                assert_eq!(self.oracle.step(&self.store, &step, self.now), Ok(None));
            }
        }
    }

    /// Asks the store questions about its current state.
    fn ask(&mut self, rounds: u32) {
        let asked = self.oracle.ask(&self.store.snapshot(), &mut self.rng, self.now, rounds);
        assert!(asked.expect("the model's answers") > u64::from(rounds));
    }
}

const LARGE: usize = 64 << 20;
const SMALL: usize = 64 << 10;

#[test]
fn reads_rows_from_memtables() {
    for seed in 0..6 {
        let mut world = World::new(seed, LARGE);
        for _ in 0..4 {
            world.run(30);
            world.ask(12);
        }
    }
}

#[test]
fn reads_rows_after_a_flush() {
    for seed in 10..14 {
        let mut world = World::new(seed, LARGE);
        for _ in 0..4 {
            world.run(30);
            world.store.flush();
            world.ask(12);
        }
    }
}

#[test]
fn reads_rows_from_memtables_and_index() {
    for seed in 20..24 {
        let mut world = World::new(seed, LARGE);
        for _ in 0..4 {
            world.run(15);
            world.store.flush();
            world.run(15);
            world.ask(12);
        }
    }
}

#[test]
fn reads_rows_from_many_runs_and_merges() {
    for seed in 30..33 {
        let mut world = World::new(seed, SMALL);
        for _ in 0..40 {
            world.run(3);
            world.store.flush();
        }
        world.ask(24);
        world.run(15);
        world.ask(24);
    }
}

#[test]
fn snapshot_does_not_change() {
    let mut world = World::new(50, SMALL);
    world.run(40);
    let (snapshot, mut oracle, then) = (world.store.snapshot(), world.oracle.clone(), world.now);
    for _ in 0..10 {
        world.run(5);
        world.store.flush();
    }
    oracle.forget_removed(&world.oracle);
    oracle.ask(&snapshot, &mut world.rng, then, 16).expect("the answers of its moment");
}

fn address(text: &str) -> AccountAddress {
    AccountAddress::parse(text).expect("an address")
}

fn page<K>(size: usize) -> PageRequest<K> {
    PageRequest { size, direction: Direction::Ascending, start: Start::First }
}

#[test]
fn ledgers_are_listed_by_number() {
    let store = Store::in_memory();
    for name in ["c", "a", "b"] {
        let name = LedgerName::parse(name).expect("a name");
        store.create_ledger(name, LedgerOptions::default()).expect("a new ledger");
    }
    let snapshot = store.snapshot();
    let d = LedgerName::parse("d").expect("a name");
    store.create_ledger(d.clone(), LedgerOptions::default()).expect("a new ledger");
    assert!(snapshot.ledger(&d).is_none(), "it was created after the snapshot");
    assert!(store.snapshot().ledger(&d).is_some());
    let all = FilterOf::all();
    let names = |request: PageRequest<u32>| {
        let page = snapshot.ledgers(&request, &all, Deleted::Hidden).expect("an answer");
        let names: Vec<String> = page.items.iter().map(|info| info.name.to_string()).collect();
        (names.join(""), page.has_previous, page.has_next)
    };
    assert_eq!(names(page(2)), ("ca".to_owned(), false, true));
    assert_eq!(names(PageRequest { start: Start::After(2), ..page(2) }), ("b".to_owned(), true, false));
    assert_eq!(names(PageRequest { start: Start::Before(3), ..page(1) }), ("a".to_owned(), true, true));
    let down = Direction::Descending;
    assert_eq!(names(PageRequest { direction: down, ..page(9) }), ("bac".to_owned(), false, false));
    assert_eq!(
        names(PageRequest { direction: down, start: Start::Before(1), size: 9 }),
        ("ba".to_owned(), false, true)
    );
}

#[test]
fn refuses_reads_that_need_a_missing_feature() {
    let store = Store::in_memory();
    let name = LedgerName::parse("main").expect("a name");
    let features =
        Features { moves_history: Switch::Off, effective_volumes: Switch::Off, ..Features::default() };
    store
        .create_ledger(name.clone(), LedgerOptions { features, ..LedgerOptions::default() })
        .expect("a new ledger");
    let view = store.snapshot().ledger(&name).expect("the ledger exists");
    let moves = ReadError::MissingFeature { feature: "MOVES_HISTORY" };
    let effective = ReadError::MissingFeature { feature: "MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES" };
    let at = Some(Timestamp::from_micros(0));
    let expand = Expand { volumes: true, effective_volumes: false };
    assert_eq!(view.account(&address("a"), None, expand), Err(moves.clone()));
    assert_eq!(view.account(&address("a"), at, Expand::default()), Ok(None));
    let accounts = |at| AccountQuery {
        filter: FilterOf::all(),
        at,
        expand,
        order: AccountOrder::Address,
        page: page(5),
    };
    assert_eq!(view.accounts(&accounts(None)), Err(moves.clone()));
    // Balances in the past are moves too, so they are refused even if no account matches.
    let field = Field::parse(Resource::Accounts, "balance[USD]").expect("a field");
    let balance = Condition::new(&field, Operator::Gt, FilterValue::Integer(Balance::from(5)));
    let node = FilterNode::Not(Box::new(FilterNode::Is(balance.expect("a condition"))));
    let rich = FilterOf::new(node).expect("a small filter");
    let of_rich = |at| AccountQuery { filter: rich.clone(), expand: Expand::default(), ..accounts(at) };
    assert_eq!(view.accounts(&of_rich(at)), Err(moves.clone()));
    assert_eq!(view.count_accounts(&rich, at), Err(moves.clone()));
    assert_eq!(view.accounts(&of_rich(None)).expect("the present is known").items, []);
    assert_eq!(view.count_accounts(&rich, None), Ok(0));
    let balances = |at| BalancesQuery { filter: FilterOf::all(), at, axis: TimeAxis::Inserted };
    assert_eq!(view.aggregated_balances(&balances(at)), Err(moves.clone()));
    assert_eq!(view.aggregated_balances(&balances(None)), Ok(Vec::new()));
    let volumes = VolumesQuery {
        filter: FilterOf::all(),
        from: at,
        to: None,
        axis: TimeAxis::Effective,
        group_by: 0,
        page: page(5),
    };
    assert_eq!(view.volumes(&volumes), Err(moves));
    let id = ledger_core::TransactionId::new(1);
    assert_eq!(view.transaction(id, None, true), Err(effective));
    assert_eq!(view.transaction(id, None, false), Ok(None));
}

#[test]
fn cursor_key_belongs_to_one_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let key = Store::open(directory.path().join("data")).expect("the store opens").cursor_key();
    assert_eq!(Store::open(directory.path().join("data")).expect("the store opens").cursor_key(), key);
    assert_ne!(Store::in_memory().cursor_key(), key);
    assert_ne!(key[..16], key[16..]);
}

#[test]
fn snapshots_can_move_to_other_threads() {
    fn is_send<T: Send + Sync + 'static>() {}
    is_send::<Snapshot>();
    is_send::<LedgerView>();
}
