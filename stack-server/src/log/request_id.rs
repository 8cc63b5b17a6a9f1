//! The name of a request: it is in the answer and in each line of the log that is written meanwhile.

use std::fmt;
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// The header of requests and answers.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of a name that a client gives. Enough for a UUID and for the ids of proxies.
const GIVEN_BYTES_MAX: usize = 128;

/// The name of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(HeaderValue);

tokio::task_local! {
    static CURRENT: RequestId;
}

/// Tells the processes of a server apart.
static PROCESS: LazyLock<u32> = LazyLock::new(|| {
    // Keys of a hasher differ in each process.
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(std::process::id());
    u32::try_from(random >> 32).unwrap_or_default()
});
static COUNT: AtomicU64 = AtomicU64::new(1);

impl RequestId {
    /// The name that a request brings in its header, else a new one. A name must be visible ASCII, and not long.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let is_usable = |given: &&HeaderValue| {
            (1..=GIVEN_BYTES_MAX).contains(&given.len()) && given.as_bytes().iter().all(u8::is_ascii_graphic)
        };
        match headers.get(HEADER).filter(is_usable) {
            Some(given) => Self(given.clone()),
            None => Self::new(),
        }
    }

    fn new() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let text = format!("{:08x}-{number:x}", *PROCESS);
        Self(HeaderValue::try_from(text).expect("hexadecimal digits and a dash are a header value"))
    }

    /// The name of the request that is answered by the current task.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// Runs what answers the request of this name, where it is: it is large.
    pub(crate) fn scope<T>(self, answer: Pin<&mut impl Future<Output = T>>) -> impl Future<Output = T> {
        CURRENT.scope(self, answer)
    }

    /// As [`RequestId::scope`], for work that a request with a name may have handed to another thread.
    pub(crate) async fn scope_if<T>(id: Option<Self>, work: Pin<&mut impl Future<Output = T>>) -> T {
        match id {
            Some(id) => id.scope(work).await,
            None => work.await,
        }
    }

    /// The value of the header.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_str().unwrap_or_default())
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
    fn requests_without_a_usable_name_get_their_own() {
        let long = "a".repeat(GIVEN_BYTES_MAX + 1);
        let names: Vec<String> = ["", "a b", "é", &long].map(given).into();
        for (at, name) in names.iter().enumerate() {
            assert!(name.len() >= 10 && !names[..at].contains(name), "{names:?}");
        }
    }
}
