//! Makes random changes of all documents of the authorization server, and compares them with a model after each change.
//! Between changes the store is closed and reopened, time passes, and the power fails during a change.
//! `auth::power_cuts` cuts the power at every sync.

mod logins;
mod model;
mod resources;

use std::path::Path;
use std::sync::Arc;

use ledger_core::Timestamp;
use ledger_store::{Options, Store};
use ledger_testkit::{Disk, Faults, SetClock, SimDisk};

use crate::auth::authority::{Authority, AuthorizationSettings};
use crate::auth::keys::master::{KeySource, MasterKey};
use crate::auth::keys::vault::Vault;
use crate::auth::power_cuts::REDIRECT;
use crate::auth::resources::clients::{self, Draft};
use model::{Identity, Model, ModelClient};

/// Number of changes of a run. The variable `AUTH_CHANGES` sets a larger number.
const CHANGES: usize = 300;

/// Random number generator (xorshift).
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

/// The clock of a run.
#[derive(Clone, Default)]
struct Time(Arc<SetClock>);

impl Time {
    fn seconds(&self) -> u64 {
        use ledger_store::TimeSource as _;
        u64::try_from(self.0.now().as_micros()).expect("a time after 1970") / 1_000_000
    }

    fn advance(&self, seconds: u64) {
        let seconds = i64::try_from(self.seconds() + seconds).expect("a date");
        self.0.set(Timestamp::from_micros(seconds * 1_000_000));
    }
}

/// The object of a change. After a power cut it is unknown whether the object was changed.
#[derive(Clone, Debug)]
enum ChangedObject {
    /// A client, by its id.
    Client(String),
    /// A scope, by its id or its label.
    Scope(String),
    /// A refused token.
    Refused(String),
    /// A user with an address.
    User(Identity, String),
    Code(usize),
    Session(usize),
    /// All sessions of a user with a client.
    LogOut(String, String),
    /// An access token.
    Issued(usize),
    /// A signing key that is removed.
    Key(String),
    /// Everything that has expired.
    Expired,
}

/// Counters of events. A run without these events proves little.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    cuts: usize,
    reopened: usize,
    deleted_secrets: usize,
    sessions: usize,
    removed_keys: usize,
}

impl Counters {
    fn add(&mut self, run: &Run) {
        self.cuts += run.counters.cuts;
        self.reopened += run.counters.reopened;
        self.deleted_secrets += run.model.gone.len();
        self.sessions += run.model.sessions.len();
        self.removed_keys += run.model.removed_keys.len();
    }
}

/// A run: the store, its model and the random choices.
struct Run {
    disk: SimDisk,
    key: KeySource,
    clock: Time,
    authority: Authority,
    model: Model,
    rng: Rng,
    changed: Option<ChangedObject>,
    counters: Counters,
}

fn authority_of(store: &Store, key: &KeySource) -> Authority {
    let settings = AuthorizationSettings::new(key.clone());
    Authority::new(store, settings, "http://127.0.0.1:1").expect("an authorization server")
}

fn open(disk: &SimDisk, key: &KeySource, clock: &Time) -> Authority {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut options = Options::default();
    options.clock = clock.0.clone();
    let store = Store::open_on_disk(disk, Path::new("data"), &options).expect("an open store");
    let authority = authority_of(&store, key);
    authority.open().expect("the keys can be opened");
    authority
}

impl Run {
    /// Creates a run on an empty disk, with two clients that let users log in.
    fn new(seed: u64) -> Self {
        let (disk, clock) = (SimDisk::new(), Time::default());
        clock.advance(1_700_000_000);
        let key = KeySource::Given(MasterKey::random().expect("random bytes"));
        let authority = open(&disk, &key, &clock);
        let mut model = Model::default();
        for id in ["app0", "app1"] {
            let draft = Draft {
                id: id.into(),
                name: id.into(),
                redirect_uris: vec![REDIRECT.into()],
                ..Draft::default()
            };
            clients::create(authority.store(), &draft).expect("the client can be created");
            model
                .clients
                .insert(id.to_owned(), ModelClient { name: id.to_owned(), ..ModelClient::default() });
        }
        let (rng, counters) = (Rng(seed), Counters::default());
        Self { disk, key, clock, authority, model, rng, changed: None, counters }
    }

