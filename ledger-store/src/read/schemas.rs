//! Reads the versions of a ledger's schema: one version, or a list.

use std::borrow::Cow;
use std::ops::Bound;

use ledger_codec::Corrupt;
use ledger_core::schema::created_at_of;
use ledger_core::{DateField, FilterSubject, SchemaVersion, TextField, Timestamp};

use super::document_reader::DocumentReader;
use super::limits::{Meter, ReadLimits};
use super::page::PageBuilder;
use crate::documents::{
    Document, DocumentRange, SCHEMAS, SCHEMAS_BY_POSITION, schema_key, schema_position_key,
};
use crate::error::ReadError;
use crate::query::{Page, SchemaKey, SchemaOrder, SchemaQuery, SchemaView};
use crate::view::View;

/// Number of schemas to read at once. Bounds the memory of a read that needs few of them.
const SCHEMAS_PER_READ: usize = 16;

/// Maximum size of a page in bytes. Bounds memory, because a page stays in memory until it is sent.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// Returns the schema of a ledger with this version name.
pub(super) fn schema(
    view: &View,
    ledger: u32,
    version: &SchemaVersion,
) -> Result<Option<SchemaView>, ReadError> {
    let key = schema_key(ledger, version.as_str());
    let found = DocumentReader::new(view).document(SCHEMAS, &key)?;
    found.map(view_of).transpose()
}

/// Lists the versions of a ledger's schema.
pub(super) fn schemas(
    view: &View,
    ledger: u32,
    query: &SchemaQuery,
    page_bytes: usize,
) -> Result<Page<SchemaView>, ReadError> {
    let (direction, beyond) = query.page.walk();
    let index = match query.order {
        SchemaOrder::Created => Some(SCHEMAS_BY_POSITION),
        SchemaOrder::Version => None,
    };
    let cursor_of = |key: &SchemaKey| {
        let secondary = schema_position_key(ledger, key.position).to_vec();
        (secondary, schema_key(ledger, key.version.as_str()))
    };
    let end =
        ledger.checked_add(1).map_or(Bound::Unbounded, |next| Bound::Excluded(next.to_be_bytes().to_vec()));
    let mut range = DocumentRange {
        from: Bound::Included(ledger.to_be_bytes().to_vec()),
        to: end,
        beyond: beyond.map(cursor_of),
        direction,
        limit: SCHEMAS_PER_READ,
    };
    let reader = DocumentReader::new(view);
    let meter = Meter::start(ReadLimits::DEFAULT);
    let mut builder = PageBuilder::new(&query.page, page_bytes);
    let mut bytes = 0;
    'pages: loop {
        let found = reader.documents(SCHEMAS, index, &range)?;
        let is_last = found.len() < SCHEMAS_PER_READ;
        for document in found {
            meter.row()?;
            let schema = view_of(document)?;
            range.beyond = Some(cursor_of(&schema.key));
            if !query.filter.matches(&schema)? {
                continue;
            }
            if builder.is_full() {
                builder.has_more();
                break 'pages;
            }
            bytes += schema.text.len();
            if bytes > PAGE_BYTES_MAX {
                let reason = "the schemas of this page are too large: ask for fewer".to_owned();
                return Err(ReadError::TooExpensive { reason });
            }
            builder.push(schema);
        }
        if is_last {
            break;
        }
    }
    Ok(builder.finish(&query.page))
}

fn view_of(document: Document) -> Result<SchemaView, ReadError> {
    let corrupt = Corrupt { what: "schema" };
    let version = document.key.get(4..).and_then(|version| std::str::from_utf8(version).ok());
    let version = version.and_then(|version| SchemaVersion::parse(version).ok()).ok_or(corrupt)?;
    let text = String::from_utf8(document.value).map_err(|_| corrupt)?;
    Ok(SchemaView {
        key: SchemaKey { position: document.version.0, version: version.clone() },
        version,
        created_at: created_at_of(&text).unwrap_or(Timestamp::from_micros(0)),
        text,
    })
}

impl FilterSubject for SchemaView {
    type Error = ReadError;

    fn text(&self, field: TextField) -> Result<Option<Cow<'_, str>>, ReadError> {
        Ok((field == TextField::Version).then(|| Cow::Borrowed(self.version.as_str())))
    }

    fn date(&self, field: DateField) -> Result<Option<Timestamp>, ReadError> {
        Ok((field == DateField::CreatedAt).then_some(self.created_at))
    }
}
