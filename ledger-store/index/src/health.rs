//! Defects of an index file that its readers and writers have noticed.

use std::fmt;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::error::IndexError;
use super::gate::Gate;

/// The reason why an index file cannot be used as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The disk refused an access. redb refuses all further accesses until the file is opened anew.
    Refused {
        /// The refused access.
        reason: String,
        /// True if the disk was full.
        is_full: bool,
    },
    /// A sync failed, so it is unknown which of the visible bytes are on disk. The file must be replaced.
    Unsynced(String),
    /// Stored bytes differ from those that were written. The file must be replaced.
    Damaged(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { reason, .. } | Self::Damaged(reason) => formatter.write_str(reason),
            Self::Unsynced(reason) => write!(formatter, "a sync of the index failed: {reason}"),
        }
    }
}

/// A callback for recorded faults.
type FaultCallback = Box<dyn Fn() + Send + Sync>;

/// The health of one opened file, shared by its snapshots.
#[derive(Default)]
pub(super) struct Health {
    fault: Mutex<Option<Fault>>,
    /// True if a flush failed halfway. The content beyond the last flush is then unknown.
    is_spoilt: AtomicBool,
    tell: OnceLock<FaultCallback>,
    pub(super) gate: Arc<Gate>,
}

impl Health {
    /// Returns the recorded defect, or a refusal of the disk that no access reported.
    pub(super) fn fault(&self) -> Option<Fault> {
        let noted = self.fault.lock().clone();
        noted.or_else(|| {
            let refusal = self.gate.refusal()?;
            let reason = format!("the index cannot be accessed: {}", refusal.reason);
            Some(if self.gate.sync_failed() {
                Fault::Unsynced(reason)
            } else {
                Fault::Refused { reason, is_full: is_full(refusal.kind) }
            })
        })
    }

    /// Calls `tell` whenever a fault is recorded from now on. Only the first call of this function counts.
    pub(super) fn tell(&self, tell: impl Fn() + Send + Sync + 'static) {
        let _ = self.tell.set(Box::new(tell));
    }

    pub(super) fn record_failed_flush(&self) {
        self.is_spoilt.store(true, Relaxed);
    }

    pub(super) fn has_failed_flush(&self) -> bool {
        self.is_spoilt.load(Relaxed)
    }

    /// Records what the error in a result reveals about the file, and returns the result.
    #[inline]
    pub(super) fn note<T>(&self, result: Result<T, IndexError>) -> Result<T, IndexError> {
        result.map_err(|error| {
            let error = self.cause_of(error);
            self.note_error(&error);
            error
        })
    }

    /// Returns the cause of an error. After a failed access redb refuses all others without repeating the cause. If
    /// the disk refused nothing, the cause was damage.
    #[cold]
    fn cause_of(&self, error: IndexError) -> IndexError {
        let is_later =
            matches!(&error, IndexError::Storage(error) if matches!(**error, redb::Error::PreviousIo));
        if is_later && self.gate.refusal().is_none() {
            return IndexError::damaged("the file", "an earlier access met damage");
        }
        error
    }

    /// Records what an error reveals about the file. Damage outweighs a refusal of the disk.
    #[cold]
    pub(super) fn note_error(&self, error: &IndexError) {
        self.note_fault(match error {
            IndexError::OtherFormat => return,
            error if !error.is_of_the_disk() => Fault::Damaged(error.to_string()),
            error if self.gate.sync_failed() => Fault::Unsynced(error.to_string()),
            error => Fault::Refused { reason: error.to_string(), is_full: is_for_lack_of_room(error) },
        });
    }

    /// Records a fault, unless a worse one is recorded.
    pub(super) fn note_fault(&self, found: Fault) {
        let mut fault = self.fault.lock();
        let is_worse = match &*fault {
            None => true,
            Some(Fault::Refused { .. }) => !matches!(found, Fault::Refused { .. }),
            Some(Fault::Unsynced(_) | Fault::Damaged(_)) => false,
        };
        if is_worse {
            *fault = Some(found);
            drop(fault);
            if let Some(tell) = self.tell.get() {
                tell();
            }
        }
    }
}

fn is_for_lack_of_room(error: &IndexError) -> bool {
    let IndexError::Storage(error) = error else { return false };
    matches!(&**error, redb::Error::Io(error) if is_full(error.kind()))
}

fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn refused(kind: ErrorKind) -> IndexError {
        IndexError::Storage(Box::new(redb::Error::Io(io::Error::from(kind))))
    }

    #[test]
    fn a_later_failure_without_a_refusal_is_damage() {
        let later = || Err::<(), _>(IndexError::Storage(Box::new(redb::Error::PreviousIo)));
        let health = Health::default();
        let named = health.note(later()).expect_err("it stays an error");
        assert!(matches!(named, IndexError::Damaged { .. }), "{named}");
        assert!(matches!(health.fault(), Some(Fault::Damaged(_))));
        // If the disk did refuse an access, that implies nothing about the stored data.
        let health = Health::default();
        let refused = || Err::<(), _>(io::Error::from(ErrorKind::PermissionDenied));
        health.gate.pass(refused).expect_err("it is refused");
        assert!(health.note(later()).expect_err("it stays an error").is_of_the_disk());
    }

    #[test]
    fn damage_counts_more_than_a_refusal() {
        let health = Health::default();
        let told = Arc::new(AtomicUsize::new(0));
        let telling = told.clone();
        health.tell(move || {
            telling.fetch_add(1, Relaxed);
        });
        health.note_error(&IndexError::OtherFormat);
        assert_eq!(health.fault(), None);
        health.note_error(&refused(ErrorKind::StorageFull));
        assert!(matches!(health.fault(), Some(Fault::Refused { is_full: true, .. })));
        health.note_error(&refused(ErrorKind::Other));
        assert!(matches!(health.fault(), Some(Fault::Refused { is_full: true, .. })), "the first one stays");
        health.note_error(&IndexError::damaged("accounts", "a value"));
        assert!(matches!(health.fault(), Some(Fault::Damaged(_))));
        health.note_error(&refused(ErrorKind::Other));
        assert!(matches!(health.fault(), Some(Fault::Damaged(_))));
        assert_eq!(told.load(Relaxed), 2, "each time it became worse");
    }
}
