//! A count of bytes that is not what is held.

use std::fmt;

/// The counted and the held bytes of something, where they differ. Memory is bounded by the counts.
#[derive(Debug)]
pub(crate) struct Miscount {
    subject: &'static str,
    counted: usize,
    held: usize,
}

impl Miscount {
    /// Compares a count with the bytes that are held.
    ///
    /// # Errors
    ///
    /// Both, if they differ.
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
