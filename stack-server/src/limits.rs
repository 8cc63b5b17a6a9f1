//! Every limit of the server, in one place, each with its reason. What a value may be stands in
//! [`ledger_core::limits`].

use std::time::Duration;

/// Most bytes of all header lines of a request.
pub(crate) const HEADER_BYTES_MAX: usize = 64 * 1_024;

/// Longest request target: the usual limit of proxies doubled, since filters travel in it.
pub(crate) const URI_BYTES_MAX: usize = 16 * 1_024;

/// Buffer of a connection for a head: room for the largest target and headers that are
/// answered with an error of ours instead of a closed connection.
pub(crate) const HEAD_BUFFER_BYTES: usize = 160 * 1_024;

/// Longest body of a request that writes: a hundred elements of bulk with scripts fit many times.
pub(crate) const BODY_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Divisor of the memory budget that gives the part for requests and answers. The store has the rest.
pub(crate) const HTTP_MEMORY_DIVISOR: usize = 8;

/// Minimum number of bytes for requests and answers, unless that is more than half of the budget. A few large requests
/// fit.
pub(crate) const HTTP_MEMORY_MIN: usize = 16 << 20;

/// Maximum number of bytes of a head, of a body or of an answer whose memory is not counted. Nearly all are shorter, and
/// small requests pass while large ones wait for memory.
pub(crate) const UNCOUNTED_BYTES_MAX: usize = 8 * 1_024;

/// Maximum length of a body that is read on an HTTP thread itself. A longer one would hold up the other requests.
pub(crate) const INLINE_BODY_BYTES_MAX: usize = 64 * 1_024;

/// Number of elements of a bulk that enter the writer at once where the bulk is not atomic. Writes of others get in
/// between.
pub(crate) const BULK_PART: usize = 500;

/// Maximum number of commands that are decided as one: of an atomic bulk, or of a batch of the first generation. Bounds
/// how long others wait.
pub(crate) const ATOMIC_COMMANDS_MAX: usize = 10_000;

/// Number of bytes of commands, entries and results for each byte of a body, about. Names and amounts are short in JSON.
pub(crate) const WORK_FACTOR: usize = 4;

/// Maximum time for which a body waits for memory. Shorter than clients usually wait for an answer.
pub(crate) const BODY_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of bodies without memory that are read and forgotten at once, so that their clients see why they were
/// refused. The buffers of many would take the memory after all.
pub(crate) const DISCARDS_MAX: usize = 16;

/// Maximum time for which a large request that has arrived waits for those before it.
pub(crate) const WORK_WAIT: Duration = Duration::from_secs(10);

/// Maximum time for which an answer waits for memory, and maximum number of answers that wait. They are in memory
/// already.
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(1);
pub(crate) const ANSWERS_WAITING_MAX: usize = 4;

/// Maximum time for which an export waits for memory before it is answered.
pub(crate) const STREAM_BEGIN_WAIT: Duration = Duration::from_secs(10);

/// Time after which a stream that waits for memory looks again. It waits for as long as it takes.
pub(crate) const STREAM_WAIT: Duration = Duration::from_mins(1);

/// Maximum size of the items of a page in memory. Their JSON is two or three times as long. Pages of ordinary items
/// never reach it.
pub(crate) const PAGE_BYTES_MAX: usize = 2 << 20;

/// Maximum size of the items of a part of an export in memory. Bounds the parts that wait for slow readers.
pub(crate) const EXPORT_BYTES: usize = 512 * 1_024;

/// Number of bytes of JSON for each byte of an item in memory, about.
pub(crate) const JSON_FACTOR: usize = 2;

/// Longest body of a request that reads: it is a filter.
pub(crate) const FILTER_BODY_BYTES_MAX: usize = 64 * 1_024;

/// Longest mapping of a ledger. It is kept in memory with the ledger, and compiled.
pub(crate) const MAPPING_BYTES_MAX: usize = 64 * 1_024;

/// Most bytes of schemas that are kept parsed; one of any size is used all the same.
pub(crate) const SCHEMA_CACHE_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Longest filter text. It travels in cursors, hence in targets, where base64 makes it a third longer.
pub(crate) const FILTER_BYTES_MAX: usize = 8 * 1_024;

/// Longest cursor that is looked at; one that we made is always shorter.
pub(crate) const CURSOR_BYTES_MAX: usize = URI_BYTES_MAX;

/// How long a client may take to send a head, from its first byte on, and to begin the first one.
pub(crate) const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may be idle after an answer. It is longer than the minute for which proxies usually keep one:
/// who closes first must not be us, or the next request comes to nothing.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(75);

/// How long a client may take to send a body.
pub(crate) const BODY_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an answer may wait for a client that does not take it.
pub(crate) const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Minimum number of bytes that a client with a backlog takes of an answer within the time above. A client that takes a
/// byte now and then does not hold an answer.
pub(crate) const WRITE_BYTES_MIN: usize = 512 * 1_024;

/// Most bytes of a body too large that are read and forgotten, so that the client sees why it was refused.
pub(crate) const DISCARD_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;

