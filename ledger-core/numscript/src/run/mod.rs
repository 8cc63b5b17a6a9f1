//! Runs a program.
//!
//! A run has four steps: bind the variables, find the balances that the statements may need, execute the
//! statements, check the postings. A step notes missing knowledge as a need and goes on as far as it can.
//! After the answers, the run repeats the step. Steps change only the [`Scratch`] that the run borrows; the
//! next run can reuse it without allocating.

mod answer;
mod bind;
mod empty_send;
mod evaluate;
mod families;
mod give;
mod machine_send;
mod metadata_writes;
mod needs;
mod prefetch;
mod recorder;
mod results;
mod scale;
mod share;
mod state;
mod statement;
mod take;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smol_str::SmolStr;

pub use needs::{EmptyLedger, Need, Reads};

use self::families::Families;
use self::metadata_writes::MetadataWrites;
use self::needs::{Answer, Needed};
use self::recorder::TraceRecorder;
use self::state::RunState;
use super::error::{ErrorKind, ScriptError};
use super::fault::Fault;
use super::names::Names;
use super::options::{EmptySends, Flag, Flags, Options, Tracing};
use super::program::{AccountId, AssetId, Program};
use super::span::Span;
use super::switches::Switches;
use super::value::Value;
use crate::limits::{SCRIPT_ROUNDS_MAX, SCRIPT_TEXT_BYTES_MAX};
use ledger_values::{AccountAddress, Asset};

/// The values of variables that a caller supplies as text, by name.
pub type Variables = BTreeMap<String, String>;

/// Reason why a step ends early.
pub(super) enum Stop {
    /// Some knowledge is missing, and a need was noted for it.
    Missing,
    /// The script fails.
    Fault(Box<Fault>),
}

impl Stop {
    #[cold]
    fn at(span: Span, kind: ErrorKind) -> Self {
        Self::Fault(Box::new(Fault::at(span, kind)))
    }

    #[cold]
    fn nowhere(kind: ErrorKind) -> Self {
        Self::Fault(Box::new(Fault::nowhere(kind)))
    }
}

type Step<T> = Result<T, Stop>;

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The run needs answers. See [`Run::needs`].
    Needs,
    /// The run is complete, and the outcome is available.
    Done,
}

/// The memory of a run. A reused scratch saves the next run most allocations.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The value of each slot, once it is bound.
    values: Vec<Option<Value>>,
    /// Accounts that the program does not name.
    accounts: Names<AccountAddress>,
    assets: Names<SmolStr>,
    /// Names of colours. Number 0 stands for no colour.
    colors: Names<SmolStr>,
    state: RunState,
    needed: Vec<Needed>,
    /// Metadata that was answered or is asked for.
    read: BTreeMap<(AccountId, Arc<str>), Answer>,
    /// Number of bytes of text read so far.
    read_bytes: usize,
    /// Number of answered rounds.
    rounds: usize,
    /// Pairs of account and asset without precision of which every balance is known.
    whole: BTreeSet<(AccountId, SmolStr)>,
    /// Pairs of which every balance is known or asked for.
    scales_noted: BTreeSet<(AccountId, SmolStr)>,
    families: Families,
    written: MetadataWrites,
    recorder: Option<Box<TraceRecorder>>,
}

impl Scratch {
    /// Tells whether the scratch holds no more memory than an ordinary script needs.
    pub fn is_small(&self) -> bool {
        const ORDINARY: usize = 256;
        self.values.capacity().max(self.state.capacity()).max(self.written.capacity()) <= ORDINARY
    }

    fn clear(&mut self) {
        self.values.clear();
        self.accounts.clear();
        self.assets.clear();
        self.colors.clear();
        self.colors.add(SmolStr::new_static(""));
        self.state.clear();
        self.needed.clear();
        self.read.clear();
        self.read_bytes = 0;
        self.rounds = 0;
        self.families.clear();
        self.written.clear();
        self.whole.clear();
        self.scales_noted.clear();
        self.recorder = None;
    }
}

/// One execution of a program.
///
/// ```
/// use ledger_numscript::{Options, Profile, Program, Run, Progress, Scratch, Variables, EmptyLedger};
///
/// let program = Program::compile(
///     "vars { monetary $price }\n\
///      send $price (source = @world destination = { 1/3 to @fees remaining to @shop })",
///     Profile::Default,
/// )
/// .expect("a script");
/// let variables = Variables::from([("price".to_owned(), "USD/2 100".to_owned())]);
/// let mut scratch = Scratch::default();
/// let mut run = Run::new(&program, &variables, Options::default(), &mut scratch);
/// while run.advance().expect("it works") == Progress::Needs {
///     run.answer(&mut EmptyLedger).expect("an empty ledger has an answer to everything");
/// }
/// let outcome = run.outcome();
/// assert_eq!(outcome.postings[0].posting.amount.to_string(), "34");
/// ```
#[derive(Debug)]
pub struct Run<'a> {
    program: &'a Program,
    variables: &'a Variables,
    switches: Switches,
    flags: Flags,
    tracing: Tracing,
    empty_sends: EmptySends,
    scratch: &'a mut Scratch,
}

