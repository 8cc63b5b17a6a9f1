//! The cause of a failure: a text, and the error of a lower layer.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The reason why an operation of the store failed: a text for people, and the error below it if there is one.
///
/// Cloning is cheap. Two causes are equal if their texts are.
///
/// ```
/// use ledger_store::Cause;
/// let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
/// let cause = Cause::new("cannot write /data/journal", Some(full));
/// assert_eq!(cause.to_string(), "cannot write /data/journal");
/// assert_eq!(cause.io_kind(), Some(std::io::ErrorKind::StorageFull));
/// ```
#[derive(Clone)]
pub struct Cause(Arc<Inner>);

struct Inner {
    text: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Cause {
    /// Creates a cause from a text and the error below it.
    pub fn new<E: Error + Send + Sync + 'static>(text: impl Into<String>, source: Option<E>) -> Self {
        let source = source.map(|source| Box::new(source) as Box<dyn Error + Send + Sync>);
        Self(Arc::new(Inner { text: text.into(), source }))
    }

    /// Creates a cause with the text of an error, which stays its source.
    pub(crate) fn of<E: Error + Send + Sync + 'static>(error: E) -> Self {
        Self::new(error.to_string(), Some(error))
    }

    /// Creates a cause from an error, which stays its source. The text begins with the part of the store, for example
    /// "index".
    pub(crate) fn within<E: Error + Send + Sync + 'static>(part: &str, error: E) -> Self {
        Self::new(format!("{part}: {error}"), Some(error))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the kind of the operating system's error that caused the failure, if it was one.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        let mut error = self.source();
        while let Some(current) = error {
            if let Some(error) = current.downcast_ref::<io::Error>() {
                return Some(error.kind());
            }
            error = current.source();
        }
        None
    }

    /// Returns the error below.
    pub fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<String> for Cause {
    fn from(text: String) -> Self {
        Self(Arc::new(Inner { text, source: None }))
    }
}

impl From<&str> for Cause {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Cause {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_tuple("Cause");
        debug.field(&self.as_str());
        if let Some(source) = &self.0.source {
            debug.field(source);
        }
        debug.finish()
    }
}
