//! Reads a request: the segments of its path, its query parameters, and its body up to a limit.

use std::borrow::Cow;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, EXPECT, HOST, HeaderMap};
use hyper::http::request::Parts;
use hyper::{StatusCode, Uri, Version};
use ledger_core::{Timestamp, TimestampError};

use crate::http::error::{ApiError, Profile};
use crate::http::memory::{self, Memory, Reservation};
use crate::http::response::Numbers;
use crate::limits::{
    BODY_READ_TIMEOUT, BODY_WAIT, DISCARD_BYTES_MAX, DISCARD_IMPORT_BYTES_MAX, DISCARD_IMPORT_TIMEOUT,
    DISCARD_TIMEOUT, HEADER_BYTES_MAX, PAGE_SIZE_NUMBER_MAX, UNCOUNTED_BYTES_MAX, URI_BYTES_MAX,
};

/// Splits a raw path at `/` and then decodes each part, so that an escaped slash stays inside its segment. Ignores one
/// slash at the end.
///
/// # Errors
///
/// `VALIDATION` if an escape is malformed or the decoded bytes are not UTF-8.
pub(crate) fn segments(path: &str) -> Result<Vec<Cow<'_, str>>, ApiError> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(Vec::new());
    }
    path.split('/')
        .map(|segment| decode(segment, PlusDecoding::Literal))
        .collect::<Option<_>>()
        .ok_or_else(|| ApiError::validation("invalid escape in the path"))
}

/// How a `+` is decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlusDecoding {
    Literal,
    Space,
}

/// Decodes a value of a form, where a `+` is a space. Returns `None` for malformed escapes.
pub(crate) fn decode_form(text: &str) -> Option<Cow<'_, str>> {
    decode(text, PlusDecoding::Space)
}

/// Escapes a value for a form or a path: everything but letters, digits and `-_.`.
pub(crate) fn encode_form(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Decodes percent escapes. Returns `None` if an escape is malformed or the result is not UTF-8.
fn decode(text: &str, plus: PlusDecoding) -> Option<Cow<'_, str>> {
    if !text.contains('%') && (plus == PlusDecoding::Literal || !text.contains('+')) {
        return Some(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            b'+' if plus == PlusDecoding::Space => b' ',
            byte => byte,
        });
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    u8::try_from(char::from(digit).to_digit(16)?).ok()
}

/// The query parameters of a request. Malformed pairs are ignored.
#[derive(Debug, Default)]
pub(crate) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub(crate) fn of(uri: &'a Uri) -> Self {
        Self::parse(uri.query().unwrap_or_default())
    }

    /// Parses the text of a query or a form.
    pub(crate) fn parse(text: &'a str) -> Self {
        let pairs = text.split('&').filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name, PlusDecoding::Space)?, decode(value, PlusDecoding::Space)?))
        });
        Self(pairs.filter(|(name, _)| !name.is_empty()).collect())
    }

    /// Returns the first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns every value of a parameter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(have, _)| have == name).map(|(_, value)| value.as_ref())
    }

    /// Returns every parameter with its value, in order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// Returns a boolean parameter: true for `1` and for `true` in any case, otherwise false.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
    }

    /// Returns whether the request is a dry run. Behind the mount of the stack `yes` is true as well.
    pub(crate) fn dry_run(&self, profile: Profile) -> bool {
        self.flag("dryRun")
            || profile == Profile::Stack
                && self.get("dryRun").is_some_and(|value| value.eq_ignore_ascii_case("yes"))
    }

    /// Returns the date of the first of these parameters that has a value. Checks the others too.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if one of them is not a date.
    pub(crate) fn date(&self, names: &[&str]) -> Result<Option<Timestamp>, ApiError> {
        let mut first = None;
        for text in names.iter().filter_map(|name| self.get(name)).filter(|text| !text.is_empty()) {
            let date = parse_date(text)
                .map_err(|error| ApiError::validation(format!("parsing time \"{text}\": {error}")))?;
            first = first.or(Some(date));
        }
        Ok(first)
    }

    /// Returns the page size under this name. `None` if it is absent, empty or 0.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if it is not an unsigned 32-bit number.
    pub(crate) fn page_size(&self, name: &str) -> Result<Option<u64>, ApiError> {
        match self.get(name) {
            None | Some("") => Ok(None),
            Some(text) => match text.parse::<u64>() {
                Ok(0) => Ok(None),
                Ok(size) if size <= PAGE_SIZE_NUMBER_MAX && !text.starts_with('+') => Ok(Some(size)),
                _ => Err(ApiError::validation(format!("invalid '{name}' query param"))),
            },
        }
    }
}

/// Parses a date in a query. Accepts a space in place of the `+` of an offset, which is what an unescaped `+` decodes to.
pub(crate) fn parse_date(text: &str) -> Result<Timestamp, TimestampError> {
    Timestamp::parse(text).or_else(|error| {
        if text.contains(' ') { Timestamp::parse(&text.replace(' ', "+")) } else { Err(error) }
    })
}

