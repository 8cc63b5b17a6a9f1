//! Lists the needs of a run and takes in the answers.

use dashu_int::IBig;
use smol_str::SmolStr;

use super::needs::{Answer, Need, Needed, Reads};
use super::{Run, Step, Stop};
use crate::limits::SCRIPT_TEXT_BYTES_MAX;
use crate::program::{AccountId, AssetId, WORLD_ID};
use crate::switches::WorldBalance;
use ledger_values::{Balance, MetadataValue};

impl Run<'_> {
    /// Lists the needs that keep the run from continuing, each once.
    pub fn needs(&self) -> impl ExactSizeIterator<Item = Need<'_>> {
        self.scratch.needed.iter().map(|needed| match needed {
            Needed::Balance(holding) => {
                let held = &self.scratch.state.holdings[*holding];
                Need::Balance {
                    account: self.account(held.account),
                    asset: self.asset_name(held.asset),
                    color: self.scratch.colors.get(held.color),
                }
            }
            Needed::Scales { account, base } => Need::Scales { account: self.account(*account), base },
            Needed::Metadata { account, key } => Need::Metadata { account: self.account(*account), key },
        })
    }

    /// Reads and answers all needs of the run.
    ///
    /// # Errors
    ///
    /// The first error of the reader. The run keeps the answers before it.
    pub fn answer<R: Reads + ?Sized>(&mut self, reads: &mut R) -> Result<(), R::Error> {
        self.scratch.rounds += 1;
        let mut needed = std::mem::take(&mut self.scratch.needed);
        for need in &needed {
            match need {
                Needed::Balance(holding) => {
                    let held = &self.scratch.state.holdings[*holding];
                    let color = self.scratch.colors.get(held.color);
                    let (account, asset) = (self.account(held.account), self.asset_name(held.asset));
                    let balance = reads.balance(account, asset, color)?;
                    let held = &mut self.scratch.state.holdings[*holding];
                    held.stored = Some(balance.into_integer());
                    held.noted = false;
                }
                Needed::Scales { account, base } => {
                    let balances = reads.scales(self.account(*account), base)?;
                    self.put_scales(*account, base.clone(), balances);
                }
                Needed::Metadata { account, key } => {
                    let value = reads.metadata(self.account(*account), key)?;
                    let text = value.map(|value| match value {
                        MetadataValue::Text(text) | MetadataValue::Json(text) => text,
                    });
                    let bytes = text.as_ref().map_or(0, SmolStr::len);
                    self.scratch.read_bytes = self.scratch.read_bytes.saturating_add(bytes);
                    // Above the limit the run will fail anyway, and needs no text.
                    let text = text.filter(|_| self.scratch.read_bytes <= SCRIPT_TEXT_BYTES_MAX);
                    self.scratch.read.insert((*account, key.clone()), Answer::Known(text));
                }
            }
        }
        needed.clear();
        self.scratch.needed = needed;
        Ok(())
    }

    fn put_scales(&mut self, account: AccountId, base: SmolStr, balances: Vec<(SmolStr, Balance)>) {
        for (asset, balance) in balances {
            let asset = self.asset_id(&asset);
            let at = self.scratch.state.holding(account, asset, 0);
            // The first answer holds for the whole run.
            self.scratch.state.holdings[at].stored.get_or_insert_with(|| balance.into_integer());
        }
        self.scratch.whole.insert((account, base));
    }

    /// Returns the current balance of a holding.
    pub(super) fn balance(&mut self, holding: usize) -> Step<IBig> {
        if let Some(balance) = self.scratch.state.balance(holding) {
            return Ok(balance);
        }
        self.note(holding);
        self.scratch.state.balance(holding).ok_or(Stop::Missing)
    }

    /// Notes a need for a balance unless it is known or noted.
    pub(super) fn note(&mut self, holding: usize) {
        let held = &self.scratch.state.holdings[holding];
        if held.stored.is_some() || held.noted {
            return;
        }
        let is_known_zero = held.account == WORLD_ID && self.switches.world_balance == WorldBalance::Zero
            || held.color == 0 && self.is_whole(held.account, held.asset);
        let held = &mut self.scratch.state.holdings[holding];
        if is_known_zero {
            held.stored = Some(IBig::ZERO);
        } else {
            held.noted = true;
            self.scratch.needed.push(Needed::Balance(holding));
        }
    }

    /// Tells whether all precisions of an asset in an account are known.
    fn is_whole(&self, account: AccountId, asset: AssetId) -> bool {
        let whole = &self.scratch.whole;
        !whole.is_empty() && {
            let name = self.asset_name(asset);
            let base = name.split_once('/').map_or(name.as_str(), |(base, _)| base);
            whole.contains(&(account, SmolStr::new(base)))
        }
    }
}
