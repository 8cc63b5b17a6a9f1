//! State that all requests share: the store, the settings, and the ways to wait for the store without holding up the
//! HTTP threads.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ledger_core::{LedgerName, LedgerOptions, LogId, Rejection, Rules};
use ledger_store::{
    Detail, LedgerView, Mode, Outcome, Receipt, Request, Snapshot, Store, Submission, WriteError,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, oneshot, watch};

use crate::api::cursor::CursorKey;
use crate::api::empty_ledger::EmptyLedger;
use crate::api::ledger_v1::rules::KnownRules;
use crate::api::ledger_v2::known_schemas::KnownSchemas;
use crate::api::openapi::texts::Texts;
use crate::auth::authority::Authority;
use crate::auth::guard::Guard;
use crate::blocking;
use crate::connectors::clock::SystemClock;
use crate::connectors::engine::Engine;
use crate::connectors::http::Tools;
use crate::connectors::registry;
use crate::http::browsers::{Gate, HostName};
use crate::http::error::ApiError;
use crate::http::memory::{Held, Memory};
use crate::integrations::events::commits::Commits;
use crate::integrations::pipelines::Live;
use crate::integrations::pipelines::exporter::Allowed;
use crate::limits::{
    BULK_PART, EVENT_READS_MAX, EVENT_STREAMS_MAX, LONG_READS_MAX, LONG_READS_WAITING_MAX, LONG_WRITES_MAX,
    PAGE_BYTES_MAX,
};
use crate::log::rarely::Rarely;
use crate::log::refusals::Refusals;
use crate::log::{self, Level};
use crate::payments::event::Events;
use crate::payments::service::Payments;
use crate::sealing::{EncryptionKey, Sealer};
use crate::settings::Settings;

/// The server's state; cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

struct Shared {
    store: Store,
    settings: Settings,
    cursor_key: CursorKey,
    legacy_rules: KnownRules,
    schemas: KnownSchemas,
    empty_ledger: EmptyLedger,
    guard: Option<Guard>,
    gate: Option<Gate>,
    authority: Option<Arc<Authority>>,
    description: Texts,
    memory: Memory,
    /// Slots of long reads.
    running: Arc<Semaphore>,
    /// Slots of long reads, those that wait included.
    waiting: Semaphore,
    /// Slots of long writes at the writer.
    long_writes: Semaphore,
    commits: Commits,
    /// Slots of streams of events.
    streams: Arc<Semaphore>,
    /// Slots of reads for streams.
    feeding: Arc<Semaphore>,
    /// Whether the server is to end.
    stopping: watch::Receiver<bool>,
    pipelines: Arc<Live>,
    allowed: Allowed,
    connectors: Engine,
    /// Whether the last write was turned away because the disk is nearly full.
    is_full: AtomicBool,
    /// Ledgers whose writes were outside their schema lately.
    violations: Rarely,
    refusals: Refusals,
}

/// Decides which web pages may use a server without tokens. Its public addresses name hosts too.
fn gate(settings: &Settings, address: SocketAddr) -> Gate {
    let authorization = settings.authorization.as_ref();
    let urls = [Some(&settings.public_url), authorization.and_then(|own| own.public_url.as_ref())];
    let mut hosts = settings.allowed_hosts.clone();
    hosts.extend(urls.into_iter().flatten().filter_map(|url| HostName::of_url(url)));
    Gate::new(address, settings.tls.is_some(), hosts, settings.cors_origins.clone())
}

/// The threads that run the connectors of a server.
fn connectors(store: &Store, settings: &Settings, allowed: &Allowed) -> Engine {
    let secret = store.cursor_key();
    let sealer =
        settings.encryption_key.as_ref().map_or_else(|| Sealer::of_secret(&secret), EncryptionKey::sealer);
    let events = Events::new(settings.payment_publishers.clone(), settings.public_url.clone(), log::now());
    let payments = Arc::new(Payments::new(store.clone(), sealer, events));
    let tools = Tools::new(allowed.outbound, settings.provider_addresses.clone(), settings.provider_timeout)
        .within(settings.connectors_directory.clone());
    Engine::new(payments, registry::ROWS, tools, Arc::new(SystemClock))
}