/// Returns the form of amounts that the client asks for.
pub(crate) fn numbers(headers: &HeaderMap) -> Numbers {
    match headers.get("formance-bigint-as-string").map(hyper::header::HeaderValue::as_bytes) {
        Some(b"true" | b"yes" | b"y" | b"1") => Numbers::Quoted,
        _ => Numbers::Plain,
    }
}

/// Refuses heads that are too large, and compressed bodies.
///
/// # Errors
///
/// 414, 431 and 415, with code `VALIDATION`.
pub(crate) fn check_head(parts: &Parts) -> Result<(), ApiError> {
    let target = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
    if target > URI_BYTES_MAX {
        let message = format!("the request target is longer than {URI_BYTES_MAX} bytes");
        return Err(ApiError::refused(StatusCode::URI_TOO_LONG, message));
    }
    // Each line has a colon, a space and a line end besides name and value.
    let bytes: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > HEADER_BYTES_MAX {
        let message = format!("the headers are longer than {HEADER_BYTES_MAX} bytes");
        return Err(ApiError::refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message));
    }
    // A few compressed bytes could expand to any size.
    if parts.headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(ApiError::refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must not be encoded"));
    }
    Ok(())
}

/// Refuses requests without a `Host`, or with two: a proxy in front of this server could route them by another host than
/// the server sees. HTTP/1.0 does not require the header.
///
/// # Errors
///
/// 400 with code `VALIDATION`.
pub(crate) fn check_host(parts: &Parts) -> Result<(), ApiError> {
    match parts.headers.get_all(HOST).iter().count() {
        1 => Ok(()),
        0 if parts.version < Version::HTTP_11 => Ok(()),
        0 => Err(ApiError::validation("the request has no header Host")),
        _ => Err(ApiError::validation("the request has more than one header Host")),
    }
}

/// Returns the target of a request for the log, without the values of parameters that may be secrets. The server accepts
/// no token in a target, but a client may send a valid one there by mistake.
pub(crate) fn loggable_target(uri: &Uri) -> String {
    let Some(query) = uri.query() else { return uri.path().to_owned() };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if !value.is_empty() && is_secret(name) => format!("{name}=xxxxx"),
        _ => pair.to_owned(),
    });
    format!("{}?{}", uri.path(), pairs.collect::<Vec<_>>().join("&"))
}

/// Returns whether a parameter may hold a secret, by its decoded name.
fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 8] =
        ["token", "secret", "password", "key", "code", "assertion", "credential", "signature"];
    // A name that cannot be decoded could stand for any of them.
    decode_form(name).is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        WORDS.iter().any(|word| name.contains(word))
    })
}

/// A body with the memory that is reserved for it. A body that arrives in one frame, as most do, reserves none.
#[derive(Debug, Default)]
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    _held: Option<Reservation>,
}

