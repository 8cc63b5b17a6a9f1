//! Patterns that select accounts by the segments of their address.

use compact_str::CompactString;

use crate::names::AccountAddress;

/// A pattern over account addresses.
///
/// Pattern and address are divided at `:`. Both must have the same number of segments; an empty segment of
/// the pattern stands for any one segment, every other must be equal. If the last segment is `...`, any
/// number of further segments may follow, none included, and only the segments before it that are *not*
/// empty are tested, each at its place. Any text is a pattern; one that no address can fit matches nothing.
///
/// ```
/// use ledger_core::AddressPattern;
/// let pattern = AddressPattern::parse("users::main");
/// assert!(pattern.matches("users:001:main"));
/// assert!(!pattern.matches("users:main"));
/// assert_eq!(pattern.literal_prefix(), "users:");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPattern {
    text: CompactString,
    /// How many bytes of `text` hold the segments to test: all, or what stands before `...`.
    tested: usize,
    shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Every segment is given: one address.
    Exact,
    /// Some segment is empty.
    SameLength,
    /// The last segment is `...`.
    Open,
}

const REST: &str = "...";

impl AddressPattern {
    /// Reads a pattern; every text is one.
    pub fn parse(text: &str) -> Self {
        let (head, shape) = match text.strip_suffix(REST) {
            Some("") => ("", Shape::Open),
            Some(head) if head.ends_with(':') => (&head[..head.len() - 1], Shape::Open),
            _ if text.split(':').any(str::is_empty) => (text, Shape::SameLength),
            _ => (text, Shape::Exact),
        };
        Self { text: CompactString::new(text), tested: head.len(), shape }
    }

    /// The pattern that only this address fits.
    pub fn of(address: &AccountAddress) -> Self {
        Self::parse(address.as_str())
    }

    /// The pattern as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether an address fits. The text is expected to follow the grammar of [`AccountAddress`].
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

    /// The longest text with which every address that fits begins.
    ///
    /// Addresses that begin with it are a superset of those that fit. It may end inside a segment's range:
    /// `users:...` yields `users`, with which `users-old` begins too.
    pub fn literal_prefix(&self) -> &str {
        if self.shape == Shape::Exact {
            return &self.text;
        }
        let mut end = 0;
        let mut segments = self.segments().peekable();
        while let Some(segment) = segments.next_if(|segment| !segment.is_empty()) {
            end += segment.len();
            // A colon follows in every match only if another segment must.
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

    /// The one address that fits, or `None` if several can or none can.
    pub fn exact(&self) -> Option<AccountAddress> {
        match self.shape {
            Shape::Exact => AccountAddress::parse(&self.text).ok(),
            Shape::SameLength | Shape::Open => None,
        }
    }

    /// Whether some address fits: whether the segments that are given follow the grammar of addresses.
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
    fn segments_are_compared_one_by_one() {
        check("users:001", "users:001", &["users:001"], &["users:001:main", "users", "users:0011"]);
        check("users:", "users:", &["users:001"], &["users", "users:001:main"]);
        check("users::main", "users:", &["users:001:main"], &["users:main", "users:1:mainx"]);
        check(":main", "", &["users:main"], &["main"]);
        check("users::", "users:", &["users:1:2"], &["users:1"]);
        check("", "", &["world", "bank"], &["users:1"]);
    }

    #[test]
    fn three_dots_stand_for_any_further_segments() {
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
    fn dots_elsewhere_are_no_wildcard() {
        check("a:...:b", "a:...:b", &[], &["a:x:b", "a:b"]);
        check("a...", "a...", &[], &["a", "a:b"]);
        assert!(!AddressPattern::parse("a:...:b").can_match());
        assert!(AddressPattern::parse("a::...").can_match());
    }

    #[test]
    fn one_address_is_known_as_such() {
        assert_eq!(AddressPattern::parse("users:1").exact(), AccountAddress::parse("users:1").ok());
        for several_or_none in ["users:", "", "users:...", "users:1:...", "a b", "a.b"] {
            assert_eq!(AddressPattern::parse(several_or_none).exact(), None, "{several_or_none}");
        }
    }
}
