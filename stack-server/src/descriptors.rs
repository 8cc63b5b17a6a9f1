//! The limit of open files and connections of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open descriptors to the maximum for this process. Many systems start with 1,024 and allow many
/// more.
pub fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Some systems refuse their own maximum. The limit then remains unchanged, and the server limits its connections
    // accordingly.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Returns the current maximum number of descriptors of this process, or `None` if there is no limit.
pub(crate) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
