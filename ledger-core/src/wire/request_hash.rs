//! The hash that identifies a request. It is compared when an idempotency key is reused, and shown with logs.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use smol_str::SmolStr;

use super::base64;
use crate::command::{Command, CreateTransaction, Movement, RevertDate, Target, VariableValue};
use crate::error_wording::ErrorWording;
use crate::log::LogPayload;
use crate::overdraft::{Overdraft, OverdraftLimit};
use crate::revert_mark;
use ledger_values::{AccountAddress, Metadata, MetadataValue, Posting, Reference, Timestamp};

/// Returns the hash of a command: base64url of the SHA-256 of its content. Equal commands have equal hashes, so the
/// hash recognizes the repetition of a request behind an [idempotency key](crate::Idempotency).
///
/// The log keeps the hash forever, so this encoding must not change.
///
/// ```
/// use ledger_core::{Command, Target, TransactionId, request_hash};
/// let delete = |id| Command::DeleteMetadata {
///     target: Target::Transaction(TransactionId::new(id)),
///     key: "note".into(),
/// };
/// assert_eq!(request_hash(&delete(7)), "c26ZQvARiT6vZDCWNtIDI3vxfj9FXYyDtkB7m_QKasI=");
/// assert_ne!(request_hash(&delete(8)), request_hash(&delete(7)));
/// ```
pub fn request_hash(command: &Command) -> SmolStr {
    let mut encoder = Encoder(Sha256::new());
    match command {
        Command::CreateTransaction(create) => encoder.tag(1).create(create),
        Command::RevertTransaction(revert) => encoder
            .tag(2)
            .number(revert.id.get())
            .overdraft(&revert.overdraft)
            .tag(u8::from(revert.dated == RevertDate::OfOriginal))
            .metadata(&revert.metadata),
        Command::SetMetadata { target, metadata } => encoder.tag(3).target(target).metadata(metadata),
        Command::DeleteMetadata { target, key } => encoder.tag(4).target(target).text(key),
        Command::InsertSchema(insert) => {
            encoder.tag(5).text(insert.version.as_str()).text(&insert.schema.content())
        }
    };
    encoder.finish()
}

/// Returns the hash of several commands that share one idempotency key. It differs from the hash of each of them.
///
/// ```
/// use ledger_core::{AccountAddress, Command, Target, batch_hash, request_hash};
/// let delete = |key: &str| Command::DeleteMetadata {
///     target: Target::Account(AccountAddress::world()),
///     key: key.into(),
/// };
/// let commands = [delete("tier"), delete("note")];
/// assert_eq!(batch_hash(commands.iter()), batch_hash(commands.clone().iter()));
/// assert_ne!(batch_hash(commands[..1].iter()), request_hash(&commands[0]));
/// ```
pub fn batch_hash<'a>(commands: impl ExactSizeIterator<Item = &'a Command>) -> SmolStr {
    let mut encoder = Encoder(Sha256::new());
    encoder.tag(6).number(commands.len() as u64);
    for command in commands {
        encoder.text(&request_hash(command));
    }
    encoder.finish()
}

/// Returns the hash that a log shows if it was recorded without a key: the hash of the simplest request that could
/// have created it. It is not stored, because it follows from the log. For a schema it is the hash of the recorded
/// text, which contains the date, so it is not the hash of a request.
///
/// ```
/// use ledger_core::{Command, LogPayload, Target, TransactionId, log_request_hash, request_hash};
/// let (target, key) = (Target::Transaction(TransactionId::new(7)), "note");
/// let payload = LogPayload::DeleteMetadata { target: target.clone(), key: key.into() };
/// let command = Command::DeleteMetadata { target, key: key.into() };
/// assert_eq!(log_request_hash(&payload), request_hash(&command));
/// ```
pub fn log_request_hash(payload: &LogPayload) -> SmolStr {
    let mut encoder = Encoder(Sha256::new());
    match payload {
        LogPayload::NewTransaction { transaction, account_metadata, .. } => {
            let accounts = account_metadata.iter().map(|(address, metadata)| (address, metadata));
            let timestamp =
                Some(transaction.timestamp).filter(|timestamp| *timestamp != transaction.inserted_at);
            encoder.tag(1).postings(&transaction.postings).metadata(&transaction.metadata);
            encoder.account_metadata(accounts).timestamp(timestamp);
            encoder.reference(transaction.reference.as_ref()).tag(0)
        }
        LogPayload::RevertedTransaction { reverted, transaction, .. } => {
            let mut metadata = transaction.metadata.clone();
            revert_mark::remove(&mut metadata);
            let is_backdated = transaction.timestamp != transaction.inserted_at;
            encoder.tag(2).number(reverted.get()).tag(0).tag(u8::from(is_backdated)).metadata(&metadata)
        }
        LogPayload::SetMetadata { target, metadata } => encoder.tag(3).target(target).metadata(metadata),
        LogPayload::DeleteMetadata { target, key } => encoder.tag(4).target(target).text(key),
        LogPayload::InsertedSchema { schema } => encoder.tag(5).text(schema),
    };
    encoder.finish()
}

/// Hashes values without ambiguity: lengths precede texts and counts precede lists, so no two sequences give the
/// same bytes.
struct Encoder(Sha256);

