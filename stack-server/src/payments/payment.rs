//! Payments, and the adjustments that providers report.

use std::sync::Arc;

use ledger_core::{Balance, Timestamp};
use ledger_store::{Collection, DocumentKey};

use crate::collections::PAYMENTS;
use crate::payments::account::{decode_link, encode_link};
use crate::payments::codec::{
    Decoder, Encoder, Metadata, date_key, number_key, terminated_text_key, text_key,
};
use crate::payments::enumerations::{PaymentStatus, PaymentType, Scheme};
use crate::payments::filter::{KeyKind, Keys, Row, Value};
use crate::payments::ids::{AccountId, ConnectorId, PaymentId};
use crate::payments::record::{DATED, Record, dated, ordered};

/// Indexes of payments, by the field that each sorts by. Fields with few values have dated ones: new entries then come at
/// the end of each value, and a list of one value is read in the order of its dates.
pub(crate) const BY_DATE: u32 = 1;
pub(crate) const BY_REFERENCE: u32 = 2;
pub(crate) const BY_AMOUNT: u32 = 3;
pub(crate) const BY_INITIAL_AMOUNT: u32 = 4;
/// Sorts by the date of the last change, for clients that follow changes.
pub(crate) const BY_CHANGE: u32 = 9;
pub(crate) const BY_STATUS: u32 = DATED;
pub(crate) const BY_TYPE: u32 = DATED + 1;
pub(crate) const BY_SCHEME: u32 = DATED + 2;
pub(crate) const BY_ASSET: u32 = DATED + 3;
pub(crate) const BY_CONNECTOR: u32 = DATED + 4;

/// A payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payment {
    pub(crate) id: PaymentId,
    pub(crate) source: Option<AccountId>,
    pub(crate) destination: Option<AccountId>,
    pub(crate) status: PaymentStatus,
    /// The amount in the first record of the payment.
    pub(crate) initial_amount: Balance,
    /// The amount minus refunds and chargebacks.
    pub(crate) amount: Balance,
    pub(crate) scheme: Scheme,
    pub(crate) asset: String,
    pub(crate) created_at: Timestamp,
    /// The first record of the provider, a JSON object.
    pub(crate) raw: Option<String>,
    /// The adjustments in the order of their arrival. Each reference occurs once.
    pub(crate) adjustments: Vec<Adjustment>,
    pub(crate) metadata: Metadata,
    /// The provider's date of the stored state. A record with an earlier date does not change the state.
    pub(crate) revision: Option<Timestamp>,
    /// Time of the last change of this record.
    pub(crate) changed_at: Timestamp,
}

/// A change of a payment, such as a refund, a failure or a dispute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Adjustment {
    /// The provider's id of the change.
    pub(crate) reference: String,
    pub(crate) created_at: Timestamp,
    pub(crate) status: PaymentStatus,
    /// The amount of the change; `None` if only the status changed.
    pub(crate) amount: Option<Balance>,
    /// The provider's record, a JSON object.
    pub(crate) raw: String,
}

impl Payment {
    /// The filter keys of payments.
    pub(crate) const FILTER: Keys = Keys {
        keys: &[
            ("reference", KeyKind::OrderedText),
            ("amount", KeyKind::Number),
            ("initialAmount", KeyKind::Number),
            ("type", KeyKind::Word(|word| PaymentType::parse(word).is_some())),
            ("status", KeyKind::Word(|word| PaymentStatus::parse(word).is_some())),
            ("asset", KeyKind::Text),
            ("connectorID", KeyKind::Id(|text| ConnectorId::parse(text).map(|id| id.text()))),
        ],
        has_metadata: true,
    };
}

/// The fields of [`dated_value`], in the order in which a filter prefers them.
pub(crate) const DATED_FIELDS: [&str; 4] = ["status", "asset", "type", "connectorID"];

/// The dated index of a field, and the value in it of a filter's text; `None` if the field has no such index, or no payment
/// can have the value.
pub(crate) fn dated_value(field: &str, text: &str) -> Option<(u32, Vec<u8>)> {
    Some(match field {
        "status" => (BY_STATUS, vec![PaymentStatus::parse(text)?.number()]),
        "type" => (BY_TYPE, vec![PaymentType::parse(text)?.number()]),
        "asset" => (BY_ASSET, terminated_text_key(text)),
        "connectorID" => (BY_CONNECTOR, ConnectorId::parse(text)?.installation.bytes().to_vec()),
        _ => return None,
    })
}

impl Row for Payment {
    fn value(&self, key: &str) -> Option<Value> {
        Some(match key {
            "reference" => Value::Text(self.id.reference.clone()),
            "amount" => Value::Number(self.amount.clone()),
            "initialAmount" => Value::Number(self.initial_amount.clone()),
            "type" => Value::Text(self.id.kind.name().to_owned()),
            "status" => Value::Text(self.status.name().to_owned()),
            "asset" => Value::Text(self.asset.clone()),
            "connectorID" => Value::Text(self.id.connector.text()),
            _ => return None,
        })
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }
}

