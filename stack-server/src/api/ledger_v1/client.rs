//! The client of a request, which decides about the form of the response: clients of different releases read different
//! ones.

use hyper::header::{HeaderMap, USER_AGENT};

use crate::api::context::Context;
use crate::api::release::Release;
use crate::settings::Compat;

/// A client, described by the formats that it can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// The configured release, for clients that do not name theirs.
    compat: Compat,
    release: Option<Release>,
    /// True if this is the client that is shipped with servers of 2.4.
    is_shipped: bool,
    /// True if the request came through the mount of the stack, whose clients know nothing later than 2.0.
    is_stack: bool,
}

/// The name of the client that is shipped with servers of 2.4, which is the last word of its `User-Agent`.
const SHIPPED_CLIENT: &str = "github.com/formancehq/ledger/pkg/client";

impl Client {
    /// Returns the client of a request.
    pub(crate) fn of(context: &Context<'_>) -> Self {
        Self::new(context.headers, context.app.settings().compat, context.target.starts_with("/api/"))
    }

    fn new(headers: &HeaderMap, compat: Compat, is_stack: bool) -> Self {
        let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let is_shipped = agent.starts_with("speakeasy-sdk/go ")
            && agent.split_whitespace().next_back() == Some(SHIPPED_CLIENT);
        // The version of the shipped client is not a release of the stack.
        let release = if is_shipped { None } else { Release::of(headers) };
        Self { compat, release, is_shipped, is_stack }
    }

    /// Returns whether the client expects the responses of 2.4: counts with 204, accounts in ascending order, logs in
    /// the form of v2.
    pub(crate) fn is_2_4(self) -> bool {
        let expects_2_4 = self.is_shipped || (self.release.is_none() && self.compat == Compat::V2_4);
        expects_2_4 && !self.is_stack
    }

    /// Returns whether the client only knows the responses of 1.10.
    pub(crate) fn is_1_10(self) -> bool {
        self.release.map_or(self.compat == Compat::V1_10 && !self.is_2_4(), Release::is_1_0)
    }

    /// Returns whether the client expects status 200, not 201, for a revert.
    pub(crate) fn reverts_with_200(self) -> bool {
        self.is_1_10() || self.release.is_some_and(|release| release.is_early)
    }

    /// Returns whether the client expects status 204, not 200, for the count of accounts.
    pub(crate) fn counts_accounts_with_204(self) -> bool {
        self.is_2_4() || self.release.is_some_and(|release| release.numbers >= [3, 1, 0])
    }

    /// Returns whether the client expects the version of a migration as a string.
    pub(crate) fn has_text_versions(self) -> bool {
        self.release.is_some_and(|release| release.numbers >= [3, 0, 0])
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderValue, USER_AGENT};

    use super::*;

    fn client(agent: &str, compat: Compat) -> Client {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_str(agent).expect("a header"));
        Client::new(&headers, compat, false)
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
    fn knows_clients_of_2_4_on_the_stand_alone_mount() {
        let shipped = "speakeasy-sdk/go 0.10.20 2.384.1 v2 github.com/formancehq/ledger/pkg/client";
        let stack = "speakeasy-sdk/go 2.2.0 2.300.0 v2.0.0 x";
        for (agent, compat, is_stack, is_2_4) in [
            (shipped, Compat::V2_0, false, true),
            (shipped, Compat::V1_10, false, true),
            (shipped, Compat::V2_4, true, false),
            ("curl/8.5.0", Compat::V2_4, false, true),
            ("curl/8.5.0", Compat::V2_4, true, false),
            ("curl/8.5.0", Compat::V2_0, false, false),
            (stack, Compat::V2_4, false, false),
            ("github.com/formancehq/ledger/pkg/client", Compat::V2_0, false, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(USER_AGENT, HeaderValue::from_static(agent));
            let client = Client::new(&headers, compat, is_stack);
            assert_eq!(client.is_2_4(), is_2_4, "{agent} {compat:?} {is_stack}");
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
