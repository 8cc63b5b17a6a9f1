//! The operator's settings of a server. The command line sets most of them by flags.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use ledger_core::schema::Enforcement;
use ledger_core::{ErrorWording, FirstId, PastDates};

use crate::auth::authority::AuthorizationSettings;
use crate::auth::guard::fixed_keys::FixedKeys;
use crate::http::browsers::{HostName, Origin};
use crate::http::error::Profile;
use crate::http::mount_path::MountPath;
use crate::http::tls::TlsFiles;
use crate::limits::{
    BODY_READ_TIMEOUT, HTTP_MEMORY_DIVISOR, HTTP_MEMORY_MIN, HTTP_THREADS_MAX, PROVIDER_TIMEOUT,
};
use crate::outbound::OutboundPolicy;
use crate::schedule::Schedule;
use crate::sealing::EncryptionKey;

/// The default memory budget of a server, in bytes.
pub(crate) const MEMORY_BUDGET: usize = 512 << 20;

/// Returns the bytes of a memory budget that are for requests and responses. The store gets the rest.
pub(crate) fn http_share(budget: usize) -> usize {
    (budget / HTTP_MEMORY_DIVISOR).max(HTTP_MEMORY_MIN.min(budget / 2))
}

/// Returns the number of HTTP threads for a machine with this many processors. The writer, the flusher and the
/// background work of the store keep the other half busy: with more HTTP threads, they would compete for processors.
fn http_threads_of(processors: usize) -> usize {
    (processors / 2).clamp(1, HTTP_THREADS_MAX)
}

/// A release of API v1. Its responses differ between these releases, and strict clients read only one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compat {
    /// Release 1.10.
    V1_10,
    /// API v1 in release 2.0.
    #[default]
    V2_0,
    /// API v1 in release 2.4. Below `/api/`, clients still get the form of 2.0.
    V2_4,
}

/// The settings of a server. [`Settings::default`] returns the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch for the operator")]
pub struct Settings {
    /// The releases of clients whose response forms the server uses. `None` chooses them by the path of the request.
    pub profile: Option<Profile>,
    /// The release of API v1 for clients whose headers do not name one.
    pub compat: Compat,
    /// The treatment of transactions of API v1 that are dated before the last one.
    pub past_dates: PastDates,
    /// The first id of new ledgers; `None` chooses it by profile: 0 for 2.0, 1 for 2.x.
    pub first_id: Option<FirstId>,
    /// Maximum number of elements in a bulk request.
    pub bulk_max_size: usize,
    /// Default number of rows on a page.
    pub default_page_size: u32,
    /// Maximum number of rows on a page. A request for more gets this number.
    pub max_page_size: u32,
    /// The wording of errors in scripts that name no runtime.
    pub script_wording: ErrorWording,
    /// True if the server refuses every request that could write.
    pub read_only: bool,
    /// True if callers may choose the features of new ledgers.
    pub experimental_features: bool,
    /// True if the server offers exporters and pipelines.
    pub experimental_exporters: bool,
    /// True if this process does the background work: it runs pipelines and connectors, and removes deleted buckets. A
    /// read-only server only runs pipelines.
    pub worker: bool,
    /// The times at which the server permanently removes deleted buckets whose retention has ended.
    pub cleanup_schedule: Schedule,
    /// How long a deleted bucket can be restored before the server permanently removes it.
    pub cleanup_retention: Duration,
    /// Maximum time until a pipeline looks for new logs. Commits wake it earlier.
    pub pipelines_pull_interval: Duration,
    /// How long a pipeline waits before it repeats a failed push.
    pub pipelines_retry_period: Duration,
    /// Maximum time between two reads of the list of pipelines. Changes through the API cause a read at once.
    pub pipelines_sync_period: Duration,
    /// The directory below which exporters may write files. `None` forbids file exporters.
    pub exporters_directory: Option<PathBuf>,
    /// The targets that are allowed for addresses from API clients. `None` allows any address for a server on loopback
    /// without tokens and without a proxy, and only public addresses for all others.
    pub outbound: Option<OutboundPolicy>,
    /// Maximum time without data on an event stream. After this time the server sends a heartbeat.
    pub events_heartbeat: Duration,
    /// The treatment of writes that violate a schema of their ledger. The caller opens the store with the same value.
    pub schema_enforcement: Enforcement,
    /// The key that encrypts the configurations of connectors and the numbers of bank accounts. `None` derives one from
    /// a secret in the data directory.
    pub encryption_key: Option<EncryptionKey>,
    /// True if the API masks the secrets in configurations of connectors.
    pub redact_config: bool,
    /// The path of the generic connector API, such as `/api/generic`.
    pub generic_mount: MountPath,
    /// Keys that allow access to the generic connector API and nothing else. If there are keys, the API requires one of
    /// them, or a token if the server accepts tokens. With `None`, it is open to the same callers as the rest of the
    /// API.
    pub generic_keys: Option<FixedKeys>,
    /// Addresses to use instead of the payment providers' real ones, by the name of the connector.
    pub provider_addresses: BTreeMap<String, String>,
    /// The directory below which connectors may read and write files. `None` is the system's directory for temporary
    /// files.
    pub connectors_directory: Option<PathBuf>,
    /// Maximum time that a connector waits for a response of its provider.
    pub provider_timeout: Duration,
    /// The address by which clients reach the server. Links in payment events begin with it, and its host is allowed.
    pub public_url: String,
    /// Names of the publishers for which the store keeps payment events until they are delivered.
    pub payment_publishers: Vec<&'static str>,
    /// Additional host names by which clients may reach a server that requires no tokens. The names of its machine are
    /// always allowed.
    pub allowed_hosts: Vec<HostName>,
    /// Origins whose web pages may use a server that requires no tokens.
    pub cors_origins: Vec<Origin>,
    /// True if all connections come from a proxy, which serves clients of other machines.
    pub behind_proxy: bool,
    /// Number of threads that serve HTTP: half of the machine's processors by default, and at least one.
    pub http_threads: usize,
    /// Maximum time until the next 256 KiB of an import arrive. The server refuses a slower import with 408.
    pub import_timeout: Duration,
    /// Bytes of memory for request bodies, and for responses that their clients have not read yet.
    pub http_memory: usize,
    /// The certificate and key files for TLS. `None` means no TLS.
    pub tls: Option<TlsFiles>,
    /// The settings of the built-in authorization server. `None` disables it.
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
            script_wording: ErrorWording::Machine,
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
            redact_config: false,
            generic_mount: MountPath::default(),
            generic_keys: None,
            provider_addresses: BTreeMap::new(),
            connectors_directory: None,
            provider_timeout: PROVIDER_TIMEOUT,
            public_url: "http://localhost".to_owned(),
            payment_publishers: Vec::new(),
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            behind_proxy: false,
            http_threads: http_threads_of(std::thread::available_parallelism().map_or(1, NonZero::get)),
            import_timeout: BODY_READ_TIMEOUT,
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
    fn half_of_the_processors_serve_http() {
        assert_eq!([1, 2, 3, 8, 1000].map(http_threads_of), [1, 1, 1, 4, HTTP_THREADS_MAX]);
    }

    #[test]
    fn budget_is_shared_with_the_store() {
        assert_eq!(http_share(MEMORY_BUDGET), 64 << 20);
        assert_eq!(http_share(64 << 20), 16 << 20);
        assert_eq!(http_share(1 << 20), 512 << 10);
    }
}
