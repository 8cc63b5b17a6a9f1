//! A log of another store: what it says is entered as it stands, after what the rules demand of any log.

use std::collections::BTreeMap;

use ledger_core::schema::{Schema, version_of};
use ledger_core::{
    AccountAddress, Command, CreateTransaction, Decision, Facts, Idempotency, LegacyLog, LogEntry,
    LogPayload, Memento, Metadata, Movement, NewTransaction, Overdraft, Rejection, RevertDate,
    RevertTransaction, Rules, SchemaVersion, Transaction, TransactionId, decide,
};
use ledger_journal::SectionId;
use ledger_journal::entry::{Body, Event, IdempotencyRecord, LedgerBase, LogRecord, Record};

use super::apply::{Hints, Prior};
use super::batch::Batch;
use super::execute::{Written, is_too_large};
use super::state::State;
use crate::error::ReadError;
use crate::hashes::ChainId;
use crate::import::{ImportRefusal, ImportedLog};

fn inconsistent<T>(reason: impl Into<String>) -> Result<T, ImportRefusal> {
    Err(ImportRefusal::Inconsistent { reason: reason.into() })
}

impl State {
    /// Enters a log, if it can follow the ones before it.
    pub(crate) fn import(
        &mut self,
        ledger: u32,
        log: &ImportedLog,
        batch: &mut Batch,
        written: &impl Written,
    ) -> Result<Result<(), ImportRefusal>, ReadError> {
        let ImportedLog { entry, original_updated_at, tells_volumes, .. } = log;
        let counters = *self.ledger(ledger).counters();
        if counters.in_use {
            return Ok(Err(ImportRefusal::InUse));
        }
        if !counters.is_new() && entry.id.get() < counters.next_log {
            return Ok(Err(ImportRefusal::LogExists));
        }
        if let Some(idempotency) = &entry.idempotency
            && self.used_key(ledger, idempotency.key.as_str(), None, batch, written)?.is_some()
        {
            return Ok(inconsistent(format!("idempotency key {} is used twice", idempotency.key.as_str())));
        }
        let mut facts = Facts::default();
        let mut hints = Hints::default();
        let (command, id, reverts) = match &entry.payload {
            LogPayload::NewTransaction { transaction, account_metadata, .. } => {
                let metadata = account_metadata.iter().cloned().collect();
                (Some(creation(transaction, metadata)), Some(transaction.id), None)
            }
            LogPayload::RevertedTransaction { reverted, transaction, .. } => {
                (Some(creation(transaction, BTreeMap::new())), Some(transaction.id), Some(*reverted))
            }
            LogPayload::SetMetadata { target, metadata } => {
                let (target, metadata) = (target.clone(), metadata.clone());
                (Some(Command::SetMetadata { target, metadata }), None, None)
            }
            LogPayload::DeleteMetadata { target, key } => {
                let (target, key) = (target.clone(), key.clone());
                (Some(Command::DeleteMetadata { target, key }), None, None)
            }
            LogPayload::InsertedSchema { .. } => (None, None, None),
        };
        if let Some(id) = id {
            // Histories and dates are searched by id, so ids must ascend as they do here.
            if counters.transactions > 0 && id.get() < counters.next_transaction {
                let next = counters.next_transaction;
                return Ok(inconsistent(format!("transaction {} comes when {next} is due", id.get())));
            }
            if id.get() == u64::MAX {
                return Ok(inconsistent("no transaction may follow this one"));
            }
        }
        if let Some(id) = reverts {
            // What is reverted is looked up as for a revert; what that moved is in the log itself.
            let revert = RevertTransaction {
                id,
                dated: RevertDate::Now,
                overdraft: Overdraft::Allow,
                metadata: Metadata::EMPTY,
                rules: Rules::default(),
            };
            let command = Command::RevertTransaction(revert);
            self.find_target(ledger, &command, &mut facts, &mut hints, batch, written)?;
            match facts.transaction.take() {
                None => {
                    return Ok(inconsistent(format!(
                        "transaction {} is reverted but does not exist",
                        id.get()
                    )));
                }
                Some(original) if original.reverted => {
                    return Ok(inconsistent(format!("transaction {} is reverted twice", id.get())));
                }
                Some(_) => {}
            }
        }
        let id = id.unwrap_or(TransactionId::new(counters.next_transaction));
        let base = LedgerBase {
            ledger,
            log: counters.next_log.min(entry.id.get()),
            transaction: counters.next_transaction,
            date: entry.date.as_micros(),
        };
        let (slots, decision);
        let event;
        if let Some(command) = &command {
            self.find_target(ledger, command, &mut facts, &mut hints, batch, written)?;
            slots = self.find_holdings((ledger, &[]), command, &mut facts, &mut hints, batch, written)?;
            let too_many_assets = self.has_too_many_assets(ledger, &hints.located);
            self.find_rest(ledger, command, &mut facts, &mut hints, batch, written)?;
            let defaults_of = self.imported_defaults(ledger, entry, command)?;
            match defaults_of {
                Ok(defaults) => hints.defaults = defaults,
                Err(refusal) => return Ok(Err(refusal)),
            }
            if is_too_large(command, &facts, &hints.defaults) || too_many_assets {
                return Ok(inconsistent("it has more than a log may have"));
            }
            decision = match decide(command, &slots, &mut facts, entry.date) {
                Ok(Decision::Transaction(new)) => Decision::Transaction(NewTransaction { reverts, ..new }),
                Ok(decision) => decision,
                // A key that was removed though it was not there is in logs of other servers.
                Err(Rejection::MetadataKeyNotFound { .. }) => match &entry.payload {
                    LogPayload::DeleteMetadata { target, key } => Decision::DeleteMetadata { target, key },
                    _ => return Ok(inconsistent("a key is missing")),
                },
                Err(rejection) => return Ok(inconsistent(rejection.to_string())),
            };
            let mut entered = Event::blank();
            self.put_event((ledger, id.get()), &decision, &facts, &hints, &mut entered);
            if let (
                Event::Transaction(record),
                LogPayload::NewTransaction { transaction, .. }
                | LogPayload::RevertedTransaction { transaction, .. },
            ) = (&mut entered, &entry.payload)
            {
                record.inserted_at =
                    Some(transaction.inserted_at).filter(|inserted_at| *inserted_at != entry.date);
                record.volumes_untold = !tells_volumes;
                record.original_updated_at =
                    original_updated_at.filter(|updated_at| reverts.is_some() && *updated_at != entry.date);
            }
            event = entered;
        } else {
            let LogPayload::InsertedSchema { schema } = &entry.payload else {
                unreachable!("every other log makes a command")
            };
            let version = match Schema::parse(schema) {
                Ok(_) => version_of(schema),
                Err(error) => return Ok(inconsistent(format!("invalid schema: {error}"))),
            };
            match version {
                None => return Ok(inconsistent("the schema has no version")),
                Some(version) if self.has_schema(ledger, &version)? => {
                    return Ok(inconsistent(format!("schema version '{version}' already exists")));
                }
                Some(_) => hints.stored = Prior::Absent,
            }
            event = Event::InsertedSchema { schema };
        }
        let head = &self.ledger(ledger).head;
        let (section, features) = (SectionId(head.section), head.info.features);
        let log = LogRecord {
            ledger,
            log: entry.id.get(),
            date: entry.date,
            idempotency: idempotency_record(entry),
            schema_version: entry.schema_version.as_deref(),
            imported: true,
            event,
        };
        self.load_changed(&log, &hints)?;
        let record = Record { position: self.next, body: Body::Log(log) };
        self.apply(&record, &hints, &mut batch.rows)?;
        batch.chunks.push(&record, section, base);
        if ChainId::wire(ledger).is_kept(features) {
            batch.unhashed.push(ledger, entry.id.get(), &Memento::from(entry));
        }
        if ChainId::legacy(ledger).is_kept(features) {
            batch.unhashed.push_legacy(ledger, entry.id.get(), &LegacyLog::from(entry));
        }
        Ok(Ok(()))
    }
}

