//! The report of a verification.

use std::fmt;

use ledger_core::write_json_text;
use ledger_index::IndexError;

use crate::cause::Cause;
use crate::violation::{Violation, ViolationCode};

/// The findings of [`Store::verify`](crate::Store::verify).
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyReport {
    /// The violations, in the order in which they were found.
    pub violations: Vec<Violation>,
    /// Number of journal entries that were read.
    pub entries: u64,
    /// Number of ledgers that these entries belong to.
    pub ledgers: u32,
    /// The chain hash up to the last entry that was read, in hexadecimal digits. Compare it with one that was kept
    /// elsewhere.
    pub head: String,
    /// True if everything was examined. Damage that prevents further checks, and a thousand violations, end a
    /// verification early.
    pub complete: bool,
    /// The duration in seconds.
    pub seconds: f64,
}

impl VerifyReport {
    /// Returns whether everything was examined without findings.
    pub fn is_clean(&self) -> bool {
        self.complete && self.violations.is_empty()
    }

    /// Returns whether stored data is damaged. A disk error alone does not count as damage.
    pub fn is_damaged(&self) -> bool {
        self.violations.iter().any(|violation| violation.code != ViolationCode::StorageError)
    }

    /// Returns the report as JSON: one line for each violation, and a summary line.
    pub fn to_json_lines(&self) -> String {
        let mut out = Vec::new();
        for violation in &self.violations {
            out.extend_from_slice(br#"{"kind":"violation","code":"#);
            write_json_text(violation.code.as_str(), &mut out);
            if let Some(ledger) = &violation.ledger {
                out.extend_from_slice(br#","ledger":"#);
                write_json_text(ledger.as_str(), &mut out);
            }
            if let Some(position) = violation.position {
                out.extend_from_slice(format!(r#","entry":{position}"#).as_bytes());
            }
            out.extend_from_slice(br#","detail":"#);
            write_json_text(&violation.detail, &mut out);
            out.extend_from_slice(b"}\n");
        }
        out.extend_from_slice(
            format!(
                "{{\"kind\":\"summary\",\"entries\":{},\"ledgers\":{},\"head\":\"{}\",\"violations\":{},\
                 \"complete\":{},\"seconds\":{:.3}}}\n",
                self.entries,
                self.ledgers,
                self.head,
                self.violations.len(),
                self.complete,
                self.seconds
            )
            .as_bytes(),
        );
        String::from_utf8(out).expect("only UTF-8 text is written to it")
    }
}

/// The reason why a verification could not begin. Damage, and a disk that fails later, are part of the report and not
/// of this error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// The second index, with which the store's index is compared, cannot be created or removed: the attempted access
    /// and its error.
    Workspace(Cause),
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace(cause) => {
                write!(f, "a second index for the comparison cannot be made: {cause}")
            }
        }
    }
}

impl std::error::Error for VerifyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Workspace(cause) => cause.source(),
        }
    }
}

impl VerifyError {
    /// Returns whether a verification may begin later, because the disk refused an access.
    ///
    /// ```
    /// use ledger_store::VerifyError;
    /// assert!(VerifyError::Workspace("no space left on device".into()).is_retryable());
    /// ```
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Workspace(_) => true,
        }
    }
}

impl From<IndexError> for VerifyError {
    fn from(error: IndexError) -> Self {
        Self::Workspace(Cause::of(error))
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::LedgerName;

    use super::*;

    #[test]
    fn a_report_is_one_json_line_for_each_finding() {
        let report = VerifyReport {
            violations: vec![Violation {
                code: ViolationCode::VolumeMismatch,
                ledger: Some(LedgerName::parse("main").unwrap()),
                position: Some(7),
                detail: "a \"quoted\" text".to_owned(),
            }],
            entries: 9,
            ledgers: 1,
            head: "ab".to_owned(),
            complete: true,
            seconds: 1.5,
        };
        assert_eq!(
            report.to_json_lines(),
            "{\"kind\":\"violation\",\"code\":\"VOLUME_MISMATCH\",\"ledger\":\"main\",\"entry\":7,\
             \"detail\":\"a \\\"quoted\\\" text\"}\n\
             {\"kind\":\"summary\",\"entries\":9,\"ledgers\":1,\"head\":\"ab\",\"violations\":1,\
             \"complete\":true,\"seconds\":1.500}\n"
        );
        assert!(!report.is_clean());
    }
}
