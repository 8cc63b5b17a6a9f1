//! Records payments together with their transactions.

use std::collections::BTreeMap;

use ledger_core::{Rejection, Timestamp};
use ledger_store::{
    AtomicWrite, DocumentChange, DocumentRejection, LedgerCommand, Outcome, Snapshot, WriteError,
};

use crate::http::error::ApiError;
use crate::payments::ids::{ConnectorId, PaymentId};
use crate::payments::payment::Payment;
use crate::payments::postings::plan::{Plan, Planner};
use crate::payments::postings::posting::Refusal;
use crate::payments::record;
use crate::payments::service::Payments;

/// Changes of documents, and the payments that they contain.
pub(crate) struct PaymentChanges<T> {
    pub(crate) changes: Vec<DocumentChange>,
    /// The new and changed payments in their current state.
    pub(crate) payments: Vec<Payment>,
    pub(crate) answer: T,
}

/// Maximum number of attempts when other writes change the same records.
const ATTEMPTS: usize = 64;

/// The result of an attempt.
enum Attempt {
    PaymentChanges,
    /// Another write has changed a record on which the attempt was based.
    Overtaken,
    /// The ledger refuses some commands. The numbers are indexes of plans. Nothing is recorded.
    Refused(Vec<(usize, Refusal)>),
}

impl Payments {
    /// Records payments of an installation. If it has a posting rule, the same commit records their transactions. If a
    /// transaction is refused, its payment is recorded with the reason; this does not affect other payments.
    ///
    /// Calls `build` again after a refusal or a conflict with another write.
    ///
    /// # Errors
    ///
    /// Returns errors of `build`. Also fails if the store cannot be written.
    pub(crate) fn write_payments<T>(
        &self,
        connector: &ConnectorId,
        now: Timestamp,
        mut build: impl FnMut(&Snapshot) -> Result<PaymentChanges<T>, ApiError>,
    ) -> Result<T, ApiError> {
        let _guard = self.read_lock();
        let mut refusals: BTreeMap<PaymentId, Refusal> = BTreeMap::new();
        let mut overtaken = 0;
        while overtaken < ATTEMPTS {
            let snapshot = self.snapshot();
            let PaymentChanges { changes, payments, answer } = build(&snapshot)?;
            let mut plans = Vec::new();
            if !payments.is_empty()
                && let Some(planner) = Planner::of(&snapshot, connector, now)?
            {
                for payment in &payments {
                    let mut plan = planner.plan(payment)?;
                    if let Some(refusal) = refusals.get(&payment.id) {
                        plan.refuse(refusal.clone());
                    }
                    plans.push(plan);
                }
            }
            match self.attempt(changes, &mut plans, now)? {
                Attempt::PaymentChanges => return Ok(answer),
                Attempt::Overtaken => {
                    refusals.clear();
                    overtaken += 1;
                }
                Attempt::Refused(refused) => {
                    let of_payments = refused.into_iter();
                    refusals
                        .extend(of_payments.map(|(at, refusal)| (plans[at].after.payment.clone(), refusal)));
                }
            }
        }
        Err(ApiError::busy("others change the same at this moment"))
    }

    /// Commits the changes with the commands of the plans, or nothing.
    fn attempt(
        &self,
        mut documents: Vec<DocumentChange>,
        plans: &mut [Plan],
        now: Timestamp,
    ) -> Result<Attempt, ApiError> {
        let (mut commands, mut owners): (Vec<LedgerCommand>, Vec<usize>) = (vec![], vec![]);
        for (at, plan) in plans.iter_mut().enumerate().filter(|(_, plan)| !plan.is_empty()) {
            owners.extend(std::iter::repeat_n(at, plan.commands.len()));
            commands.append(&mut plan.commands);
            documents.push(record::put(&plan.after, plan.before.1));
        }
        if documents.is_empty() {
            return Ok(Attempt::PaymentChanges);
        }
        let written = if commands.is_empty() {
            self.store.change_documents(documents).map(|_| vec![])
        } else {
            self.store.write_atomically(AtomicWrite { documents, commands })
        };
        let outcomes = match written {
            Ok(outcomes) => outcomes,
            Err(
                WriteError::Document(DocumentRejection::Changed { .. }) | WriteError::LedgerNotFound { .. },
            ) => {
                return Ok(Attempt::Overtaken);
            }
            Err(error) => return Err(record::refused(error)),
        };
        let mut refused = Vec::new();
        for (at, outcome) in owners.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Refused(Rejection::AlreadyReverted { .. }) => return Ok(Attempt::Overtaken),
                Outcome::Refused(rejection) => {
                    refused.push((at, Refusal::of(&ApiError::from(rejection), now)));
                }
                Outcome::Done(_) | Outcome::Cancelled => {}
                Outcome::Failed(error) => return Err(error.into()),
            }
        }
        Ok(if refused.is_empty() { Attempt::PaymentChanges } else { Attempt::Refused(refused) })
    }
}
