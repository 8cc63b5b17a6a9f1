//! Hides passwords and tokens in the configurations that responses show.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::http::json::{self, Entries, Text};
use crate::http::response::{Json, Numbers};
use crate::outbound::redacted_path;

/// The text that replaces a password.
const HIDDEN: &str = "xxxxx";

/// Members that hold addresses, whose passwords are before the host or a parameter.
const ADDRESSES: [&str; 3] = ["url", "dsn", "endpoint"];

/// The member that holds a user name and a password of their own.
const AUTHENTICATION: &str = "authentication";

/// An address without the password that it has before its host or as a parameter.
fn without_password(address: &str) -> Cow<'_, str> {
    match without_user_password(address) {
        Cow::Borrowed(address) => without_parameter(address),
        Cow::Owned(address) => Cow::Owned(without_parameter(&address).into_owned()),
    }
}

fn without_user_password(address: &str) -> Cow<'_, str> {
    let Some(begin) = address.find("://").map(|at| at + 3) else { return Cow::Borrowed(address) };
    let end = address[begin..].find(['/', '?', '#']).map_or(address.len(), |at| begin + at);
    let Some(at) = address[begin..end].rfind('@').map(|at| begin + at) else { return Cow::Borrowed(address) };
    match address[begin..at].find(':').map(|colon| begin + colon) {
        Some(colon) if colon + 1 < at => {
            Cow::Owned(format!("{}{HIDDEN}{}", &address[..=colon], &address[at..]))
        }
        _ => Cow::Borrowed(address),
    }
}

/// An address without the value of a parameter `password`.
fn without_parameter(address: &str) -> Cow<'_, str> {
    let Some((before, query)) = address.split_once('?') else { return Cow::Borrowed(address) };
    if !query.split('&').any(|pair| pair.starts_with("password=") && pair != "password=") {
        return Cow::Borrowed(address);
    }
    let pairs = query.split('&').map(|pair| match pair.strip_prefix("password=") {
        Some(password) if !password.is_empty() => format!("password={HIDDEN}"),
        _ => pair.to_owned(),
    });
    Cow::Owned(format!("{before}?{}", pairs.collect::<Vec<_>>().join("&")))
}

/// An address for deliveries without what receivers may know their senders by: a user without a password, the parts of the
/// path that are no words, and the values of parameters.
fn without_tokens(address: &str) -> String {
    let begin = address.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = address.split_at(begin);
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = match authority.rsplit_once('@') {
        Some((user, host)) if !user.is_empty() && !user.contains(':') => format!("{HIDDEN}@{host}"),
        _ => authority.to_owned(),
    };
    let (path, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let (mark, query) = query.split_at(query.len().min(1));
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, "")) => format!("{name}="),
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => redacted_path(pair),
    });
    format!("{scheme}{host}{}{mark}{}", redacted_path(path), pairs.collect::<Vec<_>>().join("&"))
}

/// A configuration, which is a JSON object, with the texts that may hold passwords as `change` makes them, given the
/// path of each; `None` if that changes nothing.
fn with_secrets(config: &str, change: &dyn Fn(&str, &str) -> Option<String>) -> Option<String> {
    rewritten(config, &|name, value| match name {
        AUTHENTICATION => rewritten(value, &|name, value| {
            (name == "password")
                .then(|| change("authentication.password", &text(value)?))
                .flatten()
                .map(|text| quoted(&text))
        }),
        _ if ADDRESSES.contains(&name) => change(name, &text(value)?).map(|text| quoted(&text)),
        _ => None,
    })
}

/// A JSON object with other values where `change` gives some; `None` if it gives none.
fn rewritten(object: &str, change: &dyn Fn(&str, &str) -> Option<String>) -> Option<String> {
    let Entries(entries) = json::first::<Entries<'_, &RawValue>>(object.as_bytes()).ok()?;
    let mut changed = false;
    let mut out = Json::new(Numbers::Plain);
    out.raw("{");
    for (at, (Text(name), value)) in entries.iter().enumerate() {
        out.raw(if at == 0 { "" } else { "," }).string(name).raw(":");
        match change(name, value.get()) {
            Some(other) => {
                changed = true;
                out.raw(&other);
            }
            None => {
                out.raw(value.get());
            }
        }
    }
    out.raw("}");
    changed.then(|| String::from_utf8(out.into_bytes()).ok()).flatten()
}

fn text(json: &str) -> Option<String> {
    json::first::<Text<'_>>(json.as_bytes()).ok().map(|Text(text)| text.into_owned())
}

fn quoted(text: &str) -> String {
    let mut out = Json::new(Numbers::Plain);
    out.string(text);
    String::from_utf8(out.into_bytes()).unwrap_or_default()
}

/// The shown form of a text that may hold a password, if it holds one.
fn shown(path: &str, secret: &str) -> Option<String> {
    if path == "authentication.password" {
        return (!secret.is_empty()).then(|| HIDDEN.to_owned());
    }
    let shown = without_password(secret);
    let shown = if path == "url" { Cow::Owned(without_tokens(&shown)) } else { shown };
    (shown != secret).then(|| shown.into_owned())
}

/// A configuration as it is shown.
pub(crate) fn hidden(config: &str) -> Cow<'_, str> {
    with_secrets(config, &shown).map_or(Cow::Borrowed(config), Cow::Owned)
}

