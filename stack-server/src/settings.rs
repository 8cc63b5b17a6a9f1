//! What an operator can choose about the answers of a server.

use ledger_core::schema::Enforcement;
use ledger_core::{FirstId, PastDates, Runtime};

use crate::error::Profile;

/// The releases of the first generation of the API whose clients differ in the shapes that they can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compat {
    /// 1.10.
    V1_10,
    /// The first generation inside 2.0.
    #[default]
    V2_0,
}

/// The choices of a server. [`Settings::default`] has what an unconfigured server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The profile of every mount; `None` is by mount.
    pub profile: Option<Profile>,
    /// For whom the first generation of the API answers, where the client does not say who it is.
    pub compat: Compat,
    /// Whether transactions of the first generation of the API may be dated before the last one.
    pub past_dates: PastDates,
    /// The first id of new ledgers; `None` is by profile: 0 in 2.0, 1 in 2.x.
    pub first_id: Option<FirstId>,
    /// Most elements of a bulk.
    pub bulk_max_size: usize,
    /// Rows of a page where the caller does not say.
    pub default_page_size: u32,
    /// Most rows of a page; a larger request is answered with so many.
    pub max_page_size: u32,
    /// Who runs a script that names no runtime.
    pub runtime: Runtime,
    /// Whether every request that could write is refused.
    pub read_only: bool,
    /// Whether each request has a line in the log.
    pub debug: bool,
    /// Whether callers may choose the features of new ledgers.
    pub experimental_features: bool,
    /// What becomes of writes that break the rules of their ledger's schemas; the store is opened with it.
    pub schema_enforcement: Enforcement,
    /// Threads that speak HTTP.
    pub http_threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: None,
            compat: Compat::default(),
            past_dates: PastDates::default(),
            first_id: None,
            bulk_max_size: 100,
            default_page_size: 15,
            max_page_size: 100,
            runtime: Runtime::Machine,
            read_only: false,
            debug: false,
            experimental_features: false,
            schema_enforcement: Enforcement::default(),
            http_threads: 1,
        }
    }
}
