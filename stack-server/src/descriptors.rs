//! How many files and connections the operating system lets this process have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open descriptors as far as the process may: many systems begin with 1,024 and allow much more.
pub fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Some systems refuse their own maximum. The limit then stays as it was, and connections obey it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Maximum number of descriptors of this process now; `None` if there is no limit.
pub(crate) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
