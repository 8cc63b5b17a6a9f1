//! Reads logs in the form of an export.

use std::borrow::Cow;
use std::fmt;

use ledger_core::{
    AccountAddress, Amount, AmountError, Asset, Idempotency, IdempotencyKey, Json, JsonError, JsonReader,
    LogEntry, LogId, LogPayload, Metadata, MetadataValue, NameError, Posting, Postings, Reference, Target,
    Timestamp, TimestampError, Transaction, TransactionId, WireHash,
};

use super::DEPTH_MAX;
use crate::imported_log::ImportedLog;

/// A text that is not a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTextError {
    /// The id of the log, if that could be read.
    pub log: Option<LogId>,
    /// The defect.
    pub fault: LogFault,
}

/// The defect of a text that is not a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFault {
    /// The text is not UTF-8.
    NotText,
    /// The text is not JSON, or a member has a value of the wrong type.
    Json(JsonError),
    /// The text ends in the middle of a log.
    CutOff,
    /// The text is longer than [`LOG_BYTES_MAX`](super::LOG_BYTES_MAX).
    TooLong,
    /// The log, its transaction, the reverted transaction or the target of metadata has no valid id.
    NoId(&'static str),
    /// The log has no date.
    NoDate,
    /// A date is malformed.
    Date {
        /// The text.
        text: String,
        /// The reason.
        error: TimestampError,
    },
    /// An address, asset, reference or key is malformed.
    Name(NameError),
    /// A posting has no amount.
    NoAmount,
    /// An amount is malformed.
    Amount(AmountError),
    /// The target of metadata is neither an account nor a transaction.
    NoTarget,
    /// A log that adds a schema contains none.
    NoSchema,
    /// The schema is not JSON.
    Schema(JsonError),
    /// The type of the log is unknown.
    UnknownType(String),
    /// A description of a ledger has an unknown feature, or an unknown value of a feature.
    Feature(String),
}

impl fmt::Display for LogFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotText => f.write_str("it is not UTF-8"),
            Self::Json(fault) => fault.fmt(f),
            Self::CutOff => f.write_str("EOF in the middle of a log"),
            Self::TooLong => f.write_str("it is too long for a log"),
            Self::NoId(of) => write!(f, "{of} has no valid id"),
            Self::NoDate => f.write_str("no date"),
            Self::Date { text, error } => write!(f, "parsing time \"{text}\": {error}"),
            Self::Name(error) => error.fmt(f),
            Self::NoAmount => f.write_str("no amount defined"),
            Self::Amount(error) => error.fmt(f),
            Self::NoTarget => f.write_str("a target is an account or a transaction"),
            Self::NoSchema => f.write_str("no schema"),
            Self::Schema(error) => write!(f, "invalid schema: {error}"),
            Self::UnknownType(name) => write!(f, "unknown type '{name}'"),
            Self::Feature(name) => write!(f, "unknown feature '{name}'"),
        }
    }
}

impl fmt::Display for LogTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.log {
            Some(log) => write!(f, "log {log}: {}", self.fault),
            None => self.fault.fmt(f),
        }
    }
}

impl std::error::Error for LogTextError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            LogFault::Json(fault) => Some(fault),
            LogFault::Date { error, .. } => Some(error),
            LogFault::Name(error) => Some(error),
            LogFault::Amount(error) => Some(error),
            LogFault::Schema(error) => Some(error),
            LogFault::NotText
            | LogFault::CutOff
            | LogFault::TooLong
            | LogFault::NoId(_)
            | LogFault::NoDate
            | LogFault::NoAmount
            | LogFault::NoTarget
            | LogFault::NoSchema
            | LogFault::UnknownType(_)
            | LogFault::Feature(_) => None,
        }
    }
}

impl From<LogFault> for LogTextError {
    fn from(fault: LogFault) -> Self {
        Self { log: None, fault }
    }
}

impl From<JsonError> for LogFault {
    fn from(fault: JsonError) -> Self {
        Self::Json(fault)
    }
}

impl From<NameError> for LogFault {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

/// The members of a log. All types of logs share the members of `data`.
#[derive(Default)]
struct LogText<'a> {
    kind: Cow<'a, str>,
    data: DataText<'a>,
    date: Option<Timestamp>,
    key: Cow<'a, str>,
    key_hash: Cow<'a, str>,
    id: Option<&'a str>,
    hash: Cow<'a, str>,
    schema_version: Cow<'a, str>,
}

#[derive(Default)]
struct DataText<'a> {
    transaction: TransactionText<'a>,
    account_metadata: Vec<(AccountAddress, Metadata)>,
    reverted: TransactionText<'a>,
    reverted_id: Option<&'a str>,
    target_type: Cow<'a, str>,
    target_id: Option<&'a str>,
    metadata: Metadata,
    key: Cow<'a, str>,
    schema: Option<&'a str>,
}

