//! An operator's choices about the answers of a server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ledger_core::schema::Enforcement;
use ledger_core::{FirstId, PastDates, Runtime};

use crate::auth::authority::AuthorizationSettings;
use crate::http::browsers::{HostName, Origin};
use crate::http::error::Profile;
use crate::http::tls::TlsFiles;
use crate::limits::{HTTP_MEMORY_DIVISOR, HTTP_MEMORY_MIN, PROVIDER_TIMEOUT};
use crate::outbound::Outbound;
use crate::schedule::Schedule;
use crate::sealing::EncryptionKey;

/// The memory budget of a server where the operator does not say, in bytes.
pub(crate) const MEMORY_BUDGET: usize = 512 << 20;

/// The part of a memory budget that is for requests and answers. The store has the rest.
pub(crate) fn http_share(budget: usize) -> usize {
    (budget / HTTP_MEMORY_DIVISOR).max(HTTP_MEMORY_MIN.min(budget / 2))
}

/// The releases of the first generation of the API whose clients differ in the shapes that they can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compat {
    /// 1.10.
    V1_10,
    /// The first generation inside 2.0.
    #[default]
    V2_0,
    /// The first generation inside 2.4, on the stand-alone mount.
    V2_4,
}

/// The choices of a server. [`Settings::default`] has what an unconfigured server does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the operator's")]
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
    /// The interpreter of scripts that name no runtime.
    pub runtime: Runtime,
    /// Whether every request that could write is refused.
    pub read_only: bool,
    /// Whether callers may choose the features of new ledgers.
    pub experimental_features: bool,
    /// Whether there are exporters and pipelines.
    pub experimental_exporters: bool,
    /// Whether pipelines run in this process, and buckets are removed.
    pub worker: bool,
    /// When to look for buckets that are to be removed for good.
    pub cleanup_schedule: Schedule,
    /// So long after its deletion a bucket is removed for good.
    pub cleanup_retention: Duration,
    /// A pipeline looks for new logs so often, at least; commits wake it too.
    pub pipelines_pull_interval: Duration,
    /// A push that failed is tried again so much later.
    pub pipelines_retry_period: Duration,
    /// The worker looks so often what pipelines there are; changes over the API call it too.
    pub pipelines_sync_period: Duration,
    /// Below which folder exporters may write files; nowhere without one.
    pub exporters_directory: Option<PathBuf>,
    /// Where addresses that arrive through the API may lead; `None` is anywhere for a server that only its own machine
    /// reaches, and else to public machines.
    pub outbound: Option<Outbound>,
    /// A stream of events shows so often, at least, that it is alive.
    pub events_heartbeat: Duration,
    /// The treatment of writes that break the rules of their ledger's schemas; the store is opened with it.
    pub schema_enforcement: Enforcement,
    /// The key that encrypts configurations of connectors and numbers of bank accounts. Without it the key is made
    /// of a secret in the data directory.
    pub encryption_key: Option<EncryptionKey>,
    /// Addresses of payment providers other than their own, by the name of the connector.
    pub provider_addresses: BTreeMap<String, String>,
    /// Below which folder connectors may read and write files; without one, below the system's folder for temporary
    /// files.
    pub connectors_directory: Option<PathBuf>,
    /// How long a connector waits for the answer of its provider.
    pub provider_timeout: Duration,
    /// The beginning of links in events of payments.
    pub public_url: String,
    /// The publishers for which events of payments are kept until they are delivered.
    pub payment_publishers: Vec<&'static str>,
    /// Names by which clients reach a server that asks for no tokens, beside those of its machine.
    pub allowed_hosts: Vec<HostName>,
    /// Pages of these origins may use a server that asks for no tokens.
    pub cors_origins: Vec<Origin>,
    /// Whether a proxy in front speaks to clients: then all connections come from it.
    pub behind_proxy: bool,
    /// Threads that speak HTTP.
    pub http_threads: usize,
    /// Bytes of memory for requests and answers that wait for their clients.
    pub http_memory: usize,
    /// The files for TLS; without them connections are in the clear.
    pub tls: Option<TlsFiles>,
    /// The settings of the authorization server; `None` is a server without one.
    pub authorization: Option<AuthorizationSettings>,
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
            experimental_features: false,
            experimental_exporters: false,
            worker: true,
            cleanup_schedule: Schedule::default(),
            cleanup_retention: Duration::from_hours(30 * 24),
            pipelines_pull_interval: Duration::from_secs(5),
            pipelines_retry_period: Duration::from_secs(10),
            pipelines_sync_period: Duration::from_mins(1),
            exporters_directory: None,
            outbound: None,
            events_heartbeat: Duration::from_secs(15),
            schema_enforcement: Enforcement::default(),
            encryption_key: None,
            provider_addresses: BTreeMap::new(),
            connectors_directory: None,
            provider_timeout: PROVIDER_TIMEOUT,
            public_url: "http://localhost".to_owned(),
            payment_publishers: Vec::new(),
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            behind_proxy: false,
            http_threads: 1,
            http_memory: http_share(MEMORY_BUDGET),
            tls: None,
            authorization: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_shared_with_the_store() {
        assert_eq!(http_share(MEMORY_BUDGET), 64 << 20);
        assert_eq!(http_share(64 << 20), 16 << 20);
        assert_eq!(http_share(1 << 20), 512 << 10);
    }
}