    fn store(&self) -> &Store {
        self.authority.store()
    }

    fn vault(&self) -> Arc<Vault> {
        self.authority.open().expect("a vault").vault
    }

    /// Returns whether a power cut has left the outcome of a change unknown. An answered change has a known outcome.
    fn is_in_doubt(&mut self, has_failed: bool) -> bool {
        let is_in_doubt = has_failed && self.disk.power_is_off();
        if !is_in_doubt {
            self.changed = None;
        }
        is_in_doubt
    }

    fn change(&mut self) {
        match self.rng.below(40) {
            0 | 1 => self.put_client(true),
            2 => self.put_client(false),
            3 => self.delete_client(),
            4..=6 => self.add_secret(),
            7 => self.delete_secret(),
            8 => self.put_scope(true),
            9 => self.put_scope(false),
            10 => self.set_transient(true),
            11 => {
                let brings = self.rng.below(2) == 0;
                self.set_transient(brings);
            }
            12 => {
                let holds = self.rng.below(3) > 0;
                self.set_scope(holds);
            }
            13 => self.delete_scope(),
            14 => self.refuse(),
            15..=18 => self.log_in(),
            19..=22 => self.use_code(),
            23..=26 => self.refresh(),
            27 => self.end_session(),
            28 => self.log_out(),
            29 | 30 => self.issue_token(),
            31 => self.revoke_token(),
            32 => self.rotate_keys(),
            33 => self.remove_key(),
            34 => self.store().flush(),
            _ => self.run_housekeeping(),
        }
    }

    /// Makes a random change, during which the power may fail.
    fn step(&mut self) {
        self.changed = None;
        if self.rng.below(6) == 0 {
            let cut_at_sync = Some(self.disk.syncs() + 1 + self.rng.below(2) as u64);
            self.disk.set_faults(Faults { cut_at_sync, ..Faults::default() });
        }
        self.change();
        self.disk.set_faults(Faults::default());
        if self.disk.power_is_off() {
            let past = self.rng.below(1_000) as u64;
            self.disk = self.disk.after_power_cut(past);
            self.authority = open(&self.disk, &self.key, &self.clock);
            self.settle();
            self.counters.cuts += 1;
        } else if self.rng.below(30) == 0 {
            self.store().close().expect("the store can be closed");
            // The directory is unlocked when its store is dropped.
            self.authority = authority_of(&Store::in_memory(), &self.key);
            self.authority = open(&self.disk, &self.key, &self.clock);
            self.counters.reopened += 1;
        }
    }

    /// Settles every change whose outcome is unknown after a power cut.
    fn settle(&mut self) {
        match self.changed.take() {
            None => {}
            Some(
                changed @ (ChangedObject::Client(_) | ChangedObject::Scope(_) | ChangedObject::Refused(_)),
            ) => {
                self.settle_resource(changed);
            }
            Some(changed) => self.settle_login(changed),
        }
    }
}

#[test]
fn random_work_matches_a_model() {
    let changes = std::env::var("AUTH_CHANGES").ok().and_then(|count| count.parse().ok()).unwrap_or(CHANGES);
    let mut all = Counters::default();
    for seed in [0x9e37_79b9, 0x85eb_ca6b, 0xc2b2_ae35] {
        let mut run = Run::new(seed);
        for number in 1..=changes {
            run.step();
            run.model.compare(&run.authority, &format!("seed {seed:#x}, change {number}"));
        }
        all.add(&run);
    }
    println!("{all:?}");
    assert!(all.cuts > 20 && all.reopened > 5 && all.deleted_secrets > 5, "{all:?}");
    assert!(all.sessions > 20 && all.removed_keys > 2, "{all:?}");
}
