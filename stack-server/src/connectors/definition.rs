//! The definition of a connector: its configuration, its constructor and its capabilities.

use std::sync::Arc;

use crate::connectors::Connector;
use crate::connectors::config::{Parameter, Values};
use crate::connectors::error::ConfigError;
use crate::connectors::http::ProviderAccess;

/// Builds a connector from its configuration.
pub(crate) type Build = dyn Fn(&Values, &ProviderAccess) -> Result<Arc<dyn Connector>, ConfigError> + Sync;

/// A connector that can be installed.
#[derive(Clone, Copy)]
pub(crate) struct Definition {
    /// The name of the connector, in upper case.
    pub(crate) provider: &'static str,
    /// The parameters of the configuration. The first is `name`.
    pub(crate) parameters: &'static [Parameter],
    /// The parameter that contains the polling period.
    pub(crate) period: &'static str,
    /// Maximum number of tasks of an installation that fetch at the same time.
    pub(crate) slots: usize,
    pub(crate) capabilities: Capabilities,
    pub(crate) build: &'static Build,
    /// Removes the files that an installation has left outside of the store.
    pub(crate) clean: Option<fn(&Values)>,
}

/// Capabilities of a connector in addition to fetching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each capability has its own operation")]
pub(crate) struct Capabilities {
    /// Executes transfers and payouts of transfer initiations.
    pub(crate) pays: bool,
    /// Reverses transfers.
    pub(crate) reverses: bool,
    /// Executes transfers of the payments API of stack 1.10.
    pub(crate) transfers: bool,
    /// Creates accounts at the provider from bank accounts.
    pub(crate) bank_accounts: bool,
}

/// Default maximum number of tasks of an installation that fetch at the same time.
pub(crate) const SLOTS: usize = 50;