impl Encoder {
    fn finish(self) -> SmolStr {
        let text = base64::encode_for_url(&self.0.finalize().into());
        SmolStr::from_utf8(&text).expect("base64 is ASCII")
    }

    fn tag(&mut self, tag: u8) -> &mut Self {
        self.0.update([tag]);
        self
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.0.update(number.to_le_bytes());
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
        self
    }

    fn metadata(&mut self, metadata: &Metadata) -> &mut Self {
        self.number(metadata.len() as u64);
        for (key, value) in metadata.iter() {
            self.text(key);
            match value {
                MetadataValue::Text(text) => self.tag(0).text(text),
                MetadataValue::Json(json) => self.tag(1).text(json),
            };
        }
        self
    }

    fn target(&mut self, target: &Target) -> &mut Self {
        match target {
            Target::Account(address) => self.tag(0).text(address.as_str()),
            Target::Transaction(id) => self.tag(1).number(id.get()),
        }
    }

    fn variables(&mut self, variables: &BTreeMap<String, VariableValue>) {
        self.number(variables.len() as u64);
        for (name, value) in variables {
            self.text(name);
            match value {
                VariableValue::Text(text) | VariableValue::Number(text) | VariableValue::Monetary(text) => {
                    self.text(text)
                }
                // The ledger refuses this value, so the hash is never stored. No text has this length.
                VariableValue::Unfit => self.number(u64::MAX),
            };
        }
    }

    fn create(&mut self, create: &CreateTransaction) -> &mut Self {
        match &create.movement {
            Movement::Postings(postings) => {
                self.postings(postings);
            }
            Movement::Script(script) => {
                self.tag(1).text(&script.plain).tag(u8::from(script.wording == ErrorWording::Interpreter));
                self.variables(&script.variables);
            }
            Movement::Template { name, variables, wording, .. } => {
                self.tag(2).text(name).tag(u8::from(*wording == ErrorWording::Interpreter));
                self.variables(variables);
            }
        }
        self.metadata(&create.metadata).account_metadata(create.account_metadata.iter());
        self.timestamp(create.timestamp).reference(create.reference.as_ref());
        self.overdraft(&create.overdraft)
    }

    fn overdraft(&mut self, overdraft: &Overdraft) -> &mut Self {
        match overdraft {
            Overdraft::Refuse => self.tag(0),
            Overdraft::Allow => self.tag(1),
            Overdraft::UpTo(limits) => {
                self.tag(2).number(limits.len() as u64);
                for OverdraftLimit { account, asset, limit } in limits {
                    self.text(account.as_str()).text(asset.as_str()).text(&limit.to_string());
                }
                self
            }
        }
    }

    fn postings(&mut self, postings: &[Posting]) -> &mut Self {
        self.tag(0).number(postings.len() as u64);
        for posting in postings {
            self.text(posting.source.as_str()).text(posting.destination.as_str());
            self.text(&posting.amount.to_string()).text(posting.asset.as_str());
        }
        self
    }

    fn account_metadata<'a>(
        &mut self,
        all: impl ExactSizeIterator<Item = (&'a AccountAddress, &'a Metadata)>,
    ) -> &mut Self {
        self.number(all.len() as u64);
        for (address, metadata) in all {
            self.text(address.as_str()).metadata(metadata);
        }
        self
    }

    fn timestamp(&mut self, timestamp: Option<Timestamp>) -> &mut Self {
        match timestamp {
            Some(at) => self.tag(1).number(at.as_micros().cast_unsigned()),
            None => self.tag(0),
        }
    }

    fn reference(&mut self, reference: Option<&Reference>) -> &mut Self {
        match reference {
            Some(reference) => self.tag(1).text(reference.as_str()),
            None => self.tag(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use ledger_values::TransactionId;

    use super::*;

    #[test]
    fn different_commands_have_different_hashes() {
        let account = || Target::Account(AccountAddress::world());
        let transaction = |id| Target::Transaction(TransactionId::new(id));
        let commands = [
            Command::DeleteMetadata { target: account(), key: "k".into() },
            Command::DeleteMetadata { target: account(), key: "kk".into() },
            Command::DeleteMetadata { target: transaction(1), key: "k".into() },
            Command::DeleteMetadata { target: transaction(2), key: "k".into() },
            Command::SetMetadata { target: account(), metadata: Metadata::EMPTY },
            Command::SetMetadata { target: account(), metadata: [("k", "v")].into_iter().collect() },
            Command::SetMetadata { target: account(), metadata: [("kv", "")].into_iter().collect() },
        ];
        let mut hashes: Vec<_> = commands.iter().map(request_hash).collect();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), commands.len());
    }

    #[test]
    fn hash_of_batch_covers_every_command() {
        let delete = |key: &str| Command::DeleteMetadata {
            target: Target::Account(AccountAddress::world()),
            key: key.into(),
        };
        let batches = [vec![], vec!["a"], vec!["a", "b"], vec!["b", "a"], vec!["a", "a"]];
        let mut hashes: Vec<_> = batches
            .iter()
            .map(|keys| batch_hash(keys.iter().map(|key| delete(key)).collect::<Vec<_>>().iter()))
            .collect();
        hashes.push(request_hash(&delete("a")));
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), batches.len() + 1);
    }
}
