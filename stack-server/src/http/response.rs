//! Responses and the JSON writer that fills them.
//!
//! JSON is compact and ends with one newline. `<`, `>`, `&`, U+2028 and U+2029 are written as `\u…`, as other servers of
//! this API do. Handlers write straight into the buffer of the response, without a tree of values in between.

use hyper::body::Bytes;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE,
    HeaderMap, HeaderName, HeaderValue, PRAGMA, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use ledger_core::{Amount, Balance, JsonWriter, Metadata, Timestamp};

use crate::http::error::{ApiError, Profile};
use crate::http::reply_body::ReplyBody;
use crate::log::refusals::RefusalCode;

/// A response to a client.
pub(crate) type Reply = Response<ReplyBody>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const IDEMPOTENCY_HIT: HeaderName = HeaderName::from_static("idempotency-hit");
const COUNT: HeaderName = HeaderName::from_static("count");

/// How amounts, volumes and balances are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Numbers {
    /// As JSON integers of any size.
    #[default]
    Plain,
    /// As JSON strings, for clients whose numbers are floats.
    Quoted,
}

/// JSON text under construction.
#[derive(Debug, Default)]
pub(crate) struct Json {
    text: JsonWriter,
}

impl Json {
    /// Creates an empty text with capacity for a usual response.
    pub(crate) fn new(numbers: Numbers) -> Self {
        Self::with_capacity(numbers, 1_024)
    }

    /// Creates an empty text with capacity for this many bytes.
    pub(crate) fn with_capacity(numbers: Numbers, bytes: usize) -> Self {
        let text = JsonWriter::with_capacity(bytes);
        let text = if numbers == Numbers::Quoted { text.quoting_amounts() } else { text };
        Self { text }
    }

    /// Returns the underlying writer, for values that the library writes itself.
    pub(crate) fn text(&mut self) -> &mut JsonWriter {
        &mut self.text
    }

    /// Returns the text written so far.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.text.into_bytes()
    }

    /// Returns the text written so far as a string.
    pub(crate) fn into_string(self) -> String {
        String::from_utf8(self.text.into_bytes()).expect("JSON text is UTF-8")
    }

    /// Appends punctuation and literals unchanged.
    #[inline]
    pub(crate) fn raw(&mut self, text: &str) -> &mut Self {
        self.text.raw(text);
        self
    }

    /// Appends the output of a function.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        self.text.write(write);
        self
    }

    /// Appends a string with quotes and escapes.
    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        self.text.string(text);
        self
    }

    /// Appends a string that needs no escapes, such as a date, base64 or a checked name.
    pub(crate) fn plain_string(&mut self, text: &str) -> &mut Self {
        self.text.plain_string(text);
        self
    }

    /// Appends a number that is never quoted, such as an id or a count.
    pub(crate) fn integer(&mut self, value: u64) -> &mut Self {
        self.text.integer(value);
        self
    }

    /// Appends `true` or `false`.
    pub(crate) fn boolean(&mut self, value: bool) -> &mut Self {
        self.text.boolean(value);
        self
    }

    /// Appends an amount in the form that the client chose, see [`Numbers`].
    pub(crate) fn amount(&mut self, value: &Amount) -> &mut Self {
        self.text.amount(value);
        self
    }

    /// Appends a balance in the form that the client chose, see [`Numbers`].
    pub(crate) fn balance(&mut self, value: &Balance) -> &mut Self {
        self.text.balance(value);
        self
    }

    /// Appends a date.
    pub(crate) fn time(&mut self, value: Timestamp) -> &mut Self {
        self.text.time(value);
        self
    }

    /// Appends metadata in the form of v2, where every value is a string.
    pub(crate) fn metadata(&mut self, metadata: &Metadata) -> &mut Self {
        self.text.metadata(metadata);
        self
    }

    /// Appends metadata in the form of v1, where values have any JSON type.
    pub(crate) fn any_metadata(&mut self, metadata: &Metadata) -> &mut Self {
        self.text.any_metadata(metadata);
        self
    }

    /// Appends items separated by commas, without brackets.
    pub(crate) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.raw(",");
            }
            write(self, item);
        }
        self
    }

    /// Appends an array of strings.
    pub(crate) fn strings(&mut self, texts: &[String]) -> &mut Self {
        self.raw("[").list(texts, |json, text| {
            json.string(text);
        });
        self.raw("]")
    }

    /// Ends the text and returns it as the body of a response.
    pub(crate) fn reply(mut self, status: StatusCode) -> Reply {
        self.raw("\n");
        with_body(status, JSON, Bytes::from(self.into_bytes()))
    }
}

