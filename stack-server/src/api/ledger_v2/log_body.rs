//! Logs as an import brings them.

use ledger_core::{
    Idempotency, IdempotencyKey, Json, LogEntry, LogId, LogPayload, Metadata, Reference, Target, Timestamp,
    Transaction, TransactionId, WireHash,
};
use ledger_store::ImportedLog;
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::api::ledger_v2::wire::{address_of, to_posting};
use crate::api::posting::PostingBody;
use crate::http::error::ApiError;
use crate::http::json::{self, Array, Date, Digits, Entries, Fields, Object, Text, TextMap};

#[derive(Default)]
struct LogBody<'a> {
    kind: Text<'a>,
    data: Option<&'a RawValue>,
    date: Option<Timestamp>,
    key: Text<'a>,
    key_hash: Text<'a>,
    id: Option<&'a str>,
    hash: Text<'a>,
    schema_version: Text<'a>,
}

impl<'de> Fields<'de> for LogBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "type" => self.kind = map.next_value()?,
            "data" => self.data = Some(map.next_value()?),
            "date" => self.date = map.next_value::<Date>()?.0,
            "idempotencyKey" => self.key = map.next_value()?,
            "idempotencyHash" => self.key_hash = map.next_value()?,
            "id" => self.id = map.next_value::<Digits<'de>>()?.0,
            "hash" => self.hash = map.next_value()?,
            "schemaVersion" => self.schema_version = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Default)]
struct TransactionBody<'a> {
    postings: Vec<PostingBody<'a>>,
    metadata: Metadata,
    timestamp: Option<Timestamp>,
    inserted_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    tells_volumes: bool,
    reference: Text<'a>,
    template: Text<'a>,
    id: Option<&'a str>,
}

impl<'de> Fields<'de> for TransactionBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "postings" => {
                let Array(postings) = map.next_value::<Array<Object<PostingBody<'de>>>>()?;
                self.postings = postings.into_iter().map(|Object(posting)| posting).collect();
            }
            "metadata" => self.metadata = map.next_value::<TextMap>()?.0,
            "timestamp" => self.timestamp = map.next_value::<Date>()?.0,
            "insertedAt" => self.inserted_at = map.next_value::<Date>()?.0,
            "postCommitVolumes" => self.tells_volumes = !map.next_value::<&RawValue>()?.get().eq("null"),
            "updatedAt" => self.updated_at = map.next_value::<Date>()?.0,
            "reference" => self.reference = map.next_value()?,
            "template" => self.template = map.next_value()?,
            "id" => self.id = map.next_value::<Digits<'de>>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The data of all types of logs: each has some of these members.
#[derive(Default)]
struct DataBody<'a> {
    transaction: TransactionBody<'a>,
    account_metadata: Entries<'a, TextMap>,
    reverted: TransactionBody<'a>,
    reverted_id: Option<&'a str>,
    target_type: Text<'a>,
    target_id: Option<&'a RawValue>,
    metadata: Metadata,
    key: Text<'a>,
    schema: Option<&'a RawValue>,
}

impl<'de> Fields<'de> for DataBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "transaction" => self.transaction = map.next_value::<Object<_>>()?.0,
            "accountMetadata" => self.account_metadata = map.next_value()?,
            "revertedTransaction" => self.reverted = map.next_value::<Object<_>>()?.0,
            "revertedTransactionID" => self.reverted_id = map.next_value::<Digits<'de>>()?.0,
            "targetType" => self.target_type = map.next_value()?,
            "targetId" => self.target_id = Some(map.next_value()?),
            "metadata" => self.metadata = map.next_value::<TextMap>()?.0,
            "key" => self.key = map.next_value()?,
            "schema" => self.schema = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads a log.
