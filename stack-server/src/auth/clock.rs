//! The time as tokens have it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since the epoch. A clock before it makes every token expired in no way; such a machine has other worries.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
