//! What an operator can choose about the answers of a server.

use ledger_core::FirstId;

use crate::error::Profile;

/// The choices of a server. [`Settings::default`] has what an unconfigured server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The profile of every mount; `None` is by mount.
    pub profile: Option<Profile>,
    /// The first id of new ledgers; `None` is by profile: 0 in 2.0, 1 in 2.x.
    pub first_id: Option<FirstId>,
    /// Most elements of a bulk.
    pub bulk_max_size: usize,
    /// Rows of a page where the caller does not say.
    pub default_page_size: u32,
    /// Most rows of a page; a larger request is answered with so many.
    pub max_page_size: u32,
    /// Whether callers may choose the features of new ledgers.
    pub experimental_features: bool,
    /// Threads that speak HTTP.
    pub http_threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: None,
            first_id: None,
            bulk_max_size: 100,
            default_page_size: 15,
            max_page_size: 100,
            experimental_features: false,
            http_threads: 1,
        }
    }
}
