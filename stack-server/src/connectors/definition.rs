//! The definition of a connector: how it is configured and built, and what it can do.

use std::sync::Arc;

use crate::connectors::Connector;
use crate::connectors::config::{Parameter, Values};
use crate::connectors::error::ConfigError;
use crate::connectors::http::Tools;

/// Builds a connector from its configuration.
pub(crate) type Build = dyn Fn(&Values, &Tools) -> Result<Arc<dyn Connector>, ConfigError> + Sync;

/// A connector that can be installed.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// Its name, in upper case.
    pub(crate) provider: &'static str,
    /// The parameters of its configuration. The first is `name`.
    pub(crate) parameters: &'static [Parameter],
    /// Which parameter says how often to poll.
    pub(crate) period: &'static str,
    /// Most tasks of an installation that fetch at once.
    pub(crate) slots: usize,
    pub(crate) abilities: Abilities,
    pub(crate) build: &'static Build,
    /// Removes what an installation left behind outside of the store.
    pub(crate) clean: Option<fn(&Values)>,
}

/// Abilities of a connector beside fetching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by an operation of its own")]
pub(crate) struct Abilities {
    /// Transfers and payouts of transfer initiations.
    pub(crate) pays: bool,
    /// Reversals of transfers.
    pub(crate) reverses: bool,
    /// Transfers of the first generation of the API.
    pub(crate) transfers: bool,
    /// Accounts at the provider for bank accounts.
    pub(crate) bank_accounts: bool,
}

/// Tasks of an installation that fetch at once, unless its connector says otherwise.
pub(crate) const SLOTS: usize = 50;
