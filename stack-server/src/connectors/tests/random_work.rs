//! Compares random changes of installations with a model, which maps each installation to its fetched payments.

use std::collections::BTreeMap;

use ledger_testkit::{Rng, SimDisk};

use super::world::{Pages, World};
use super::*;

/// An installation in the model.
#[derive(Clone)]
struct Known {
    id: ConnectorId,
    is_idle: bool,
    payments: BTreeMap<usize, Vec<i64>>,
}

/// A server, its provider and the model.
struct RandomRun {
    world: World,
    disk: SimDisk,
    pages: Pages,
    known: BTreeMap<String, Known>,
    /// Number of names that installations have taken. Each name is used once.
    names_taken: usize,
}

impl RandomRun {
    fn new() -> Self {
        let (disk, pages) = (SimDisk::new(), Pages::default());
        pages.0.lock().expect("no panic").walks_again = true;
        let world = World::start(&disk, &pages);
        Self { world, disk, pages, known: BTreeMap::new(), names_taken: 0 }
    }

    fn fetching(&self) -> usize {
        self.known.values().filter(|known| !known.is_idle).count()
    }

    /// Updates the model after all installations that are not idle have fetched all payments of the provider.
    fn fetched(&mut self) {
        let amounts = self.pages.0.lock().expect("no panic").amounts.clone();
        for known in self.known.values_mut().filter(|known| !known.is_idle) {
            known.payments = amounts.iter().cloned().enumerate().collect();
        }
    }

    fn step(&mut self, rng: &mut Rng<'_>) {
        let names: Vec<_> = self.known.keys().cloned().collect();
        let chosen = (!names.is_empty()).then(|| rng.pick(&names));
        match (rng.below(12), chosen) {
            (0, _) | (1, None) => self.install(),
            (1, Some(name)) => {
                let known = self.known.remove(&name).expect("a known name");
                self.world.run(self.world.engine.uninstall(&known.id)).expect("removed");
            }
            (2, Some(name)) => self.reset(&name),
            (3 | 4, Some(name)) => self.configure(&name, rng.one_in(2)),
            (5..=7, _) => {
                let mut book = self.pages.0.lock().expect("no panic");
                let more = rng.below(4) as i64 + 1;
                book.amounts.extend((0..more).map(|number| vec![100 + number]));
            }
            (8, _) => {
                let mut book = self.pages.0.lock().expect("no panic");
                let count = book.amounts.len() as u64;
                if count > 0 {
                    let amounts = &mut book.amounts[rng.below(count) as usize];
                    let last = amounts[amounts.len() - 1];
                    amounts.push(last - 1);
                }
            }
            (9, _) => self.restart(None),
            (10, _) => self.restart(Some(rng.below(1_000))),
            _ => {
                self.world.poll(self.fetching()).expect("there is power");
                self.fetched();
            }
        }
    }

    /// Installs a connector under a new name, unless there are four installations.
    fn install(&mut self) {
        if self.known.len() >= 4 {
            return;
        }
        self.names_taken += 1;
        let name = format!("n{}", self.names_taken);
        self.pages.0.lock().expect("no panic").is_idle = false;
        let id = self.world.install(&name).expect("installed");
        assert!(self.world.install(&name).is_none(), "a name was taken twice");
        self.known.insert(name.clone(), Known { id, is_idle: false, payments: BTreeMap::new() });
        self.settle();
        let amounts = self.pages.0.lock().expect("no panic").amounts.clone();
        self.known.get_mut(&name).expect("inserted").payments = amounts.into_iter().enumerate().collect();
    }

    fn reset(&mut self, name: &str) {
        self.pages.0.lock().expect("no panic").is_idle = false;
        let known = self.known.get_mut(name).expect("a known name");
        known.id = self.world.run(self.world.engine.reset(&known.id)).expect("reset");
        known.is_idle = false;
        let amounts = self.pages.0.lock().expect("no panic").amounts.clone();
        known.payments = amounts.into_iter().enumerate().collect();
        self.settle();
    }

    fn configure(&mut self, name: &str, is_idle: bool) {
        self.pages.0.lock().expect("no panic").is_idle = is_idle;
        let known = self.known.get_mut(name).expect("a known name");
        let definition = self.world.engine.definition("test").expect("the definition");
        let body = format!("{{\"name\":{name:?}}}");
        self.world
            .run(self.world.engine.configure(definition, &known.id, body.as_bytes()))
            .expect("configured");
        known.is_idle = is_idle;
        // An installation that is not idle fetches at once.
        if !is_idle {
            let amounts = self.pages.0.lock().expect("no panic").amounts.clone();
            known.payments = amounts.into_iter().enumerate().collect();
        }
        self.settle();
    }

    /// Restarts the server. If `cut_seed` is given, the power fails first, and the seed decides which of the unsynced
    /// changes survive. Tasks fetch when a server starts.
    fn restart(&mut self, cut_seed: Option<u64>) {
        let next = cut_seed.map_or_else(|| self.disk.clone(), |seed| self.disk.after_power_cut(seed));
        let nothing = World::at_rest(&SimDisk::new(), &self.pages);
        std::mem::replace(&mut self.world, nothing).stop();
        self.disk = next;
        self.world = World::start(&self.disk, &self.pages);
        self.settle();
        self.fetched();
    }

    fn settle(&self) {
        self.world.settle(self.fetching()).expect("there is power");
    }

    fn compare(&self, place: &str) {
        let seen = self.world.installations();
        assert_eq!(seen.len(), self.known.len(), "{place}");
        for (name, known) in &self.known {
            assert!(
                seen.iter().any(|one| one.id == known.id && one.name == *name),
                "{place}: {name} is lost"
            );
            assert_eq!(self.world.payments(&known.id), known.payments, "{place}: {name}");
            let expected = if known.is_idle { TaskStatus::Stopped } else { TaskStatus::Active };
            let tasks = self.world.tasks(&known.id);
            assert!(tasks.len() == 1 && tasks[0].status == expected, "{place}: {name}: {tasks:?}");
        }
        self.world.assert_no_leftovers(place);
    }
}

#[test]
fn random_work_matches_the_model() {
    // Set this variable for longer runs.
    let seeds = std::env::var("CONNECTOR_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    for seed in 0..seeds {
        let (mut run, mut rng) = (RandomRun::new(), Rng::from_seed(seed));
        for step in 0..40 {
            run.step(&mut rng);
            run.compare(&format!("seed {seed}, step {step}"));
        }
        run.world.stop();
    }
}