impl<'a> Run<'a> {
    /// Prepares a run. The profile is the one that the program was compiled for; the profile in `options` is
    /// ignored.
    pub fn new(
        program: &'a Program,
        variables: &'a Variables,
        options: Options,
        scratch: &'a mut Scratch,
    ) -> Self {
        scratch.clear();
        scratch.values.resize(program.variables.len(), None);
        Self {
            program,
            variables,
            switches: program.profile.switches(),
            flags: options.flags.and(program.flags),
            tracing: options.trace,
            empty_sends: options.empty_sends,
            scratch,
        }
    }

    /// Runs as far as the known answers allow.
    ///
    /// # Errors
    ///
    /// If the script fails. A failed run has no effect.
    pub fn advance(&mut self) -> Result<Progress, ScriptError> {
        for needed in self.scratch.needed.drain(..) {
            // Ask again for everything that was not answered.
            match needed {
                Needed::Balance(holding) => self.scratch.state.holdings[holding].noted = false,
                Needed::Scales { account, base } => {
                    self.scratch.scales_noted.remove(&(account, base));
                }
                Needed::Metadata { account, key } => {
                    self.scratch.read.remove(&(account, key));
                }
            }
        }
        match self.steps() {
            Ok(()) => Ok(Progress::Done),
            Err(Stop::Missing) => {
                debug_assert!(!self.scratch.needed.is_empty(), "what is missing is needed");
                Ok(Progress::Needs)
            }
            Err(Stop::Fault(fault)) => Err(fault.in_text(&self.program.text)),
        }
    }

    fn steps(&mut self) -> Step<()> {
        if let Some((span, feature)) = &self.program.unknown_feature {
            return Err(Stop::at(*span, ErrorKind::InvalidFeature { feature: feature.clone() }));
        }
        let bound = self.bind();
        // Collect the needs of the statements together with the first needs of the variables, and again when
        // all variables are known. In between, each variable would repeat the search.
        match &bound {
            Err(Stop::Fault(_)) => return bound,
            Err(Stop::Missing) if self.scratch.rounds > 0 => {
                return if self.scratch.rounds < SCRIPT_ROUNDS_MAX {
                    bound
                } else {
                    Err(Stop::nowhere(ErrorKind::TooLarge {
                        what: "its variables depend on each other too deeply",
                    }))
                };
            }
            Err(Stop::Missing) | Ok(()) => {}
        }
        self.prefetch(bound.is_ok())?;
        bound?;
        self.execute()?;
        self.check_postings()
    }

    /// Ends the run if a posting does not fit in any ledger.
    fn check_postings(&self) -> Step<()> {
        let state = &self.scratch.state;
        let mut last = None;
        for flow in &state.flows {
            // Nearly all postings of a run have one asset.
            if last == Some(flow.asset) {
                continue;
            }
            let asset = self.asset_name(flow.asset);
            if Asset::parse(asset).is_err() {
                return Err(Stop::nowhere(ErrorKind::InvalidPosting { asset: asset.clone() }));
            }
            last = Some(flow.asset);
        }
        Ok(())
    }

    // Names.

    fn account(&self, account: AccountId) -> &AccountAddress {
        let named = self.program.accounts.len();
        match account.0.checked_sub(named) {
            None => self.program.accounts.get(account.0),
            Some(own) => self.scratch.accounts.get(own),
        }
    }

    fn account_id(&mut self, address: AccountAddress) -> AccountId {
        let named = self.program.accounts.len();
        AccountId(match self.program.accounts.find(address.as_str()) {
            Some(known) => known,
            None => match self.scratch.accounts.find(address.as_str()) {
                Some(own) => named + own,
                None => named + self.scratch.accounts.add(address),
            },
        })
    }

    fn asset_name(&self, asset: AssetId) -> &SmolStr {
        let named = self.program.assets.len();
        match asset.0.checked_sub(named) {
            None => self.program.assets.get(asset.0),
            Some(own) => self.scratch.assets.get(own),
        }
    }

    fn asset_id(&mut self, name: &str) -> AssetId {
        let named = self.program.assets.len();
        AssetId(match self.program.assets.find(name) {
            Some(known) => known,
            None => match self.scratch.assets.find(name) {
                Some(own) => named + own,
                None => named + self.scratch.assets.add(name.into()),
            },
        })
    }

    /// Counts the length of a text from outside each time that the script reads it, because a short script
    /// can read a long text often.
    fn count_read(&mut self, span: Span, bytes: usize) -> Step<()> {
        self.scratch.read_bytes = self.scratch.read_bytes.saturating_add(bytes);
        if self.scratch.read_bytes <= SCRIPT_TEXT_BYTES_MAX {
            return Ok(());
        }
        Err(Stop::at(
            span,
            ErrorKind::TooLarge { what: "its variables and the metadata that it reads are too long" },
        ))
    }

    fn require(&self, flag: Flag, span: Span) -> Step<()> {
        if self.flags.has(flag) {
            Ok(())
        } else {
            Err(Stop::at(span, ErrorKind::ExperimentalFeature { flag }))
        }
    }
}