#[derive(Default)]
struct TransactionText<'a> {
    postings: Vec<PostingText<'a>>,
    metadata: Metadata,
    timestamp: Option<Timestamp>,
    inserted_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    tells_volumes: bool,
    reference: Cow<'a, str>,
    template: Cow<'a, str>,
    id: Option<&'a str>,
}

#[derive(Default)]
struct PostingText<'a> {
    source: Cow<'a, str>,
    destination: Cow<'a, str>,
    amount: Option<&'a str>,
    asset: Cow<'a, str>,
}

/// Reads a log from its JSON text, in the form of an export. Ignores unknown members.
///
/// # Errors
///
/// [`LogTextError`] with the first defect.
pub fn read_log(text: &str) -> Result<ImportedLog, LogTextError> {
    let mut reader = JsonReader::new(text, DEPTH_MAX);
    let mut log = LogText::default();
    let read = read_members(&mut reader, &mut log);
    let read = read.and_then(|()| Ok(reader.end()?));
    let id = log.id.and_then(|digits| digits.parse().ok()).map(LogId::new);
    read.and_then(|()| made_of(id.ok_or(LogFault::NoId("a log"))?, log))
        .map_err(|fault| LogTextError { log: id, fault })
}

fn read_members<'a>(reader: &mut JsonReader<'a>, log: &mut LogText<'a>) -> Result<(), LogFault> {
    reader.object(|reader, name| {
        match name {
            "type" => log.kind = reader.text()?,
            "data" => log.data = read_data(reader)?,
            "date" => log.date = read_date(reader)?,
            "idempotencyKey" => log.key = reader.text()?,
            "idempotencyHash" => log.key_hash = reader.text()?,
            "id" => log.id = reader.digits()?,
            "hash" => log.hash = reader.text()?,
            "schemaVersion" => log.schema_version = reader.text()?,
            _ => reader.skip()?,
        }
        Ok(())
    })
}

fn read_data<'a>(reader: &mut JsonReader<'a>) -> Result<DataText<'a>, LogFault> {
    let mut data = DataText::default();
    reader.object(|reader, name| {
        match name {
            "transaction" => data.transaction = read_transaction(reader)?,
            "accountMetadata" => data.account_metadata = read_account_metadata(reader)?,
            "revertedTransaction" => data.reverted = read_transaction(reader)?,
            "revertedTransactionID" => data.reverted_id = reader.digits()?,
            "targetType" => data.target_type = reader.text()?,
            "targetId" => data.target_id = Some(reader.raw()?),
            "metadata" => data.metadata = read_metadata(reader)?,
            "key" => data.key = reader.text()?,
            "schema" => data.schema = Some(reader.raw()?),
            _ => reader.skip()?,
        }
        Ok::<_, LogFault>(())
    })?;
    Ok(data)
}

fn read_transaction<'a>(reader: &mut JsonReader<'a>) -> Result<TransactionText<'a>, LogFault> {
    let mut transaction = TransactionText::default();
    reader.object(|reader, name| {
        match name {
            "postings" => {
                transaction.postings.clear();
                reader.array(|reader| {
                    transaction.postings.push(read_posting(reader)?);
                    Ok::<_, LogFault>(())
                })?;
            }
            "metadata" => transaction.metadata = read_metadata(reader)?,
            "timestamp" => transaction.timestamp = read_date(reader)?,
            "insertedAt" => transaction.inserted_at = read_date(reader)?,
            "updatedAt" => transaction.updated_at = read_date(reader)?,
            "postCommitVolumes" => transaction.tells_volumes = reader.raw()? != "null",
            "reference" => transaction.reference = reader.text()?,
            "template" => transaction.template = reader.text()?,
            "id" => transaction.id = reader.digits()?,
            _ => reader.skip()?,
        }
        Ok::<_, LogFault>(())
    })?;
    Ok(transaction)
}

fn read_posting<'a>(reader: &mut JsonReader<'a>) -> Result<PostingText<'a>, LogFault> {
    let mut posting = PostingText::default();
    reader.object(|reader, name| {
        let is = |field: &str| name.eq_ignore_ascii_case(field);
        if is("source") {
            posting.source = reader.text()?;
        } else if is("destination") {
            posting.destination = reader.text()?;
        } else if is("amount") {
            posting.amount = reader.digits()?;
        } else if is("asset") {
            posting.asset = reader.text()?;
        } else {
            reader.skip()?;
        }
        Ok::<_, LogFault>(())
    })?;
    Ok(posting)
}

pub(super) fn read_metadata(reader: &mut JsonReader<'_>) -> Result<Metadata, LogFault> {
    let mut metadata = Metadata::EMPTY;
    reader.object(|reader, key| {
        let value = reader.text()?;
        metadata.insert(key, MetadataValue::Text(value.into()));
        Ok::<_, LogFault>(())
    })?;
    Ok(metadata)
}

/// Reads metadata by account, sorted by address.
fn read_account_metadata(reader: &mut JsonReader<'_>) -> Result<Vec<(AccountAddress, Metadata)>, LogFault> {
    let mut accounts = std::collections::BTreeMap::new();
    reader.object(|reader, address| {
        let address = AccountAddress::parse(address)?;
        accounts.insert(address, read_metadata(reader)?);
        Ok::<_, LogFault>(())
    })?;
    Ok(accounts.into_iter().collect())
}

