//! Lists logs by id, and reads single log entries.

use std::borrow::Cow;
use std::cell::OnceCell;

use ledger_codec::Corrupt;
use ledger_core::{
    Condition, DateField, FilterSubject, HashLogs, LogEntry, LogPayload, TextField, Timestamp, Transaction,
};
use ledger_index::LogRow;
use ledger_journal::Position;
use ledger_journal::entry::{Body, Event, LogRecord, Record};

use super::accounts::conjuncts;
use super::effective::LaterTransactions;
use super::page::PageBuilder;
use super::plan::{dates_where, narrow_ids};
use super::session::{AsOf, Session};
use super::streams::Span;
use super::transaction::TransactionSubject;
use super::{effective, hash, timeline, transaction};
use crate::error::ReadError;
use crate::hashes::ChainId;
use crate::lookup::missing_in;
use crate::query::{Direction, LogHashes, LogQuery, LogView, Page};

/// A range that contains no id.
const NO_IDS: Span<u64> = Span { from: 1, to: 0 };

/// A log as the subject of a filter. Its entry is read from the journal only if a condition or the page needs it.
struct LogSubject<'s> {
    session: &'s Session,
    row: LogRow,
    entry: OnceCell<(LogEntry, ImportedForm)>,
}

impl LogSubject<'_> {
    fn entry(&self) -> Result<&LogEntry, ReadError> {
        if let Some((entry, _)) = self.entry.get() {
            return Ok(entry);
        }
        let entry = entry_with_form(self.session, &self.row)?;
        Ok(&self.entry.get_or_init(|| entry).0)
    }

    fn into_entry(self) -> Result<(LogEntry, ImportedForm), ReadError> {
        match self.entry.into_inner() {
            Some(entry) => Ok(entry),
            None => entry_with_form(self.session, &self.row),
        }
    }
}

impl FilterSubject for LogSubject<'_> {
    type Error = ReadError;

    fn text(&self, field: TextField) -> Result<Option<Cow<'_, str>>, ReadError> {
        if field != TextField::Type {
            return Ok(None);
        }
        Ok(Some(Cow::Borrowed(self.entry()?.payload.type_name())))
    }

    fn date(&self, field: DateField) -> Result<Option<Timestamp>, ReadError> {
        Ok(match field {
            DateField::Date => Some(Timestamp::from_micros(self.row.date)),
            DateField::Timestamp => self.entry()?.date(field).unwrap_or_default(),
            _ => None,
        })
    }

    fn id(&self) -> Result<Option<u64>, ReadError> {
        Ok(Some(self.row.log))
    }
}

/// Returns the entry of an existing log.
pub(crate) fn entry_of(session: &Session, log: u64) -> Result<LogEntry, ReadError> {
    let row = session
        .logs()
        .get((session.ledger(), log))?
        .ok_or_else(|| missing_in(&session.reader.view.index, "a log"))?;
    session.reader.entry_of_row(&row)
}

/// Returns a page of logs.
pub(crate) fn list(session: &Session, query: &LogQuery) -> Result<Page<LogView>, ReadError> {
    let mut span = span(session, query)?;
    let (direction, beyond) = query.page.walk();
    let beyond = beyond.map(|id| id.get());
    match (direction, beyond) {
        (_, None) => {}
        (Direction::Ascending, Some(beyond)) => match beyond.checked_add(1) {
            Some(from) => span.raise_from(from),
            None => span = NO_IDS,
        },
        (Direction::Descending, Some(beyond)) => match beyond.checked_sub(1) {
            Some(to) => span.lower_to(to),
            None => span = NO_IDS,
        },
    }
    let mut page = PageBuilder::new(&query.page, session.page_bytes);
    if !span.is_empty() {
        let (from, to) = ((session.ledger(), span.from), (session.ledger(), span.to));
        for row in session.logs().cursor(from, to, direction.way()) {
            session.meter.row()?;
            let subject = LogSubject { session, row: row?, entry: OnceCell::new() };
            if !query.filter.matches(&subject)? {
                continue;
            }
            if page.is_full() {
                page.has_more();
                break;
            }
            let position = subject.row.position;
            let (mut entry, form) = subject.into_entry()?;
            let mut reverted = reverted_by(session, &entry, position)?;
            if let (Some(original), Some(updated_at)) = (&mut reverted, form.original_updated_at) {
                original.updated_at = updated_at;
            }
            if form.volumes {
                effective::add_effective_volumes(session, &mut entry.payload, LaterTransactions::Anywhere)?;
            } else if let LogPayload::NewTransaction { transaction, .. }
            | LogPayload::RevertedTransaction { transaction, .. } = &mut entry.payload
            {
                transaction.post_commit_volumes.clear();
            }
            page.push(LogView { entry, hash: None, reverted });
        }
    }
    let mut page = page.finish(&query.page);
    if session.head.info.features.hash_logs == HashLogs::Sync {
        let legacy = ChainId::legacy(session.ledger());
        let id = match query.hashes {
            LogHashes::Legacy if legacy.is_kept(session.head.info.features) => legacy,
            LogHashes::Legacy | LogHashes::Wire => ChainId::wire(session.ledger()),
        };
        put_hashes(session, id, &mut page.items)?;
    }
    Ok(page)
}

