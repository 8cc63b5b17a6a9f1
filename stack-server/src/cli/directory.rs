//! The mode of a directory that a command opens to write.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::log::{self, Level};

/// Others may write into a directory.
#[derive(Debug, Error)]
#[error(
    "others may write into {path} and replace what is in it: make it the owner's alone (chmod go-w), or pass \
     --allow-shared-directory",
    path = .0.display()
)]
pub struct SharedDirectory(PathBuf);

/// Tells whether the value of `STACK_ALLOW_SHARED_DIRECTORY` allows sharing.
pub(super) fn is_allowed_by(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "1" | "t" | "true")
}

/// Refuses a directory whose mode lets its group or everybody change it, unless the operator allows that: they can
/// replace the files in it, although these are for their owner alone. A directory that is absent is made for its owner.
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