impl App {
    /// `stopping` tells that the server is to end, `allowed` what callers may have it reach, and `address` where it
    /// listens.
    pub(crate) fn new(
        store: Store,
        settings: Settings,
        guard: Option<Guard>,
        address: SocketAddr,
        authority: Option<Arc<Authority>>,
        stopping: watch::Receiver<bool>,
        allowed: Allowed,
    ) -> Self {
        let commits = Commits::of(&store);
        let cursor_key = store.cursor_key();
        let connectors = connectors(&store, &settings, &allowed);
        let gate = guard.is_none().then(|| gate(&settings, address));
        let memory = Memory::new(settings.http_memory);
        Self(Arc::new(Shared {
            store,
            settings,
            cursor_key,
            legacy_rules: KnownRules::default(),
            schemas: KnownSchemas::default(),
            empty_ledger: EmptyLedger::default(),
            guard,
            gate,
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
            allowed,
            connectors,
            is_full: AtomicBool::new(false),
            violations: Rarely::default(),
            refusals: Refusals::default(),
        }))
    }

    /// The engine of the connectors.
    pub(crate) fn connectors(&self) -> &Engine {
        &self.0.connectors
    }

    /// The records of the payments API.
    pub(crate) fn payments(&self) -> &Arc<Payments> {
        self.0.connectors.payments()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The count of refused requests.
    pub(crate) fn refusals(&self) -> &Refusals {
        &self.0.refusals
    }

    pub(crate) fn cursor_key(&self) -> &CursorKey {
        &self.0.cursor_key
    }

    /// The check of tokens; `None` if no tokens are required.
    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.0.guard.as_ref()
    }

    /// Which web pages it answers; `None` if tokens decide.
    pub(crate) fn gate(&self) -> Option<&Gate> {
        self.0.gate.as_ref()
    }

    /// The authorization server; `None` if the operator left it out.
    pub(crate) fn authority(&self) -> Option<&Arc<Authority>> {
        self.0.authority.as_ref()
    }

    /// The description of the API.
    pub(crate) fn description(&self) -> &Texts {
        &self.0.description
    }

    /// The rules of the first generation for a ledger.
    ///
    /// # Errors
    ///
    /// `INTERNAL` if the mapping that is stored is none.
    pub(crate) fn legacy_rules(&self, ledger: Option<&LedgerView>) -> Result<Rules, ApiError> {
        self.0.legacy_rules.of(ledger, self.0.settings.past_dates)
    }

    /// The schemas that were asked for lately.
    pub(crate) fn schemas(&self) -> &KnownSchemas {
        &self.0.schemas
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    /// The memory for requests and answers.
    pub(crate) fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// The store as of now. Its pages end early rather than grow too large.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.0.store.snapshot().with_page_bytes(PAGE_BYTES_MAX)
    }

