//! Lookups for commands before it is their turn: so they wait for memory together.

use ledger_core::{Command, Movement};
use smallvec::SmallVec;

use super::accounts::Near;
use super::state::State;
use crate::fingerprint::{KeyKind, key_space};
use crate::submission::Request;

/// For so many commands at once it is looked ahead.
pub(crate) const COMMANDS_AHEAD: usize = 16;

/// The fingerprints of the keys of a command, where they were computed before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyPrints {
    pub(crate) idempotency: Option<u64>,
    pub(crate) reference: Option<u64>,
}

/// Results of lookups for some commands, each to be taken once.
#[derive(Default)]
pub(crate) struct Ahead {
    /// Of each command the fingerprints of its keys, and how many of `ends` are its own.
    commands: SmallVec<[(KeyPrints, usize); COMMANDS_AHEAD]>,
    /// Sources and destinations of postings.
    ends: SmallVec<[Near; 2 * COMMANDS_AHEAD]>,
    /// How many commands and ends were taken.
    taken: (usize, usize),
}

impl Ahead {
    /// Whether what was found for every command was taken.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.0 == self.commands.len()
    }

    /// The results for the next command: the fingerprints of its keys, and of each of its postings, if it has some,
    /// source and destination.
    pub(crate) fn take(&mut self) -> (KeyPrints, &[Near]) {
        let (command, first) = self.taken;
        let (prints, ends) = self.commands[command];
        self.taken = (command + 1, first + ends);
        (prints, &self.ends[first..first + ends])
    }
}

impl State {
    /// Brings near what some commands are about to need, cheap where it is near already. `ahead` is made new.
    pub(crate) fn look_ahead(&self, ledger: u32, requests: &[Request], ahead: &mut Ahead) {
        let Ahead { commands, ends, taken } = ahead;
        commands.clear();
        ends.clear();
        *taken = (0, 0);
        let mut addresses = SmallVec::<[&str; 2 * COMMANDS_AHEAD]>::new();
        let mut probes = SmallVec::<[(u64, u64); 4 * COMMANDS_AHEAD]>::new();
        for request in requests {
            let mut probe = |kind, text: &str| {
                let probe = self.probe_key(ledger, kind, text);
                probes.push(probe);
                probe.1
            };
            let idempotency = request.idempotency.as_ref();
            let idempotency = idempotency.map(|have| probe(KeyKind::Idempotency, have.key.as_str()));
            let Command::CreateTransaction(create) = &request.command else {
                commands.push((KeyPrints { idempotency, reference: None }, 0));
                continue;
            };
            let reference = create.reference.as_ref();
            let reference = reference.map(|reference| probe(KeyKind::Reference, reference.as_str()));
            let before = addresses.len();
            if let Movement::Postings(postings) = &create.movement {
                for posting in postings {
                    addresses.push(posting.source.as_str());
                    addresses.push(posting.destination.as_str());
                }
            }
            commands.push((KeyPrints { idempotency, reference }, addresses.len() - before));
        }
        // Metadata lies where the thread that asked put it.
        let mut seen = requests.iter().fold(0, |seen, request| match &request.command {
            Command::CreateTransaction(create) => {
                seen ^ create.metadata.iter().next().map_or(0, |(key, _)| key.len() as u64)
            }
            _ => seen,
        });
        for (_, fingerprint) in &probes {
            seen ^= u64::from(self.keys.warm(*fingerprint));
        }
        let space = key_space(ledger, KeyKind::Address);
        seen ^= self.accounts.look_for(ledger, &addresses, ends, |address| {
            probes.push((space, self.fingerprints.of(space, address)));
        });
        seen ^= self.known.warm(&probes);
        std::hint::black_box(seen);
    }
}