fn with_body(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Reply {
    let mut reply = Response::new(ReplyBody::from(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply
}

/// Creates a response whose body is produced while it is sent.
pub(crate) fn stream(body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    reply.headers_mut().insert(CONTENT_TYPE, BYTES);
    reply
}

/// Creates a response from a complete text of any content type.
pub(crate) fn text(status: StatusCode, content_type: &'static str, text: Bytes) -> Reply {
    with_body(status, HeaderValue::from_static(content_type), text)
}

/// Creates a 204 response. It has a content type, because clients check it.
pub(crate) fn no_content() -> Reply {
    empty(StatusCode::NO_CONTENT)
}

/// Creates a response with an empty body.
pub(crate) fn empty(status: StatusCode) -> Reply {
    with_body(status, JSON, Bytes::new())
}

/// Creates an empty response with a number in the header `Count`.
pub(crate) fn count(status: StatusCode, number: u64) -> Reply {
    let mut reply = with_body(status, JSON, Bytes::new());
    reply.headers_mut().insert(COUNT, HeaderValue::from(number));
    reply
}

/// Marks a response as an idempotent replay.
pub(crate) fn mark_replayed(reply: &mut Reply) {
    reply.headers_mut().insert(IDEMPOTENCY_HIT, HeaderValue::from_static("true"));
}

/// Creates the response to an unknown path: 404 with plain text, as other servers of this API send it.
pub(crate) fn no_such_path(text: &'static str) -> Reply {
    with_body(StatusCode::NOT_FOUND, PLAIN, Bytes::from_static(text.as_bytes()))
}

/// Creates the response to a method that the path lacks: 405 without a body, with the supported methods in `Allow`.
pub(crate) fn method_not_allowed(allow: &str) -> Reply {
    let mut reply = with_body(StatusCode::METHOD_NOT_ALLOWED, JSON, Bytes::new());
    let allow = HeaderValue::from_str(allow).expect("methods of the table are plain words");
    reply.headers_mut().insert(ALLOW, allow);
    reply
}

/// Creates the response to a request whose token does not allow it: 401 without a body, whatever the reason.
pub(crate) fn unauthorized() -> Reply {
    let mut reply = with_body(StatusCode::UNAUTHORIZED, JSON, Bytes::new());
    reply.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    reply
}

/// Creates the response for an error.
pub(crate) fn refusal(error: &ApiError, profile: Profile) -> Reply {
    let mut json = Json::new(Numbers::Plain);
    json.raw("{\"errorCode\":").plain_string(error.code.text(profile));
    json.raw(",\"errorMessage\":").string(&error.message).raw("}");
    let mut reply = json.reply(error.status(profile));
    mark_refused(&mut reply, error.code.text(profile));
    if error.transient {
        ask_to_retry(&mut reply);
    }
    reply
}

/// Records the error code of a response for the log.
pub(crate) fn mark_refused(reply: &mut Reply, code: &'static str) {
    reply.extensions_mut().insert(RefusalCode(code));
}

/// Asks the client to retry after a second.
pub(crate) fn ask_to_retry(reply: &mut Reply) {
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
}

/// Forbids caches to store a response, because it contains a secret.
pub(crate) fn forbid_storing(reply: &mut Reply) {
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply.headers_mut().insert(PRAGMA, HeaderValue::from_static("no-cache"));
}

/// Closes the connection after this response. Part of the request body was not read, so the next request on the
/// connection could not be told from it.
pub(crate) fn close_after(reply: &mut Reply) {
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
}

/// Creates the response to a CORS preflight. It allows every method and header.
pub(crate) fn preflight(request: &HeaderMap) -> Reply {
    let mut reply = no_content();
    let headers = reply.headers_mut();
    let allow = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allow);
    let asked = request.get(hyper::header::ACCESS_CONTROL_REQUEST_HEADERS);
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        asked.cloned().unwrap_or_else(|| HeaderValue::from_static("*")),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("100"));
    reply
}

/// Adds the headers that let pages of another origin read a response. `*` stands for every origin. That is safe, because
/// credentials are tokens in a header and never cookies.
pub(crate) fn allow_origin(origin: HeaderValue, reply: &mut Reply) {
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Count, Idempotency-Hit, X-Request-Id"),
    );
    headers.insert(VARY, HeaderValue::from_static("Origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> String {
        let mut json = Json::new(Numbers::Plain);
        json.string(text);
        json.into_string()
    }

    #[test]
    fn strings_are_escaped_as_the_wire_wants_them() {
        for (text, json) in [
            ("", "\"\""),
            ("users:001", "\"users:001\""),
            ("a<b> & \"c\" \\", r#""a\u003cb\u003e \u0026 \"c\" \\""#),
            ("\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}", "\"\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}\""),
            ("\u{2028}\u{2029}\u{2027}\u{202a}", "\"\\u2028\\u2029\u{2027}\u{202a}\""),
            ("Zürich €∈ 🦀", "\"Zürich €∈ 🦀\""),
        ] {
            assert_eq!(quoted(text), json);
            assert_eq!(serde_json::from_str::<String>(json).expect("valid JSON"), text);
        }
    }
}
