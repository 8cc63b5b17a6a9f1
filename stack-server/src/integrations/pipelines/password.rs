//! Hides passwords and tokens in the configurations that responses show.

use std::borrow::Cow;
use std::cell::RefCell;

use serde_json::value::RawValue;
use thiserror::Error;

use crate::http::json::{self, Entries, Text};
use crate::http::response::{Json, Numbers};
use crate::outbound::redacted_path;

/// The text that replaces a password.
const HIDDEN: &str = "xxxxx";

/// Members that contain addresses. An address can contain a password before the host or in a parameter.
const ADDRESSES: [&str; 3] = ["url", "dsn", "endpoint"];

/// The member that contains a user name and a password, and the paths of these.
const AUTHENTICATION: &str = "authentication";
const USERNAME: &str = "authentication.username";
const PASSWORD: &str = "authentication.password";

/// Visible parameters of a `dsn`.
const PLAIN_PARAMETERS: [&str; 3] = ["database", "secure", "username"];

/// A request contains a placeholder from a response, but it is unclear for which secret. The text is for the client.
#[derive(Debug, PartialEq, Eq, Error)]
#[error(
    "{path}: {HIDDEN} stands for a secret that is not shown. It keeps the secret only while address and user stay the \
     same. Give the secret itself"
)]
pub(super) struct StrayPlaceholder {
    path: &'static str,
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

/// Returns the address of a database without the values of parameters that may be secrets. The user and the database
/// are not secret.
fn without_parameters(address: &str) -> String {
    let Some((before, query)) = address.split_once('?') else { return address.to_owned() };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if !value.is_empty() && !PLAIN_PARAMETERS.contains(&name) => {
            format!("{name}={HIDDEN}")
        }
        _ => pair.to_owned(),
    });
    format!("{before}?{}", pairs.collect::<Vec<_>>().join("&"))
}

/// Returns an address for deliveries without its possible secrets: a user without a password, the parts of the path
/// that are not words, and the values of parameters.
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

/// Returns the path of a member that may contain a secret, or that names the owner of a secret.
fn member(parent: Option<&str>, name: &str) -> Option<&'static str> {
    match (parent, name) {
        (Some(_), "username") => Some(USERNAME),
        (Some(_), "password") => Some(PASSWORD),
        (Some(_), _) => None,
        (None, name) => ADDRESSES.into_iter().find(|address| *address == name),
    }
}

