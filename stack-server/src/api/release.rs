//! The release of the API for which a client was made.

use hyper::header::{HeaderMap, USER_AGENT};

/// The release of the API document from which a client was generated.
///
/// The SDKs of this API send it in their `User-Agent`:
/// `speakeasy-sdk/<language> <SDK> <generator> [<document> [package]]`. If there is no document, the release of the SDK
/// is that of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) numbers: [u64; 3],
    /// True if the release precedes 2.0.0, up to the last release whose clients expect the responses of 1.10.
    pub(crate) is_early: bool,
}

impl Release {
    /// Returns the release that the headers of a request name.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let agent = headers.get(USER_AGENT)?.to_str().ok()?;
        let mut tokens = agent.split_whitespace();
        tokens.next().filter(|first| first.starts_with("speakeasy-sdk/"))?;
        let tokens: Vec<&str> = tokens.collect();
        let document = tokens.get(2).or(tokens.first())?;
        // Builds without a release do not name one.
        Self::parse(document).filter(|release| release.numbers != [0; 3])
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (numbers, suffix) = text.split_once('-').unwrap_or((text, ""));
        let mut parts = numbers.split('.').map(|part| part.parse().ok());
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        let candidate = suffix.strip_prefix("rc.").and_then(|number| number.parse::<u64>().ok());
        let is_before = suffix.starts_with("beta.") || candidate.is_some_and(|number| number <= 24);
        parts.next().is_none().then_some(Self { numbers, is_early: numbers == [2, 0, 0] && is_before })
    }

    /// Returns whether the release belongs to stack 1.10, whose documents have the numbers 1.0.
    pub(crate) fn is_1_0(self) -> bool {
        self.numbers[..2] == [1, 0]
    }
}
