//! The files of DUMMY-PAY. Each contains an account or a payment as JSON.

use ledger_core::{AmountError, Balance, Timestamp};
use serde::de::MapAccess;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::connectors::TaskContext;
use crate::http::json::{self, Date, Digits, Fields, JsonError, Object, Text, TextMap};
use crate::payments::account::NewAccount;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::{AccountType, PaymentStatus, PaymentType, Scheme};
use crate::payments::ids::AccountId;
use crate::payments::ingest::Batch;
use crate::payments::payment::NewPayment;

#[derive(Default)]
struct File<'a> {
    kind: Text<'a>,
    payment: Option<&'a RawValue>,
    account: Option<&'a RawValue>,
}

impl<'de> Fields<'de> for File<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["kind", "payment", "account"]) {
            Some("kind") => self.kind = map.next_value()?,
            Some("payment") => self.payment = Some(map.next_value()?),
            Some("account") => self.account = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The fields of an account or a payment in a file. Each kind uses some of them.
#[derive(Default)]
struct Record<'a> {
    reference: Text<'a>,
    created_at: Option<Timestamp>,
    amount: Option<&'a str>,
    asset: Text<'a>,
    name: Text<'a>,
    kind: Text<'a>,
    status: Text<'a>,
    scheme: Text<'a>,
    source: Text<'a>,
    destination: Text<'a>,
    metadata: TextMap,
}

impl<'de> Fields<'de> for Record<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let known = [
            "reference",
            "createdAt",
            "amount",
            "asset",
            "defaultAsset",
            "accountName",
            "type",
            "status",
            "scheme",
            "sourceAccountId",
            "destinationAccountId",
            "metadata",
        ];
        match json::field(name, &known) {
            Some("reference") => self.reference = map.next_value()?,
            Some("createdAt") => self.created_at = map.next_value::<Date>()?.0,
            Some("amount") => self.amount = map.next_value::<Digits<'de>>()?.0,
            Some("asset" | "defaultAsset") => self.asset = map.next_value()?,
            Some("accountName") => self.name = map.next_value()?,
            Some("type") => self.kind = map.next_value()?,
            Some("status") => self.status = map.next_value()?,
            Some("scheme") => self.scheme = map.next_value()?,
            Some("sourceAccountId") => self.source = map.next_value()?,
            Some("destinationAccountId") => self.destination = map.next_value()?,
            Some("metadata") => self.metadata = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The reason why a file is refused.
#[derive(Debug, Error)]
pub(super) enum FileError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Record(#[from] JsonError),
    #[error("{0:?} is neither a payment nor an account")]
    UnknownKind(String),
    #[error("the file has a kind and nothing of it")]
    Empty,
    #[error("the {0} is missing")]
    Missing(&'static str),
    #[error("{word:?} is no {set}")]
    UnknownWord { word: String, set: &'static str },
    #[error(transparent)]
    Amount(#[from] AmountError),
}

fn unknown(set: &'static str, Text(word): &Text<'_>) -> FileError {
    FileError::UnknownWord { word: word.to_string(), set }
}

/// Parses a file with an account or a payment.
pub(super) fn parse(text: &[u8], context: &TaskContext) -> Result<Batch, FileError> {
    let Object(file) = serde_json::from_slice::<Object<File<'_>>>(text)?;
    let raw = match &*file.kind.0 {
        "payment" => file.payment,
        "account" => file.account,
        other => return Err(FileError::UnknownKind(other.to_owned())),
    };
    let raw = raw.ok_or(FileError::Empty)?;
    let Object(record) = json::first::<Object<Record<'_>>>(raw.get().as_bytes())?;
    if record.reference.0.is_empty() {
        return Err(FileError::Missing("reference"));
    }
    let mut batch = Batch::default();
    if file.kind.0 == "payment" {
        batch.payments.push(payment_of(&record, raw, context)?);
    } else {
        batch.accounts.push(account_of(&record, raw, context)?);
    }
    Ok(batch)
}

fn metadata_of(metadata: &TextMap) -> Metadata {
    metadata.0.iter().map(|(key, value)| (key.to_owned(), value.as_text().unwrap_or("").to_owned())).collect()
}

fn account_of(record: &Record<'_>, raw: &RawValue, context: &TaskContext) -> Result<NewAccount, FileError> {
    let kind = AccountType::parse(&record.kind.0);
    Ok(NewAccount {
        reference: record.reference.0.to_string(),
        created_at: record.created_at.unwrap_or(context.now),
        default_asset: record.asset.0.to_string(),
        name: record.name.0.to_string(),
        kind: kind.ok_or_else(|| unknown("type of an account", &record.kind))?,
        metadata: metadata_of(&record.metadata),
        raw: Some(raw.get().to_owned()),
    })
}

fn payment_of(record: &Record<'_>, raw: &RawValue, context: &TaskContext) -> Result<NewPayment, FileError> {
    let amount = Balance::parse(record.amount.ok_or(FileError::Missing("amount"))?)?;
    // Accept an id, or the provider's reference of the account.
    let account = |text: &str| AccountId::parse(text).or_else(|| context.account(text));
    Ok(NewPayment {
        kind: PaymentType::parse(&record.kind.0).ok_or_else(|| unknown("type of a payment", &record.kind))?,
        reference: record.reference.0.to_string(),
        source: account(&record.source.0),
        destination: account(&record.destination.0),
        status: PaymentStatus::parse(&record.status.0)
            .ok_or_else(|| unknown("status of a payment", &record.status))?,
        initial_amount: amount.clone(),
        amount,
        scheme: Scheme::parse_any_case(&record.scheme.0).ok_or_else(|| unknown("scheme", &record.scheme))?,
        asset: record.asset.0.to_string(),
        created_at: record.created_at.unwrap_or(context.now),
        raw: Some(raw.get().to_owned()),
        adjustments: vec![],
        metadata: metadata_of(&record.metadata),
        revision: None,
    })
}
