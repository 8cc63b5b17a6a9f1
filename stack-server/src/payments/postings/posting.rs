//! The posting of a payment: its transactions, or the reason why the last attempt created none.

use std::sync::Arc;

use ledger_core::{Balance, LedgerName, Timestamp};
use ledger_store::{Collection, DocumentKey, ReadError, Snapshot};

use crate::collections::POSTINGS;
use crate::payments::account::{decode_link, encode_link};
use crate::payments::codec::{Decoder, Encoder};
use crate::payments::enumerations::PaymentStatus;
use crate::payments::ids::{AccountId, PaymentId};
use crate::payments::payment::Payment;
use crate::payments::record::{self, Record, Versioned};

/// The state of a payment in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    pub(crate) payment: PaymentId,
    /// The ledger of all transactions of the payment, once there is one.
    pub(crate) ledger: Option<LedgerName>,
    /// Number of transactions of the payment, not counting the transactions that revert them.
    pub(crate) transactions: u32,
    /// The basis of the last transaction; `None` if it is reverted or there is none.
    pub(crate) current: Option<Basis>,
    /// The reason why the ledger does not contain the current state of the payment.
    pub(crate) refusal: Option<Refusal>,
}

/// The properties of a payment that determine its transaction. If one of them changes, the transaction is corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Basis {
    pub(crate) amount: Balance,
    pub(crate) asset: String,
    pub(crate) source: Option<AccountId>,
    pub(crate) destination: Option<AccountId>,
}

/// The reason why a transaction was not created or not corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// An error code of the ledger API.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) at: Timestamp,
}

/// The reason why a payment must not be in the ledger, independently of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotPostable {
    Status(PaymentStatus),
    Amount(Balance),
}

impl Basis {
    /// Returns the basis of the transaction that a payment must have.
    ///
    /// # Errors
    ///
    /// Fails if the ledger must not contain the payment: only payments that have succeeded and moved money are posted.
    pub(crate) fn of(payment: &Payment) -> Result<Self, NotPostable> {
        if payment.status != PaymentStatus::Succeeded {
            return Err(NotPostable::Status(payment.status));
        }
        if payment.amount <= Balance::ZERO {
            return Err(NotPostable::Amount(payment.amount.clone()));
        }
        Ok(Self {
            amount: payment.amount.clone(),
            asset: payment.asset.clone(),
            source: payment.source.clone(),
            destination: payment.destination.clone(),
        })
    }
}

impl Posting {
    /// Creates the posting of a payment without transactions.
    pub(crate) fn none(payment: &PaymentId) -> Self {
        Self { payment: payment.clone(), ledger: None, transactions: 0, current: None, refusal: None }
    }

    /// Returns the reference of a transaction of the payment, by its number from 1.
    pub(crate) fn reference(payment: &PaymentId, number: u32) -> String {
        match number {
            1 => payment.text(),
            more => format!("{}#{more}", payment.text()),
        }
    }
}

impl Record for Posting {
    const COLLECTION: Collection = POSTINGS;
    const NAME: &'static str = "the posting of a payment";

    fn key(&self) -> Vec<u8> {
        self.payment.key()
    }

    fn keys(&self) -> Vec<DocumentKey> {
        vec![]
    }

    fn encode(&self, out: &mut Encoder) {
        let connector = &self.payment.connector;
        out.text(&connector.provider).optional_text(self.ledger.as_ref().map(LedgerName::as_str));
        out.count(self.transactions as usize);
        match &self.current {
            None => {
                out.byte(0);
            }
            Some(basis) => {
                out.byte(1).number(&basis.amount).text(&basis.asset);
                encode_link(out, basis.source.as_ref(), connector);
                encode_link(out, basis.destination.as_ref(), connector);
            }
        }
        match &self.refusal {
            None => out.byte(0),
            Some(refusal) => out.byte(1).text(&refusal.code).text(&refusal.message).time(refusal.at),
        };
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        let provider: Arc<str> = input.text()?.into();
        let payment = PaymentId::of_key(key, provider)?;
        let ledger = match input.optional_text()? {
            None => None,
            Some(text) => Some(LedgerName::parse(text).ok()?),
        };
        let transactions = u32::try_from(input.count()?).ok()?;
        let current = match input.byte()? {
            0 => None,
            _ => Some(Basis {
                amount: input.number()?,
                asset: input.string()?,
                source: decode_link(input, &payment.connector)?,
                destination: decode_link(input, &payment.connector)?,
            }),
        };
        let refusal = match input.byte()? {
            0 => None,
            _ => Some(Refusal { code: input.string()?, message: input.string()?, at: input.time()? }),
        };
        Some(Self { payment, ledger, transactions, current, refusal })
    }
}

/// Returns the posting of a payment, or `None` if nobody has tried to post the payment.
pub(crate) fn find(snapshot: &Snapshot, id: &PaymentId) -> Result<Option<Versioned<Posting>>, ReadError> {
    record::find(snapshot, &id.key())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payments::enumerations::PaymentType;
    use crate::payments::ids::ConnectorId;
    use crate::uuid::Uuid;

    #[test]
    fn posting_is_read_as_written() {
        let connector = ConnectorId { provider: "GENERIC".into(), installation: Uuid::from_bytes([7; 16]) };
        let payment =
            PaymentId { connector: connector.clone(), kind: PaymentType::PayIn, reference: "p".to_owned() };
        let account = AccountId { connector, reference: "a".to_owned() };
        let basis = Basis {
            amount: Balance::from(5),
            asset: "EUR/2".to_owned(),
            source: None,
            destination: Some(account),
        };
        let refusal =
            Refusal { code: "CONFLICT".to_owned(), message: "é".to_owned(), at: Timestamp::from_micros(3) };
        let none = Posting::none(&payment);
        let some = Posting {
            ledger: LedgerName::parse("main").ok(),
            transactions: 3,
            current: Some(basis),
            refusal: Some(refusal),
            ..none.clone()
        };
        for posting in [none, some] {
            let mut out = Encoder::default();
            posting.encode(&mut out);
            let bytes = out.into_bytes();
            let mut input = Decoder::new(&bytes);
            assert_eq!(Posting::decode(&posting.key(), &mut input), Some(posting));
            assert!(input.is_empty());
        }
    }
}
