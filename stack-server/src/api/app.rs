//! State that all requests share: the store, the settings, and functions that wait for the store without blocking the
//! HTTP threads.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ledger_core::{LedgerName, LedgerOptions, LogId, Rejection, Rules};
use ledger_store::{LedgerView, Mode, Outcome, Receipt, Snapshot, Store, Submission, WriteError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, oneshot, watch};

use crate::api::cursor::CursorKey;
use crate::api::ledger_v1::rules::KnownRules;
use crate::api::ledger_v2::known_schemas::KnownSchemas;
use crate::api::openapi::texts::Texts;
use crate::auth::authority::Authority;
use crate::auth::guard::Guard;
use crate::blocking;
use crate::connectors::clock::SystemClock;
use crate::connectors::engine::Engine;
use crate::connectors::http::ProviderAccess;
use crate::connectors::registry;
use crate::http::browsers::{BrowserPolicy, HostName};
use crate::http::error::ApiError;
use crate::http::memory::{Memory, Reservation};
use crate::integrations::events::commits::Commits;
use crate::integrations::pipelines::PipelineMonitor;
use crate::integrations::pipelines::exporter::ExporterPolicy;
use crate::limits::{
    COMMANDS_PER_PART, EVENT_READS_MAX, EVENT_STREAMS_MAX, LONG_READS_MAX, LONG_READS_WAITING_MAX,
    LONG_WRITES_MAX, PAGE_BYTES_MAX,
};
use crate::log::refusals::Refusals;
use crate::log::warning_limiter::WarningLimiter;
use crate::log::{self, Level};
use crate::payments::event::Events;
use crate::payments::service::Payments;
use crate::sealing::{EncryptionKey, Sealer};
use crate::settings::Settings;

/// The state of the server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

struct Shared {
    store: Store,
    settings: Settings,
    cursor_key: CursorKey,
    legacy_rules: KnownRules,
    schemas: KnownSchemas,
    guard: Option<Guard>,
    browser_policy: Option<BrowserPolicy>,
    authority: Option<Arc<Authority>>,
    description: Texts,
    memory: Memory,
    /// Slots for running long reads.
    running: Arc<Semaphore>,
    /// Slots for long reads, both running and waiting.
    waiting: Semaphore,
    /// Slots of long writes at the writer.
    long_writes: Semaphore,
    commits: Commits,
    /// Slots for event streams.
    streams: Arc<Semaphore>,
    /// Slots for reads of event streams.
    feeding: Arc<Semaphore>,
    /// Turns true when the server stops.
    stopping: watch::Receiver<bool>,
    pipelines: Arc<PipelineMonitor>,
    policy: ExporterPolicy,
    connectors: Engine,
    /// True if the store refused the last write because the disk is nearly full.
    is_full: AtomicBool,
    /// Limits warnings about writes that violate the schema of their ledger.
    violations: WarningLimiter,
    refusals: Refusals,
}

/// Creates the check that protects a server without tokens from web pages. It also allows the hosts of the server's
/// public addresses.
fn browser_policy(settings: &Settings, address: SocketAddr) -> BrowserPolicy {
    let authorization = settings.authorization.as_ref();
    let urls = [Some(&settings.public_url), authorization.and_then(|own| own.public_url.as_ref())];
    let mut hosts = settings.allowed_hosts.clone();
    hosts.extend(urls.into_iter().flatten().filter_map(|url| HostName::of_url(url)));
    BrowserPolicy::new(address, settings.tls.is_some(), hosts, settings.cors_origins.clone())
}

