//! Decides which web pages may use a server that requires no tokens.
//!
//! A browser lets any page send requests to any server that it can reach, including servers on the loopback interface. A
//! server that requires tokens is safe, since a foreign page has none. For other servers, headers that a page cannot forge
//! tell where a request came from:
//!
//! - `Host` is the name under which the browser reached the server. If an attacker points a name of their own to this
//!   machine (DNS rebinding), the header contains that name.
//! - `Origin`, or `Sec-Fetch-Site` if there is no origin, tells the site of the page.
//!
//! Clients other than browsers send a `Host` and no `Origin`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Uri};

use crate::http::error::ApiError;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Maximum number of characters of a foreign name in an error message.
const SHOWN_CHARS_MAX: usize = 100;

/// Suffixes of names that nobody can register (RFC 6761, RFC 6762, RFC 8375, and ICANN's reservation of `internal`).
const PRIVATE_SUFFIXES: [&str; 5] = [".localhost", ".local", ".internal", ".home.arpa", ".test"];

/// A text that is not a host name or not an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    text: String,
    expected: &'static str,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not {}", self.text, self.expected)
    }
}

impl std::error::Error for NameError {}

/// A name or an address under which clients reach the server, or `*` for every name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

impl HostName {
    /// Parses names separated by commas. `*` stands for every name.
    ///
    /// # Errors
    ///
    /// Fails if one of them is not a host name, for example because it has a scheme or a port.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, NameError> {
        list(text).map(Self::parse).collect()
    }

    fn parse(text: &str) -> Result<Self, NameError> {
        let authority = Authority::parse(text).filter(|found| found.port.is_none());
        let found = authority.filter(|_| text == "*" || !text.contains(['*', '@', '/']));
        let expected = "the name of a host without a scheme and a port";
        found.map(|found| Self(found.name)).ok_or_else(|| NameError { text: text.to_owned(), expected })
    }

    /// Returns the host of a URL such as `https://stack.example/api`. `None` if it has none.
    pub(crate) fn of_url(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        Authority::parse(uri.authority()?.as_str()).map(|found| Self(found.name))
    }

    fn covers(&self, name: &str) -> bool {
        self.0 == "*" || self.0 == name
    }
}

/// An origin of web pages: a scheme, a host, and a port unless it is the default of the scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    text: String,
    is_secure: bool,
    host: Authority,
}

impl Origin {
    /// Parses origins separated by commas.
    ///
    /// # Errors
    ///
    /// Fails if one of them is not an origin, for example because it has a path. `null` is refused, because unrelated
    /// pages share it.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, NameError> {
        let expected = "an origin such as https://app.example";
        list(text)
            .map(|text| Self::parse(text).ok_or_else(|| NameError { text: text.to_owned(), expected }))
            .collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let mut host = Authority::parse(rest)?;
        host.port = host.port.filter(|port| *port != if is_secure { 443 } else { 80 });
        Some(Self { text: text.to_ascii_lowercase(), is_secure, host })
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.is_secure, &self.host) == (other.is_secure, &other.host)
    }
}

/// Splits a text at commas and spaces.
fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ']).filter(|part| !part.is_empty())
}

/// A host and a port, as in the header `Host`. The name is in lower case, and an address has no brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Authority {
    name: String,
    port: Option<u16>,
}

impl Authority {
    fn parse(text: &str) -> Option<Self> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                address.parse::<std::net::Ipv6Addr>().ok()?;
                (address, rest)
            }
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match port.strip_prefix(':') {
            // An empty port stands for the default of the scheme.
            Some("") => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            None if port.is_empty() => None,
            _ => return None,
        };
        // A fully qualified name may end with a dot.
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        (is_name && !name.contains(['/', '?', '#', '@'])).then_some(Self { name, port })
    }

    fn address(&self) -> Option<IpAddr> {
        self.name.parse::<IpAddr>().ok().map(|address| address.to_canonical())
    }
}

/// The hosts and origins that a server without tokens accepts.
#[derive(Clone, Debug)]
pub(crate) struct BrowserPolicy {
    address: IpAddr,
    /// True if the server speaks TLS, so that its own pages have the scheme `https`.
    is_secure: bool,
    hosts: Vec<HostName>,
    origins: Vec<Origin>,
}

impl BrowserPolicy {
    /// Creates the gate of a server that listens on this address. It also accepts `hosts`, and pages of `origins`.
    pub(crate) fn new(
        address: SocketAddr,
        is_secure: bool,
        hosts: Vec<HostName>,
        origins: Vec<Origin>,
    ) -> Self {
        Self { address: address.ip().to_canonical(), is_secure, hosts, origins }
    }