impl Record for Payment {
    const COLLECTION: Collection = PAYMENTS;
    const NAME: &'static str = "a payment";

    fn key(&self) -> Vec<u8> {
        self.id.key()
    }

    fn keys(&self) -> Vec<DocumentKey> {
        let date = self.created_at;
        vec![
            ordered(BY_DATE, date_key(date)),
            ordered(BY_REFERENCE, text_key(&self.id.reference)),
            ordered(BY_AMOUNT, number_key(&self.amount)),
            ordered(BY_INITIAL_AMOUNT, number_key(&self.initial_amount)),
            ordered(BY_CHANGE, date_key(self.changed_at)),
            dated(BY_STATUS, &[self.status.number()], date),
            dated(BY_TYPE, &[self.id.kind.number()], date),
            dated(BY_SCHEME, &terminated_text_key(self.scheme.name()), date),
            dated(BY_ASSET, &terminated_text_key(&self.asset), date),
            dated(BY_CONNECTOR, self.id.connector.installation.bytes(), date),
        ]
    }

    fn encode(&self, out: &mut Encoder) {
        out.text(&self.id.connector.provider);
        encode_link(out, self.source.as_ref(), &self.id.connector);
        encode_link(out, self.destination.as_ref(), &self.id.connector);
        out.byte(self.status.number()).number(&self.initial_amount).number(&self.amount);
        out.byte(self.scheme.number()).text(&self.asset).time(self.created_at);
        out.optional_text(self.raw.as_deref()).count(self.adjustments.len());
        for adjustment in &self.adjustments {
            out.text(&adjustment.reference).time(adjustment.created_at).byte(adjustment.status.number());
            match &adjustment.amount {
                None => out.byte(0),
                Some(amount) => out.byte(1).number(amount),
            };
            out.text(&adjustment.raw);
        }
        out.metadata(&self.metadata).time(self.changed_at);
        match self.revision {
            None => out.byte(0),
            Some(at) => out.byte(1).time(at),
        };
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        let provider: Arc<str> = input.text()?.into();
        let id = PaymentId::of_key(key, provider)?;
        let source = decode_link(input, &id.connector)?;
        let destination = decode_link(input, &id.connector)?;
        let status = PaymentStatus::of_number(input.byte()?)?;
        let (initial_amount, amount) = (input.number()?, input.number()?);
        let scheme = Scheme::of_number(input.byte()?)?;
        let (asset, created_at) = (input.string()?, input.time()?);
        let raw = input.optional_text()?.map(str::to_owned);
        let adjustments = (0..input.count()?).map(|_| decode_adjustment(input)).collect::<Option<_>>()?;
        let (metadata, changed_at) = (input.metadata()?, input.time()?);
        let revision = match input.byte()? {
            0 => None,
            _ => Some(input.time()?),
        };
        Some(Self {
            id,
            source,
            destination,
            status,
            initial_amount,
            amount,
            scheme,
            asset,
            created_at,
            raw,
            adjustments,
            metadata,
            revision,
            changed_at,
        })
    }
}

fn decode_adjustment(input: &mut Decoder<'_>) -> Option<Adjustment> {
    Some(Adjustment {
        reference: input.string()?,
        created_at: input.time()?,
        status: PaymentStatus::of_number(input.byte()?)?,
        amount: match input.byte()? {
            0 => None,
            _ => Some(input.number()?),
        },
        raw: input.string()?,
    })
}

/// A payment to record, from a connector or a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewPayment {
    pub(crate) kind: PaymentType,
    pub(crate) reference: String,
    pub(crate) source: Option<AccountId>,
    pub(crate) destination: Option<AccountId>,
    pub(crate) status: PaymentStatus,
    pub(crate) initial_amount: Balance,
    pub(crate) amount: Balance,
    pub(crate) scheme: Scheme,
    pub(crate) asset: String,
    pub(crate) created_at: Timestamp,
    pub(crate) raw: Option<String>,
    pub(crate) adjustments: Vec<Adjustment>,
    pub(crate) metadata: Metadata,
    pub(crate) revision: Option<Timestamp>,
}

impl NewPayment {
    /// Merges this payment into the stored one. Returns `None` if nothing changes.
    pub(crate) fn merge_into(
        self,
        connector: &ConnectorId,
        stored: Option<Payment>,
        now: Timestamp,
    ) -> Option<Payment> {
        let Some(stored) = stored else { return Some(self.into_new_record(connector, now)) };
        let mut merged = stored.clone();
        let is_older =
            matches!((stored.revision, self.revision), (Some(have), Some(fetched)) if fetched < have);
        // Add new adjustments always, but take the other fields only from the most recent record.
        for adjustment in self.adjustments {
            add_adjustment(&mut merged.adjustments, adjustment);
        }
        if !is_older {
            merged.source = self.source;
            merged.destination = self.destination;
            merged.status = self.status;
            merged.amount = self.amount;
            merged.scheme = self.scheme;
            merged.asset = self.asset;
            merged.created_at = self.created_at;
            merged.metadata.extend(self.metadata);
        }
        merged.revision = self.revision.max(stored.revision);
        // A record that differs only in its date is not a change.
        let is_same = merged == Payment { revision: merged.revision, ..stored };
        if is_same {
            return None;
        }
        merged.changed_at = now.max(merged.changed_at);
        Some(merged)
    }