/// Returns the range of ids that a filter can select.
pub(super) fn span(session: &Session, query: &LogQuery) -> Result<Span<u64>, ReadError> {
    let mut ids = Span { from: 0, to: u64::MAX };
    let mut dates = Span { from: i64::MIN, to: i64::MAX };
    conjuncts(query.filter.root(), &mut |condition| match condition {
        Condition::Id { comparison, value } => narrow_ids(&mut ids, *comparison, value),
        Condition::Date { field: DateField::Date, comparison, value } => {
            let allowed = dates_where(*comparison, *value);
            dates.raise_from(allowed.from);
            dates.lower_to(allowed.to);
        }
        _ => {}
    });
    if dates.is_empty() {
        return Ok(NO_IDS);
    }
    if let Some(before) = dates.from.checked_sub(1) {
        ids.raise_from(timeline::first_log_after(session, Timestamp::from_micros(before))?);
    }
    if dates.to < i64::MAX {
        match timeline::log_at(session, Timestamp::from_micros(dates.to))? {
            Some(last) => ids.lower_to(last.log),
            None => return Ok(NO_IDS),
        }
    }
    Ok(ids)
}

/// Returns the entry of a log, and the form in which a list returns it.
fn entry_with_form(session: &Session, row: &LogRow) -> Result<(LogEntry, ImportedForm), ReadError> {
    let position = Position::new(row.position).ok_or(Corrupt { what: "position of a log" })?;
    session
        .reader
        .with_record(position, |record| Ok((session.reader.log_entry(record)?, ImportedForm::of(record))))
}

/// For a revert, returns the original transaction as it was right after the revert.
pub(super) fn reverted_by(
    session: &Session,
    entry: &LogEntry,
    position: u64,
) -> Result<Option<Box<Transaction>>, ReadError> {
    let LogPayload::RevertedTransaction { reverted, .. } = &entry.payload else { return Ok(None) };
    let row = transaction::row(session, reverted.get())?
        .ok_or_else(|| missing_in(&session.reader.view.index, "a reverted transaction"))?;
    let as_of = AsOf { at: None, position, account_metadata: position, transaction_metadata: position };
    let subject = TransactionSubject::new(session, &as_of, row);
    subject.into_transaction().map(|transaction| Some(Box::new(transaction)))
}

/// Adds the hashes of a chain to logs. Computes them in ascending order of id, whatever the order of the page.
fn put_hashes(session: &Session, id: ChainId, logs: &mut [LogView]) -> Result<(), ReadError> {
    let mut order: Vec<usize> = (0..logs.len()).collect();
    order.sort_unstable_by_key(|index| logs[*index].entry.id);
    let entries: Vec<&LogEntry> = order.iter().map(|index| &logs[*index].entry).collect();
    let hashes = hash::hashes_of(session, id, &entries)?;
    for (index, hash) in order.into_iter().zip(hashes) {
        logs[index].hash = Some(*hash.as_bytes());
    }
    Ok(())
}

/// The form in which a list returns a log. An imported log keeps the form in which it came.
struct ImportedForm {
    /// For a revert: the date of the last change of the original transaction, if the imported log stated one that
    /// differs from its own date.
    original_updated_at: Option<Timestamp>,
    /// True if the reader wants the log with its volumes. An imported log may have none.
    volumes: bool,
}

impl ImportedForm {
    fn of(record: &Record<'_>) -> Self {
        match &record.body {
            Body::Log(LogRecord { event: Event::Transaction(transaction), .. }) => Self {
                original_updated_at: transaction.original_updated_at,
                volumes: !transaction.volumes_omitted,
            },
            _ => Self { original_updated_at: None, volumes: true },
        }
    }
}
