//! Creates the payload of a command's log entry, or refuses the command.

use super::book::{Book, Totals, add_up, holds, rows};
use super::subjects::BookReads;
use crate::command::{Command, CreateTransaction, Movement, RevertDate, RevertTransaction, Target};
use crate::limits::{METADATA_BYTES_MAX, POSTINGS_MAX, PRECONDITIONS_MAX};
use crate::log::LogPayload;
use crate::overdraft::Overdraft;
use crate::preconditions::Preconditions;
use crate::rejection::Rejection;
use crate::schema::version_of;
use crate::settle::settle;
use ledger_values::{Amount, Balance, Metadata, Posting, Postings, Timestamp, Transaction, TransactionId};

impl Book {
    /// Makes the payload of a command's log entry, or refuses the command.
    pub(super) fn payload(&self, command: &Command, date: Timestamp) -> Result<LogPayload, Rejection> {
        match command {
            Command::CreateTransaction(create) => self.create(create, date),
            Command::RevertTransaction(revert) => self.revert(revert, date),
            Command::SetMetadata { target, metadata } => {
                small_enough(metadata)?;
                if let Target::Transaction(id) = target {
                    self.transaction(*id, None).ok_or(Rejection::TransactionNotFound { id: *id })?;
                }
                Ok(LogPayload::SetMetadata { target: target.clone(), metadata: metadata.clone() })
            }
            Command::DeleteMetadata { target, key } => {
                if let Target::Transaction(id) = target {
                    let found = self.transaction(*id, None);
                    let found = found.ok_or(Rejection::TransactionNotFound { id: *id })?;
                    if found.metadata.get(key).is_none() {
                        return Err(Rejection::MetadataKeyNotFound { key: key.clone() });
                    }
                }
                Ok(LogPayload::DeleteMetadata { target: target.clone(), key: key.clone() })
            }
            Command::InsertSchema(insert) => {
                let exists = self.log.iter().any(|entry| match &entry.payload {
                    LogPayload::InsertedSchema { schema } => {
                        version_of(schema).as_ref() == Some(&insert.version)
                    }
                    _ => false,
                });
                if exists {
                    return Err(Rejection::SchemaExists { version: insert.version.clone() });
                }
                Ok(LogPayload::InsertedSchema { schema: insert.schema.text(&insert.version, date) })
            }
        }
    }

    /// Runs a script and records its result like postings. The script engine is shared with the rules.
    fn script(&self, create: &CreateTransaction, date: Timestamp) -> Result<LogPayload, Rejection> {
        let mut create = create.clone();
        let Movement::Script(script) = &create.movement else {
            unreachable!("the caller passes only scripts");
        };
        let compiled = script.language.compile(&script.plain);
        match settle(&mut create, &compiled, &mut BookReads(self)) {
            Ok(settled) => settled?,
            Err(impossible) => match impossible {},
        }
        self.create(&create, date)
    }

    fn create(&self, create: &CreateTransaction, date: Timestamp) -> Result<LogPayload, Rejection> {
        let postings = match &create.movement {
            Movement::Postings(postings) => postings,
            Movement::Script(_) => return self.script(create, date),
            Movement::Template { .. } => unreachable!("templates were replaced before"),
        };
        check_creation(create)?;
        let mut totals = self.totals(|_, _| true);
        for posting in postings {
            let key = (posting.source.clone(), posting.asset.clone());
            let held = totals.get(&key).cloned().unwrap_or_default();
            let left = Balance::of(&held.input, &(held.output + &posting.amount));
            let left = left + limit_of(&create.overdraft, posting);
            let needs_funds = create.overdraft != Overdraft::Allow
                && posting.source.as_str() != "world"
                && !posting.amount.is_zero();
            if needs_funds && left.is_negative() {
                return Err(lacking(posting, posting.amount.clone(), left));
            }
            add_up(&mut totals, std::slice::from_ref(posting));
        }
        if postings.is_empty() {
            return Err(Rejection::NoPostings);
        }
        if let Some(reference) = &create.reference
            && self.transactions().any(|(_, transaction)| transaction.reference.as_ref() == Some(reference))
        {
            return Err(Rejection::ReferenceTaken { reference: reference.clone() });
        }
        let mut transaction = self.next(postings.clone(), totals, create.timestamp.unwrap_or(date), date);
        transaction.metadata = create.metadata.clone();
        transaction.reference.clone_from(&create.reference);
        transaction.template = create.template.as_deref().map(Into::into);
        Ok(LogPayload::NewTransaction {
            effective_volumes: self.effective_at_commit(&transaction),
            transaction: Box::new(transaction),
            account_metadata: create.account_metadata.clone().into_iter().collect(),
        })
    }

