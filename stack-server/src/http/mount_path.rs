//! The configurable path of the generic connector API.

use std::fmt;

use thiserror::Error;

/// The path of the generic connector API, such as `/api/generic`. It has at least two segments and no trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPath(Vec<String>);

/// The error of [`MountPath::parse`]. It contains the refused text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no path such as /api/generic: two segments or more of letters, digits, - and _, the first of which is api"
)]
pub struct MountPathError(String);

impl fmt::Display for MountPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| write!(f, "/{segment}"))
    }
}

impl Default for MountPath {
    fn default() -> Self {
        Self(vec!["api".to_owned(), "generic".to_owned()])
    }
}

impl MountPath {
    /// Parses a path. Its first segment must be `api`, which API v1 does not accept as the name of a ledger at the
    /// root. Its second segment must not be that of another service.
    ///
    /// # Errors
    ///
    /// Fails if the path breaks one of these rules, or if a segment is empty or contains other characters than ASCII
    /// letters, digits, `-` and `_`.
    pub fn parse(text: &str) -> Result<Self, MountPathError> {
        let is_segment = |segment: &&str| {
            !segment.is_empty()
                && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let segments: Vec<&str> = text.strip_prefix('/').unwrap_or_default().split('/').collect();
        let is_free = !matches!(segments.get(1), None | Some(&("ledger" | "payments" | "auth")));
        if segments[0] != "api" || !is_free || !segments.iter().all(is_segment) {
            return Err(MountPathError(text.to_owned()));
        }
        Ok(Self(segments.into_iter().map(str::to_owned).collect()))
    }

    /// Returns the segments of the path.
    pub(crate) fn segments(&self) -> &[String] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_leads_into_no_other_service() {
        assert_eq!(MountPath::parse("/api/generic"), Ok(MountPath::default()));
        for path in ["/api/bank", "/api/x/y-1"] {
            assert!(MountPath::parse(path).is_ok(), "{path}");
        }
        for path in [
            "",
            "/",
            "api/x",
            "/api",
            "/api/",
            "/api/x/",
            "/bank",
            "/api/payments/x",
            "/api/auth",
            "/api/a b",
        ] {
            assert!(MountPath::parse(path).is_err(), "{path}");
        }
    }
}