/// Creates the engine that runs the connectors of a server.
fn connectors(store: &Store, settings: &Settings, policy: &ExporterPolicy) -> Engine {
    let secret = store.cursor_key();
    let sealer =
        settings.encryption_key.as_ref().map_or_else(|| Sealer::of_secret(&secret), EncryptionKey::sealer);
    let (publishers, base) = (settings.payment_publishers.clone(), settings.public_url.clone());
    let events = Events::new(publishers, base, &store.snapshot(), log::now());
    let payments = Arc::new(Payments::new(store.clone(), sealer, events));
    let access =
        ProviderAccess::new(policy.outbound, settings.provider_addresses.clone(), settings.provider_timeout)
            .with_folder(settings.connectors_directory.clone());
    Engine::new(payments, registry::DEFINITIONS, access, Arc::new(SystemClock))
}

impl App {
    /// Creates the state of a server that listens on `address`. `stopping` turns true when the server stops. `policy`
    /// restricts the targets that callers can make the server reach.
    pub(crate) fn new(
        store: Store,
        settings: Settings,
        guard: Option<Guard>,
        address: SocketAddr,
        authority: Option<Arc<Authority>>,
        stopping: watch::Receiver<bool>,
        policy: ExporterPolicy,
    ) -> Self {
        let commits = Commits::of(&store);
        let cursor_key = store.cursor_key();
        let connectors = connectors(&store, &settings, &policy);
        let browser_policy = guard.is_none().then(|| browser_policy(&settings, address));
        let memory = Memory::new(settings.http_memory);
        Self(Arc::new(Shared {
            store,
            settings,
            cursor_key,
            legacy_rules: KnownRules::default(),
            schemas: KnownSchemas::default(),
            guard,
            browser_policy,
            authority,
            description: Texts::default(),
            memory,
            running: Arc::new(Semaphore::new(LONG_READS_MAX)),
            waiting: Semaphore::new(LONG_READS_MAX + LONG_READS_WAITING_MAX),
            long_writes: Semaphore::new(LONG_WRITES_MAX),
            commits,
            streams: Arc::new(Semaphore::new(EVENT_STREAMS_MAX)),
            feeding: Arc::new(Semaphore::new(EVENT_READS_MAX)),
            stopping,
            pipelines: Arc::default(),
            policy,
            connectors,
            is_full: AtomicBool::new(false),
            violations: WarningLimiter::default(),
            refusals: Refusals::default(),
        }))
    }

    /// Replaces the engine of the connectors. Only for a new state, which has no clones.
    #[cfg(test)]
    pub(crate) fn with_connectors(self, connectors: Engine) -> Self {
        let mut shared = Arc::into_inner(self.0).expect("a new state has no clones");
        shared.connectors = connectors;
        Self(Arc::new(shared))
    }

    /// Returns the engine of the connectors.
    pub(crate) fn connectors(&self) -> &Engine {
        &self.0.connectors
    }

    /// Returns the records of the payments API.
    pub(crate) fn payments(&self) -> &Arc<Payments> {
        self.0.connectors.payments()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Returns the counts of refused requests.
    pub(crate) fn refusals(&self) -> &Refusals {
        &self.0.refusals
    }

    pub(crate) fn cursor_key(&self) -> &CursorKey {
        &self.0.cursor_key
    }

    /// Returns the check of tokens, or `None` if the server requires no tokens.
    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.0.guard.as_ref()
    }

    /// Returns the check of web pages, or `None` if the server requires tokens.
    pub(crate) fn browser_policy(&self) -> Option<&BrowserPolicy> {
        self.0.browser_policy.as_ref()
    }

    /// Returns the authorization server, or `None` if the operator disabled it.
    pub(crate) fn authority(&self) -> Option<&Arc<Authority>> {
        self.0.authority.as_ref()
    }

    /// Returns the description of the API.
    pub(crate) fn description(&self) -> &Texts {
        &self.0.description
    }

    /// Returns the rules of API v1 for the transactions of a ledger: the contracts of its mapping, and whether a
    /// transaction may be dated before the last one.
    ///
    /// # Errors
    ///
    /// `INTERNAL` if the stored mapping is not valid.
    pub(crate) fn legacy_rules(&self, ledger: Option<&LedgerView>) -> Result<Rules, ApiError> {
        self.0.legacy_rules.of(ledger, self.0.settings.past_dates)
    }

