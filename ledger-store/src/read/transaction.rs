//! One transaction as of a date, and its properties for filters.

use std::borrow::Cow;
use std::cell::OnceCell;

use ledger_codec::Corrupt;
use ledger_core::{
    AddressRole, DateField, FilterSubject, HoldingVolumes, Metadata, MetadataValue, TextField, Timestamp,
    Transaction, TransactionId,
};
use ledger_index::TransactionRow;
use ledger_journal::Position;
use ledger_journal::entry::{Body, Event, LogRecord, Record, TransactionRecord};

use super::session::{AsOf, Session};
use super::{flows, timeline};
use crate::documents::TransactionDocument;
use crate::error::ReadError;
use crate::lookup;
use crate::query::TransactionView;

/// The changes of a transaction after it was recorded. Each field says which of them count.
#[derive(Debug, Default)]
struct Overlay {
    /// Date of the last change. If the query has a date, this includes changes after it.
    updated_at: Option<Timestamp>,
    /// Id of the transaction that reverts this one, and the date of the revert, if it was reverted as of the date.
    reverted: Option<(u64, Timestamp)>,
    /// The metadata as of the date, if the transaction had changed by then. If the ledger keeps no history of it, the
    /// current metadata.
    metadata: Option<Metadata>,
}

/// A transaction as of a date. Reads only the parts that are used.
pub(crate) struct TransactionSubject<'s> {
    session: &'s Session,
    as_of: &'s AsOf,
    pub(crate) row: TransactionRow,
    recorded: OnceCell<Transaction>,
    overlay: OnceCell<Overlay>,
}

impl<'s> TransactionSubject<'s> {
    /// Creates the subject for a transaction with this row.
    pub(crate) fn new(session: &'s Session, as_of: &'s AsOf, row: TransactionRow) -> Self {
        Self { session, as_of, row, recorded: OnceCell::new(), overlay: OnceCell::new() }
    }

    fn timestamp(&self) -> Timestamp {
        Timestamp::from_micros(self.row.timestamp)
    }

    /// Returns whether the transaction exists as of the date.
    pub(crate) fn is_visible(&self) -> bool {
        self.as_of.shows(self.timestamp())
    }

    fn recorded(&self) -> Result<&Transaction, ReadError> {
        if let Some(transaction) = self.recorded.get() {
            return Ok(transaction);
        }
        let transaction =
            with_record(self.session, &self.row, |log, record| self.session.reader.transaction(log, record))?;
        Ok(self.recorded.get_or_init(|| transaction))
    }

    fn overlay(&self) -> Result<&Overlay, ReadError> {
        if let Some(overlay) = self.overlay.get() {
            return Ok(overlay);
        }
        let document = |until: u64| -> Result<Option<TransactionDocument>, ReadError> {
            lookup::transaction_document(
                self.session.versions(),
                self.session.ledger(),
                self.row.transaction,
                until,
            )
        };
        let AsOf { position, transaction_metadata, .. } = *self.as_of;
        let mut overlay = Overlay::default();
        if let Some(document) = document(transaction_metadata)? {
            overlay.updated_at = Some(document.updated_at);
            overlay.reverted = document.reverted;
            overlay.metadata = Some(document.metadata);
        }
        if transaction_metadata != position {
            // Only the history of metadata is disabled for this ledger. Reverts as of the date are known.
            overlay.reverted = document(position)?.and_then(|document| document.reverted);
        }
        if self.as_of.at.is_some() {
            // A query with a date returns the current `updated_at` nevertheless, as other servers of this API do.
            overlay.updated_at = document(u64::MAX)?.map(|document| document.updated_at);
        }
        Ok(self.overlay.get_or_init(|| overlay))
    }

    /// Returns the metadata as of the date. If the ledger keeps no history of it, returns the current metadata.
    fn metadata_as_of(&self) -> Result<&Metadata, ReadError> {
        match &self.overlay()?.metadata {
            Some(metadata) => Ok(metadata),
            None => Ok(&self.recorded()?.metadata),
        }
    }

    /// Returns the transaction as answers show it.
    pub(crate) fn into_transaction(self) -> Result<Transaction, ReadError> {
        self.recorded()?;
        self.overlay()?;
        let (Some(mut transaction), Some(overlay)) = (self.recorded.into_inner(), self.overlay.into_inner())
        else {
            unreachable!("both were read above");
        };
        if let Some(metadata) = overlay.metadata {
            transaction.metadata = metadata;
        }
        if let Some(updated_at) = overlay.updated_at {
            transaction.updated_at = updated_at;
        }
        transaction.reverted_at = overlay.reverted.map(|(_, at)| at);
        Ok(transaction)
    }

