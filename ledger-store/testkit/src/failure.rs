//! The reasons why a run of a campaign failed.

use std::error::Error;
use std::fmt;
use std::io;

use ledger_journal::JournalError;
use ledger_store::{OpenError, ReadError, VerifyError, WriteError};

/// The reason why a run failed: the store broke a guarantee, or returned an error where it must not.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The store differs from the model, or broke a guarantee. The text names the found and the expected value.
    Difference(String),
    /// A store did not open.
    Open(OpenError),
    /// A read failed.
    Read(ReadError),
    /// A write, or closing the store, failed.
    Write(WriteError),
    /// A store could not be verified.
    Verify(VerifyError),
    /// The journal failed.
    Journal(JournalError),
    /// The disk failed.
    Disk(io::Error),
    /// A failure, and the circumstances under which it occurred.
    During {
        /// The circumstances, such as the step or the ledger.
        circumstances: String,
        /// The failure.
        failure: Box<Failure>,
    },
}

impl Failure {
    /// Adds the circumstances under which the failure occurred.
    #[must_use]
    pub fn during(self, circumstances: impl Into<String>) -> Self {
        Self::During { circumstances: circumstances.into(), failure: Box::new(self) }
    }

    /// Returns whether an answer was an error that names damage, as a store must return it if its files are damaged.
    pub fn names_damage(&self) -> bool {
        // A difference shows the answer in `Debug` form, an error in `Display` form.
        let text = self.to_string();
        text.contains("Err(Damaged(") || text.contains("damaged: ")
    }
}

/// Prints the failure first, then its circumstances in separate lines, the closest first.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Difference(text) => f.write_str(text),
            Self::Open(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
            Self::Verify(error) => error.fmt(f),
            Self::Journal(error) => error.fmt(f),
            Self::Disk(error) => error.fmt(f),
            Self::During { circumstances, failure } => write!(f, "{failure}\n  {circumstances}"),
        }
    }
}

/// The text of an error is that of its cause, so its source is the source of the cause.
impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Difference(_) => None,
            Self::Open(error) => error.source(),
            Self::Read(error) => error.source(),
            Self::Write(error) => error.source(),
            Self::Verify(error) => error.source(),
            Self::Journal(error) => error.source(),
            Self::Disk(error) => error.source(),
            Self::During { failure, .. } => failure.source(),
        }
    }
}

/// Creates a failure from each kind of error.
macro_rules! from_errors {
    ($($error:ty => $variant:ident),* $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from_errors! {
    OpenError => Open,
    ReadError => Read,
    WriteError => Write,
    VerifyError => Verify,
    JournalError => Journal,
    io::Error => Disk,
}

impl From<String> for Failure {
    fn from(difference: String) -> Self {
        Self::Difference(difference)
    }
}

impl From<&str> for Failure {
    fn from(difference: &str) -> Self {
        Self::Difference(difference.to_owned())
    }
}

/// Failures are equal if their texts are equal, because not every disk error can be compared.
impl PartialEq for Failure {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}
