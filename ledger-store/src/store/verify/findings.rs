//! Collects the findings of a verification.

use std::collections::BTreeMap;

use ledger_core::LedgerName;
use ledger_index::IndexError;

use crate::error::{OpenError, ReadError};
use crate::violation::{Violation, ViolationCode};

/// Maximum number of violations that are collected.
const VIOLATIONS_MAX: usize = 1_000;

/// The findings so far.
pub(super) struct Findings {
    pub(super) violations: Vec<Violation>,
    pub(super) complete: bool,
    pub(super) names: BTreeMap<u32, LedgerName>,
}

/// Signals that the verification cannot usefully continue.
pub(super) struct Stop;

impl Findings {
    pub(super) fn new() -> Self {
        Self { violations: Vec::new(), complete: true, names: BTreeMap::new() }
    }

    pub(super) fn push(&mut self, violation: Violation) -> Result<(), Stop> {
        self.violations.push(violation);
        if self.violations.len() < VIOLATIONS_MAX {
            return Ok(());
        }
        self.complete = false;
        Err(Stop)
    }

    pub(super) fn add(
        &mut self,
        code: ViolationCode,
        ledger: Option<u32>,
        position: Option<u64>,
        detail: String,
    ) -> Result<(), Stop> {
        let ledger = ledger.and_then(|ledger| self.names.get(&ledger).cloned());
        self.push(Violation { code, ledger, position, detail })
    }

    /// Records a defect that prevents part of the verification.
    pub(super) fn obstacle(&mut self, code: ViolationCode, detail: String) -> Result<(), Stop> {
        self.complete = false;
        self.add(code, None, None, detail)
    }

    pub(super) fn index_error(&mut self, error: &IndexError) -> Result<(), Stop> {
        let is_of_the_disk = error.is_of_the_disk();
        let code = if is_of_the_disk { ViolationCode::StorageError } else { ViolationCode::RecordChecksum };
        self.obstacle(code, error.to_string())
    }

    pub(super) fn read_error(&mut self, error: &ReadError) -> Result<(), Stop> {
        let code = match error {
            ReadError::Io { .. } => ViolationCode::StorageError,
            _ => ViolationCode::RecordChecksum,
        };
        self.obstacle(code, error.to_string())
    }

    /// Records why the journal could not be replayed.
    pub(super) fn replay_error(&mut self, error: &OpenError) -> Result<(), Stop> {
        match error {
            OpenError::Damaged(cause) => self.obstacle(ViolationCode::FileFormat, cause.to_string()),
            error => self.obstacle(ViolationCode::StorageError, error.to_string()),
        }
    }
}
