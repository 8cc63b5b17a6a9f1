//! An in-memory ledger from which scripts on the command line read balances and metadata.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::{Options, Outcome, Program, Progress, Reads, Run, Scratch, ScriptError, Trace, Variables};
use ledger_values::{AccountAddress, Balance, MetadataValue, SmolStr};

/// Key of a balance: account, asset and colour.
pub(crate) type Key = (String, String, String);

/// Balances and metadata. Balances that are not listed are zero; metadata that is not listed is absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct LedgerState {
    pub(crate) balances: BTreeMap<Key, Balance>,
    /// Metadata by account and key.
    pub(crate) metadata: BTreeMap<String, BTreeMap<String, String>>,
}

impl Reads for LedgerState {
    type Error = Infallible;

    fn balance(&mut self, account: &AccountAddress, asset: &str, color: &str) -> Result<Balance, Infallible> {
        let key = (account.to_string(), asset.to_owned(), color.to_owned());
        Ok(self.balances.get(&key).cloned().unwrap_or_default())
    }

    fn scales(
        &mut self,
        account: &AccountAddress,
        base: &str,
    ) -> Result<Vec<(SmolStr, Balance)>, Infallible> {
        let of_base = |asset: &str| asset.split_once('/').map_or(asset, |(base, _)| base) == base;
        let rows = self
            .balances
            .iter()
            .filter(|((of, asset, color), _)| of == account.as_str() && color.is_empty() && of_base(asset));
        Ok(rows.map(|((_, asset, _), balance)| (asset.as_str().into(), balance.clone())).collect())
    }

    fn metadata(&mut self, account: &AccountAddress, key: &str) -> Result<Option<MetadataValue>, Infallible> {
        let value = self.metadata.get(account.as_str()).and_then(|values| values.get(key));
        Ok(value.map(|text| MetadataValue::Text(text.as_str().into())))
    }
}

/// The error of a failed run, with its trace.
pub(crate) struct Failed {
    pub(crate) error: ScriptError,
    /// The trace up to the failure, if one was requested.
    pub(crate) trace: Option<Trace>,
}

/// Runs a program against a world.
pub(crate) fn run(
    program: &Program,
    variables: &Variables,
    options: Options,
    state: &mut LedgerState,
) -> Result<Outcome, Box<Failed>> {
    let mut scratch = Scratch::default();
    let mut run = Run::new(program, variables, options, &mut scratch);
    loop {
        match run.advance() {
            Ok(Progress::Done) => return Ok(run.outcome()),
            Ok(Progress::Needs) => match run.answer(state) {
                Ok(()) => {}
                Err(impossible) => match impossible {},
            },
            Err(error) => return Err(Box::new(Failed { error, trace: run.take_trace() })),
        }
    }
}

/// Returns the balances after an outcome: all balances of the world, and those that the outcome changes.
pub(crate) fn balances_after(state: &LedgerState, outcome: &Outcome) -> BTreeMap<Key, Balance> {
    let mut balances = state.balances.clone();
    for posting in &outcome.postings {
        let movement = &posting.posting;
        let key = |account: &AccountAddress| {
            (account.to_string(), movement.asset.to_string(), posting.color.to_string())
        };
        let amount = Balance::from(movement.amount.clone());
        let nothing = ledger_values::Amount::ZERO;
        *balances.entry(key(&movement.source)).or_default() += &Balance::of(&nothing, &movement.amount);
        *balances.entry(key(&movement.destination)).or_default() += &amount;
    }
    balances
}