    fn revert(&self, revert: &RevertTransaction, date: Timestamp) -> Result<LogPayload, Rejection> {
        let original = self.transaction(revert.id, None);
        let original = original.ok_or(Rejection::TransactionNotFound { id: revert.id })?;
        if original.reverted_at.is_some() {
            return Err(Rejection::AlreadyReverted { id: revert.id });
        }
        let mut postings = Postings::new();
        for posting in &original.postings {
            let Posting { source, destination, amount, asset } = posting.clone();
            postings.insert(0, Posting { source: destination, destination: source, amount, asset });
        }
        let mut after = self.totals(|_, _| true);
        add_up(&mut after, &postings);
        for posting in &postings {
            let left = after[&(posting.source.clone(), posting.asset.clone())].balance();
            let left = left + limit_of(&revert.overdraft, posting);
            let is_tested = revert.overdraft != Overdraft::Allow && posting.source.as_str() != "world";
            if is_tested && left.is_negative() {
                let paid = postings
                    .iter()
                    .filter(|other| (&other.source, &other.asset) == (&posting.source, &posting.asset));
                let needed = paid.fold(Amount::ZERO, |sum, other| sum + &other.amount);
                return Err(lacking(posting, needed, left));
            }
        }
        let timestamp = match revert.dated {
            RevertDate::Now => date,
            RevertDate::OfOriginal => original.timestamp,
        };
        let mut transaction = self.next(postings, after, timestamp, date);
        transaction.metadata = revert.metadata.clone();
        transaction.metadata.insert_text("com.formance.spec/state/reverts", &revert.id.get().to_string());
        Ok(LogPayload::RevertedTransaction {
            reverted: revert.id,
            effective_volumes: self.effective_at_commit(&transaction),
            transaction: Box::new(transaction),
        })
    }

    /// Makes the next transaction, after which the totals of the ledger are `totals`.
    fn next(&self, postings: Postings, totals: Totals, timestamp: Timestamp, date: Timestamp) -> Transaction {
        let last = self.transactions().last().map(|(_, transaction)| transaction.id.get());
        let mut transaction = Transaction {
            id: TransactionId::new(last.map_or(self.options.first_id.get(), |last| last + 1)),
            postings,
            metadata: Metadata::EMPTY,
            timestamp,
            reference: None,
            template: None,
            inserted_at: date,
            updated_at: date,
            reverted_at: None,
            post_commit_volumes: Vec::new(),
        };
        let mut touched = totals;
        touched.retain(|(account, asset), _| holds(&transaction, account, asset));
        transaction.post_commit_volumes = rows(touched);
        transaction
    }
}

/// Returns how far the source of a posting may go below zero.
fn limit_of(overdraft: &Overdraft, posting: &Posting) -> Balance {
    let Overdraft::UpTo(limits) = overdraft else { return Balance::ZERO };
    let own = limits.iter().find(|have| have.account == posting.source && have.asset == posting.asset);
    own.map_or(Balance::ZERO, |own| own.limit.clone().into())
}

/// Refuses a posting whose source pays `needed` and is then at `left`, the allowed overdraft included.
fn lacking(posting: &Posting, needed: Amount, left: Balance) -> Rejection {
    let available = Amount::try_from(left + Balance::from(needed.clone())).unwrap_or(Amount::ZERO);
    let (account, asset) = (posting.source.clone(), posting.asset.clone());
    Rejection::InsufficientFunds { account, asset, needed, available }
}

/// Refuses a request with more accounts in its preconditions, postings or metadata than allowed. Those of a script
/// are counted again once it has run.
pub(super) fn check_counts(
    command: &Command,
    preconditions: Option<&Preconditions>,
) -> Result<(), Rejection> {
    if let Some(Preconditions { existing, new }) = preconditions
        && existing.len() + new.len() > PRECONDITIONS_MAX
    {
        return Err(Rejection::TooManyPreconditions { accounts: existing.len() + new.len() });
    }
    match command {
        Command::CreateTransaction(create) => check_creation(create),
        Command::RevertTransaction(revert) => small_enough(&revert.metadata),
        Command::SetMetadata { metadata, .. } => small_enough(metadata),
        Command::DeleteMetadata { .. } | Command::InsertSchema(_) => Ok(()),
    }
}

fn check_creation(create: &CreateTransaction) -> Result<(), Rejection> {
    if let Movement::Postings(postings) = &create.movement
        && postings.len() > POSTINGS_MAX
    {
        return Err(Rejection::TooManyPostings { postings: postings.len() });
    }
    small_enough(&create.metadata)?;
    create.account_metadata.values().try_for_each(small_enough)
}

fn small_enough(metadata: &Metadata) -> Result<(), Rejection> {
    let bytes = metadata.iter().map(|(key, value)| key.len() + value.text().len()).sum();
    if bytes > METADATA_BYTES_MAX { Err(Rejection::MetadataTooLarge { bytes }) } else { Ok(()) }
}