/// The same of an import that is refused: whoever sends a log learns why, unless it is very long.
pub(crate) const DISCARD_IMPORT_BYTES_MAX: usize = 1 << 30;

/// How long the first may take.
pub(crate) const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// And the second.
pub(crate) const DISCARD_IMPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long requests in flight have to finish when the server stops.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after the operating system refused a connection (usually for want of descriptors), so that the loop
/// does not spin while it lasts.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of open connections over all HTTP threads; more wait in the backlog.
pub(crate) const CONNECTIONS_MAX: usize = 10_000;

/// Number of descriptors that connections leave to everything else: the files of the store, deliveries, and exporters.
/// A process with few descriptors keeps half of them.
pub(crate) const DESCRIPTORS_RESERVED: usize = 256;

/// A peer may have one in this many of all connections. Keeps one client from shutting out all others.
pub(crate) const PEER_SHARE: usize = 2;

/// Most rows of a plain page that are read on the HTTP thread itself; a larger page would hold up the others.
pub(crate) const INLINE_ROWS_MAX: u32 = 100;

/// Most long reads at once, so that writes keep their processors.
pub(crate) const LONG_READS_MAX: usize = 4;

/// Most long reads that wait for their turn; more are told to come back.
pub(crate) const LONG_READS_WAITING_MAX: usize = 256;

/// Most HTTP threads that can be asked for.
pub(crate) const HTTP_THREADS_MAX: usize = 64;

/// Largest `pageSize` on the wire: an unsigned 32-bit number. Larger ones are no number of rows at all.
pub(crate) const PAGE_SIZE_NUMBER_MAX: u64 = u32::MAX as u64;

/// Bytes of an import that are gathered before their logs are taken in.
pub(crate) const IMPORT_BYTES: usize = 256 * 1_024;

/// Minimum number of bytes of an import that arrive within [`BODY_READ_TIMEOUT`]. A client that sends a byte now and then
/// does not hold what has arrived.
pub(crate) const IMPORT_BYTES_MIN: usize = 256 * 1_024;

/// How long one delivery to another server may take, connecting included.
pub(crate) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Most bytes of an answer to a delivery that are read so that the connection can be kept.
pub(crate) const DELIVERY_ANSWER_BYTES_MAX: usize = 64 * 1_024;

/// Most connections that one client keeps for later deliveries.
pub(crate) const DELIVERY_IDLE_MAX: usize = 16;

/// Ledgers whose events are delivered beside each other; those of one ledger go one after the other.
pub(crate) const DELIVERY_LANES: usize = 8;

/// First pause after a delivery failed; it doubles with each failure.
pub(crate) const DELIVERY_PAUSE_MIN: Duration = Duration::from_millis(100);

/// Longest pause between two attempts of a delivery.
pub(crate) const DELIVERY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// How often the place that a consumer has reached is written, at most: what was delivered since is delivered again
/// after a crash.
pub(crate) const POSITION_INTERVAL: Duration = Duration::from_secs(1);

/// Where nothing was to be delivered the place is written after so many entries, so that they are not read again.
pub(crate) const POSITION_ENTRIES: u64 = 100_000;

/// How long deliveries under way may take when the server stops.
pub(crate) const DELIVERY_STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Most streams of events at once.
pub(crate) const EVENT_STREAMS_MAX: usize = 512;

/// Most streams of events that read from the store at once, so that writes keep their processors.
pub(crate) const EVENT_READS_MAX: usize = 2;

/// Most logs that a stream of events reads at once.
pub(crate) const EVENT_PART_LOGS: usize = 256;

/// Most bytes, about, that a stream of events reads at once.
pub(crate) const EVENT_PART_BYTES: usize = 64 * 1_024;

/// Most exporters, and most pipelines: their lists have no pages, and each running pipeline holds a part of its log.
pub(crate) const PIPELINES_MAX: usize = 256;

/// Most bytes, about, of the logs that a pipeline pushes at once.
pub(crate) const PIPELINE_PART_BYTES: usize = 256 * 1_024;

/// Most logs that an exporter can ask for at once.
pub(crate) const PIPELINE_ITEMS_MAX: usize = 10_000;

/// Longest time for which an exporter can let logs gather.
pub(crate) const PIPELINE_FLUSH_MAX: Duration = Duration::from_hours(1);

/// Longest configuration of an exporter.
pub(crate) const EXPORTER_CONFIG_BYTES_MAX: usize = 64 * 1_024;

/// Maximum number of characters in the name of an exporter's file.
pub(crate) const EXPORTER_FILE_NAME_MAX: usize = 100;

/// Minimum size at which an exporter starts its next file.
pub(crate) const EXPORTER_FILE_BYTES_MIN: u64 = 1 << 10;

/// Longest token that is looked at.
pub(crate) const TOKEN_BYTES_MAX: usize = 8 * 1_024;

/// Longest token that a connection remembers.
pub(crate) const LAST_TOKEN_BYTES_MAX: usize = 2 * 1_024;

/// Most tokens that are known to be good; about a hundred bytes each.
pub(crate) const VERIFIED_TOKENS_MAX: usize = 10_000;

/// Most keys of an issuer.
pub(crate) const ISSUER_KEYS_MAX: usize = 100;

