//! Regular expressions over account addresses, with which API v1 selects accounts. They need the feature
//! `expressions`.

use std::fmt;

use smol_str::SmolStr;

use crate::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_PROGRAM_BYTES_MAX};

#[cfg(any(test, not(feature = "expressions")))]
#[cfg_attr(feature = "expressions", expect(dead_code, reason = "the test needs its refusal only"))]
mod absent;
#[cfg(feature = "expressions")]
mod compiled;

#[cfg(not(feature = "expressions"))]
pub(crate) use absent::Program;
#[cfg(feature = "expressions")]
pub(crate) use compiled::Program;

/// A compiled expression. Matching takes time linear in the address for every expression.
///
/// Addresses are ASCII, and so are the classes: `\w` is `[0-9A-Za-z_]`. Two expressions are equal if their
/// text and anchoring are equal.
///
/// Without the feature `expressions` every expression is refused.
///
/// ```
/// use ledger_core::AddressExpression;
/// let users = AddressExpression::whole("users:[0-9]+")?;
/// assert!(users.matches("users:001"));
/// assert!(!users.matches("users:001:main"));
/// assert_eq!(users.literal_prefix(), "users:");
/// # Ok::<(), ledger_core::ExpressionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressExpression {
    program: Program,
    prefix: SmolStr,
}

/// Refusal of an expression: malformed, too long, or too large when compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError(String);

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ExpressionError {}

impl AddressExpression {
    /// Compiles an expression that must match the whole address.
    ///
    /// # Errors
    ///
    /// [`ExpressionError`] if the text is not an accepted expression.
    pub fn whole(text: &str) -> Result<Self, ExpressionError> {
        check_length(text)?;
        // Compile the text alone first, to refuse texts that would close the group around them.
        compile(text)?;
        Ok(Self { program: compile(&format!("^(?:{text})$"))?, prefix: Program::literal_prefix(text) })
    }

    /// Compiles an expression that may match anywhere in the address.
    ///
    /// # Errors
    ///
    /// [`ExpressionError`] if the text is not an accepted expression.
    ///
    /// ```
    /// use ledger_core::AddressExpression;
    /// let banks = AddressExpression::anywhere("bank:[0-9]+")?;
    /// assert!(banks.matches("eu:bank:7:fees") && !banks.matches("eu:bank:main"));
    /// assert_eq!(banks.literal_prefix(), "");
    /// # Ok::<(), ledger_core::ExpressionError>(())
    /// ```
    pub fn anywhere(text: &str) -> Result<Self, ExpressionError> {
        check_length(text)?;
        Ok(Self { program: compile(text)?, prefix: SmolStr::default() })
    }

    /// Tells whether an address matches.
    pub fn matches(&self, address: &str) -> bool {
        self.program.is_match(address)
    }

    /// Returns a text with which every matching address begins. It may not be the longest one. It is empty
    /// for an expression that may match anywhere.
    pub fn literal_prefix(&self) -> &str {
        &self.prefix
    }
}

fn check_length(text: &str) -> Result<(), ExpressionError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        let reason = format!("a pattern has at most {EXPRESSION_BYTES_MAX} bytes");
        return Err(ExpressionError(reason));
    }
    Ok(())
}

fn compile(text: &str) -> Result<Program, ExpressionError> {
    Program::compile(text, EXPRESSION_PROGRAM_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, prefix: &str, fitting: &[&str], others: &[&str]) {
        let expression = AddressExpression::whole(text).expect(text);
        assert_eq!(expression.literal_prefix(), prefix, "{text}");
        for address in fitting {
            assert!(expression.matches(address), "{text} {address}");
            assert!(address.starts_with(prefix), "{text} {address}");
        }
        for address in others {
            assert!(!expression.matches(address), "{text} {address}");
        }
    }

    #[test]
    fn matches_only_whole_addresses() {
        check("b.b", "b", &["bob"], &["bobby", "abob"]);
        check("shops:.*", "shops:", &["shops:1", "shops:1:till"], &["shops"]);
        check("a|b", "", &["a", "b"], &["ab", "xa", "bx"]);
        check("ab*c", "a", &["ac", "abbc"], &["abb"]);
        check("ab+c", "ab", &["abc", "abbc"], &["ac"]);
        check("ab{0}c", "ac", &["ac"], &["abc"]);
        check("ab?", "a", &["a", "ab"], &["abb"]);
        check("a{2}b", "a", &["aab"], &["ab"]);
        check("a(b|c)d", "a", &["abd", "acd"], &["ad"]);
        check("a:1(:x|:y)?", "a:1", &["a:1", "a:1:x"], &["a:1:z"]);
        check("(a:b1|a:b2:.*)", "a:b", &["a:b1", "a:b2:c"], &["a:b2"]);
        check("^a[1]:?b$", "a1", &["a1b", "a1:b"], &["ab"]);
        check(r"a\.b|a\.c", "a.", &[], &["a:b"]);
        check("(?x)a # (\n|b", "", &["a", "b"], &["a "]);
        check("a(|b)", "a", &["a", "ab"], &["b"]);
        check("[^ab]c", "", &["cc"], &["ac"]);
        check("(ab)?c", "", &["c", "abc"], &["ab"]);
        check("A", "A", &["A"], &["a"]);
        check("(?i)a", "", &["A", "a"], &["b"]);
    }

    #[test]
    fn refuses_malformed_and_large_expressions() {
        let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        let long = "a".repeat(EXPRESSION_BYTES_MAX + 1);
        for text in ["(", "a)(b", "[", "*", r"\pL{500}", "(a{1000}){1000}", &deep, &long] {
            assert!(AddressExpression::whole(text).is_err(), "{text}");
        }
        assert!(AddressExpression::anywhere("bank").is_ok_and(|bank| bank.matches("mybank:1")));
    }
}
