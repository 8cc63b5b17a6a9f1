//! The commands that bring the ledger up to date with a payment.

use ledger_core::script::{Profile, Program};
use ledger_core::{
    Command, CreateTransaction, ErrorWording, LedgerName, Metadata, Movement, Overdraft, Postings, Reference,
    RevertDate, RevertTransaction, Rules, Script, Timestamp,
};
use ledger_store::{Expected, LedgerCommand, LedgerView, ReadError, Request, Snapshot};

use crate::http::error::{self, ApiError};
use crate::payments::ids::{ConnectorId, PaymentId};
use crate::payments::payment::Payment;
use crate::payments::postings::posting::{self, Basis, Posting, Refusal};
use crate::payments::postings::rule::{self, PostingRule};
use crate::payments::postings::transactions::with_reference;
use crate::payments::postings::variables;
use crate::payments::service::require_installation;

/// The metadata key by which a transaction names its payment.
pub(crate) const PAYMENT_KEY: &str = "payment_id";

/// Maximum length of the message that a refusal keeps, in characters. Bounds the size of a posting.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// The compiled rule of an installation, with the context to apply it to payments.
pub(super) struct Planner<'a> {
    snapshot: &'a Snapshot,
    rule: PostingRule,
    program: Program,
    connector_name: String,
    now: Timestamp,
}

/// The change of the ledger that a payment requires.
pub(super) struct Plan {
    /// The state of the posting before the commands, and the version that it must have.
    pub(super) before: (Posting, Expected),
    /// The state of the posting after the commands.
    pub(super) after: Posting,
    pub(super) commands: Vec<LedgerCommand>,
}

impl Plan {
    /// Drops the commands. The posting stays as it was, except for the refusal.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.after = Posting { refusal: Some(refusal), ..self.before.0.clone() };
        self.commands.clear();
    }

    /// Returns whether the plan changes nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.after == self.before.0
    }
}

impl Refusal {
    /// Creates a refusal with the error code of the ledger API.
    pub(super) fn of(error: &ApiError, at: Timestamp) -> Self {
        let message = error.message.chars().take(MESSAGE_CHARS_MAX).collect();
        Self { code: error.code.text(error::Profile::Ledger).to_owned(), message, at }
    }
}

impl<'a> Planner<'a> {
    /// Creates the planner of an installation. Returns `None` if the installation has no posting rule.
    ///
    /// # Errors
    ///
    /// `INTERNAL` if the store cannot be read, or if the stored script does not compile. `VALIDATION` if the
    /// installation does not exist.
    pub(super) fn of(
        snapshot: &'a Snapshot,
        connector: &ConnectorId,
        now: Timestamp,
    ) -> Result<Option<Self>, ApiError> {
        let Some(found) = rule::find(snapshot, connector)? else { return Ok(None) };
        let rule = found.value;
        let program = Program::compile(&rule.script, Profile::Default)
            .map_err(|error| ApiError::fault(&format!("a stored script does not compile: {error}")))?;
        let connector_name = require_installation(snapshot, connector)?.value.name;
        Ok(Some(Self { snapshot, rule, program, connector_name, now }))
    }

    /// Compares a payment with its transactions in the ledger, and plans the commands for the difference.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub(super) fn plan(&self, payment: &Payment) -> Result<Plan, ReadError> {
        let (before, expected) = match posting::find(self.snapshot, &payment.id)? {
            None => (Posting::none(&payment.id), Expected::Absent),
            Some(found) => (found.value, Expected::Version(found.version)),
        };
        // `None` if the ledger must not contain the payment.
        let due = Basis::of(payment).ok();
        let after = Posting { refusal: None, ..before.clone() };
        let mut plan = Plan { before: (before, expected), after, commands: vec![] };
        if plan.after.current == due {
            return Ok(plan);
        }
        let ledger = plan.after.ledger.clone().unwrap_or_else(|| self.rule.ledger.clone());
        let Some(view) = self.snapshot.ledger(&ledger) else {
            plan.refuse(Refusal::of(&ApiError::ledger_not_found(), self.now));
            return Ok(plan);
        };
        if plan.after.current.take().is_some()
            && let Some(command) = revert(&view, &payment.id, plan.after.transactions)?
        {
            plan.commands.push(self.to_ledger(&ledger, command));
        }
        if let Some(basis) = due {
            plan.after.transactions += 1;
            match self.create(payment, plan.after.transactions) {
                Ok(command) => {
                    plan.commands.push(self.to_ledger(&ledger, command));
                    plan.after.current = Some(basis);
                    plan.after.ledger = Some(ledger);
                }
                Err(error) => plan.refuse(Refusal::of(&error, self.now)),
            }
        }
        Ok(plan)
    }

    /// Addresses a command to a ledger. The schema version of the rule validates the command.
    fn to_ledger(&self, ledger: &LedgerName, command: Command) -> LedgerCommand {
        let schema_version = self.rule.schema_version.clone().map(Box::new);
        let request = Request { schema_version, ..command.into() };
        LedgerCommand { ledger: ledger.clone(), request }
    }

    /// Returns the command that creates transaction `number` of a payment. The first transaction has the date of the
    /// payment; a correction has its own date.
    fn create(&self, payment: &Payment, number: u32) -> Result<Command, ApiError> {
        let reference = Reference::parse(&Posting::reference(&payment.id, number))
            .map_err(|error| ApiError::validation(error.to_string()))?;
        let variables =
            variables::values(&self.program, payment, &self.rule.account_prefix, &self.connector_name);
        let plain = self.rule.script.clone();
        let script = Script { plain, variables, wording: ErrorWording::Machine, ..Script::default() };
        Ok(Command::CreateTransaction(CreateTransaction {
            movement: Movement::Script(script),
            metadata: payment_metadata(&payment.id),
            timestamp: (number == 1).then_some(payment.created_at),
            reference: Some(reference),
            ..CreateTransaction::of(Postings::default())
        }))
    }
}

/// Returns the command that reverts a transaction of a payment, or `None` if it is reverted already. The provider has
/// moved the money back, so the balances of the accounts may become negative.
fn revert(ledger: &LedgerView, payment: &PaymentId, number: u32) -> Result<Option<Command>, ReadError> {
    let found = with_reference(ledger, &Posting::reference(payment, number))?;
    let standing = found.filter(|found| found.reverted_by.is_none());
    Ok(standing.map(|found| {
        Command::RevertTransaction(RevertTransaction {
            id: found.transaction.id,
            overdraft: Overdraft::Allow,
            dated: RevertDate::Now,
            metadata: payment_metadata(payment),
            rules: Rules::Current,
        })
    }))
}

/// Returns the metadata by which a transaction names its payment.
fn payment_metadata(payment: &PaymentId) -> Metadata {
    let mut metadata = Metadata::EMPTY;
    metadata.insert_text(PAYMENT_KEY, &payment.text());
    metadata
}