    /// Refuses requests that a foreign page may have sent.
    ///
    /// # Errors
    ///
    /// 403 with the reason.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), ApiError> {
        let hosts = parts.headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
        let target = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
        // Every browser sends a `Host`. `check_host` decides whether a client may omit it.
        for host in hosts.chain(target) {
            let text = String::from_utf8_lossy(host);
            let known = Authority::parse(&text).filter(|host| self.knows(host));
            known.ok_or_else(|| foreign_host(&text))?;
        }
        if parts.headers.contains_key(ORIGIN) {
            return match parts.headers.get_all(ORIGIN).iter().find(|one| !self.allows(one, &parts.headers)) {
                None => Ok(()),
                Some(origin) => Err(foreign_origin(&String::from_utf8_lossy(origin.as_bytes()))),
            };
        }
        if is_hidden_cross_origin(parts) {
            return Err(foreign_origin("another origin"));
        }
        Ok(())
    }

    /// Returns the origin of a request if the operator allowed it. `None` for the server's own pages.
    pub(crate) fn listed_origin<'h>(&self, headers: &'h HeaderMap) -> Option<&'h HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let parsed = Origin::parse(origin.to_str().ok()?)?;
        self.origins.iter().any(|listed| listed.is_same(&parsed)).then_some(origin)
    }

    fn allows(&self, origin: &HeaderValue, headers: &HeaderMap) -> bool {
        let Some(origin) = origin.to_str().ok().and_then(Origin::parse) else { return false };
        if self.origins.iter().any(|listed| listed.is_same(&origin)) {
            return true;
        }
        // The reverse is possible: a proxy can terminate TLS for a server without it.
        if self.is_secure && !origin.is_secure {
            return false;
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).and_then(Authority::parse);
        let default = if origin.is_secure { 443 } else { 80 };
        host.is_some_and(|host| {
            (host.name == origin.host.name) && host.port.filter(|port| *port != default) == origin.host.port
        })
    }

    /// Returns whether a host is a name of this server.
    ///
    /// A server on the loopback interface has loopback names and addresses. A server that other machines reach can have
    /// any address and any name that nobody can register, such as those of containers and of machines in a local network:
    /// an attacker's page cannot be at such a name, and at an address of this server there is no page of theirs.
    fn knows(&self, host: &Authority) -> bool {
        if self.hosts.iter().any(|known| known.covers(&host.name)) {
            return true;
        }
        let is_reached_by_others = !self.address.is_loopback();
        match host.address() {
            Some(address) => address.is_loopback() || address == self.address || is_reached_by_others,
            None if host.name == "localhost" || host.name.ends_with(".localhost") => true,
            None => is_reached_by_others && is_unregistrable(&host.name),
        }
    }
}