fn read_date(reader: &mut JsonReader<'_>) -> Result<Option<Timestamp>, LogFault> {
    let Some(text) = reader.optional_text()? else { return Ok(None) };
    match Timestamp::parse(&text) {
        Ok(date) => Ok(Some(date)),
        Err(error) => Err(LogFault::Date { text: shortened(&text), error }),
    }
}

/// Returns the beginning of a text, for an error message.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

fn made_of(id: LogId, log: LogText<'_>) -> Result<ImportedLog, LogFault> {
    let date = log.date.ok_or(LogFault::NoDate)?;
    let original_updated_at = log.data.reverted.updated_at;
    let tells_volumes = log.data.transaction.tells_volumes;
    let payload = payload(&log.kind, log.data, date)?;
    let idempotency = match log.key.as_ref() {
        "" => None,
        key => Some(Idempotency { key: IdempotencyKey::parse(key)?, hash: log.key_hash.as_ref().into() }),
    };
    // An empty hash from another server stays empty: do not invent one.
    let request_hash = idempotency.is_none().then(|| log.key_hash.as_ref().into());
    let schema_version = (!log.schema_version.is_empty()).then(|| log.schema_version.as_ref().into());
    let defaults = Vec::new();
    let entry = LogEntry { id, date, idempotency, request_hash, schema_version, payload, defaults };
    Ok(ImportedLog { entry, hash: WireHash::from_base64(&log.hash), original_updated_at, tells_volumes })
}

fn payload(kind: &str, data: DataText<'_>, date: Timestamp) -> Result<LogPayload, LogFault> {
    Ok(match kind {
        "NEW_TRANSACTION" => LogPayload::NewTransaction {
            transaction: Box::new(transaction(data.transaction, date)?),
            account_metadata: data.account_metadata,
            effective_volumes: None,
        },
        "REVERTED_TRANSACTION" => LogPayload::RevertedTransaction {
            reverted: transaction_id(data.reverted_id.or(data.reverted.id), "the reverted transaction")?,
            transaction: Box::new(transaction(data.transaction, date)?),
            effective_volumes: None,
        },
        "SET_METADATA" => LogPayload::SetMetadata {
            target: target(&data.target_type, data.target_id)?,
            metadata: data.metadata,
        },
        "DELETE_METADATA" => LogPayload::DeleteMetadata {
            target: target(&data.target_type, data.target_id)?,
            key: data.key.as_ref().into(),
        },
        "INSERTED_SCHEMA" => {
            let schema = Json::parse(data.schema.ok_or(LogFault::NoSchema)?).map_err(LogFault::Schema)?;
            // The hash covers the text without white space, as servers of the ledger API write it.
            LogPayload::InsertedSchema { schema: schema.to_string().into() }
        }
        other => return Err(LogFault::UnknownType(shortened(other))),
    })
}

fn transaction(text: TransactionText<'_>, date: Timestamp) -> Result<Transaction, LogFault> {
    let reference = match text.reference.as_ref() {
        "" => None,
        reference => Some(Reference::parse(reference)?),
    };
    Ok(Transaction {
        id: transaction_id(text.id, "a transaction")?,
        postings: text.postings.iter().map(posting).collect::<Result<Postings, _>>()?,
        metadata: text.metadata,
        timestamp: text.timestamp.unwrap_or(date),
        reference,
        template: (!text.template.is_empty()).then(|| text.template.as_ref().into()),
        inserted_at: text.inserted_at.unwrap_or(date),
        updated_at: text.inserted_at.unwrap_or(date),
        reverted_at: None,
        post_commit_volumes: Vec::new(),
    })
}

fn posting(text: &PostingText<'_>) -> Result<Posting, LogFault> {
    let amount = text.amount.ok_or(LogFault::NoAmount)?;
    Ok(Posting {
        source: AccountAddress::parse(&text.source)?,
        destination: AccountAddress::parse(&text.destination)?,
        amount: Amount::parse_recorded(amount).map_err(LogFault::Amount)?,
        asset: Asset::parse(&text.asset)?,
    })
}

fn target(kind: &str, id: Option<&str>) -> Result<Target, LogFault> {
    let id = id.ok_or(LogFault::NoTarget)?;
    let mut reader = JsonReader::new(id, DEPTH_MAX);
    match kind {
        "ACCOUNT" => Ok(Target::Account(AccountAddress::parse(&reader.text()?)?)),
        "TRANSACTION" => Ok(Target::Transaction(transaction_id(reader.digits()?, "the target")?)),
        _ => Err(LogFault::NoTarget),
    }
}

fn transaction_id(digits: Option<&str>, of: &'static str) -> Result<TransactionId, LogFault> {
    let id = digits.and_then(|digits| digits.parse().ok());
    id.map(TransactionId::new).ok_or(LogFault::NoId(of))
}