    /// Returns the cache of recently used schemas.
    pub(crate) fn schemas(&self) -> &KnownSchemas {
        &self.0.schemas
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    /// Returns the memory budgets of requests and responses.
    pub(crate) fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// Returns a snapshot of the current state. Its pages end early at [`PAGE_BYTES_MAX`].
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.0.store.snapshot().with_page_bytes(PAGE_BYTES_MAX)
    }

    /// Submits commands to the writer, and waits for the durable outcomes without blocking the thread. One long
    /// submission is at the writer at a time, so that shorter ones wait for few commands.
    pub(crate) async fn submit(&self, submission: Submission) -> Result<Vec<Outcome>, ApiError> {
        let is_long = submission.requests.len() > COMMANDS_PER_PART;
        let _slot = if is_long { self.0.long_writes.acquire().await.ok() } else { None };
        let (answer, answered) = oneshot::channel();
        let ledger = submission.ledger.clone();
        let needs_room = matches!(submission.mode, Mode::Commit);
        self.0.store.submit(submission, move |outcomes| {
            // An error means that the client has disconnected, which does not affect the write.
            let _ = answer.send(outcomes);
        });
        let outcomes = match answered.await {
            Ok(outcomes) => {
                if needs_room {
                    self.note_room(&outcomes);
                }
                outcomes?
            }
            Err(_) => return Err(ApiError::fault("the writer gave no answer")),
        };
        for outcome in &outcomes {
            if let Outcome::Done(Receipt { violation: Some(violation), log, .. }) = outcome {
                self.warn_of_violation(&ledger, *log, violation);
            }
        }
        Ok(outcomes)
    }

    /// Logs a warning that a write violates its ledger's schema, at most once a minute for each ledger.
    fn warn_of_violation(&self, ledger: &LedgerName, log: LogId, violation: &Rejection) {
        let Some(left_out) = self.0.violations.due(ledger.as_str(), Instant::now()) else { return };
        let fields: [(&str, &dyn Display); 4] =
            [("ledger", ledger), ("log", &log.get()), ("left_out", &left_out), ("reason", &violation)];
        log::event(Level::Warning, "schema-violation", &fields);
    }

    /// Logs once that the disk is nearly full, and once that it no longer is.
    fn note_room(&self, outcomes: &Result<Vec<Outcome>, WriteError>) {
        let is_full = matches!(outcomes, Err(WriteError::DiskNearlyFull));
        // Load first, because a swap for each write would be slower.
        if self.0.is_full.load(Ordering::Relaxed) != is_full
            && self.0.is_full.swap(is_full, Ordering::Relaxed) != is_full
        {
            let level = if is_full { Level::Error } else { Level::Info };
            log::event(level, "disk", &[("nearly_full", &is_full)]);
        }
    }

    /// Works like [`Store::try_on_new_ledger`].
    pub(crate) async fn try_on_new_ledger(
        &self,
        options: LedgerOptions,
        submission: Submission,
    ) -> Result<Vec<Outcome>, ApiError> {
        let store = self.0.store.clone();
        blocking::answer(move || Ok(store.try_on_new_ledger(options, submission)?)).await
    }

