//! Prefetches the accounts and keys of several commands before they are decided, so that their cache misses overlap.

use ledger_core::{Command, Movement};
use smallvec::SmallVec;

use super::accounts::AccountHint;
use super::state::State;
use crate::fingerprint::{KeyKind, key_space};
use crate::submission::Request;

/// Maximum number of commands that are prefetched at once.
pub(crate) const COMMANDS_PREFETCHED: usize = 16;

/// The fingerprints of the keys of a command, if they were computed already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyFingerprints {
    pub(crate) idempotency: Option<u64>,
    pub(crate) reference: Option<u64>,
}

/// The results of prefetching for several commands. Each is taken once.
#[derive(Default)]
pub(crate) struct Prefetched {
    /// The fingerprints of each command's keys, and the number of its items in `ends`.
    commands: SmallVec<[(KeyFingerprints, usize); COMMANDS_PREFETCHED]>,
    /// The prefetched sources and destinations of postings.
    ends: SmallVec<[AccountHint; 2 * COMMANDS_PREFETCHED]>,
    /// Number of commands and of ends that were taken.
    taken: (usize, usize),
}

impl Prefetched {
    /// Returns whether the results of all commands were taken.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.0 == self.commands.len()
    }

    /// Returns the results for the next command: the fingerprints of its keys and, for each of its postings, the
    /// prefetched source and destination.
    pub(crate) fn take(&mut self) -> (KeyFingerprints, &[AccountHint]) {
        let (command, first) = self.taken;
        let (key_fingerprints, ends) = self.commands[command];
        self.taken = (command + 1, first + ends);
        (key_fingerprints, &self.ends[first..first + ends])
    }
}

/// Prefetches the memory that some commands will need. Costs little if it is cached already. Replaces the content
/// of `prefetched`.
pub(crate) fn commands(state: &State, ledger: u32, requests: &[Request], prefetched: &mut Prefetched) {
    let Prefetched { commands, ends, taken } = prefetched;
    commands.clear();
    ends.clear();
    *taken = (0, 0);
    let mut addresses = SmallVec::<[&str; 2 * COMMANDS_PREFETCHED]>::new();
    let mut probes = SmallVec::<[(u64, u64); 4 * COMMANDS_PREFETCHED]>::new();
    for request in requests {
        let mut probe = |kind, text: &str| {
            let probe = state.probe_key(ledger, kind, text);
            probes.push(probe);
            probe.1
        };
        let idempotency = request.idempotency.as_ref();
        let idempotency = idempotency.map(|have| probe(KeyKind::Idempotency, have.key.as_str()));
        let Command::CreateTransaction(create) = &request.command else {
            commands.push((KeyFingerprints { idempotency, reference: None }, 0));
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
        commands.push((KeyFingerprints { idempotency, reference }, addresses.len() - before));
    }
    // The metadata is in memory that the submitting thread has written.
    let mut seen = requests.iter().fold(0, |seen, request| match &request.command {
        Command::CreateTransaction(create) => {
            seen ^ create.metadata.iter().next().map_or(0, |(key, _)| key.len() as u64)
        }
        _ => seen,
    });
    for (_, fingerprint) in &probes {
        seen ^= u64::from(state.keys.warm(*fingerprint));
    }
    let space = key_space(ledger, KeyKind::Address);
    seen ^= state.accounts.look_for(ledger, &addresses, ends, |address| {
        probes.push((space, state.fingerprints.of(space, address)));
    });
    seen ^= state.known.warm(&probes);
    std::hint::black_box(seen);
}
