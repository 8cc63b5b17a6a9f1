//! Values that questions to the model take and give.

use std::collections::BTreeMap;

use ledger_values::{AccountAddress, Asset, Metadata, Timestamp, Volumes};

/// Time axis of a move: the date that decides whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveDate {
    /// The effective date of the transaction, which the caller chose.
    Effective,
    /// The insertion date of the transaction.
    Insertion,
}

/// An interval of dates that selects moves. Both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The earliest date, or `None` without a limit.
    pub start: Option<Timestamp>,
    /// The latest date, or `None` without a limit.
    pub end: Option<Timestamp>,
    /// The date of a move that must be in the interval.
    pub by: MoveDate,
}

impl Window {
    /// The window that selects every move.
    pub const ALL: Self = Self { start: None, end: None, by: MoveDate::Effective };

    /// Makes the window of moves up to a date, or of all moves.
    pub const fn until(end: Option<Timestamp>, by: MoveDate) -> Self {
        Self { start: None, end, by }
    }

    pub(super) fn holds(&self, effective: Timestamp, insertion: Timestamp) -> bool {
        let date = match self.by {
            MoveDate::Effective => effective,
            MoveDate::Insertion => insertion,
        };
        self.start.is_none_or(|start| start <= date) && self.end.is_none_or(|end| date <= end)
    }
}

/// An account now or at a date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAccount {
    /// The address of the account.
    pub address: AccountAddress,
    /// The metadata at the date.
    pub metadata: Metadata,
    /// The earliest effective date of the account's transactions, or date of a metadata write. It is the same
    /// for every date of the question.
    pub first_usage: Timestamp,
    /// The insertion date of the account.
    pub insertion_date: Timestamp,
    /// Date of the last metadata write, or of the last move of the first usage. Initially the insertion date.
    pub updated_at: Timestamp,
    /// Volumes of the moves recorded up to the date.
    pub volumes: BTreeMap<Asset, Volumes>,
    /// Volumes of the moves with an effective date up to the date.
    pub effective_volumes: BTreeMap<Asset, Volumes>,
}
