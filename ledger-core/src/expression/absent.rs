//! The place of compiled expressions in a build without the feature `expressions`.

use std::convert::Infallible;

use smol_str::SmolStr;

use super::ExpressionError;

/// A compiled expression. This build has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program(Infallible);

impl Program {
    /// Refuses every text.
    pub(crate) fn compile(_text: &str, _bytes_max: usize) -> Result<Self, ExpressionError> {
        let reason = "this build has no regular expressions: it lacks the feature `expressions`";
        Err(ExpressionError(reason.to_owned()))
    }

    pub(crate) fn is_match(&self, _text: &str) -> bool {
        match self.0 {}
    }

    pub(super) fn literal_prefix(_text: &str) -> SmolStr {
        SmolStr::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_feature_that_is_missing() {
        let error = Program::compile("users:.*", 1_024).unwrap_err().to_string();
        assert!(error.contains("`expressions`"), "{error}");
    }
}
