//! Byte counters that differ from the memory in use.

use std::fmt;

/// A byte counter that differs from the data. Memory limits rely on these counters.
#[derive(Debug)]
pub(crate) struct Miscount {
    subject: &'static str,
    counted: usize,
    held: usize,
}

impl Miscount {
    /// Compares a counter with the actual number of bytes.
    ///
    /// # Errors
    ///
    /// Both numbers, if they differ.
    pub(super) fn check(subject: &'static str, counted: usize, held: usize) -> Result<(), Self> {
        if counted == held { Ok(()) } else { Err(Self { subject, counted, held }) }
    }
}

impl fmt::Display for Miscount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, counted, held } = self;
        write!(f, "{counted} bytes of {subject} are counted, {held} are held")
    }
}

impl std::error::Error for Miscount {}
