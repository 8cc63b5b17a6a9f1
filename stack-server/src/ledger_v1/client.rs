//! For whom an answer is: some shapes differ between releases, and a strict client reads only its own.

use hyper::header::{HeaderMap, USER_AGENT};

use crate::call::Call;
use crate::settings::Compat;

/// The release of the API document that a client was made from.
///
/// The SDKs of this API tell it in their `User-Agent`:
/// `speakeasy-sdk/<language> <SDK> <generator> [<document> [package]]`; without a document the release of the SDK
/// is that of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Release {
    numbers: [u64; 3],
    /// Whether it is of the time before 2.0.0, up to the last release whose clients expect what 1.10 answered.
    is_early: bool,
}

impl Release {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let agent = headers.get(USER_AGENT)?.to_str().ok()?;
        let mut tokens = agent.split_whitespace();
        tokens.next().filter(|first| first.starts_with("speakeasy-sdk/"))?;
        let tokens: Vec<&str> = tokens.collect();
        let document = tokens.get(2).or(tokens.first())?;
        // Builds without a release say nothing.
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

    fn is_1_0(self) -> bool {
        self.numbers[..2] == [1, 0]
    }
}

/// A client, by what it can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// What is answered to those that do not say who they are.
    compat: Compat,
    release: Option<Release>,
}

impl Client {
    /// The client of a request.
    pub(crate) fn of(call: &Call<'_>) -> Self {
        Self::new(call.headers, call.app.settings().compat)
    }

    fn new(headers: &HeaderMap, compat: Compat) -> Self {
        Self { compat, release: Release::of(headers) }
    }

    /// Whether it knows only what 1.10 answered.
    pub(crate) fn is_1_10(self) -> bool {
        self.release.map_or(self.compat == Compat::V1_10, Release::is_1_0)
    }

    /// Whether a revert is answered with 200, not 201.
    pub(crate) fn reverts_with_200(self) -> bool {
        self.is_1_10() || self.release.is_some_and(|release| release.is_early)
    }

    /// Whether the count of accounts is answered with 204, not 200.
    pub(crate) fn counts_accounts_with_204(self) -> bool {
        self.release.is_some_and(|release| release.numbers >= [3, 1, 0])
    }

    /// Whether the version of a migration is a string.
    pub(crate) fn has_text_versions(self) -> bool {
        self.release.is_some_and(|release| release.numbers >= [3, 0, 0])
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn client(agent: &str, compat: Compat) -> Client {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_str(agent).expect("a header"));
        Client::new(&headers, compat)
    }

    #[test]
    fn the_document_of_a_client_decides_what_it_is_shown() {
        for (agent, reverts_with_200, lower_case_states) in [
            ("speakeasy-sdk/go v1.0.20230718 2.31.0", true, true),
            ("speakeasy-sdk/python 1.0.20230915 2.91.2 v1.0.20230915 formance-sdk-python", true, true),
            ("speakeasy-sdk/go 2.0.0 2.200.0 v2.0.0-beta.3 x", true, false),
            ("speakeasy-sdk/typescript 2.1.0 2.279.1 v2.0.0-rc.24 x", true, false),
            ("speakeasy-sdk/typescript 2.1.0 2.279.1 v2.0.0-rc.26 x", false, false),
            ("speakeasy-sdk/go 2.2.0 2.300.0 v2.0.0 x", false, false),
            ("speakeasy-sdk/go 3.3.0 2.500.0 v3.0.0 x", false, false),
        ] {
            for compat in [Compat::V1_10, Compat::V2_0] {
                let client = client(agent, compat);
                assert_eq!(client.reverts_with_200(), reverts_with_200, "{agent}");
                assert_eq!(client.is_1_10(), lower_case_states, "{agent}");
            }
        }
        for agent in [
            "curl/8.5.0",
            "",
            "speakeasy-sdk/go",
            "speakeasy-sdk/go 3.8.0 2.600.0 v0.0.0 x",
            "speakeasy-sdk/go x",
        ] {
            assert!(client(agent, Compat::V1_10).reverts_with_200(), "{agent}");
            assert!(!client(agent, Compat::V2_0).reverts_with_200(), "{agent}");
        }
    }

    #[test]
    fn later_clients_want_other_types() {
        let shown = |agent| {
            let client = client(agent, Compat::V2_0);
            (client.has_text_versions(), client.counts_accounts_with_204())
        };
        assert_eq!(shown("speakeasy-sdk/go 2.2.0 2.300.0 v2.9.9 x"), (false, false));
        assert_eq!(shown("speakeasy-sdk/go 3.3.0 2.500.0 v3.0.0 x"), (true, false));
        assert_eq!(shown("speakeasy-sdk/go 3.7.0 2.500.0 v3.1.0 x"), (true, true));
    }
}
