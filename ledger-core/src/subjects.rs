//! Filters on transactions and log entries in memory.

use std::borrow::Cow;
use std::convert::Infallible;

use crate::condition::{AddressRole, DateField, TextField};
use crate::filter::FilterSubject;
use crate::log::LogEntry;
use crate::wire::LegacyLog;
use ledger_values::{MetadataValue, Timestamp, Transaction};

impl FilterSubject for Transaction {
    type Error = Infallible;

    fn any_address(&self, role: AddressRole, test: &dyn Fn(&str) -> bool) -> Result<bool, Infallible> {
        Ok(self.postings.iter().any(|posting| {
            let source = matches!(role, AddressRole::Any | AddressRole::Source);
            let destination = matches!(role, AddressRole::Any | AddressRole::Destination);
            (source && test(posting.source.as_str())) || (destination && test(posting.destination.as_str()))
        }))
    }

    fn any_posting(&self, test: &dyn Fn(&str, &str) -> bool) -> Result<bool, Infallible> {
        Ok(self.postings.iter().any(|posting| test(posting.source.as_str(), posting.destination.as_str())))
    }

    fn metadata(&self, key: &str) -> Result<Option<Cow<'_, str>>, Infallible> {
        Ok(self.metadata.get(key).map(MetadataValue::as_shown))
    }

    fn metadata_value(&self, key: &str) -> Result<Option<Cow<'_, MetadataValue>>, Infallible> {
        Ok(self.metadata.get(key).map(Cow::Borrowed))
    }

    fn text(&self, field: TextField) -> Result<Option<Cow<'_, str>>, Infallible> {
        let reference = self.reference.as_ref().map(|reference| Cow::Borrowed(reference.as_str()));
        Ok(reference.filter(|_| field == TextField::Reference))
    }

    fn date(&self, field: DateField) -> Result<Option<Timestamp>, Infallible> {
        Ok(match field {
            DateField::Timestamp => Some(self.timestamp),
            DateField::InsertedAt => Some(self.inserted_at),
            DateField::UpdatedAt => Some(self.updated_at),
            DateField::RevertedAt => self.reverted_at,
            _ => None,
        })
    }

    fn id(&self) -> Result<Option<u64>, Infallible> {
        Ok(Some(self.id.get()))
    }

    fn reverted(&self) -> Result<Option<bool>, Infallible> {
        Ok(Some(self.reverted_at.is_some()))
    }
}

impl FilterSubject for LogEntry {
    type Error = Infallible;

    fn text(&self, field: TextField) -> Result<Option<Cow<'_, str>>, Infallible> {
        Ok((field == TextField::Type).then(|| Cow::Borrowed(self.payload.type_name())))
    }

    fn date(&self, field: DateField) -> Result<Option<Timestamp>, Infallible> {
        Ok(match field {
            DateField::Date => Some(self.date),
            DateField::Timestamp => Some(LegacyLog::from(self).date()),
            _ => None,
        })
    }

    fn id(&self) -> Result<Option<u64>, Infallible> {
        Ok(Some(self.id.get()))
    }
}