/// How long the keys of an issuer are relied on: a withdrawn one is refused after this time. Half of it passes before the
/// issuer is asked again.
pub(crate) const KEYS_FRESH: Duration = Duration::from_mins(1);

/// How long they are good if the issuer does not answer.
pub(crate) const KEYS_KEPT: Duration = Duration::from_hours(1);

/// Maximum time for which a request waits for newer keys of an issuer, when those at hand are no longer fresh. The keys
/// at hand then decide, so that an issuer that hangs does not stop requests.
pub(crate) const KEYS_WAIT: Duration = Duration::from_secs(3);

/// Between two questions to an issuer.
pub(crate) const KEYS_PAUSE: Duration = Duration::from_secs(1);

/// Longest document of an issuer.
pub(crate) const FETCH_BYTES_MAX: usize = 1_024 * 1_024;

/// How long an issuer may take to answer.
pub(crate) const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of signing keys of the authorization server, those included whose tokens have not expired. Bounds the
/// key set that every verifier fetches.
pub(crate) const SIGNING_KEYS_MAX: usize = 16;

/// Shortest time for which a key signs: so few keys are retired while tokens of theirs are good that all have room.
pub(crate) const KEY_ROTATION_MIN: Duration = Duration::from_mins(10);

/// How long a key that signs no more is kept: longer than any token that it signed is good.
pub(crate) const RETIRED_KEY_KEPT: Duration = Duration::from_mins(70);

/// Maximum number of bytes of a name, a label or an address that the authorization server keeps.
pub(crate) const AUTH_TEXT_BYTES_MAX: usize = 2_048;

/// Maximum number of bytes of an id or a subject: the store has no longer keys.
pub(crate) const AUTH_KEY_BYTES_MAX: usize = 1_000;

/// Maximum number of clients. Their list has no pages.
pub(crate) const CLIENTS_MAX: usize = 10_000;

/// Maximum number of secrets of a client, and of the work of a wrong one.
pub(crate) const CLIENT_SECRETS_MAX: usize = 12;

/// Maximum number of redirect URIs of a client, of each kind.
pub(crate) const CLIENT_URIS_MAX: usize = 64;

/// Maximum number of scopes of a client. Keeps its tokens below the longest token.
pub(crate) const CLIENT_SCOPES_MAX: usize = 128;

/// Maximum number of scopes with an id. All of them are read to find out what a client may ask for.
pub(crate) const SCOPES_MAX: usize = 1_000;

/// Maximum number of scopes that a scope brings along by itself.
pub(crate) const TRANSIENT_SCOPES_MAX: usize = 128;

/// Maximum number of bytes of a request to the authorization server. Clients are documents, which the store bounds.
pub(crate) const AUTH_BODY_BYTES_MAX: usize = 64 * 1_024;

/// Number of expired documents that are removed in one commit. Keeps writes of others from waiting.
pub(crate) const SWEEP_DOCUMENTS: usize = 200;

/// Maximum number of addresses and of clients whose wrong secrets are counted; about a hundred bytes each.
pub(crate) const RATES_MAX: usize = 10_000;

/// Maximum number of requests for tokens that sign at once, and that wait for it. Signing keeps a processor busy.
pub(crate) const SIGNING_MAX: usize = 4;
pub(crate) const SIGNING_WAITING_MAX: usize = 1_024;

/// Maximum number of slow hashes at once, and that wait for it. Each takes 19 MiB.
pub(crate) const SLOW_HASHES_MAX: usize = 2;
pub(crate) const SLOW_HASHES_WAITING_MAX: usize = 32;

/// Maximum number of bytes of the file of static clients.
pub(crate) const STATIC_CLIENTS_BYTES_MAX: usize = 1_024 * 1_024;

/// Maximum number of secrets of a static client. A wrong one is compared with each, slowly.
pub(crate) const STATIC_SECRETS_MAX: usize = 4;

/// Maximum number of logins a minute that an address may begin. Nobody has to show a secret for one, and each is a
/// document for ten minutes.
pub(crate) const LOGINS_PER_MINUTE: u32 = 60;

/// How long a provider of payments may take to accept a connection, and to answer.
pub(crate) const PROVIDER_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a provider of payments may take for a whole answer.
pub(crate) const PROVIDER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a provider of payments may take to move money, all requests for it together. Bounds how long a change of an
/// installation waits for it.
pub(crate) const PAY_TIMEOUT: Duration = Duration::from_secs(10);

/// Most bytes of a provider's answer. A page of a hundred records has some hundred kilobytes.
pub(crate) const PROVIDER_ANSWER_BYTES_MAX: usize = 16 << 20;

/// First pause of a task after its provider failed; it doubles with each failure, up to the polling period.
pub(crate) const TASK_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest pause that a provider can ask for.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

/// Most installations of connectors.
pub(crate) const INSTALLATIONS_MAX: usize = 10_000;

/// Most rows of a page of the payments API.
pub(crate) const PAYMENTS_PAGE_MAX: usize = 1_000;

/// Rows of a page of the payments API where the caller does not say.
pub(crate) const PAYMENTS_PAGE_DEFAULT: usize = 15;
