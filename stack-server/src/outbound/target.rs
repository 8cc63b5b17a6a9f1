//! Parses the address of an outbound request.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::Scheme;
use thiserror::Error;

use super::redacted::redacted;

/// A text that is not an address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{address:?} is no address: {reason}")]
pub(crate) struct AddressError {
    /// The beginning of the text, without possible secrets.
    address: String,
    reason: AddressFault,
}

/// The invalid part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum AddressFault {
    #[error("it does not parse")]
    Syntax,
    #[error("it begins with neither http:// nor https://")]
    Scheme,
    #[error("it has no host")]
    NoHost,
    #[error("its port is no number")]
    Port,
}

/// Maximum number of characters of an invalid address that an error repeats.
const SHOWN_CHARS_MAX: usize = 200;

/// An absolute address with `http` or `https`. Its `Display` text contains no possible secrets.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Target {
    secure: bool,
    host: String,
    port: u16,
    /// The path and the query, as in the request line.
    path: String,
    /// The value of the header `Authorization`, from `user:password@` before the host.
    authorization: Option<HeaderValue>,
}

impl Target {
    /// Parses an address.
    ///
    /// # Errors
    ///
    /// Fails if the text is not an `http` or `https` address with a host and, if present, a valid port.
    pub(crate) fn parse(text: &str) -> Result<Self, AddressError> {
        let invalid =
            |reason| AddressError { address: redacted(text).chars().take(SHOWN_CHARS_MAX).collect(), reason };
        let uri: Uri = text.trim().parse().map_err(|_| invalid(AddressFault::Syntax))?;
        let secure = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(invalid(AddressFault::Scheme)),
        };
        let authority = uri.authority().ok_or_else(|| invalid(AddressFault::NoHost))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(invalid(AddressFault::NoHost));
        }
        let behind_host = authority.as_str().rsplit_once(authority.host()).map_or("", |(_, rest)| rest);
        let port = match behind_host.strip_prefix(':') {
            Some(_) => authority.port_u16().ok_or_else(|| invalid(AddressFault::Port))?,
            None => {
                if secure {
                    443
                } else {
                    80
                }
            }
        };
        let authorization = authority
            .as_str()
            .rsplit_once('@')
            .map(|(user, _)| basic(&if user.contains(':') { user.to_owned() } else { format!("{user}:") }));
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { secure, host: host.to_owned(), port, path, authorization })
    }

    /// Returns this target with another path and query.
    pub(crate) fn with_path(&self, path: String) -> Self {
        Self { path, ..self.clone() }
    }

    /// Returns this target with the credentials of a user.
    pub(crate) fn with_user(self, name: &str, password: &str) -> Self {
        Self { authorization: Some(basic(&format!("{name}:{password}"))), ..self }
    }

    /// Returns whether the scheme is `https`.
    pub(crate) fn is_secure(&self) -> bool {
        self.secure
    }

    /// Returns the host: a name, or an address without brackets.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port. The default is that of the scheme.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path and the query.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Tells whether the address names a user.
    pub(crate) fn has_user(&self) -> bool {
        self.authorization.is_some()
    }

    /// Returns the header `Authorization`, if the address names a user.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Returns the header `Host`, which contains the port unless it is the default of the scheme.
    pub(super) fn host_header(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.secure, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// Tells whether requests to both targets can share a connection.
    pub(crate) fn shares_connection(&self, other: &Self) -> bool {
        (self.secure, self.port, &self.host) == (other.secure, other.port, &other.host)
    }
}

/// Returns the value of the header `Authorization` for `user:password`.
fn basic(user: &str) -> HeaderValue {
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(user)))
        .expect("base64 is a valid header value");
    value.set_sensitive(true);
    value
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        f.write_str(&redacted(&format!("{scheme}://{}{}", self.host_header(), self.path)))
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_address_into_parts() {
        for (text, secure, host, port, path, shown) in [
            ("http://a.example", false, "a.example", 80, "/", "http://a.example/"),
            ("https://a.example:443/x?y=1", true, "a.example", 443, "/x?y=1", "https://a.example/x?xxxxx"),
            ("http://127.0.0.1:8080/in", false, "127.0.0.1", 8080, "/in", "http://127.0.0.1:8080/in"),
            ("https://[::1]:9/", true, "::1", 9, "/", "https://[::1]:9/"),
            ("HTTP://u:p@h:81/?q", false, "h", 81, "/?q", "http://h:81/?xxxxx"),
            ("http://h/in/T0K3N", false, "h", 80, "/in/T0K3N", "http://h/in/xxxxx"),
        ] {
            let target = Target::parse(text).expect("a target");
            assert_eq!(
                (target.is_secure(), target.host(), target.port(), target.path()),
                (secure, host, port, path)
            );
            assert_eq!(target.to_string(), shown);
        }
        let user = Target::parse("http://u:p@h").expect("a target");
        assert_eq!(user.authorization().expect("a user"), "Basic dTpw");
        assert!(!format!("{user:?}").contains("u:p"));
        let error = Target::parse("http://user:secret@h:port/").expect_err("no port").to_string();
        assert!(error.contains("@h:") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn refuses_malformed_addresses() {
        for text in [
            "",
            "x",
            "/x",
            "ftp://a",
            "http://",
            "http://:80",
            "http://a:b",
            "http://a:99999",
            "http://a b",
            "a:80",
        ] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }
}
