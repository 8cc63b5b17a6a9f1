//! The results of a run: its outcome, its trace, and the postings and metadata for a ledger.

use std::collections::BTreeMap;

use super::Run;
use super::recorder::TraceRecorder;
use crate::error::{ErrorKind, ScriptError};
use crate::outcome::{Outcome, ScriptPosting, colored_asset};
use crate::program::AssetId;
use crate::span::{PositionIndex, Span};
use crate::trace::{Bound, PostingTrace, Trace, Withdrawal};
use ledger_values::{AccountAddress, Amount, Asset, Balance, Metadata, Posting, Postings};

impl Run<'_> {
    /// Returns the postings and metadata that the script asks for. Empty before the run is complete.
    pub fn outcome(&mut self) -> Outcome {
        let postings = self
            .scratch
            .state
            .flows
            .iter()
            .map(|flow| ScriptPosting {
                posting: Posting {
                    source: self.account(flow.source).clone(),
                    destination: self.account(flow.destination).clone(),
                    amount: Amount::of_integer(&flow.amount),
                    asset: Asset::parse(self.asset_name(flow.asset))
                        .expect("the run refuses postings with malformed assets"),
                },
                color: self.scratch.colors.get(flow.color).clone(),
            })
            .collect();
        let trace = self.take_trace();
        let (metadata, account_metadata) = self.take_metadata();
        Outcome { postings, metadata, account_metadata, trace }
    }

    /// Returns the trace if the caller requested one, and removes it from the run. The trace of a failed run
    /// ends at the failure.
    pub fn take_trace(&mut self) -> Option<Trace> {
        self.scratch.recorder.take().map(|recorder| self.resolve(*recorder))
    }

    /// Resolves the names and positions of a trace.
    fn resolve(&self, recorder: TraceRecorder) -> Trace {
        let positions = PositionIndex::of(&self.program.text);
        let range = |span: Span| positions.range(span);
        let state = &self.scratch.state;
        let withdrawals = recorder.withdrawals.into_iter().map(|draw| {
            let holding = &state.holdings[draw.holding];
            Withdrawal {
                range: range(draw.clause),
                account: self.account(holding.account).clone(),
                asset: self.asset_name(holding.asset).clone(),
                color: self.scratch.colors.get(holding.color).clone(),
                asked: draw.asked.as_ref().map(Amount::of_integer),
                gave: Amount::of_integer(&draw.gave),
                bound: match draw.bound {
                    None => Bound::Nothing,
                    Some((balance, overdraft)) => Bound::Balance {
                        balance: Balance::of_integer(balance),
                        overdraft: Amount::of_integer(&overdraft),
                    },
                },
                returned: draw.returned,
            }
        });
        let postings = recorder.postings.into_iter().map(|posting| PostingTrace {
            sources: posting
                .sources
                .into_iter()
                .map(|(span, amount)| (range(span), Amount::of_integer(&amount)))
                .collect(),
            destination: posting.destination.map(range),
        });
        Trace { withdrawals: withdrawals.collect(), postings: postings.collect() }
    }

    /// Returns the metadata of the transaction and of accounts, and removes it from the run.
    pub fn take_metadata(&mut self) -> (Metadata, BTreeMap<AccountAddress, Metadata>) {
        let mut written = std::mem::take(&mut self.scratch.written);
        let taken = written.take(|account| self.account(account).clone());
        self.scratch.written = written;
        taken
    }

    /// Returns the postings as a ledger records them. See [`Outcome::ledger_postings`].
    ///
    /// # Errors
    ///
    /// If a colour and an asset make a name that is too long for a ledger.
    pub fn ledger_postings(&self) -> Result<Postings, ScriptError> {
        let mut last: Option<(AssetId, u32, Asset)> = None;
        let mut postings = Postings::with_capacity(self.scratch.state.flows.len());
        for flow in &self.scratch.state.flows {
            let asset = match &last {
                Some((asset, color, name)) if (*asset, *color) == (flow.asset, flow.color) => name.clone(),
                _ => {
                    let name = self.asset_name(flow.asset);
                    let color = self.scratch.colors.get(flow.color);
                    let folded = colored_asset(name, color).ok_or_else(|| ScriptError {
                        kind: ErrorKind::InvalidPosting { asset: name.clone() },
                        range: None,
                    })?;
                    last = Some((flow.asset, flow.color, folded.clone()));
                    folded
                }
            };
            postings.push(Posting {
                source: self.account(flow.source).clone(),
                destination: self.account(flow.destination).clone(),
                amount: Amount::of_integer(&flow.amount),
                asset,
            });
        }
        Ok(postings)
    }
}
