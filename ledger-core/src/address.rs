//! Patterns that select accounts by the segments of their addresses.

use smol_str::SmolStr;

use ledger_values::AccountAddress;

/// A pattern over account addresses.
///
/// The pattern and the address are split at `:`, and both must have the same number of segments. An empty
/// segment of the pattern matches any one segment; every other must be equal. If the last segment of the
/// pattern is `...`, any number of segments may follow, including none. Then only the non-empty segments
/// before it are compared, each in its position. Every text is a pattern; some match no address.
///
/// ```
/// use ledger_core::AddressPattern;
/// let pattern = AddressPattern::parse("users::main");
/// assert!(pattern.matches("users:001:main"));
/// assert!(!pattern.matches("users:main"));
/// assert_eq!(pattern.literal_prefix(), "users:");
/// ```
///
/// ```
/// use ledger_core::{AccountAddress, AddressPattern};
/// assert!(AddressPattern::parse("users:...").can_match() && !AddressPattern::parse("users 1").can_match());
/// let user = AccountAddress::parse("users:001")?;
/// assert_eq!(AddressPattern::of(&user).exact(), Some(user));
/// # Ok::<(), ledger_core::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPattern {
    text: SmolStr,
    /// Number of bytes of `text` with segments to compare: all of them, or those before `...`.
    tested: usize,
    shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Every segment is given, so that only one address matches.
    Exact,
    /// At least one segment is empty.
    SameLength,
    /// The last segment is `...`.
    Open,
}

const REST: &str = "...";

impl AddressPattern {
    /// Parses a pattern. Every text is valid.
    pub fn parse(text: &str) -> Self {
        let (head, shape) = match text.strip_suffix(REST) {
            Some("") => ("", Shape::Open),
            Some(head) if head.ends_with(':') => (&head[..head.len() - 1], Shape::Open),
            _ if text.split(':').any(str::is_empty) => (text, Shape::SameLength),
            _ => (text, Shape::Exact),
        };
        Self { text: SmolStr::new(text), tested: head.len(), shape }
    }

    /// Makes the pattern that only this address matches.
    pub fn of(address: &AccountAddress) -> Self {
        Self::parse(address.as_str())
    }

    /// Returns the text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Tells whether an address matches. The text must follow the grammar of [`AccountAddress`].
    pub fn matches(&self, address: &str) -> bool {
        match self.shape {
            Shape::Exact => self.text == address,
            Shape::SameLength => {
                let (mut wanted, mut segments) = (self.segments(), address.split(':'));
                loop {
                    match (wanted.next(), segments.next()) {
                        (None, None) => return true,
                        (Some(want), Some(have)) if want.is_empty() || want == have => {}
                        _ => return false,
                    }
                }
            }
            Shape::Open => {
                let mut segments = address.split(':');
                self.segments().all(|want| {
                    let have = segments.next();
                    want.is_empty() || have == Some(want)
                })
            }
        }
    }

    /// Returns the longest text with which every matching address begins.
    ///
    /// Other addresses may begin with it too, because it may end inside a segment: `users:...` yields
    /// `users`, and `users-old` begins with it.
    pub fn literal_prefix(&self) -> &str {
        if self.shape == Shape::Exact {
            return &self.text;
        }
        let mut end = 0;
        let mut segments = self.segments().peekable();
        while let Some(segment) = segments.next_if(|segment| !segment.is_empty()) {
            end += segment.len();
            // Every match continues with a colon only if another segment is required.
            let must_go_on = match self.shape {
                Shape::Open => segments.clone().any(|later| !later.is_empty()),
                Shape::SameLength | Shape::Exact => segments.peek().is_some(),
            };
            if !must_go_on {
                break;
            }
            end += 1;
        }
        &self.text[..end]
    }

    /// Returns the only address that matches, or `None` if several or none can match.
    pub fn exact(&self) -> Option<AccountAddress> {
        match self.shape {
            Shape::Exact => AccountAddress::parse(&self.text).ok(),
            Shape::SameLength | Shape::Open => None,
        }
    }

    /// Tells whether any address can match: whether the given segments follow the grammar of addresses.
    pub fn can_match(&self) -> bool {
        self.segments()
            .filter(|segment| !segment.is_empty())
            .all(|segment| AccountAddress::parse(segment).is_ok())
            && self.tested <= crate::limits::ADDRESS_BYTES_MAX
    }

    fn segments(&self) -> std::str::Split<'_, char> {
        self.text[..self.tested].split(':')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, prefix: &str, fitting: &[&str], others: &[&str]) {
        let pattern = AddressPattern::parse(pattern);
        assert_eq!(pattern.literal_prefix(), prefix, "{pattern:?}");
        for address in fitting {
            assert!(pattern.matches(address), "{pattern:?} {address}");
            assert!(address.starts_with(prefix), "{pattern:?} {address}");
        }
        for address in others {
            assert!(!pattern.matches(address), "{pattern:?} {address}");
        }
    }

    #[test]
    fn compares_segments_one_by_one() {
        check("users:001", "users:001", &["users:001"], &["users:001:main", "users", "users:0011"]);
        check("users:", "users:", &["users:001"], &["users", "users:001:main"]);
        check("users::main", "users:", &["users:001:main"], &["users:main", "users:1:mainx"]);
        check(":main", "", &["users:main"], &["main"]);
        check("users::", "users:", &["users:1:2"], &["users:1"]);
        check("", "", &["world", "bank"], &["users:1"]);
    }

    #[test]
    fn three_dots_match_further_segments() {
        check("users:...", "users", &["users", "users:1", "users:1:2"], &["user", "users-1"]);
        check("users::...", "users", &["users", "users:1", "users:1:2"], &["user"]);
        check(":1:...", "", &["users:1", "users:1:2"], &["users", "1"]);
        check("::...", "", &["a", "a:b", "a:b:c:d"], &[]);
        check("...", "", &["a", "a:b"], &[]);
        check("::2:...", "", &["a:b:2", "a:b:2:c"], &["a:2", "2", "a:b:3"]);
        check("a::b:...", "a:", &["a:x:b", "a:x:b:c"], &["a", "a:x", "a:b"]);
        check("a:b:...", "a:b", &["a:b", "a:b:c"], &["a", "a:bc"]);
    }

    #[test]
    fn dots_elsewhere_match_only_themselves() {
        check("a:...:b", "a:...:b", &[], &["a:x:b", "a:b"]);
        check("a...", "a...", &[], &["a", "a:b"]);
        assert!(!AddressPattern::parse("a:...:b").can_match());
        assert!(AddressPattern::parse("a::...").can_match());
    }

    #[test]
    fn recognises_patterns_of_one_address() {
        assert_eq!(AddressPattern::parse("users:1").exact(), AccountAddress::parse("users:1").ok());
        for several_or_none in ["users:", "", "users:...", "users:1:...", "a b", "a.b"] {
            assert_eq!(AddressPattern::parse(several_or_none).exact(), None, "{several_or_none}");
        }
    }
}
