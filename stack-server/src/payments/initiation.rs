//! Transfer initiations: requests that a connector move money, with the steps of their execution.

use std::sync::Arc;

use ledger_core::{Balance, Timestamp};
use ledger_store::{Collection, DocumentKey, ReadError, Snapshot};

use crate::collections::TRANSFER_INITIATIONS;
use crate::payments::account::{decode_link, encode_link};
use crate::payments::codec::{Decoder, Encoder, Metadata, date_key, text_key};
use crate::payments::enumerations::{InitiationStatus, InitiationType, PaymentType};
use crate::payments::filter::{KeyKind, Keys, Row, Value};
use crate::payments::ids::{self, AccountId, InitiationId, PaymentId};
use crate::payments::record::{self, Record, Versioned, ordered};
use crate::uuid::Uuid;

/// Indexes of transfer initiations, by the field that each sorts by.
pub(crate) const BY_DATE: u32 = 1;
pub(crate) const BY_REFERENCE: u32 = 2;

/// The kind of the filter keys that hold an account.
const ACCOUNT: KeyKind = KeyKind::Id(|text| AccountId::parse(text).map(|id| id.text()));

/// A transfer initiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Initiation {
    pub(crate) id: InitiationId,
    pub(crate) created_at: Timestamp,
    /// The date as given by the client. The first instant of the year 1 means that there is none.
    pub(crate) scheduled_at: Timestamp,
    pub(crate) description: String,
    pub(crate) kind: InitiationType,
    pub(crate) source: Option<AccountId>,
    pub(crate) destination: AccountId,
    pub(crate) initial_amount: Balance,
    /// The amount minus the reversals.
    pub(crate) amount: Balance,
    pub(crate) asset: String,
    pub(crate) metadata: Metadata,
    /// All steps, oldest first; at least one.
    pub(crate) steps: Vec<Step>,
    pub(crate) payments: Vec<RelatedPayment>,
    /// The reversals, requested or completed.
    pub(crate) reversals: Vec<Reversal>,
}

/// A step of an initiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) id: Uuid,
    pub(crate) created_at: Timestamp,
    pub(crate) status: InitiationStatus,
    pub(crate) error: String,
    pub(crate) metadata: Metadata,
}

impl Step {
    /// Creates a step without an error.
    ///
    /// # Errors
    ///
    /// Fails if the operating system returns no random bytes.
    pub(crate) fn new(status: InitiationStatus, now: Timestamp) -> Result<Self, getrandom::Error> {
        let (error, metadata) = (String::new(), Metadata::new());
        Ok(Self { id: Uuid::random()?, created_at: now, status, error, metadata })
    }
}

/// The payment that a connector created from an initiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelatedPayment {
    pub(crate) payment: PaymentId,
    pub(crate) created_at: Timestamp,
    pub(crate) status: InitiationStatus,
    pub(crate) error: String,
}

/// A requested reversal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reversal {
    pub(crate) reference: String,
    pub(crate) description: String,
    pub(crate) amount: Balance,
    pub(crate) metadata: Metadata,
}

impl Initiation {
    /// The filter keys of transfer initiations.
    pub(crate) const FILTER: Keys = Keys {
        keys: &[("source_account_id", ACCOUNT), ("destination_account_id", ACCOUNT)],
        has_metadata: false,
    };

    /// Returns the last step, which determines the status.
    pub(crate) fn step(&self) -> &Step {
        self.steps.last().expect("an initiation is created with its first step")
    }

    /// Returns the current status.
    pub(crate) fn status(&self) -> InitiationStatus {
        self.step().status
    }
}

impl Row for Initiation {
    fn value(&self, key: &str) -> Option<Value> {
        match key {
            "source_account_id" => {
                Some(Value::Text(self.source.as_ref().map(AccountId::text).unwrap_or_default()))
            }
            "destination_account_id" => Some(Value::Text(self.destination.text())),
            _ => None,
        }
    }

    fn metadata(&self, _: &str) -> Option<&str> {
        None
    }
}

impl Record for Initiation {
    const COLLECTION: Collection = TRANSFER_INITIATIONS;
    const NAME: &'static str = "a transfer initiation";

    fn key(&self) -> Vec<u8> {
        self.id.key()
    }

    fn keys(&self) -> Vec<DocumentKey> {
        vec![ordered(BY_DATE, date_key(self.created_at)), ordered(BY_REFERENCE, text_key(&self.id.reference))]
    }