    /// Hands commands to the writer and waits until they are durable, without holding up the thread. A few long
    /// submissions are at the writer at a time, so that shorter ones wait for few of them.
    pub(crate) async fn submit(&self, submission: Submission) -> Result<Vec<Outcome>, ApiError> {
        let is_long = submission.requests.len() > BULK_PART;
        let _slot = if is_long { self.0.long_writes.acquire().await.ok() } else { None };
        let (answer, answered) = oneshot::channel();
        let ledger = submission.ledger.clone();
        let needs_room = matches!(submission.mode, Mode::Commit);
        self.0.store.submit(submission, move |outcomes| {
            // The caller may have hung up; its write stands all the same.
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

    /// Says that a write was outside its ledger's schema, at most once a minute for each ledger.
    fn warn_of_violation(&self, ledger: &LedgerName, log: LogId, violation: &Rejection) {
        let Some(left_out) = self.0.violations.due(ledger.as_str(), Instant::now()) else { return };
        let fields: [(&str, &dyn Display); 4] =
            [("ledger", ledger), ("log", &log.get()), ("left_out", &left_out), ("reason", &violation)];
        log::event(Level::Warning, "schema-violation", &fields);
    }

    /// Tells once when the disk is nearly full, and once when it is not any more.
    fn note_room(&self, outcomes: &Result<Vec<Outcome>, WriteError>) {
        let is_full = matches!(outcomes, Err(WriteError::DiskNearlyFull));
        // To look first costs a write nothing.
        if self.0.is_full.load(Ordering::Relaxed) != is_full
            && self.0.is_full.swap(is_full, Ordering::Relaxed) != is_full
        {
            let level = if is_full { Level::Error } else { Level::Info };
            log::event(level, "disk", &[("nearly_full", &is_full)]);
        }
    }

    /// Computes the effect of commands of the first generation, as one, on a new ledger made with `options`.
    pub(crate) async fn try_on_empty_ledger(
        &self,
        options: LedgerOptions,
        requests: Vec<Request>,
        detail: Detail,
    ) -> Result<Vec<Outcome>, ApiError> {
        let app = self.clone();
        blocking::answer(move || Ok(app.0.empty_ledger.try_out(options, requests, detail)?)).await
    }

    /// Runs what may take long, or blocks, on a thread of its own, a few at a time.
    pub(crate) async fn long<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (_waiting, running) = self.slots_for_long().await?;
        blocking::answer(move || {
            // The read goes on if its client leaves, so it keeps the slot itself.
            let _running = running;
            work()
        })
        .await
    }

    /// Waits until it may run what may take long. Returns the place among all that wait or run, and the slot to run.
    async fn slots_for_long(&self) -> Result<(SemaphorePermit<'_>, OwnedSemaphorePermit), ApiError> {
        let Ok(waiting) = self.0.waiting.try_acquire() else {
            return Err(ApiError::busy("too many queries are waiting"));
        };
        let running = self.0.running.clone().acquire_owned().await.expect("the semaphore is never closed");
        Ok((waiting, running))
    }

    /// Whether the server is to end.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stopping.clone()
    }

    /// Tells of commits.
    pub(crate) fn commits(&self) -> Commits {
        self.0.commits.clone()
    }

    /// How pipelines get on.
    pub(crate) fn pipelines(&self) -> &Arc<Live> {
        &self.0.pipelines
    }

    /// The addresses that callers may have the server reach.
    pub(crate) fn allowed(&self) -> &Allowed {
        &self.0.allowed
    }

    /// A slot for a stream of events, to be kept as long as it lasts.
    ///
    /// # Errors
    ///
    /// 503 if there are none left.
    pub(crate) fn event_stream(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let slot = self.0.streams.clone().try_acquire_owned();
        slot.map_err(|_| ApiError::busy("too many streams of events are open"))
    }

    /// Reads a part of a stream, a few at a time, once there is memory for about this many bytes; all others wait. A part
    /// can turn out larger, so few may be read at once.
    pub(crate) async fn feed<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&Store, Held) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let slot = self.0.feeding.clone().acquire_owned().await.expect("the semaphore is never closed");
        let held = self.0.memory.streams.wait(bytes).await;
        self.blocking(move |store| {
            // The read goes on if its client leaves, so it keeps the slot itself.
            let _slot = slot;
            work(store, held)
        })
        .await
    }

    /// Runs a blocking write of the directory of ledgers. They are few and must not wait for queries.
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

    use ledger_core::{AccountAddress, Amount, Asset, Command, CreateTransaction, Posting};
    use ledger_store::Atomicity;

    use super::*;
    use crate::outbound::Outbound;

    fn app(store: &Store) -> App {
        let allowed = Allowed { outbound: Outbound::Public, folder: None };
        let (_, stopping) = watch::channel(false);
        let address = (Ipv4Addr::LOCALHOST, 80).into();
        App::new(store.clone(), Settings::default(), None, address, None, stopping, allowed)
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
        let long = || first_log(&app, BULK_PART + 1);
        // Polled in this order.
        let (first, second, third, short) = tokio::join!(biased; long(), long(), long(), first_log(&app, 1));
        let part = BULK_PART as u64 + 1;
        assert_eq!((first, second, short, third), (1, 1 + part, 1 + 2 * part, 2 + 2 * part));
    }
}
