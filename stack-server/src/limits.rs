//! Every limit of the server with its reason. [`ledger_core::limits`] bounds the values of the ledger itself.

use std::time::Duration;

/// Maximum number of bytes in all header lines of a request.
pub(crate) const HEADER_BYTES_MAX: usize = 64 * 1_024;

/// Maximum number of bytes in a request target. Twice the usual limit of proxies, because targets contain filters.
pub(crate) const URI_BYTES_MAX: usize = 16 * 1_024;

/// Buffer of a connection for the head of a request. A target or headers somewhat above their limits still fit, so that
/// the client gets an error response instead of a closed connection.
pub(crate) const HEAD_BUFFER_BYTES: usize = 160 * 1_024;

/// Maximum number of bytes in the body of a write. A bulk of a hundred scripts is far smaller.
pub(crate) const BODY_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Requests and responses get one part in this many of the memory budget. The store gets the rest.
pub(crate) const HTTP_MEMORY_DIVISOR: usize = 8;

/// Minimum number of bytes for requests and responses, unless that is more than half of the budget. A few large requests
/// fit.
pub(crate) const HTTP_MEMORY_MIN: usize = 16 << 20;

/// Maximum number of bytes of a head, a body or a response whose memory is not counted. Nearly all are shorter, and small
/// requests proceed while large ones wait for memory.
pub(crate) const UNCOUNTED_BYTES_MAX: usize = 8 * 1_024;

/// Maximum number of bytes of a body that an HTTP thread parses itself. Small requests wait behind a longer one. Parsing
/// this much, and writing the response, takes about a tenth of a millisecond.
pub(crate) const INLINE_BODY_BYTES_MAX: usize = 8 * 1_024;

/// Number of elements of a non-atomic bulk that are submitted at once. Other clients' writes run between the parts.
pub(crate) const COMMANDS_PER_PART: usize = 500;

/// Maximum number of commands in an atomic bulk or a v1 batch. Bounds how long other writes wait for it.
pub(crate) const ATOMIC_COMMANDS_MAX: usize = 10_000;

/// Approximate number of bytes of commands, entries and results for each byte of a body.
pub(crate) const WORK_FACTOR: usize = 4;

/// Maximum time for which a body waits for memory. Shorter than the usual timeout of clients.
pub(crate) const BODY_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of refused bodies that are read and discarded at the same time, so that their clients see the error.
/// The buffers of more would use the memory that was refused.
pub(crate) const DISCARDS_MAX: usize = 16;

/// Maximum time for which a large request that has arrived waits for earlier large requests.
pub(crate) const WORK_WAIT: Duration = Duration::from_secs(10);

/// Maximum time for which a response waits for memory. It is short, because the response itself is in memory already.
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// Maximum time for which an export waits for memory before its response begins.
pub(crate) const STREAM_BEGIN_WAIT: Duration = Duration::from_secs(10);

/// Time after which a stream that waits for memory tries again. Streams wait without a limit.
pub(crate) const STREAM_WAIT: Duration = Duration::from_mins(1);

/// Maximum size of the items of a page in memory. Their JSON is two or three times as long. Pages of ordinary items
/// never reach it.
pub(crate) const PAGE_BYTES_MAX: usize = 2 << 20;

/// Maximum size of the items of a part of an export in memory. Bounds the parts that wait for slow readers.
pub(crate) const EXPORT_BYTES: usize = 512 * 1_024;

/// Approximate number of bytes of JSON for each byte of an item in memory.
pub(crate) const JSON_FACTOR: usize = 2;

/// Maximum number of bytes in the body of a read. The body is a filter.
pub(crate) const FILTER_BODY_BYTES_MAX: usize = 64 * 1_024;

/// Maximum number of bytes of a ledger's mapping. The store keeps it in memory with the ledger.
pub(crate) const MAPPING_BYTES_MAX: usize = 64 * 1_024;

/// Maximum number of bytes of schemas in the cache of parsed schemas. A larger schema works, but is not cached.
pub(crate) const SCHEMA_CACHE_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Maximum number of bytes of a filter. Cursors contain it, and base64 makes it a third longer there.
pub(crate) const FILTER_BYTES_MAX: usize = 8 * 1_024;