/// Returns whether nobody can own the name in the public DNS.
fn is_unregistrable(name: &str) -> bool {
    !name.contains('.') || PRIVATE_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Returns whether a page of another origin sent this request without an `Origin`, as images and scripts do. Following
/// a link to this server is allowed, because the browser then shows a page of this server.
fn is_hidden_cross_origin(parts: &Parts) -> bool {
    let Some(site) = parts.headers.get(FETCH_SITE) else { return false };
    let is_foreign = site == "cross-site" || site == "same-site";
    let is = |name: HeaderName, value: &str| parts.headers.get(name).is_some_and(|have| have == value);
    let is_link = is(FETCH_MODE, "navigate") && is(FETCH_DEST, "document") && parts.method == Method::GET;
    is_foreign && !is_link
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

fn foreign_host(host: &str) -> ApiError {
    let message = format!(
        "the host {:?} is none of this server, which asks for no tokens; if it is one, allow it with --allowed-host",
        shown(host)
    );
    ApiError::refused(StatusCode::FORBIDDEN, message)
}

fn foreign_origin(origin: &str) -> ApiError {
    let message = format!(
        "pages of {} may not use this server, which asks for no tokens; allow an origin with --cors-origin",
        shown(origin)
    );
    ApiError::refused(StatusCode::FORBIDDEN, message)
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn policy(address: &str) -> BrowserPolicy {
        let hosts = HostName::parse_list("stack.example,10.1.1.1").expect("names");
        let origins = Origin::parse_list("https://app.example http://localhost:3000").expect("origins");
        BrowserPolicy::new(address.parse().expect("an address"), false, hosts, origins)
    }

    fn passes(policy: &BrowserPolicy, target: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        policy.check(&request.body(()).expect("a request").into_parts().0).is_ok()
    }

    #[test]
    fn answers_to_its_own_hosts_only() {
        let (own, open) = (policy("127.0.0.1:80"), policy("0.0.0.0:80"));
        for (host, of_own, of_open) in [
            ("localhost", true, true),
            ("LOCALHOST:8080", true, true),
            ("localhost.", true, true),
            ("ledger.localhost:1", true, true),
            ("127.0.0.1:8080", true, true),
            ("127.9.9.9", true, true),
            ("[::1]:8080", true, true),
            ("[::ffff:127.0.0.1]", true, true),
            ("stack.example:443", true, true),
            ("10.1.1.1", true, true),
            ("192.168.0.7:8080", false, true),
            ("[fd00::1]", false, true),
            ("ledger", false, true),
            ("ledger.default.svc.cluster.local", false, true),
            ("host.docker.internal", false, true),
            ("rebind.evil.example", false, false),
            ("localhost.evil.example", false, false),
            ("127.0.0.1.evil.example", false, false),
            ("evillocalhost.example", false, false),
            ("x.stack.example", false, false),
            ("", false, false),
            ("localhost:x", false, false),
            ("localhost:99999", false, false),
            ("evil.example@localhost", false, false),
            ("localhost/", false, false),
            ("[::1", false, false),
            ("[evil.example]", false, false),
        ] {
            assert_eq!(passes(&own, "/v2", &[("host", host)]), of_own, "{host} on loopback");
            assert_eq!(passes(&open, "/v2", &[("host", host)]), of_open, "{host} on every address");
        }
        assert!(passes(&policy("10.0.0.9:80"), "/", &[("host", "10.0.0.9")]));
        // Whatever else the request names must be this server too.
        assert!(!passes(&own, "http://evil.example/v2", &[("host", "localhost")]));
        assert!(!passes(&own, "/v2", &[("host", "localhost"), ("host", "evil.example")]));
        let any = BrowserPolicy { hosts: HostName::parse_list("*").expect("names"), ..own };
        assert!(passes(&any, "/v2", &[("host", "evil.example")]));
    }

    #[test]
    fn takes_pages_of_its_own_and_listed_origins() {
        let policy = policy("127.0.0.1:8080");
        for (host, origin, is_allowed) in [
            ("localhost:8080", "http://localhost:8080", true),
            ("stack.example", "https://stack.example", true),
            ("stack.example:443", "https://stack.example", true),
            ("127.0.0.1:8080", "https://app.example", true),
            ("127.0.0.1:8080", "https://app.example:443", true),
            ("127.0.0.1:8080", "http://localhost:3000", true),
            ("127.0.0.1:8080", "http://app.example", false),
            ("127.0.0.1:8080", "https://app.example:8443", false),
            ("127.0.0.1:8080", "https://x.app.example", false),
            ("127.0.0.1:8080", "http://localhost:8080", false),
            ("localhost:8080", "http://localhost:8081", false),
            ("localhost:8080", "http://localhost", false),
            ("localhost:8080", "http://evil.example", false),
            ("localhost:8080", "null", false),
            ("localhost:8080", "", false),
            ("localhost:8080", "file://", false),
            ("localhost:8080", "http://evil.example http://localhost:8080", false),
        ] {
            assert_eq!(passes(&policy, "/", &[("host", host), ("origin", origin)]), is_allowed, "{origin}");
        }
        let both = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.example")];
        assert!(!passes(&policy, "/", &both));
        let secure = BrowserPolicy { is_secure: true, ..policy };
        assert!(!passes(&secure, "/", &[("host", "localhost"), ("origin", "http://localhost")]));
        assert!(passes(&secure, "/", &[("host", "localhost"), ("origin", "https://localhost")]));
    }

    #[test]
    fn refuses_hidden_requests_of_other_pages() {
        let policy = policy("127.0.0.1:8080");
        for (site, mode, dest, is_allowed) in [
            ("same-origin", "cors", "empty", true),
            ("none", "navigate", "document", true),
            ("cross-site", "navigate", "document", true),
            ("cross-site", "navigate", "iframe", false),
            ("cross-site", "no-cors", "image", false),
            ("same-site", "no-cors", "script", false),
        ] {
            let headers = [
                ("host", "localhost"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            assert_eq!(passes(&policy, "/", &headers), is_allowed, "{site} {mode} {dest}");
        }
    }

    #[test]
    fn reads_names_and_origins_of_operators() {
        for text in ["https://a", "a:80", "a/b", "*.example", "u@a", "[x]"] {
            assert!(HostName::parse_list(text).is_err(), "{text}");
        }
        for text in ["a", "null", "*", "https://a/b", "ftp://a", "https://", "https://a?b"] {
            assert!(Origin::parse_list(text).is_err(), "{text}");
        }
        assert_eq!(HostName::of_url("https://[::1]:8/x"), HostName::parse("[::1]").ok());
        let error = Origin::parse_list("https://a,b").expect_err("no origin");
        assert_eq!(error.to_string(), "\"b\" is not an origin such as https://app.example");
    }
}
