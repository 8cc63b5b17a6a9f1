//! The request bodies of v1, and their conversion into commands.

use ledger_core::{
    AccountAddress, Amount, AmountError, Asset, CreateTransaction, ErrorWording, Metadata, Movement, Posting,
    Postings, Reference, Rules, Timestamp,
};
use serde::de::MapAccess;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::api::posting::PostingBody;
use crate::api::script_body::{Forms, ScriptBody};
use crate::http::error::ApiError;
use crate::http::json::{self, AnyMap, Array, Date, Fields, JsonError, Object, Text, field};

/// The fields that every transaction has, with postings or with a script.
#[derive(Default)]
struct Common<'a> {
    timestamp: Option<Timestamp>,
    reference: Text<'a>,
    metadata: Metadata,
}

impl<'de> Fields<'de> for Common<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["timestamp", "reference", "metadata"]) {
            Some("timestamp") => self.timestamp = map.next_value::<Date>()?.given(),
            Some("reference") => self.reference = map.next_value()?,
            Some("metadata") => self.metadata = map.next_value::<AnyMap>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Common<'_> {
    fn into_create(self, movement: Movement, rules: Rules) -> Result<CreateTransaction, ApiError> {
        let reference = match self.reference.0.as_ref() {
            "" => None,
            text => Some(Reference::parse(text).map_err(|error| ApiError::validation(error.to_string()))?),
        };
        Ok(CreateTransaction {
            movement,
            metadata: self.metadata,
            timestamp: self.timestamp,
            reference,
            rules,
            ..CreateTransaction::of(Postings::new())
        })
    }
}

/// A transaction in the body of a create or in a batch.
#[derive(Default)]
pub(crate) struct TransactionBody<'a> {
    postings: Vec<PostingBody<'a>>,
    /// The script. Only routes that accept scripts parse it.
    script: Option<&'a RawValue>,
    common: Common<'a>,
}

impl<'de> Fields<'de> for TransactionBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["postings", "script"]) {
            Some("postings") => {
                let Array(postings) = map.next_value::<Array<Object<PostingBody<'de>>>>()?;
                self.postings = postings.into_iter().map(|Object(posting)| posting).collect();
            }
            Some("script") => self.script = Some(map.next_value()?),
            _ => return self.common.field(name, map),
        }
        Ok(true)
    }
}

impl TransactionBody<'_> {
    /// Converts the body of a create, with postings or with a script.
    ///
    /// # Errors
    ///
    /// Returns `VALIDATION`. The checks run in the order of the original API.
    pub(crate) fn into_create(self, rules: Rules) -> Result<CreateTransaction, ApiError> {
        let script = match self.script {
            None => ScriptBody::default(),
            Some(script) => {
                json::first::<Object<ScriptBody<'_>>>(script.get().as_bytes())
                    .map_err(|error| malformed(&error.within("script")))?
                    .0
            }
        };
        if script.is_empty() == self.postings.is_empty() {
            let message = "invalid payload: should contain either postings or script";
            return Err(ApiError::validation(message));
        }
        let movement = if script.is_empty() {
            let postings = postings(&self.postings, |at, reason| format!("invalid posting {at}: {reason}"))?;
            Movement::Postings(postings)
        } else {
            Movement::Script(script.into_script(ErrorWording::Machine, Forms::Types))
        };
        self.common.into_create(movement, rules)
    }

    /// Converts the transaction at index `at` of a batch. Batches do not accept scripts.
    ///
    /// # Errors
    ///
    /// Returns `VALIDATION`. The checks run in the order of the original API.
    pub(crate) fn into_element(self, at: usize, rules: Rules) -> Result<CreateTransaction, ApiError> {
        if self.postings.is_empty() {
            return Err(ApiError::validation(format!("invalid transaction {at}: no postings")));
        }
        let postings = postings(&self.postings, |posting, reason| {
            format!("invalid transaction {at}: posting {posting}: {reason}")
        })?;
        self.common.into_create(Movement::Postings(postings), rules)
    }
}

/// Builds the error for a body that is not a transaction.
pub(crate) fn malformed(error: &JsonError) -> ApiError {
    ApiError::validation(format!("invalid transaction format: {error}"))
}

/// The body of `POST /script`: a script and the other fields of its transaction.
#[derive(Default)]
pub(crate) struct RunBody<'a> {
    script: ScriptBody<'a>,
    common: Common<'a>,
}

impl<'de> Fields<'de> for RunBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        Ok(self.script.field(name, map)? || self.common.field(name, map)?)
    }
}

impl RunBody<'_> {
    /// Returns whether the script has no text.
    pub(crate) fn is_empty(&self) -> bool {
        self.script.is_empty()
    }

    /// Converts the body into a transaction.
    ///
    /// # Errors
    ///
    /// Returns `VALIDATION` if a field is malformed.
    pub(crate) fn into_create(self, rules: Rules) -> Result<CreateTransaction, ApiError> {
        self.common.into_create(
            Movement::Script(self.script.into_script(ErrorWording::Machine, Forms::Types)),
            rules,
        )
    }
}

fn postings(
    bodies: &[PostingBody<'_>],
    describe: impl Fn(usize, &str) -> String,
) -> Result<Postings, ApiError> {
    let converted = bodies.iter().enumerate().map(|(at, body)| {
        posting(body).map_err(|reason| ApiError::validation(describe(at, &reason.to_string())))
    });
    converted.collect()
}

/// The reason why a posting is refused. The text is for the client.
#[derive(Debug, Error)]
enum PostingError {
    #[error("no amount defined")]
    NoAmount,
    #[error("negative amount")]
    Negative,
    #[error(transparent)]
    Amount(AmountError),
    #[error("invalid source address")]
    Source,
    #[error("invalid destination address")]
    Destination,
    #[error("invalid asset")]
    Asset,
}

impl From<AmountError> for PostingError {
    fn from(error: AmountError) -> Self {
        match error {
            AmountError::Negative => Self::Negative,
            error => Self::Amount(error),
        }
    }
}

/// Converts a posting.
fn posting(body: &PostingBody<'_>) -> Result<Posting, PostingError> {
    let amount: Amount = body.amount.ok_or(PostingError::NoAmount)?.parse()?;
    Ok(Posting {
        source: AccountAddress::parse(&body.source.0).map_err(|_| PostingError::Source)?,
        destination: AccountAddress::parse(&body.destination.0).map_err(|_| PostingError::Destination)?,
        amount,
        asset: Asset::parse(&body.asset.0).map_err(|_| PostingError::Asset)?,
    })
}

/// The body of a batch.
#[derive(Default)]
pub(crate) struct BatchBody<'a> {
    /// `None` if the field is absent or `null`.
    pub(crate) transactions: Option<Vec<TransactionBody<'a>>>,
}

impl<'de> Fields<'de> for BatchBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["transactions"]) {
            Some("transactions") => {
                let transactions = map.next_value::<Option<Array<Object<TransactionBody<'de>>>>>()?;
                self.transactions =
                    transactions.map(|Array(all)| all.into_iter().map(|Object(one)| one).collect());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
