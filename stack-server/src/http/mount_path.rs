//! The path below which a part of the API answers.

use std::fmt;

use thiserror::Error;

/// A path of one segment or more, without an end of its own: `/api/generic`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPath(Vec<String>);

/// The refusal of a text that is no path of a mount.
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
    /// Reads a path. It begins with `/api/`, where no ledger of API v1 can be in its way, and does not lead into
    /// another service.
    ///
    /// # Errors
    ///
    /// If it is no such path.
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

    /// Its segments.
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