impl State {
    /// Metadata that the chart of a log's version gives to new accounts: other servers keep it out of the log too.
    fn imported_defaults(
        &mut self,
        ledger: u32,
        entry: &LogEntry,
        command: &Command,
    ) -> Result<Result<Vec<(AccountAddress, Metadata)>, ImportRefusal>, ReadError> {
        let Some(version) = &entry.schema_version else { return Ok(Ok(Vec::new())) };
        let schema = match SchemaVersion::parse(version) {
            Ok(version) => self.named_schema(ledger, &version)?.ok(),
            Err(_) => None,
        };
        let Some(schema) = schema else {
            return Ok(inconsistent(format!("there is no schema version '{version}'")));
        };
        self.defaults(ledger, schema.as_ref().as_ref().ok(), command).map(Ok)
    }
}

/// The key of a log and the hash of its request; of a log without a key the hash alone.
fn idempotency_record(entry: &LogEntry) -> Option<IdempotencyRecord<'_>> {
    match (&entry.idempotency, &entry.request_hash) {
        (Some(Idempotency { key, hash }), _) => Some(IdempotencyRecord { key: key.as_str(), hash }),
        (None, Some(hash)) => Some(IdempotencyRecord { key: "", hash }),
        (None, None) => None,
    }
}

/// A command by which a transaction is made as it stands.
fn creation(transaction: &Transaction, account_metadata: BTreeMap<AccountAddress, Metadata>) -> Command {
    Command::CreateTransaction(CreateTransaction {
        movement: Movement::Postings(transaction.postings.clone()),
        metadata: transaction.metadata.clone(),
        account_metadata,
        timestamp: Some(transaction.timestamp),
        reference: transaction.reference.clone(),
        overdraft: Overdraft::Allow,
        rules: Rules::default(),
        template: transaction.template.as_deref().map(Into::into),
    })
}