///
/// # Errors
///
/// The text says why the line is refused.
pub(crate) fn read_log(value: &RawValue) -> Result<ImportedLog, String> {
    let malformed = |error: json::JsonError| error.to_string();
    let Object(log) = json::first::<Object<LogBody<'_>>>(value.get().as_bytes()).map_err(malformed)?;
    let id = LogId::new(number(log.id, "a log")?);
    let in_log = |what: String| format!("log {}: {what}", id.get());
    let date = log.date.ok_or_else(|| in_log("no date".to_owned()))?;
    let data = log.data.map_or("null", RawValue::get).as_bytes();
    let Object(data) =
        json::first::<Object<DataBody<'_>>>(data).map_err(|error| in_log(error.to_string()))?;
    let (original_updated_at, tells_volumes) = (data.reverted.updated_at, data.transaction.tells_volumes);
    let payload = payload(&log.kind.0, data, date).map_err(in_log)?;
    let idempotency = match log.key.0.as_ref() {
        "" => None,
        key => Some(Idempotency {
            key: IdempotencyKey::parse(key).map_err(|error| in_log(error.to_string()))?,
            hash: log.key_hash.0.as_ref().into(),
        }),
    };
    // Kept as it came, also where it is empty: what another server did not tell is not made up.
    let request_hash = idempotency.is_none().then(|| log.key_hash.0.as_ref().into());
    let schema_version = (!log.schema_version.0.is_empty()).then(|| log.schema_version.0.as_ref().into());
    Ok(ImportedLog {
        entry: LogEntry {
            id,
            date,
            idempotency,
            request_hash,
            schema_version,
            payload,
            defaults: Vec::new(),
        },
        hash: WireHash::from_base64(&log.hash.0),
        original_updated_at,
        tells_volumes,
    })
}

fn payload(kind: &str, data: DataBody<'_>, date: Timestamp) -> Result<LogPayload, String> {
    Ok(match kind {
        "NEW_TRANSACTION" => {
            let mut account_metadata = Vec::with_capacity(data.account_metadata.0.len());
            for (Text(address), TextMap(metadata)) in data.account_metadata.0 {
                account_metadata.push((address_of(&address).map_err(message)?, metadata));
            }
            account_metadata.sort_by(|(one, _), (two, _)| one.cmp(two));
            let transaction = Box::new(transaction(data.transaction, date)?);
            LogPayload::NewTransaction { transaction, account_metadata, effective_volumes: None }
        }
        "REVERTED_TRANSACTION" => LogPayload::RevertedTransaction {
            reverted: TransactionId::new(number(
                data.reverted_id.or(data.reverted.id),
                "the reverted transaction",
            )?),
            transaction: Box::new(transaction(data.transaction, date)?),
            effective_volumes: None,
        },
        "SET_METADATA" => LogPayload::SetMetadata {
            target: target(&data.target_type.0, data.target_id)?,
            metadata: data.metadata,
        },
        "DELETE_METADATA" => LogPayload::DeleteMetadata {
            target: target(&data.target_type.0, data.target_id)?,
            key: data.key.0.as_ref().into(),
        },
        "INSERTED_SCHEMA" => {
            // The text is hashed: as servers of this API write it, whatever white space came along.
            let schema = data.schema.ok_or("no schema")?.get();
            let schema = Json::parse(schema).map_err(|error| format!("invalid schema: {error}"))?;
            LogPayload::InsertedSchema { schema: schema.to_string().into() }
        }
        other => return Err(format!("unknown type '{}'", other.chars().take(100).collect::<String>())),
    })
}

fn transaction(body: TransactionBody<'_>, date: Timestamp) -> Result<Transaction, String> {
    let reference = match body.reference.0.as_ref() {
        "" => None,
        text => Some(Reference::parse(text).map_err(|error| error.to_string())?),
    };
    Ok(Transaction {
        id: TransactionId::new(number(body.id, "a transaction")?),
        postings: body.postings.iter().map(to_posting).collect::<Result<_, _>>().map_err(message)?,
        metadata: body.metadata,
        timestamp: body.timestamp.unwrap_or(date),
        reference,
        template: (!body.template.0.is_empty()).then(|| body.template.0.as_ref().into()),
        inserted_at: body.inserted_at.unwrap_or(date),
        updated_at: body.inserted_at.unwrap_or(date),
        reverted_at: None,
        post_commit_volumes: Vec::new(),
    })
}

fn target(kind: &str, id: Option<&RawValue>) -> Result<Target, String> {
    let id = id.ok_or("no targetId")?.get();
    let text = json::first::<Text<'_>>(id.as_bytes());
    match (kind, text) {
        ("ACCOUNT", Ok(Text(address))) => Ok(Target::Account(address_of(&address).map_err(message)?)),
        ("TRANSACTION", _) => Ok(Target::Transaction(TransactionId::new(number(Some(id), "the target")?))),
        _ => Err("a target is an account or a transaction".to_owned()),
    }
}

fn number(digits: Option<&str>, of: &str) -> Result<u64, String> {
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| format!("{of} has no valid id"))
}

fn message(error: ApiError) -> String {
    error.message.into_owned()
}