    /// Runs long or blocking work on a separate thread, up to [`LONG_READS_MAX`] at a time.
    pub(crate) async fn long<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (_waiting, running) = self.acquire_slots().await?;
        blocking::answer(move || {
            // The read continues if its client disconnects, so it keeps the slot itself.
            let _running = running;
            work()
        })
        .await
    }

    /// Waits for a slot for long work. Returns the slot among all that run or wait, and the slot to run.
    async fn acquire_slots(&self) -> Result<(SemaphorePermit<'_>, OwnedSemaphorePermit), ApiError> {
        let Ok(waiting) = self.0.waiting.try_acquire() else {
            return Err(ApiError::busy("too many queries are waiting"));
        };
        let running = self.0.running.clone().acquire_owned().await.expect("the semaphore is never closed");
        Ok((waiting, running))
    }

    /// Returns a receiver that turns true when the server stops.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stopping.clone()
    }

    /// Returns a receiver of commits.
    pub(crate) fn commits(&self) -> Commits {
        self.0.commits.clone()
    }

    /// Returns the progress of running pipelines.
    pub(crate) fn pipelines(&self) -> &Arc<PipelineMonitor> {
        &self.0.pipelines
    }

    /// Returns the targets that callers can make the server reach.
    pub(crate) fn exporter_policy(&self) -> &ExporterPolicy {
        &self.0.policy
    }

    /// Returns a slot for an event stream. The stream keeps it until it ends.
    ///
    /// # Errors
    ///
    /// 503 if no slot is free.
    pub(crate) fn event_stream(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let slot = self.0.streams.clone().try_acquire_owned();
        slot.map_err(|_| ApiError::busy("too many streams of events are open"))
    }

    /// Reads a part of an event stream once there is memory for about this many bytes. A part can be larger than that,
    /// so only [`EVENT_READS_MAX`] reads run at a time, and the others wait.
    pub(crate) async fn feed<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&Store, Reservation) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let slot = self.0.feeding.clone().acquire_owned().await.expect("the semaphore is never closed");
        let held = self.0.memory.streams.wait(bytes).await;
        self.blocking(move |store| {
            // The read continues if its client disconnects, so it keeps the slot itself.
            let _slot = slot;
            work(store, held)
        })
        .await
    }

    /// Runs short blocking work on a separate thread, without a slot, so that it does not wait for long reads.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let store = self.0.store.clone();
        blocking::answer(move || work(&store)).await
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use ledger_core::{AccountAddress, Amount, Asset, Command, CreateTransaction, Posting};
    use ledger_store::{Atomicity, Detail, Request};

    use super::*;
    use crate::outbound::OutboundPolicy;

    fn app(store: &Store) -> App {
        let policy = ExporterPolicy { outbound: OutboundPolicy::Public, folder: None };
        let (_, stopping) = watch::channel(false);
        let address = (Ipv4Addr::LOCALHOST, 80).into();
        App::new(store.clone(), Settings::default(), None, address, None, stopping, policy)
    }

    fn main_ledger() -> LedgerName {
        LedgerName::parse("main").expect("a name")
    }

    /// Submits this many commands, and returns the log of the first.
    async fn first_log(app: &App, commands: usize) -> u64 {
        let address = |text| AccountAddress::parse(text).expect("an address");
        let posting = Posting {
            source: address("world"),
            destination: address("a"),
            amount: Amount::from(1_u64),
            asset: Asset::parse("USD").expect("an asset"),
        };
        let create = CreateTransaction::of(std::iter::once(posting).collect());
        let request = Request::from(Command::CreateTransaction(create));
        let submission = Submission {
            ledger: main_ledger(),
            requests: vec![request; commands],
            atomicity: Atomicity::AsOne,
            mode: Mode::Commit,
            detail: Detail::Ids,
        };
        match app.submit(submission).await.expect("outcomes").first() {
            Some(Outcome::Done(receipt)) => receipt.log.get(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn short_write_passes_waiting_long_ones() {
        let store = Store::in_memory();
        store.create_ledger(main_ledger(), LedgerOptions::default()).expect("a ledger");
        let app = app(&store);
        // As if a long write were at the writer.
        let at_writer = app.0.long_writes.acquire().await.expect("a slot");
        let long = first_log(&app, COMMANDS_PER_PART + 1);
        let short = async {
            let log = first_log(&app, 1).await;
            drop(at_writer);
            log
        };
        let both = async { tokio::join!(biased; long, short) };
        // Only a failing test waits that long.
        let done = tokio::time::timeout(Duration::from_secs(30), both).await;
        assert_eq!(done.expect("the short write waits for no slot"), (2, 1));
    }
}