/// Maximum number of bytes of a cursor. The server's own cursors are always shorter.
pub(crate) const CURSOR_BYTES_MAX: usize = URI_BYTES_MAX;

/// How long a client may take to send a head, from its first byte on. Also how long it may take to begin the first one.
pub(crate) const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may be idle after a response. Longer than the minute for which proxies usually keep a connection:
/// if the server closed first, the next request of the proxy would fail.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(75);

/// How long a client may take to send a body.
pub(crate) const BODY_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a response may wait for a client that does not read it.
pub(crate) const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Number of bytes of a response beyond which the kernel takes no more of it before it has sent some. It would take up to
/// 4 MiB for each client that does not read, which no memory budget counts.
#[cfg(target_os = "linux")]
pub(crate) const UNSENT_BYTES_MAX: u32 = 128 * 1_024;

/// Minimum number of bytes that a client must read within [`WRITE_STALL_TIMEOUT`] while more of a response waits. A client
/// that reads a byte now and then cannot keep a response in memory.
pub(crate) const WRITE_BYTES_MIN: usize = 512 * 1_024;

/// Maximum number of bytes of a refused body that are read and discarded, so that the client sees the error.
pub(crate) const DISCARD_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;

/// Maximum number of bytes of a refused import that are read and discarded. Most clients send all of an import before
/// they read the response.
pub(crate) const DISCARD_IMPORT_BYTES_MAX: usize = 1 << 30;

/// How long discarding a body may take.
pub(crate) const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// How long discarding an import may take.
pub(crate) const DISCARD_IMPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long requests in flight have to finish when the server stops.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after the operating system refused a connection, usually because no descriptors were left. Keeps the accept loop
/// from spinning.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of open connections over all HTTP threads; more wait in the backlog.
pub(crate) const CONNECTIONS_MAX: usize = 10_000;

/// Number of descriptors that connections never use. The store's files, deliveries and exporters need them. A process
/// with few descriptors reserves half of them.
pub(crate) const DESCRIPTORS_RESERVED: usize = 256;

/// One peer may hold one in this many of all connections. Keeps one client from locking out all others.
pub(crate) const PEER_SHARE: usize = 2;

/// Maximum number of rows of a page that an HTTP thread reads itself. A larger page would delay the other requests of that
/// thread.
pub(crate) const INLINE_ROWS_MAX: u32 = 100;

/// Maximum number of long reads at the same time. Leaves processors to writes.
pub(crate) const LONG_READS_MAX: usize = 4;

/// Maximum number of long reads that wait for a slot. The server answers 503 to more.
pub(crate) const LONG_READS_WAITING_MAX: usize = 256;

/// Maximum number of submissions with more than [`COMMANDS_PER_PART`] commands that are at the writer at the same time. A second one
/// would delay shorter submissions by the time that it takes.
pub(crate) const LONG_WRITES_MAX: usize = 1;

/// Maximum number of HTTP threads.
pub(crate) const HTTP_THREADS_MAX: usize = 64;

/// Maximum `pageSize` on the wire: the API defines an unsigned 32-bit number, and larger ones are malformed.
pub(crate) const PAGE_SIZE_NUMBER_MAX: u64 = u32::MAX as u64;

/// Number of bytes of an import that are collected before their logs are recorded.
pub(crate) const IMPORT_BYTES: usize = 256 * 1_024;

/// Minimum number of bytes of an import that must arrive within `Settings::import_timeout`. A client that sends a byte now and
/// then cannot keep a part in memory.
pub(crate) const IMPORT_BYTES_MIN: usize = 256 * 1_024;

/// How long one delivery to another server may take, connecting included.
pub(crate) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of bytes of the response to a delivery that are read so that the connection can be reused.
pub(crate) const DELIVERY_ANSWER_BYTES_MAX: usize = 64 * 1_024;

/// Maximum number of idle connections that a delivery client keeps.
pub(crate) const DELIVERY_IDLE_MAX: usize = 16;

/// Number of ledgers whose events are delivered in parallel. The events of one ledger are delivered in order.
pub(crate) const DELIVERY_LANES: usize = 8;