    /// Returns the transaction with the additional data that an answer includes.
    pub(crate) fn into_view(self, effective_volumes: bool) -> Result<TransactionView, ReadError> {
        let effective_volumes =
            if effective_volumes { Some(effective_after(self.session, &self.row)?) } else { None };
        let reverted_by = self.overlay()?.reverted.map(|(by, _)| TransactionId::new(by));
        Ok(TransactionView { transaction: self.into_transaction()?, reverted_by, effective_volumes })
    }
}

impl FilterSubject for TransactionSubject<'_> {
    type Error = ReadError;

    fn any_address(&self, role: AddressRole, test: &dyn Fn(&str) -> bool) -> Result<bool, ReadError> {
        let Ok(passes) = self.recorded()?.any_address(role, test);
        Ok(passes)
    }

    fn any_posting(&self, test: &dyn Fn(&str, &str) -> bool) -> Result<bool, ReadError> {
        let Ok(passes) = self.recorded()?.any_posting(test);
        Ok(passes)
    }

    fn metadata(&self, key: &str) -> Result<Option<Cow<'_, str>>, ReadError> {
        Ok(self.metadata_as_of()?.get(key).map(MetadataValue::as_shown))
    }

    fn metadata_value(&self, key: &str) -> Result<Option<Cow<'_, MetadataValue>>, ReadError> {
        Ok(self.metadata_as_of()?.get(key).map(Cow::Borrowed))
    }

    fn text(&self, field: TextField) -> Result<Option<Cow<'_, str>>, ReadError> {
        if field != TextField::Reference {
            return Ok(None);
        }
        Ok(self.recorded()?.reference.as_ref().map(|reference| Cow::Borrowed(reference.as_str())))
    }

    fn date(&self, field: DateField) -> Result<Option<Timestamp>, ReadError> {
        Ok(match field {
            DateField::Timestamp => Some(self.timestamp()),
            DateField::InsertedAt => Some(Timestamp::from_micros(self.row.date)),
            DateField::UpdatedAt => match self.overlay()?.updated_at {
                Some(updated_at) => Some(updated_at),
                None => Some(Timestamp::from_micros(self.row.date)),
            },
            DateField::RevertedAt => self.overlay()?.reverted.map(|(_, at)| at),
            _ => None,
        })
    }

    fn id(&self) -> Result<Option<u64>, ReadError> {
        Ok(Some(self.row.transaction))
    }

    fn reverted(&self) -> Result<Option<bool>, ReadError> {
        Ok(Some(self.overlay()?.reverted.is_some()))
    }
}

/// Reads the log entry that recorded a transaction, and passes it to `then`.
fn with_record<T>(
    session: &Session,
    row: &TransactionRow,
    then: impl FnOnce(&LogRecord<'_>, &TransactionRecord<'_>) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let position = Position::new(row.position).ok_or(Corrupt { what: "position of a transaction" })?;
    session.reader.with_record(position, |record: &Record<'_>| match &record.body {
        Body::Log(log @ LogRecord { event: Event::Transaction(transaction), .. })
            if (log.ledger, transaction.id) == (row.ledger, row.transaction) =>
        {
            then(log, transaction)
        }
        Body::Log(_) | Body::Document(_) => {
            Err(Corrupt { what: "a log entry that does not record the expected transaction" }.into())
        }
    })
}

/// Returns the row of a transaction, if the id exists.
pub(crate) fn row(session: &Session, id: u64) -> Result<Option<TransactionRow>, ReadError> {
    if id >= session.head.counters.next_transaction {
        return Ok(None);
    }
    Ok(session.transactions().get((session.ledger(), id))?)
}

/// Returns a transaction by its id, if it exists as of the date.
pub(crate) fn find(
    session: &Session,
    id: TransactionId,
    at: Option<Timestamp>,
    effective_volumes: bool,
) -> Result<Option<TransactionView>, ReadError> {
    if effective_volumes {
        session.need_effective_volumes()?;
    }
    let Some(row) = row(session, id.get())? else { return Ok(None) };
    let as_of = timeline::as_of(session, at)?;
    let subject = TransactionSubject::new(session, &as_of, row);
    if subject.is_visible() { subject.into_view(effective_volumes).map(Some) } else { Ok(None) }
}

/// Returns the volumes that a transaction's holdings have right after it when transactions are ordered by effective
/// date. Counts all transactions recorded until now.
fn effective_after(session: &Session, row: &TransactionRow) -> Result<Vec<HoldingVolumes>, ReadError> {
    let touched = with_record(session, row, |_, record| session.reader.touched(record))?;
    if session.backdated().row_count() == 0 {
        return Ok(touched.into_iter().map(|(_, after)| after).collect());
    }
    let until = flows::until_effective(session, row)?;
    let mut volumes = Vec::with_capacity(touched.len());
    for (holding, mut after) in touched {
        after.volumes = flows::of_holding(session, holding, &until)?.volumes();
        volumes.push(after);
    }
    Ok(volumes)
}