/// Returns a configuration in which `change` has replaced texts that may be secrets, given their paths. The
/// configuration is a JSON object. Returns `None` if nothing changes.
fn replace_secrets(config: &str, change: &dyn Fn(&'static str, &str) -> Option<String>) -> Option<String> {
    let changed = |parent: Option<&str>, name: &str, value: &str| {
        change(member(parent, name)?, &text(value)?).map(|text| quoted(&text))
    };
    replace_members(config, &|name, value| match name {
        AUTHENTICATION => replace_members(value, &|name, value| changed(Some(AUTHENTICATION), name, value)),
        _ => changed(None, name, value),
    })
}

/// Returns the texts of a configuration that may be secrets, with their paths.
fn secrets(config: &str) -> Vec<(&'static str, String)> {
    let secrets = RefCell::new(Vec::new());
    // Change nothing, and only collect the visited texts.
    replace_secrets(config, &|path, secret| {
        secrets.borrow_mut().push((path, secret.to_owned()));
        None
    });
    secrets.into_inner()
}

/// Returns the text at a path. The last member of a name counts.
fn at<'s>(secrets: &'s [(&'static str, String)], path: &str) -> Option<&'s str> {
    secrets.iter().rfind(|(have, _)| *have == path).map(|(_, text)| text.as_str())
}

/// Returns a JSON object with the values that `change` replaces, or `None` if it replaces none.
fn replace_members(object: &str, change: &dyn Fn(&str, &str) -> Option<String>) -> Option<String> {
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

/// Returns the visible form of a text that may contain a secret, or `None` if the text is entirely visible.
fn redacted_text(path: &str, secret: &str) -> Option<String> {
    let shown = match path {
        USERNAME => return None,
        PASSWORD if secret.is_empty() => return None,
        PASSWORD => HIDDEN.to_owned(),
        "dsn" => without_parameters(&without_user_password(secret)),
        _ => without_tokens(&without_user_password(secret)),
    };
    (shown != secret).then_some(shown)
}

/// Returns a configuration without its secrets.
pub(crate) fn redacted(config: &str) -> Cow<'_, str> {
    replace_secrets(config, &redacted_text).map_or(Cow::Borrowed(config), Cow::Owned)
}

/// Returns the configuration that replaces `kept`. If the client sends an address or password in its visible form, the
/// stored one is kept, unless the destination or the user would change.
///
/// # Errors
///
/// Fails if a placeholder would replace a stored secret, because that would destroy the secret.
pub(super) fn restore_secrets<'c>(config: &'c str, kept: &str) -> Result<Cow<'c, str>, StrayPlaceholder> {
    let (given, kept) = (secrets(config), secrets(kept));
    let stays = |path: &str| {
        let (given, kept) = (at(&given, path), at(&kept, path));
        given == kept
            || given.is_some() && given == kept.and_then(|kept| redacted_text(path, kept)).as_deref()
    };
    let is_same_login = stays("endpoint") && stays(USERNAME);
    let stored = |path: &'static str, text: &str| {
        let secret = at(&kept, path)?;
        let is_placeholder = redacted_text(path, secret)? == text && (path != PASSWORD || is_same_login);
        is_placeholder.then(|| secret.to_owned())
    };
    for (path, text) in &given {
        let secret = at(&kept, path);
        let replaces_secret =
            secret.is_some_and(|secret| secret != text && redacted_text(path, secret).is_some());
        if replaces_secret && text.contains(HIDDEN) && stored(path, text).is_none() {
            return Err(StrayPlaceholder { path });
        }
    }
    Ok(replace_secrets(config, &stored).map_or(Cow::Borrowed(config), Cow::Owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_hidden_and_everything_else_stays() {
        for (address, wanted) in [
            ("https://me:secret@sink.example/in?a=b:c@d", "https://me:xxxxx@sink.example/in?a=xxxxx"),
            ("http://me:a:b@c@[::1]:8/", "http://me:xxxxx@[::1]:8/"),
            ("http://:secret@h", "http://:xxxxx@h"),
            ("http://me:@h", "http://me:@h"),
            ("http://h:80/a:b@c", "http://h:80/xxxxx"),
            ("nonsense", "nonsense"),
        ] {
            for path in ["url", "endpoint"] {
                assert_eq!(redacted_text(path, address).as_deref().unwrap_or(address), wanted);
            }
        }
        for (dsn, wanted) in [
            (
                "clickhouse://h:9000/db?username=u&password=secret",
                "clickhouse://h:9000/db?username=u&password=xxxxx",
            ),
            ("clickhouse://u:p@h?password=secret&a=b", "clickhouse://u:xxxxx@h?password=xxxxx&a=xxxxx"),
            ("https://h/db?access_token=t&secure=true&x", "https://h/db?access_token=xxxxx&secure=true&x"),
            ("clickhouse://h?password=", "clickhouse://h?password="),
            ("clickhouse://u@h:9000/db1", "clickhouse://u@h:9000/db1"),
        ] {
            assert_eq!(redacted_text("dsn", dsn).as_deref().unwrap_or(dsn), wanted);
        }
        let config =
            r#"{"more":[1,{"url":"http://a:b@c"}],"url":"http://u:p\u0022@h/","batching":{"maxItems":7}}"#;
        assert_eq!(
            redacted(config),
            r#"{"more":[1,{"url":"http://a:b@c"}],"url":"http://u:xxxxx@h/","batching":{"maxItems":7}}"#
        );
        for same in ["{}", "null", r#"{"url":7}"#, r#"{"url":"http://h/"}"#, "no json"] {
            assert!(matches!(redacted(same), Cow::Borrowed(_)), "{same}");
        }
    }

    #[test]
    fn hides_tokens_of_deliveries_and_restores_them() {
        for (url, shown) in [
            ("https://hooks.example/in/T0/B0/x?y=z", "https://hooks.example/in/xxxxx/xxxxx/x?y=xxxxx"),
            ("https://token@h/in?S3CRET", "https://xxxxx@h/in?xxxxx"),
            ("https://u:p@h/T0?a=b", "https://u:xxxxx@h/xxxxx?a=xxxxx"),
        ] {
            for member in ["url", "endpoint"] {
                let config = |url: &str| format!(r#"{{"{member}":"{url}"}}"#);
                assert_eq!(redacted(&config(url)), config(shown));
                assert_eq!(restore_secrets(&config(shown), &config(url)).as_deref(), Ok(&*config(url)));
                let elsewhere = config(&shown.replace("://", "://x"));
                assert_eq!(restore_secrets(&elsewhere, &config(url)), Err(StrayPlaceholder { path: member }));
            }
        }
        assert_eq!(without_tokens("http://h?a=b&c&d=&e=f#g"), "http://h?a=xxxxx&c&d=&e=xxxxx");
    }

    #[test]
    fn placeholder_restores_stored_password() {
        let kept = r#"{"url":"http://u:p@h/"}"#;
        let shown = redacted(kept);
        assert_eq!(restore_secrets(&shown, kept).as_deref(), Ok(kept));
        let more = r#"{"batching":{"maxItems":7},"url":"http://u:xxxxx@h/"}"#;
        let wanted = r#"{"batching":{"maxItems":7},"url":"http://u:p@h/"}"#;
        assert_eq!(restore_secrets(more, kept).as_deref(), Ok(wanted));
        // The stored password must neither go to another destination or user, nor be lost.
        for other in [r#"{"url":"http://u:xxxxx@evil/"}"#, r#"{"url":"http://v:xxxxx@h/"}"#] {
            assert_eq!(restore_secrets(other, kept), Err(StrayPlaceholder { path: "url" }));
        }
        for other in [r#"{"url":"http://u:q@h/"}"#, r#"{"url":"http://evil/"}"#, "{}"] {
            assert_eq!(restore_secrets(other, kept).as_deref(), Ok(other));
        }
        // If the stored text has no secret, the placeholder is ordinary text.
        assert_eq!(restore_secrets(&shown, "{}").as_deref(), Ok(&*shown));
        assert_eq!(restore_secrets(&shown, &shown).as_deref(), Ok(&*shown));
    }

    #[test]
    fn hides_passwords_of_every_driver_and_restores_them() {
        let kept = r#"{"endpoint":"http://h","authentication":{"username":"u","password":"secret"},"dsn":"clickhouse://u:p@h"}"#;
        let shown = r#"{"endpoint":"http://h","authentication":{"username":"u","password":"xxxxx"},"dsn":"clickhouse://u:xxxxx@h"}"#;
        assert_eq!(redacted(kept), shown);
        assert_eq!(restore_secrets(shown, kept).as_deref(), Ok(kept));
        let other = shown.replace("\"xxxxx\"", "\"new\"");
        assert_eq!(restore_secrets(&other, kept).as_deref(), Ok(&*other.replace("u:xxxxx@", "u:p@")));
    }

    #[test]
    fn password_never_moves_to_another_server_or_user() {
        let kept = r#"{"endpoint":"http://h","authentication":{"username":"u","password":"secret"}}"#;
        for (from, to) in [("//h", "//evil"), ("\"u\"", "\"v\""), (r#""username":"u","#, "")] {
            let given = redacted(kept).replace(from, to);
            assert_eq!(restore_secrets(&given, kept), Err(StrayPlaceholder { path: PASSWORD }), "{given}");
        }
    }
}
