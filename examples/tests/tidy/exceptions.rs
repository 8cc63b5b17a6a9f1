//! Parses the list of exceptions, and compares it with the violations in the repository.

use std::collections::BTreeMap;

use crate::rules::Rule;

/// A place: the rule, the file, and the name of a function or an empty name for the whole file.
pub(crate) type Place = (Rule, String, String);

/// The exceptions: how many violations each place may have.
pub(crate) type Exceptions = BTreeMap<Place, usize>;

/// Reads lines of the form `rule path [name] [×count] # reason`.
///
/// # Errors
///
/// Returns the first line that has another form, occurs twice, or has no reason.
pub(crate) fn parse(text: &str) -> Result<Exceptions, BadLine> {
    let mut exceptions = Exceptions::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let bad = || BadLine(line.to_owned());
        let (place, reason) = line.split_once(" # ").ok_or_else(bad)?;
        let mut words = place.split_whitespace();
        let rule = words.next().and_then(Rule::of_name).ok_or_else(bad)?;
        let path = words.next().ok_or_else(bad)?.to_owned();
        let (mut name, mut count) = (String::new(), 1);
        for word in words {
            match word.strip_prefix('×') {
                Some(number) => count = number.parse().map_err(|_| bad())?,
                None => word.clone_into(&mut name),
            }
        }
        if reason.trim().is_empty() || exceptions.insert((rule, path, name), count).is_some() {
            return Err(bad());
        }
    }
    Ok(exceptions)
}

/// A line of the list that is not valid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLine(pub(crate) String);

/// Compares the violations of each place with the list. Returns the necessary changes; none means success.
pub(crate) fn compare(found: &BTreeMap<Place, Vec<String>>, exceptions: &Exceptions) -> Vec<String> {
    let mut complaints = Vec::new();
    for (place, violations) in found {
        let allowed = exceptions.get(place).copied().unwrap_or(0);
        if violations.len() > allowed {
            complaints.extend(violations.iter().map(|violation| format!("{}: {violation}", place.0.name())));
            if allowed > 0 {
                complaints.push(format!("  the list allows {allowed} of these"));
            }
        }
    }
    for (place, allowed) in exceptions {
        let have = found.get(place).map_or(0, Vec::len);
        if have < *allowed {
            let advice = if have == 0 { "remove the line".to_owned() } else { format!("write ×{have}") };
            complaints.push(format!("no longer needed: {} (×{allowed}): {advice}", line(place)));
        }
    }
    complaints
}

/// Returns a place in the form of the list.
fn line((rule, path, name): &Place) -> String {
    format!("{} {path} {name}", rule.name()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Place {
        (Rule::TestName, "a.rs".to_owned(), name.to_owned())
    }

    #[test]
    fn reads_lines_of_the_list() {
        let list =
            parse("# Comment.\n\ntest-name a.rs long # why\ntest-name a.rs ×3 # why\n").expect("valid lines");
        assert_eq!(list, Exceptions::from([(place("long"), 1), (place(""), 3)]));
    }

    #[test]
    fn refuses_bad_lines_of_the_list() {
        for bad in
            ["test-name a.rs", "test-names a.rs # why", "test-name a.rs #  ", "test-name a.rs ×x # why"]
        {
            assert_eq!(parse(bad), Err(BadLine(bad.to_owned())));
        }
        let twice = "test-name a.rs # why\ntest-name a.rs ×2 # why";
        assert_eq!(parse(twice), Err(BadLine("test-name a.rs ×2 # why".to_owned())));
    }

    #[test]
    fn complains_about_new_violations() {
        let found = BTreeMap::from([(place(""), vec!["a.rs:1: x".to_owned(), "a.rs:2: y".to_owned()])]);
        assert!(compare(&found, &Exceptions::from([(place(""), 2)])).is_empty());
        assert_eq!(
            compare(&found, &Exceptions::from([(place(""), 1)])),
            ["test-name: a.rs:1: x", "test-name: a.rs:2: y", "  the list allows 1 of these"]
        );
        assert_eq!(compare(&found, &Exceptions::new()).len(), 2);
    }

    #[test]
    fn complains_about_exceptions_without_need() {
        let found = BTreeMap::from([(place(""), vec!["a.rs:1: x".to_owned()])]);
        let list = Exceptions::from([(place(""), 3), (place("gone"), 1)]);
        assert_eq!(
            compare(&found, &list),
            [
                "no longer needed: test-name a.rs (×3): write ×1",
                "no longer needed: test-name a.rs gone (×1): remove the line"
            ]
        );
    }
}