/// Returns a configuration that replaces `kept`. If the client sends the placeholder back, the stored password
/// stays.
pub(super) fn restored<'c>(config: &'c str, kept: &str) -> Cow<'c, str> {
    let secrets = std::cell::RefCell::new(Vec::new());
    // Nothing is changed: the texts that are visited are gathered.
    with_secrets(kept, &|path, secret| {
        secrets.borrow_mut().push((path.to_owned(), secret.to_owned()));
        None
    });
    let secrets = secrets.into_inner();
    let kept = |path: &str, given: &str| {
        let (_, secret) = secrets.iter().rfind(|(have, _)| have == path)?;
        (shown(path, secret)? == given).then(|| secret.clone())
    };
    with_secrets(config, &kept).map_or(Cow::Borrowed(config), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_hidden_and_everything_else_stays() {
        for (address, shown) in [
            ("https://me:secret@sink.example/in?a=b:c@d", "https://me:xxxxx@sink.example/in?a=b:c@d"),
            ("http://me:a:b@c@[::1]:8/", "http://me:xxxxx@[::1]:8/"),
            ("http://:secret@h", "http://:xxxxx@h"),
            ("http://me@h/x:y@z", "http://me@h/x:y@z"),
            ("http://me:@h", "http://me:@h"),
            ("http://h:80/a:b@c", "http://h:80/a:b@c"),
            ("nonsense", "nonsense"),
            (
                "clickhouse://h:9000/db?username=u&password=secret",
                "clickhouse://h:9000/db?username=u&password=xxxxx",
            ),
            ("clickhouse://u:p@h?password=secret&a=b", "clickhouse://u:xxxxx@h?password=xxxxx&a=b"),
            ("clickhouse://h?password=", "clickhouse://h?password="),
        ] {
            assert_eq!(without_password(address), shown);
        }
        let config =
            r#"{"more":[1,{"url":"http://a:b@c"}],"url":"http://u:p\u0022@h/","batching":{"maxItems":7}}"#;
        assert_eq!(
            hidden(config),
            r#"{"more":[1,{"url":"http://a:b@c"}],"url":"http://u:xxxxx@h/","batching":{"maxItems":7}}"#
        );
        for same in ["{}", "null", r#"{"url":7}"#, r#"{"url":"http://h/"}"#, "no json"] {
            assert!(matches!(hidden(same), Cow::Borrowed(_)), "{same}");
        }
    }

    #[test]
    fn hides_tokens_of_deliveries_and_restores_them() {
        for (url, shown) in [
            ("https://hooks.example/in/T0/B0/x?y=z", "https://hooks.example/in/xxxxx/xxxxx/x?y=xxxxx"),
            ("https://token@h/in?S3CRET", "https://xxxxx@h/in?xxxxx"),
            ("https://u:p@h/T0?a=b", "https://u:xxxxx@h/xxxxx?a=xxxxx"),
        ] {
            let config = |url: &str| format!(r#"{{"url":"{url}"}}"#);
            assert_eq!(hidden(&config(url)), config(shown));
            assert_eq!(restored(&config(shown), &config(url)), config(url));
            let elsewhere = config(&shown.replace("://", "://x"));
            assert_eq!(restored(&elsewhere, &config(url)), elsewhere);
        }
        assert_eq!(without_tokens("http://h?a=b&c&d=&e=f#g"), "http://h?a=xxxxx&c&d=&e=xxxxx");
        // Those of a database are names.
        let dsn = r#"{"dsn":"clickhouse://u@h:9000/db1"}"#;
        assert_eq!(hidden(dsn), dsn);
    }

    #[test]
    fn placeholder_restores_stored_password() {
        let kept = r#"{"url":"http://u:p@h/"}"#;
        let shown = hidden(kept);
        assert_eq!(restored(&shown, kept), kept);
        let more = r#"{"batching":{"maxItems":7},"url":"http://u:xxxxx@h/"}"#;
        assert_eq!(restored(more, kept), r#"{"batching":{"maxItems":7},"url":"http://u:p@h/"}"#);
        // With another host or user, the placeholder is an ordinary password: the stored one must not go to another
        // destination.
        for other in [
            r#"{"url":"http://u:xxxxx@evil/"}"#,
            r#"{"url":"http://v:xxxxx@h/"}"#,
            r#"{"url":"http://u:q@h/"}"#,
            "{}",
        ] {
            assert_eq!(restored(other, kept), other);
        }
        assert_eq!(restored(r#"{"url":"http://u:xxxxx@h/"}"#, "{}"), r#"{"url":"http://u:xxxxx@h/"}"#);
    }

    #[test]
    fn hides_passwords_of_every_driver_and_restores_them() {
        let kept = r#"{"endpoint":"http://h","authentication":{"username":"u","password":"secret"},"dsn":"clickhouse://u:p@h"}"#;
        let shown = r#"{"endpoint":"http://h","authentication":{"username":"u","password":"xxxxx"},"dsn":"clickhouse://u:xxxxx@h"}"#;
        assert_eq!(hidden(kept), shown);
        assert_eq!(restored(shown, kept), kept);
        let other = shown.replace("\"xxxxx\"", "\"new\"");
        assert_eq!(restored(&other, kept), other.replace("u:xxxxx@", "u:p@"));
    }
}
