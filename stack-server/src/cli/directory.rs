//! Checks a data directory before a command opens it: its content, and its mode if the command writes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::log::{self, Level};

/// Other users may write into a directory.
#[derive(Debug, Error)]
#[error(
    "others may write into {path} and replace what is in it: make it the owner's alone (chmod go-w), or pass \
     --allow-shared-directory",
    path = .0.display()
)]
pub struct SharedDirectory(PathBuf);

/// Returns the error for a directory without a store.
pub(super) fn no_store(directory: &Path) -> String {
    format!("{} is not a store: give the data directory of a server", directory.display())
}

/// Returns whether the value of `STACK_ALLOW_SHARED_DIRECTORY` allows sharing.
pub(super) fn is_allowed_by(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "t" | "true")
}

/// Refuses a directory if its group or all users may change it: they could replace files that only the owner should
/// change. If the operator allows sharing, only logs a warning. Accepts a missing directory.
pub(super) fn check(directory: &Path, is_sharing_allowed: bool) -> Result<(), SharedDirectory> {
    let is_shared = std::fs::metadata(directory).is_ok_and(|found| found.mode() & 0o022 != 0);
    if !is_shared {
        return Ok(());
    }
    if !is_sharing_allowed {
        return Err(SharedDirectory(directory.to_owned()));
    }
    let reason = "others may write into the data directory: they can replace what is in it";
    log::event(Level::Warning, "exposed", &[("data", &directory.display()), ("reason", &reason)]);
    Ok(())
}
