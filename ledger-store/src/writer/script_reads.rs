//! Reads for scripts while they are settled. They read the writer's own state, so nothing is out of date.

use ledger_core::script::{Reads, colored_asset};
use ledger_core::{AccountAddress, Balance, MetadataValue, SmolStr};

use super::accounts::DocumentState;
use super::holding::HoldingState;
use super::locate;
use super::state::State;
use crate::error::ReadError;
use crate::lookup::missing;

/// A ledger as a script reads it.
pub(crate) struct ScriptReads<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) ledger: u32,
}

impl Reads for ScriptReads<'_> {
    type Error = ReadError;

    fn balance(&mut self, account: &AccountAddress, asset: &str, color: &str) -> Result<Balance, ReadError> {
        let number = if color.is_empty() {
            self.state.ledgers[self.ledger].asset(asset)
        } else {
            // No account can hold a text that is not an asset.
            let folded = colored_asset(asset, color);
            folded.and_then(|folded| self.state.ledgers[self.ledger].asset(folded.as_str()))
        };
        let Some(number) = number else { return Ok(Balance::ZERO) };
        let Some(place) = locate::by_address(self.state, self.ledger, account.as_str())?.slot() else {
            return Ok(Balance::ZERO);
        };
        let held = self.state.accounts.get(place).holding(number);
        Ok(held.map_or(Balance::ZERO, HoldingState::balance))
    }

    fn scales(&mut self, account: &AccountAddress, base: &str) -> Result<Vec<(SmolStr, Balance)>, ReadError> {
        let Some(place) = locate::by_address(self.state, self.ledger, account.as_str())?.slot() else {
            return Ok(Vec::new());
        };
        let held: Vec<(u32, Balance)> = {
            let account = self.state.accounts.get(place);
            account.holdings.iter().map(|held| (held.asset, held.balance())).collect()
        };
        let assets = &self.state.ledgers[self.ledger].head.assets;
        let mut found = Vec::new();
        for (number, balance) in held {
            let asset = assets.text(number).ok_or_else(|| missing("an asset"))?;
            if asset.split('/').next() == Some(base) {
                found.push((asset, balance));
            }
        }
        Ok(found)
    }

    fn metadata(&mut self, account: &AccountAddress, key: &str) -> Result<Option<MetadataValue>, ReadError> {
        let Some(place) = locate::by_address(self.state, self.ledger, account.as_str())?.slot() else {
            return Ok(None);
        };
        locate::load_document(self.state, place)?;
        match &self.state.accounts.get(place).document {
            DocumentState::Loaded(document) => Ok(document.metadata.get(key).cloned()),
            DocumentState::Plain { .. } | DocumentState::Stored => Ok(None),
        }
    }
}