    fn encode(&self, out: &mut Encoder) {
        let home = &self.id.connector;
        out.text(&home.provider).time(self.created_at).time(self.scheduled_at).text(&self.description);
        out.byte(self.kind.number());
        encode_link(out, self.source.as_ref(), home);
        encode_link(out, Some(&self.destination), home);
        out.number(&self.initial_amount).number(&self.amount).text(&self.asset).metadata(&self.metadata);
        out.count(self.steps.len());
        for step in &self.steps {
            out.raw(step.id.bytes()).time(step.created_at).byte(step.status.number());
            out.text(&step.error).metadata(&step.metadata);
        }
        out.count(self.payments.len());
        for payment in &self.payments {
            out.byte(payment.payment.kind.number()).text(&payment.payment.reference);
            out.time(payment.created_at).byte(payment.status.number()).text(&payment.error);
        }
        out.count(self.reversals.len());
        for reversal in &self.reversals {
            out.text(&reversal.reference).text(&reversal.description).number(&reversal.amount);
            out.metadata(&reversal.metadata);
        }
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        let provider: Arc<str> = input.text()?.into();
        let (connector, reference) = ids::of_key(key, provider)?;
        let id = InitiationId { connector, reference };
        Some(Self {
            created_at: input.time()?,
            scheduled_at: input.time()?,
            description: input.string()?,
            kind: InitiationType::of_number(input.byte()?)?,
            source: decode_link(input, &id.connector)?,
            destination: decode_link(input, &id.connector)??,
            initial_amount: input.number()?,
            amount: input.number()?,
            asset: input.string()?,
            metadata: input.metadata()?,
            steps: (0..input.count()?).map(|_| decode_step(input)).collect::<Option<Vec<_>>>()?,
            payments: (0..input.count()?).map(|_| decode_payment(input, &id)).collect::<Option<_>>()?,
            reversals: (0..input.count()?).map(|_| decode_reversal(input)).collect::<Option<_>>()?,
            id,
        })
        .filter(|initiation: &Self| !initiation.steps.is_empty())
    }
}

fn decode_step(input: &mut Decoder<'_>) -> Option<Step> {
    Some(Step {
        id: Uuid::from_bytes(input.raw()?.try_into().ok()?),
        created_at: input.time()?,
        status: InitiationStatus::of_number(input.byte()?)?,
        error: input.string()?,
        metadata: input.metadata()?,
    })
}

fn decode_payment(input: &mut Decoder<'_>, id: &InitiationId) -> Option<RelatedPayment> {
    let kind = PaymentType::of_number(input.byte()?)?;
    let payment = PaymentId { connector: id.connector.clone(), kind, reference: input.string()? };
    Some(RelatedPayment {
        payment,
        created_at: input.time()?,
        status: InitiationStatus::of_number(input.byte()?)?,
        error: input.string()?,
    })
}

fn decode_reversal(input: &mut Decoder<'_>) -> Option<Reversal> {
    Some(Reversal {
        reference: input.string()?,
        description: input.string()?,
        amount: input.number()?,
        metadata: input.metadata()?,
    })
}

/// Returns the initiation with this id.
pub(crate) fn find(
    snapshot: &Snapshot,
    id: &InitiationId,
) -> Result<Option<Versioned<Initiation>>, ReadError> {
    let found = record::find::<Initiation>(snapshot, &id.key())?;
    Ok(found.filter(|found| found.value.id == *id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payments::ids::ConnectorId;

    #[test]
    fn an_initiation_is_read_as_it_was_written() {
        let connector = ConnectorId { provider: "STRIPE".into(), installation: Uuid::from_bytes([7; 16]) };
        let account = AccountId { connector: connector.clone(), reference: "a".to_owned() };
        let at = Timestamp::from_micros(3);
        let payment =
            PaymentId { connector: connector.clone(), kind: PaymentType::Payout, reference: "p".to_owned() };
        let initiation = Initiation {
            id: InitiationId { connector, reference: "t".to_owned() },
            created_at: at,
            scheduled_at: at,
            description: "rent".to_owned(),
            kind: InitiationType::Payout,
            source: None,
            destination: account,
            initial_amount: Balance::from(5),
            amount: Balance::from(4),
            asset: "EUR/2".to_owned(),
            metadata: Metadata::new(),
            steps: vec![Step {
                id: Uuid::from_bytes([1; 16]),
                created_at: at,
                status: InitiationStatus::Failed,
                error: "no".to_owned(),
                metadata: Metadata::from([("k".to_owned(), "v".to_owned())]),
            }],
            payments: vec![RelatedPayment {
                payment,
                created_at: at,
                status: InitiationStatus::Processed,
                error: String::new(),
            }],
            reversals: vec![Reversal {
                reference: "r".to_owned(),
                description: String::new(),
                amount: Balance::from(1),
                metadata: Metadata::new(),
            }],
        };
        let mut out = Encoder::default();
        initiation.encode(&mut out);
        let bytes = out.into_bytes();
        assert_eq!(Initiation::decode(&initiation.key(), &mut Decoder::new(&bytes)), Some(initiation));
    }
}
