//! Explains which transactions a payment made, or why it made none.

use ledger_core::{LedgerName, Timestamp};
use ledger_store::{ReadError, Snapshot};

use crate::payments::payment::Payment;
use crate::payments::postings::posting::{self, Basis, NotPostable, Posting};
use crate::payments::postings::rule;
use crate::payments::postings::transactions::with_reference;

/// Maximum number of transactions in an explanation. Bounds the number of lookups. The newest transactions are
/// included.
const TRANSACTIONS_MAX: usize = 100;

/// The transactions of a payment, and the reason if the ledger does not contain its current state.
#[derive(Debug)]
pub(crate) struct Explanation {
    /// `true` if the ledger contains the payment now. If it contains an earlier state of it, `reason` says why.
    pub(crate) is_posted: bool,
    /// The transactions, newest first.
    pub(crate) transactions: Vec<PostedTransaction>,
    /// The reason why the ledger does not contain the current state of the payment.
    pub(crate) reason: Option<Reason>,
}

/// A transaction that a payment made.
#[derive(Debug)]
pub(crate) struct PostedTransaction {
    pub(crate) ledger: LedgerName,
    pub(crate) id: u64,
    pub(crate) reference: String,
    pub(crate) timestamp: Timestamp,
    /// Id of the transaction that reverts this one.
    pub(crate) reverted_by: Option<u64>,
}

/// A reason as an error code and a sentence.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Reason {
    fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// Explains the transactions of a payment.
///
/// # Errors
///
/// Fails if the store cannot be read.
pub(crate) fn explain(snapshot: &Snapshot, payment: &Payment) -> Result<Explanation, ReadError> {
    let found = posting::find(snapshot, &payment.id)?;
    let posting = found.map_or_else(|| Posting::none(&payment.id), |found| found.value);
    let has_rule = rule::find(snapshot, &payment.id.connector)?.is_some();
    let transactions = transactions(snapshot, &posting)?;
    // A deleted ledger yields no transactions, although the posting still has one.
    let is_lost = posting.current.is_some() && transactions.is_empty();
    let reason = if is_lost {
        Some(Reason::new("LEDGER_NOT_FOUND", "the ledger that held its transactions was deleted"))
    } else {
        reason(&posting, payment, has_rule)
    };
    Ok(Explanation { is_posted: posting.current.is_some() && !is_lost, transactions, reason })
}

fn reason(posting: &Posting, payment: &Payment, has_rule: bool) -> Option<Reason> {
    let due = Basis::of(payment);
    if let (Some(current), Ok(due)) = (&posting.current, &due)
        && current == due
    {
        return None;
    }
    if !has_rule {
        return Some(Reason::new("OFF", "posting is switched off for this connector installation"));
    }
    if let Some(refusal) = &posting.refusal {
        return Some(Reason::new(&refusal.code, format!("refused at {}: {}", refusal.at, refusal.message)));
    }
    Some(match due {
        Err(NotPostable::Status(status)) => {
            let message = format!("the payment is {}: only SUCCEEDED ones are posted", status.name());
            Reason::new("STATUS", message)
        }
        Err(NotPostable::Amount(amount)) => {
            Reason::new("AMOUNT", format!("the amount is {amount}: only amounts above 0 are posted"))
        }
        Ok(_) => Reason::new(
            "NOT_CHANGED",
            "the payment has not changed since posting was switched on: \
             POST /connectors/{connector}/{connectorId}/postings/run posts it",
        ),
    })
}

fn transactions(snapshot: &Snapshot, posting: &Posting) -> Result<Vec<PostedTransaction>, ReadError> {
    let mut made = Vec::new();
    let Some(name) = &posting.ledger else { return Ok(made) };
    let Some(ledger) = snapshot.ledger(name) else { return Ok(made) };
    for number in (1..=posting.transactions).rev().take(TRANSACTIONS_MAX) {
        let reference = Posting::reference(&posting.payment, number);
        let Some(found) = with_reference(&ledger, &reference)? else { continue };
        made.push(PostedTransaction {
            ledger: name.clone(),
            id: found.transaction.id.get(),
            reference,
            timestamp: found.transaction.timestamp,
            reverted_by: found.reverted_by.map(ledger_core::TransactionId::get),
        });
    }
    Ok(made)
}