/// First pause after a delivery failed; it doubles with each failure.
pub(crate) const DELIVERY_PAUSE_MIN: Duration = Duration::from_millis(100);

/// Longest pause between two attempts of a delivery.
pub(crate) const DELIVERY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Minimum time between two connections to a receiver that closes them before there is an event. Bounds the work for a
/// receiver that closes every connection at once.
pub(crate) const DELIVERY_RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum time between two records of a consumer's position. Events delivered after the last record are delivered again
/// after a crash.
pub(crate) const POSITION_INTERVAL: Duration = Duration::from_secs(1);

/// Number of entries without an event after which a consumer's position is recorded, so that they are not read again.
pub(crate) const POSITION_ENTRIES: u64 = 100_000;

/// How long deliveries in flight may take when the server stops.
pub(crate) const DELIVERY_STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of open event streams.
pub(crate) const EVENT_STREAMS_MAX: usize = 512;

/// Maximum number of event streams that read from the store at the same time. Leaves processors to writes.
pub(crate) const EVENT_READS_MAX: usize = 2;

/// Maximum number of logs that an event stream reads at once.
pub(crate) const EVENT_PART_LOGS: usize = 256;

/// Approximate maximum number of bytes that an event stream reads at once.
pub(crate) const EVENT_PART_BYTES: usize = 64 * 1_024;

/// Maximum number of exporters, and of pipelines. Their lists have no pages, and each running pipeline keeps a part of its
/// log in memory.
pub(crate) const PIPELINES_MAX: usize = 256;

/// Approximate maximum number of bytes of logs that a pipeline pushes at once.
pub(crate) const PIPELINE_PART_BYTES: usize = 256 * 1_024;

/// Maximum batch size that an exporter can be configured with, in logs.
pub(crate) const PIPELINE_ITEMS_MAX: usize = 10_000;

/// Maximum flush interval that an exporter can be configured with.
pub(crate) const PIPELINE_FLUSH_MAX: Duration = Duration::from_hours(1);

/// Maximum number of bytes in the configuration of an exporter.
pub(crate) const EXPORTER_CONFIG_BYTES_MAX: usize = 64 * 1_024;

/// Maximum number of characters in the name of an exporter's file.
pub(crate) const EXPORTER_FILE_NAME_MAX: usize = 100;

/// Minimum size at which an exporter starts its next file.
pub(crate) const EXPORTER_FILE_BYTES_MIN: u64 = 1 << 10;

/// Maximum number of bytes of a token. Longer ones are refused unread.
pub(crate) const TOKEN_BYTES_MAX: usize = 8 * 1_024;

/// Maximum number of bytes of the last token that a connection remembers.
pub(crate) const LAST_TOKEN_BYTES_MAX: usize = 2 * 1_024;

/// Maximum number of verified tokens in the cache. Each takes about a hundred bytes.
pub(crate) const VERIFIED_TOKENS_MAX: usize = 10_000;

/// Maximum number of keys of an issuer.
pub(crate) const ISSUER_KEYS_MAX: usize = 100;

/// How long fetched keys of an issuer are used without asking again. Bounds how long a withdrawn key still works. The
/// server fetches them again after half of this time.
pub(crate) const KEYS_FRESH: Duration = Duration::from_mins(1);

/// How long fetched keys of an issuer are used while the issuer does not answer.
pub(crate) const KEYS_KEPT: Duration = Duration::from_hours(1);

/// Maximum time for which a request waits for newer keys of an issuer, when the known keys are no longer fresh. After it
/// the known keys decide, so that an issuer that hangs does not block requests.
pub(crate) const KEYS_WAIT: Duration = Duration::from_secs(3);

/// Minimum time between two requests to an issuer.
pub(crate) const KEYS_PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of bytes of a document fetched from an issuer.
pub(crate) const FETCH_BYTES_MAX: usize = 1_024 * 1_024;

/// How long an issuer may take to answer.
pub(crate) const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of signing keys of the authorization server, including retired keys whose tokens have not expired.
/// Bounds the key set that every verifier fetches.
pub(crate) const SIGNING_KEYS_MAX: usize = 16;

