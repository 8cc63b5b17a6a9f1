//! The request bodies of this generation, and how they become commands.

use ledger_core::{
    AccountAddress, Amount, AmountError, Asset, CreateTransaction, Metadata, Movement, Posting, Postings,
    Reference, Rules, Timestamp,
};
use serde::de::MapAccess;

use crate::error::ApiError;
use crate::json::{AnyMap, Array, Date, Fields, Object, Text, field};
use crate::posting::PostingBody;

/// What a transaction has, in a request of its own or in a batch.
#[derive(Default)]
pub(crate) struct TransactionBody<'a> {
    postings: Vec<PostingBody<'a>>,
    script: Text<'a>,
    timestamp: Option<Timestamp>,
    reference: Text<'a>,
    metadata: Metadata,
}

impl<'de> Fields<'de> for TransactionBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["postings", "script", "timestamp", "reference", "metadata"]) {
            Some("postings") => {
                let Array(postings) = map.next_value::<Array<Object<PostingBody<'de>>>>()?;
                self.postings = postings.into_iter().map(|Object(posting)| posting).collect();
            }
            Some("script") => self.script = map.next_value::<Object<ScriptBody<'de>>>()?.0.plain,
            Some("timestamp") => self.timestamp = map.next_value::<Date>()?.0,
            Some("reference") => self.reference = map.next_value()?,
            Some("metadata") => self.metadata = map.next_value::<AnyMap>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A script as it was sent.
#[derive(Default)]
pub(crate) struct ScriptBody<'a> {
    pub(crate) plain: Text<'a>,
}

impl<'de> Fields<'de> for ScriptBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["plain"]) {
            Some("plain") => self.plain = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// What a transaction shall be made of.
pub(crate) enum Wanted {
    /// Postings.
    Postings(Box<CreateTransaction>),
    /// A script.
    Script,
}

impl TransactionBody<'_> {
    /// The transaction of a request of its own.
    ///
    /// # Errors
    ///
    /// `VALIDATION`, in the order of the checks of this API.
    pub(crate) fn into_wanted(self, rules: Rules) -> Result<Wanted, ApiError> {
        if self.script.0.is_empty() == self.postings.is_empty() {
            let message = "invalid payload: should contain either postings or script";
            return Err(ApiError::validation(message));
        }
        if !self.script.0.is_empty() {
            return Ok(Wanted::Script);
        }
        let postings = postings(&self.postings, |at, reason| format!("invalid posting {at}: {reason}"))?;
        Ok(Wanted::Postings(Box::new(self.into_create(postings, rules)?)))
    }

    /// The transaction at this place of a batch.
    ///
    /// # Errors
    ///
    /// `VALIDATION`, in the order of the checks of this API.
    pub(crate) fn into_element(self, at: usize, rules: Rules) -> Result<CreateTransaction, ApiError> {
        if self.postings.is_empty() {
            return Err(ApiError::validation(format!("invalid transaction {at}: no postings")));
        }
        let postings = postings(&self.postings, |posting, reason| {
            format!("invalid transaction {at}: posting {posting}: {reason}")
        })?;
        self.into_create(postings, rules)
    }

    fn into_create(self, postings: Postings, rules: Rules) -> Result<CreateTransaction, ApiError> {
        let reference = match self.reference.0.as_ref() {
            "" => None,
            text => Some(Reference::parse(text).map_err(|error| ApiError::validation(error.to_string()))?),
        };
        Ok(CreateTransaction {
            movement: Movement::Postings(postings),
            metadata: self.metadata,
            timestamp: self.timestamp,
            reference,
            rules,
            ..CreateTransaction::of(Postings::new())
        })
    }
}

fn postings(
    bodies: &[PostingBody<'_>],
    describe: impl Fn(usize, &str) -> String,
) -> Result<Postings, ApiError> {
    let converted = bodies
        .iter()
        .enumerate()
        .map(|(at, body)| posting(body).map_err(|reason| ApiError::validation(describe(at, &reason))));
    converted.collect()
}

/// The posting, or what is wrong with it.
fn posting(body: &PostingBody<'_>) -> Result<Posting, String> {
    let amount: Amount = match body.amount {
        None => return Err("no amount defined".to_owned()),
        Some(digits) => digits.parse().map_err(|error| match error {
            AmountError::Negative => "negative amount".to_owned(),
            error => error.to_string(),
        })?,
    };
    Ok(Posting {
        source: AccountAddress::parse(&body.source.0).map_err(|_| "invalid source address")?,
        destination: AccountAddress::parse(&body.destination.0).map_err(|_| "invalid destination address")?,
        amount,
        asset: Asset::parse(&body.asset.0).map_err(|_| "invalid asset")?,
    })
}

/// A batch.
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