/// Reads a body.
///
/// # Errors
///
/// - 413 if it is longer than `limit` bytes. If the announced length is too long, no byte is read.
/// - 408 if it does not arrive in time.
/// - 503 if there is no memory for it.
/// - `VALIDATION` if it breaks off.
///
/// After an error the connection cannot be used for another request.
pub(crate) async fn body(
    mut incoming: Incoming,
    headers: &HeaderMap,
    limit: usize,
    memory: &Memory,
) -> Result<ReadBody, ApiError> {
    let too_large = || {
        let message = format!("the body is longer than {limit} bytes");
        ApiError::refused(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if incoming.size_hint().lower() > limit as u64 {
        leave_body(incoming, headers).await;
        return Err(too_large());
    }
    let reading = tokio::time::timeout(BODY_READ_TIMEOUT, collect(&mut incoming, limit, memory));
    match reading.await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(BodyError::TooLarge)) => {
            discard(incoming).await;
            Err(too_large())
        }
        Ok(Err(BodyError::Refused(error))) => {
            if let Ok(_slot) = memory.discards.try_acquire() {
                discard(incoming).await;
            }
            Err(error)
        }
        Ok(Err(BodyError::Incomplete)) => Err(ApiError::validation("the body breaks off")),
        Err(_) => Err(ApiError::refused(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
    }
}

/// The reason why a body was not read to its end.
enum BodyError {
    TooLarge,
    Incomplete,
    Refused(ApiError),
}

/// Joins the frames of a body. A body of one frame, which is the usual case, is not copied.
async fn collect(incoming: &mut Incoming, limit: usize, memory: &Memory) -> Result<ReadBody, BodyError> {
    let announced = incoming.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let mut first = Bytes::new();
    let mut joined: Vec<u8> = Vec::new();
    let mut held: Option<Reservation> = None;
    while let Some(frame) = incoming.frame().await {
        // Trailers are ignored.
        let Ok(data) = frame.map_err(|_| BodyError::Incomplete)?.into_data() else { continue };
        if first.len().max(joined.len()) + data.len() > limit {
            return Err(BodyError::TooLarge);
        }
        if first.is_empty() {
            first = data;
            if let Some(length) = announced.filter(|length| *length > UNCOUNTED_BYTES_MAX)
                && !incoming.is_end_stream()
            {
                // Reserve the whole length at once. If each body reserved only what has arrived, several bodies could wait
                // for each other forever.
                held = Some(memory.body(length).await.map_err(BodyError::Refused)?);
            }
            continue;
        }
        if joined.is_empty() {
            joined.reserve_exact(announced.unwrap_or(UNCOUNTED_BYTES_MAX).max(first.len()));
            joined.extend_from_slice(&first);
        }
        let wanted = joined.len() + data.len();
        if wanted > joined.capacity() {
            let capacity = wanted.max(2 * joined.capacity()).min(limit);
            let held = held.get_or_insert_with(|| memory.bodies.nothing());
            if !held.grow_to(capacity, BODY_WAIT).await {
                return Err(BodyError::Refused(memory::too_many_bodies()));
            }
            joined.reserve_exact(capacity - joined.len());
        }
        joined.extend_from_slice(&data);
    }
    Ok(ReadBody { bytes: if joined.is_empty() { first } else { Bytes::from(joined) }, _held: held })
}

/// Discards the body of a refused request. A client that sent `Expect: 100-continue` has not sent the body yet, so there
/// is nothing to read.
pub(crate) async fn leave_body(incoming: Incoming, headers: &HeaderMap) {
    if !headers.contains_key(EXPECT) {
        discard(incoming).await;
    }
}

/// Reads and drops the rest of a body, up to a limit. If the server closed the connection while the client still sends,
/// the client would see a reset instead of the response.
async fn discard(incoming: Incoming) {
    discard_some(incoming, DISCARD_BYTES_MAX, DISCARD_TIMEOUT).await;
}

/// Like [`discard`], for an import. Most clients send all of an import before they read the response.
pub(crate) async fn discard_import(incoming: Incoming, timeout: Duration) {
    discard_some(incoming, DISCARD_IMPORT_BYTES_MAX, timeout.min(DISCARD_IMPORT_TIMEOUT)).await;
}

async fn discard_some(mut incoming: Incoming, bytes: usize, timeout: Duration) {
    let mut left = bytes;
    let reading = async {
        while let Some(Ok(frame)) = incoming.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    // The response is the same whether all of the body was read or not.
    let _ = tokio::time::timeout(timeout, reading).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_before_it_is_decoded() {
        for (path, expected) in [
            ("/", Some(vec![])),
            ("", Some(vec![])),
            ("/v2/main", Some(vec!["v2", "main"])),
            ("/v2/main/", Some(vec!["v2", "main"])),
            ("/v2/a%2Fb/c%20d", Some(vec!["v2", "a/b", "c d"])),
            ("/v2//x", Some(vec!["v2", "", "x"])),
            ("/a+b", Some(vec!["a+b"])),
            ("/%", None),
            ("/%4", None),
            ("/%zz", None),
            ("/%ff", None),
        ] {
            assert_eq!(segments(path).ok().map(|s| s.join("|")), expected.map(|e| e.join("|")), "{path}");
        }
    }

    #[test]
    fn query_parameters_are_lenient() {
        let uri: Uri = "/x?a=1&a=2&b=TRUE&c=yes&d=+%2B&%zz=1&e&pageSize=7&f=2024-05-01T10:00:00+02:00"
            .parse()
            .expect("a URI");
        let query = Query::of(&uri);
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert!(query.flag("a") && query.flag("b") && !query.flag("c") && !query.flag("e"));
        assert_eq!(query.get("d"), Some(" +"));
        assert_eq!(query.page_size("pageSize"), Ok(Some(7)));
        let at = query.date(&["nosuch", "f"]).expect("a date").expect("it is there");
        assert_eq!(at.to_string(), "2024-05-01T08:00:00Z");
        assert_eq!(query.date(&["e"]), Ok(None));
        assert!(query.date(&["a"]).is_err());
    }

    #[test]
    fn the_log_shows_no_secrets_of_targets() {
        for (target, shown) in [
            ("/v2/main?pageSize=7&after=", "/v2/main?pageSize=7&after="),
            ("/v2?access_token=abc&x=1", "/v2?access_token=xxxxx&x=1"),
            ("/v2?x&Api%4bey=abc", "/v2?x&Api%4bey=xxxxx"),
            ("/v2?client_secret=a=b&%zz=c", "/v2?client_secret=xxxxx&%zz=xxxxx"),
            ("http://user:pw@h/v2?q=1", "/v2?q=1"),
            ("/v2", "/v2"),
        ] {
            assert_eq!(loggable_target(&target.parse().expect("a URI")), shown);
        }
    }

    #[test]
    fn a_page_size_is_a_number_of_rows() {
        for (text, expected) in [
            ("", Ok(None)),
            ("0", Ok(None)),
            ("1", Ok(Some(1))),
            ("4294967295", Ok(Some(4_294_967_295))),
            ("4294967296", Err(())),
            ("-1", Err(())),
            ("%2B1", Err(())),
            ("1.5", Err(())),
            ("abc", Err(())),
            ("99999999999999999999", Err(())),
        ] {
            let uri: Uri = format!("/x?pageSize={text}").parse().expect("a URI");
            assert_eq!(Query::of(&uri).page_size("pageSize").map_err(|_| ()), expected, "{text}");
        }
    }
}