/// Minimum time for which a key signs. Keeps the number of retired keys with valid tokens below [`SIGNING_KEYS_MAX`].
pub(crate) const KEY_ROTATION_MIN: Duration = Duration::from_mins(10);

/// How long a retired key is kept: longer than any token that it signed is valid.
pub(crate) const RETIRED_KEY_KEPT: Duration = Duration::from_mins(70);

/// Maximum number of bytes of a name, a label or an address that the authorization server stores.
pub(crate) const AUTH_TEXT_BYTES_MAX: usize = 2_048;

/// Maximum number of bytes of an id or a subject. Fits the store's limit for document keys.
pub(crate) const AUTH_KEY_BYTES_MAX: usize = 1_000;

/// Maximum number of clients. Their list has no pages.
pub(crate) const CLIENTS_MAX: usize = 10_000;

/// Maximum number of secrets of a client. Bounds the work of checking a wrong secret, which is compared with each.
pub(crate) const CLIENT_SECRETS_MAX: usize = 12;

/// Maximum number of redirect URIs of a client, of each kind.
pub(crate) const CLIENT_URIS_MAX: usize = 64;

/// Maximum number of scopes of a client. Keeps its tokens below the longest token.
pub(crate) const CLIENT_SCOPES_MAX: usize = 128;

/// Maximum number of stored scopes. All of them are read to compute what a client may request.
pub(crate) const SCOPES_MAX: usize = 1_000;

/// Maximum number of transient scopes of a scope.
pub(crate) const TRANSIENT_SCOPES_MAX: usize = 128;

/// Maximum number of bytes in the body of a request to the authorization server. Clients are stored as documents, whose
/// size the store limits.
pub(crate) const AUTH_BODY_BYTES_MAX: usize = 64 * 1_024;

/// Number of expired documents that are removed in one commit. Keeps other writes from waiting.
pub(crate) const SWEEP_DOCUMENTS: usize = 200;

/// Maximum number of addresses, and of clients, whose wrong secrets are counted. Each takes about a hundred bytes.
pub(crate) const RATES_MAX: usize = 10_000;

/// Maximum number of tokens that are signed at the same time. Signing occupies a processor.
pub(crate) const SIGNING_MAX: usize = 4;

/// Maximum number of token requests that wait to be signed.
pub(crate) const SIGNING_WAITING_MAX: usize = 1_024;

/// Maximum number of slow hashes that are computed at the same time. Each takes 19 MiB.
pub(crate) const SLOW_HASHES_MAX: usize = 2;

/// Maximum number of slow hashes that wait to be computed.
pub(crate) const SLOW_HASHES_WAITING_MAX: usize = 32;

/// Maximum number of bytes in the file of static clients.
pub(crate) const STATIC_CLIENTS_BYTES_MAX: usize = 1_024 * 1_024;

/// Maximum number of secrets of a static client. A wrong secret costs one slow hash for each.
pub(crate) const STATIC_SECRETS_MAX: usize = 4;

/// Maximum number of logins that an address may begin in a minute. A login needs no secret, and each is stored for ten
/// minutes.
pub(crate) const LOGINS_PER_MINUTE: u32 = 60;

/// How long a payment provider may take to accept a connection.
pub(crate) const PROVIDER_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a payment provider may take to send a whole response.
pub(crate) const PROVIDER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a payment provider may take to move money, over all requests of one order. Bounds how long a change of the
/// installation waits.
pub(crate) const PAY_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of bytes of a provider's response. A page of a hundred records has a few hundred kilobytes.
pub(crate) const PROVIDER_ANSWER_BYTES_MAX: usize = 16 << 20;

/// First pause of a task after its provider failed; it doubles with each failure, up to the polling period.
pub(crate) const TASK_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Maximum pause that a provider can request.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

/// Maximum number of installed connectors.
pub(crate) const INSTALLATIONS_MAX: usize = 10_000;

/// Maximum number of rows of a page of the payments API.
pub(crate) const PAYMENTS_PAGE_MAX: usize = 1_000;

/// Number of rows of a page of the payments API unless the caller asks for another.
pub(crate) const PAYMENTS_PAGE_DEFAULT: usize = 15;
