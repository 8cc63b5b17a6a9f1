//! Posts stored payments: payments that are older than the rule, and payments whose transactions were refused.

use ledger_store::{Direction, DocumentRange};

use ledger_core::Timestamp;

use crate::collections::PAYMENTS;
use crate::http::error::ApiError;
use crate::payments::ids::{ConnectorId, PaymentId};
use crate::payments::payment::Payment;
use crate::payments::postings::posting;
use crate::payments::postings::rule;
use crate::payments::postings::write::PaymentChanges;
use crate::payments::record::{self, prefixed};
use crate::payments::service::{Payments, require_installation};

/// Number of payments in one commit.
const PART: usize = 200;

/// Maximum number of payments in one run. Bounds the time of a request.
const PAYMENTS_MAX: usize = 10_000;

/// The result of a run.
#[derive(Debug, Default)]
pub(crate) struct RunReport {
    /// Number of payments that the run examined.
    pub(crate) examined: u64,
    /// Number of examined payments that the ledger now contains.
    pub(crate) posted: u64,
    /// Number of examined payments that the ledger refused.
    pub(crate) refused: u64,
    /// The last examined payment, if there are more payments.
    pub(crate) more_after: Option<PaymentId>,
}

impl Payments {
    /// Posts the payments of an installation in the order of their keys, starting after the payment `after`. Skips a
    /// payment if the ledger contains its current state.
    ///
    /// # Errors
    ///
    /// `NOT_FOUND` if the installation has no posting rule, and an error of the store if the write fails.
    pub(crate) fn run_postings(
        &self,
        connector: &ConnectorId,
        after: Option<&PaymentId>,
        now: Timestamp,
    ) -> Result<RunReport, ApiError> {
        let mut run = RunReport::default();
        let mut beyond = after.map(PaymentId::key);
        while run.examined < PAYMENTS_MAX as u64 {
            let snapshot = self.snapshot();
            require_installation(&snapshot, connector)?;
            if rule::find(&snapshot, connector)?.is_none() {
                return Err(no_posting_rule());
            }
            let range = DocumentRange {
                beyond: beyond.take().map(|key| (vec![], key)),
                limit: PART,
                ..prefixed(connector.installation.bytes(), Direction::Ascending)
            };
            let mut part = Vec::with_capacity(PART);
            for document in snapshot.documents(PAYMENTS, &range)? {
                part.push(record::of::<Payment>(&document)?.value.id);
            }
            self.post(connector, &part, now)?;
            let snapshot = self.snapshot();
            for id in &part {
                let posting = posting::find(&snapshot, id)?.map(|found| found.value);
                let posting = posting.as_ref();
                run.refused += u64::from(posting.is_some_and(|posting| posting.refusal.is_some()));
                run.posted += u64::from(posting.is_some_and(|posting| posting.current.is_some()));
            }
            run.examined += part.len() as u64;
            let is_last = part.len() < PART;
            run.more_after = part.pop().filter(|_| !is_last);
            beyond = run.more_after.as_ref().map(PaymentId::key);
            if is_last {
                break;
            }
        }
        Ok(run)
    }

    /// Posts the current state of payments.
    fn post(&self, connector: &ConnectorId, ids: &[PaymentId], now: Timestamp) -> Result<(), ApiError> {
        self.write_payments(connector, now, |snapshot| {
            let mut payments = Vec::with_capacity(ids.len());
            for id in ids {
                let found = record::find::<Payment>(snapshot, &id.key())?;
                payments.extend(found.map(|found| found.value));
            }
            Ok(PaymentChanges { changes: vec![], payments, answer: () })
        })
    }
}

/// Returns the error for an installation without a posting rule.
pub(crate) fn no_posting_rule() -> ApiError {
    ApiError::not_found("payments of this installation make no transactions")
}
