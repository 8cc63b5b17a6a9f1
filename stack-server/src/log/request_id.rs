//! The id of a request. The response contains it, and so do all log lines during the request.

use std::fmt;
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use ledger_core::SmolStr;

/// The header of requests and responses.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of an id from a client. Enough for a UUID and for the ids of proxies.
const GIVEN_BYTES_MAX: usize = 128;

/// The id of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(SmolStr);

tokio::task_local! {
    static CURRENT: RequestId;
}

/// Prefix that distinguishes the processes of a server. Ends with a dash.
static PROCESS: LazyLock<String> = LazyLock::new(|| {
    // The random keys of a hasher differ in each process.
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(std::process::id());
    format!("{:08x}-", random >> 32)
});
static COUNT: AtomicU64 = AtomicU64::new(1);

impl RequestId {
    /// Returns the id in the header of a request, or a new one. An id must be short, visible ASCII text.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let is_usable = |given: &&HeaderValue| {
            (1..=GIVEN_BYTES_MAX).contains(&given.len()) && given.as_bytes().iter().all(u8::is_ascii_graphic)
        };
        let given = headers.get(HEADER).filter(is_usable).and_then(|given| given.to_str().ok());
        given.map_or_else(Self::new, |given| Self(given.into()))
    }

    /// Returns the number of the process, a dash, and the number of the request, both in hexadecimal. Avoids the
    /// formatting machinery, because every request pays for this.
    fn new() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let digits = (0..=number.max(1).ilog2() / 4).rev().map(|digit| {
            let value = ((number >> (4 * digit)) & 0xf) as u32;
            char::from_digit(value, 16).expect("four bits are one hexadecimal digit")
        });
        Self(PROCESS.chars().chain(digits).collect())
    }

    /// Returns the id of the request that the current task handles.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// Runs the future that handles the request with this id. The future stays pinned in its place, because it is
    /// large.
    pub(crate) fn scope<T>(self, answer: Pin<&mut impl Future<Output = T>>) -> impl Future<Output = T> {
        CURRENT.scope(self, answer)
    }

    /// Runs work of a request on another thread, like [`RequestId::scope`]. The request may have no id.
    pub(crate) async fn scope_if<T>(id: Option<Self>, work: Pin<&mut impl Future<Output = T>>) -> T {
        match id {
            Some(id) => id.scope(work).await,
            None => work.await,
        }
    }

    /// Returns the header value.
    pub(crate) fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).expect("a request id consists of visible ASCII characters")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> String {
        let headers =
            HeaderMap::from_iter([(HEADER, HeaderValue::from_bytes(text.as_bytes()).expect("a value"))]);
        RequestId::of(&headers).to_string()
    }

    #[test]
    fn a_usable_name_is_kept() {
        assert_eq!(given("7d1e-42/a"), "7d1e-42/a");
    }

    #[test]
    fn new_names_count_in_hexadecimal() {
        let number = |name: &RequestId| {
            let (_, number) = name.0.split_once('-').expect("a dash");
            u64::from_str_radix(number, 16).expect("hexadecimal digits")
        };
        let names: Vec<RequestId> = (0..40).map(|_| RequestId::new()).collect();
        assert!(names.windows(2).all(|pair| number(&pair[0]) < number(&pair[1])), "{names:?}");
    }

    #[test]
    fn requests_without_a_usable_name_get_their_own() {
        let long = "a".repeat(GIVEN_BYTES_MAX + 1);
        let names: Vec<String> = ["", "a b", "é", &long].map(given).into();
        for (at, name) in names.iter().enumerate() {
            assert!(name.len() >= 10 && !names[..at].contains(name), "{names:?}");
        }
    }
}