    fn into_new_record(self, connector: &ConnectorId, now: Timestamp) -> Payment {
        let mut adjustments = Vec::with_capacity(self.adjustments.len());
        for adjustment in self.adjustments {
            add_adjustment(&mut adjustments, adjustment);
        }
        Payment {
            id: PaymentId { connector: connector.clone(), kind: self.kind, reference: self.reference },
            source: self.source,
            destination: self.destination,
            status: self.status,
            initial_amount: self.initial_amount,
            amount: self.amount,
            scheme: self.scheme,
            asset: self.asset,
            created_at: self.created_at,
            raw: self.raw,
            adjustments,
            metadata: self.metadata,
            revision: self.revision,
            changed_at: now,
        }
    }
}

/// Adds an adjustment if its reference is new.
fn add_adjustment(adjustments: &mut Vec<Adjustment>, adjustment: Adjustment) {
    if adjustments.iter().all(|have| have.reference != adjustment.reference) {
        adjustments.push(adjustment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uuid::Uuid;

    fn connector() -> ConnectorId {
        ConnectorId { provider: "GENERIC".into(), installation: Uuid::from_bytes([7; 16]) }
    }

    fn fetched(amount: i64) -> NewPayment {
        NewPayment {
            kind: PaymentType::PayIn,
            reference: "p".to_owned(),
            source: None,
            destination: Some(AccountId { connector: connector(), reference: "a".to_owned() }),
            status: PaymentStatus::Pending,
            initial_amount: Balance::from(amount),
            amount: Balance::from(amount),
            scheme: Scheme::Visa,
            asset: "EUR/2".to_owned(),
            created_at: Timestamp::from_micros(5),
            raw: Some("{\"id\":1}".to_owned()),
            adjustments: vec![],
            metadata: Metadata::from([("k".to_owned(), "v".to_owned())]),
            revision: None,
        }
    }

    fn refund(reference: &str) -> Adjustment {
        Adjustment {
            reference: reference.to_owned(),
            created_at: Timestamp::from_micros(9),
            status: PaymentStatus::Refunded,
            amount: Some(Balance::from(3)),
            raw: "{}".to_owned(),
        }
    }

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn a_payment_is_read_as_it_was_written() {
        let mut fetched = fetched(1_200);
        fetched.adjustments = vec![refund("r"), Adjustment { amount: None, ..refund("s") }];
        fetched.revision = Some(at(3));
        let elsewhere = ConnectorId { provider: "STRIPE".into(), installation: Uuid::from_bytes([8; 16]) };
        fetched.source = Some(AccountId { connector: elsewhere, reference: "x".to_owned() });
        let payment = fetched.merge_into(&connector(), None, at(1)).expect("it is new");
        let mut out = Encoder::default();
        payment.encode(&mut out);
        let bytes = out.into_bytes();
        assert_eq!(Payment::decode(&payment.key(), &mut Decoder::new(&bytes)), Some(payment));
    }

    #[test]
    fn merging_keeps_first_facts_and_takes_changes() {
        let first = fetched(10).merge_into(&connector(), None, at(1)).expect("it is new");
        assert_eq!(fetched(10).merge_into(&connector(), Some(first.clone()), at(2)), None);
        let mut later = fetched(4);
        later.raw = Some("{\"id\":2}".to_owned());
        later.metadata = Metadata::from([("l".to_owned(), "w".to_owned())]);
        later.adjustments = vec![refund("r"), refund("r")];
        let merged = later.clone().merge_into(&connector(), Some(first), at(2)).expect("it changed");
        assert_eq!((merged.initial_amount.clone(), merged.amount.clone()), (10.into(), 4.into()));
        assert_eq!(merged.raw.as_deref(), Some("{\"id\":1}"));
        assert_eq!(merged.metadata.len(), 2);
        assert_eq!((merged.adjustments.len(), merged.changed_at), (1, at(2)));
        assert_eq!(later.merge_into(&connector(), Some(merged), at(3)), None);
    }

    #[test]
    fn older_news_are_passed_over() {
        let dated = |amount, revision| NewPayment { revision: Some(at(revision)), ..fetched(amount) };
        let first = dated(10, 5).merge_into(&connector(), None, at(1)).expect("it is new");
        assert_eq!(dated(9, 4).merge_into(&connector(), Some(first.clone()), at(2)), None);
        assert_eq!(dated(10, 6).merge_into(&connector(), Some(first.clone()), at(2)), None);
        assert!(dated(9, 5).merge_into(&connector(), Some(first.clone()), at(2)).is_some());
        // Adjustments of older records are added.
        let told = NewPayment { adjustments: vec![refund("r")], ..dated(9, 4) };
        let merged = told.merge_into(&connector(), Some(first), at(2)).expect("it has an adjustment");
        assert_eq!((merged.amount, merged.adjustments.len()), (10.into(), 1));
    }
}
