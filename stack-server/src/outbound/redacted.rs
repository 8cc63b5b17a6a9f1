//! Removes possible secrets from addresses in logs and responses.

/// The text that replaces a secret.
const HIDDEN: &str = "xxxxx";

/// Maximum length of a visible part of a path, in characters. Words are shorter than this, and tokens longer.
const WORD_CHARS_MAX: usize = 20;

/// Returns an address without its possible secrets: user and password, the values of the query, and the parts of the
/// path that are not words. Receivers of events often identify senders by a token in the path.
pub(crate) fn redacted(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{}", shown_host(host)),
        None => shown_host(authority),
    };
    let (path, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let query = if query.len() > 1 { format!("{}{HIDDEN}", &query[..1]) } else { String::new() };
    format!("{scheme}{host}{}{query}", redacted_path(path))
}

/// Returns a host with its port. A text that is not a port is hidden, because it may be the beginning of a password
/// with a slash.
fn shown_host(host: &str) -> String {
    // The colons of an address are in brackets.
    let name = host.rfind(']').unwrap_or(0);
    match host[name..].find(':').map(|colon| name + colon) {
        Some(colon) if !host[colon + 1..].bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{}:{HIDDEN}", &host[..colon])
        }
        _ => host.to_owned(),
    }
}

/// Returns a path without the parts that are not words.
pub(crate) fn redacted_path(path: &str) -> String {
    let parts = path.split('/').map(|part| if is_word(part) { part } else { HIDDEN });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns whether a part of a path is a word of an API, such as `hooks`, `v2` or `_bulk`.
fn is_word(part: &str) -> bool {
    let is_version = part.strip_prefix('v').is_some_and(|number| number.parse::<u8>().is_ok());
    let is_plain = |c: char| c.is_ascii_lowercase() || matches!(c, '-' | '_' | '.');
    is_version || part.len() <= WORD_CHARS_MAX && part.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_words_and_hides_the_rest() {
        for (address, shown) in [
            ("https://sink.example", "https://sink.example"),
            ("https://sink.example:8443/", "https://sink.example:8443/"),
            ("http://[::1]:9/api/v2/_bulk", "http://[::1]:9/api/v2/_bulk"),
            (
                "https://hooks.example/services/T024/B36/aXbYcZ",
                "https://hooks.example/services/xxxxx/xxxxx/xxxxx",
            ),
            ("https://h/in/correct-horse-battery-staple", "https://h/in/xxxxx"),
            ("https://h/9f86d081", "https://h/xxxxx"),
            ("https://h/in?token=secret&a=b#c", "https://h/in?xxxxx"),
            ("https://h?key", "https://h?xxxxx"),
            ("https://h/in#secret", "https://h/in#xxxxx"),
            ("https://user:secret@h/in", "https://xxxxx@h/in"),
            ("https://token@h", "https://xxxxx@h"),
            ("https://a@b:secret@h/", "https://xxxxx@h/"),
            // Secrets in an invalid address are hidden too.
            ("user:secret@h", "xxxxx@h"),
            ("https://user:secret@h:port/x y", "https://xxxxx@h:xxxxx/xxxxx"),
            ("https://user:sec/ret@h/", "https://user:xxxxx/xxxxx/"),
            ("http://user:secret:8123/", "http://user:xxxxx/"),
            ("http://[::1]/", "http://[::1]/"),
            ("", ""),
        ] {
            assert_eq!(redacted(address), shown);
        }
    }
}
