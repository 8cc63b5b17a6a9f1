//! Passwords in the configuration of exporters: kept, used, and not shown.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{self, Entries, Text};
use crate::response::{Json, Numbers};

/// What is shown in the place of a password.
const HIDDEN: &str = "xxxxx";

/// An address without the password that it has before its host.
fn without_password(address: &str) -> Cow<'_, str> {
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

/// A configuration, which is a JSON object, with `url` as `change` makes it; `None` if that changes nothing.
fn with_url(config: &str, change: impl Fn(&str) -> Cow<'_, str>) -> Option<String> {
    let Entries(entries) = json::first::<Entries<'_, &RawValue>>(config.as_bytes()).ok()?;
    let mut changed = false;
    let mut out = Json::new(Numbers::Plain);
    out.raw("{");
    for (at, (Text(name), value)) in entries.iter().enumerate() {
        if at > 0 {
            out.raw(",");
        }
        out.string(name).raw(":");
        let url = (name == "url").then(|| json::first::<Text<'_>>(value.get().as_bytes()).ok()).flatten();
        match url.as_ref().map(|Text(url)| (url, change(url))) {
            Some((url, other)) if other != *url => {
                changed = true;
                out.string(&other);
            }
            _ => {
                out.raw(value.get());
            }
        }
    }
    out.raw("}");
    changed.then(|| String::from_utf8(out.into_bytes()).ok()).flatten()
}

/// A configuration as it is shown.
pub(crate) fn hidden(config: &str) -> Cow<'_, str> {
    with_url(config, without_password).map_or(Cow::Borrowed(config), Cow::Owned)
}

/// A configuration that takes the place of `kept`: what was shown of a password stands for the password.
pub(super) fn restored<'c>(config: &'c str, kept: &str) -> Cow<'c, str> {
    let url = |config: &str| {
        let Entries(entries) = json::first::<Entries<'_, &RawValue>>(config.as_bytes()).ok()?;
        let (_, url) = entries.into_iter().rfind(|(Text(name), _)| name == "url")?;
        json::first::<Text<'_>>(url.get().as_bytes()).ok().map(|Text(url)| url.into_owned())
    };
    let Some(kept) = url(kept) else { return Cow::Borrowed(config) };
    let shown = without_password(&kept);
    if shown == kept {
        return Cow::Borrowed(config);
    }
    let same =
        |given: &str| if *given == *shown { Cow::Owned(kept.clone()) } else { Cow::Owned(given.to_owned()) };
    with_url(config, |given| same(given)).map_or(Cow::Borrowed(config), Cow::Owned)
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
    fn what_was_shown_stands_for_what_is_kept() {
        let kept = r#"{"url":"http://u:p@h/"}"#;
        let shown = hidden(kept);
        assert_eq!(restored(&shown, kept), kept);
        let more = r#"{"batching":{"maxItems":7},"url":"http://u:xxxxx@h/"}"#;
        assert_eq!(restored(more, kept), r#"{"batching":{"maxItems":7},"url":"http://u:p@h/"}"#);
        // Elsewhere, or for somebody else, it is a password like any other: the kept one goes nowhere but where it went.
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
}
