//! Checks a script against the language version that its `@version` comment names.

use super::Checker;
use crate::diagnostic::{DiagnosticKind, Version};
use crate::options::Flag;
use crate::span::Span;

impl Checker<'_> {
    pub(super) fn read_comments(&mut self, comments: &[Span]) {
        for comment in comments {
            let Some(text) = comment.of(self.text).strip_prefix("// ") else { continue };
            if let Some(version) = text.strip_prefix("@version ") {
                self.version = parse_version(version).or(self.version);
            } else if let Some(flag) = text.strip_prefix("@feature_flag ").and_then(Flag::from_name) {
                self.flags = self.flags.with(flag);
            }
        }
    }

    /// Reports a construct that is newer than the version of the script. Returns whether it was.
    pub(super) fn require(&mut self, span: Span, required: Version) -> bool {
        match self.version {
            Some(got) if got < required => {
                self.report(span, DiagnosticKind::VersionMismatch { got, required });
                false
            }
            _ => true,
        }
    }

    pub(super) fn feature(&mut self, span: Span, flag: Flag) {
        let since = match flag {
            Flag::AssetScaling => Version::Interpreter(0, 0, 24),
            Flag::AssetColors => Version::Interpreter(0, 0, 17),
            Flag::GetAssetFunction | Flag::GetAmountFunction => Version::Interpreter(0, 0, 16),
            Flag::OverdraftFunction
            | Flag::OneOf
            | Flag::AccountInterpolation
            | Flag::MidScriptFunctionCall => Version::Interpreter(0, 0, 15),
        };
        if self.require(span, since) && self.version.is_some() && !self.flags.has(flag) {
            self.report(span, DiagnosticKind::ExperimentalFeature { flag });
        }
    }
}

/// Parses `machine`, or `interpreter` and three numbers.
fn parse_version(text: &str) -> Option<Version> {
    let text = text.trim_end();
    if text == "machine" {
        return Some(Version::Machine);
    }
    let mut numbers = text.strip_prefix("interpreter ")?.splitn(3, '.').map(|number| number.parse().ok());
    Some(Version::Interpreter(numbers.next()??, numbers.next()??, numbers.next()??))
}
