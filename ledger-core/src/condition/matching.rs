//! Tests of addresses and texts, with which conditions select.

use ledger_values::AccountAddress;
use smol_str::SmolStr;

use super::operator::Comparison;
use crate::address::AddressPattern;
use crate::expression::AddressExpression;

/// A test of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressTest {
    /// The address matches the pattern.
    Fits(AddressPattern),
    /// The address is one of these, which are sorted and distinct.
    In(Vec<AccountAddress>),
    /// The address matches the regular expression.
    Like(AddressExpression),
    /// The address is bytewise less than this text.
    Below(SmolStr),
}

impl AddressTest {
    /// Tells whether `address` passes the test.
    pub fn passes(&self, address: &str) -> bool {
        match self {
            Self::Fits(pattern) => pattern.matches(address),
            Self::In(all) => all.binary_search_by(|have| have.as_str().cmp(address)).is_ok(),
            Self::Like(expression) => expression.matches(address),
            Self::Below(bound) => address < bound.as_str(),
        }
    }
}

/// A test of a text.
///
/// ```
/// use ledger_core::{AddressPattern, AddressTest, TextTest};
/// assert!(TextTest::Like("top%".into()).passes("topup"));
/// assert!(AddressTest::Fits(AddressPattern::parse("users:")).passes("users:1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextTest {
    /// The text equals this one.
    Equal(SmolStr),
    /// The text matches this pattern: `%` is any text, `_` is any one character, and `\` quotes the next
    /// character.
    Like(SmolStr),
    /// The text is one of these, which are sorted and distinct.
    In(Vec<SmolStr>),
    /// The text is in this relation to another one, bytewise.
    Compares(Comparison, SmolStr),
}

impl TextTest {
    /// Tells whether `text` passes the test.
    pub fn passes(&self, text: &str) -> bool {
        match self {
            Self::Equal(want) => want == text,
            Self::Like(pattern) => is_like(text, pattern),
            Self::In(all) => all.binary_search_by(|have| have.as_str().cmp(text)).is_ok(),
            Self::Compares(comparison, want) => comparison.holds(&text, &want.as_str()),
        }
    }
}

/// Tells whether a whole text matches a pattern with `%` and `_`. Takes time up to the product of their
/// lengths.
fn is_like(text: &str, pattern: &str) -> bool {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // Position to resume from if the last `%` has to match one more character.
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let mut after = pattern.clone();
        let step = match after.next() {
            Some('%') => {
                retry = Some((text.clone(), after.clone()));
                pattern = after;
                continue;
            }
            Some('_') => text.next().is_some(),
            Some('\\') => after.next().is_some_and(|want| text.next() == Some(want)),
            Some(want) => text.next() == Some(want),
            None if text.as_str().is_empty() => return true,
            None => false,
        };
        if step {
            pattern = after;
            continue;
        }
        let Some((from, resume)) = &mut retry else { return false };
        if from.next().is_none() {
            return false;
        }
        text = from.clone();
        pattern = resume.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_texts_with_like_patterns() {
        for (subject, pattern, fits) in [
            ("", "", true),
            ("a", "", false),
            ("", "%", true),
            ("abc", "abc", true),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "a_c", true),
            ("aäc", "a_c", true),
            ("abc", "a_", false),
            ("abcabd", "%ab_", true),
            ("aaab", "%aab", true),
            ("100%", "100\\%", true),
            ("1000", "100\\%", false),
            ("a", "%%_", true),
            ("", "_", false),
        ] {
            assert_eq!(is_like(subject, pattern), fits, "{subject} like {pattern}");
        }
    }
}
