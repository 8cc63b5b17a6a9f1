//! What identifies a command behind an idempotency key.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use ledger_core::{
    Command, CompactString, CreateTransaction, Metadata, MetadataValue, Movement, Overdraft, RevertDate,
    Runtime, Target, VariableValue,
};
use sha2::{Digest as _, Sha256};

/// Base64url of SHA-256 over the parsed command, so that two bodies that differ only in spelling (white space,
/// order of fields, unknown fields) are one request.
///
/// The text is stored with the log for ever: this encoding does not change.
pub(crate) fn hash_of(command: &Command) -> CompactString {
    let mut bytes = Encoder(Sha256::new());
    match command {
        Command::CreateTransaction(create) => bytes.tag(1).create(create),
        Command::RevertTransaction(revert) => bytes
            .tag(2)
            .number(revert.id.get())
            .tag(u8::from(revert.overdraft == Overdraft::Allow))
            .tag(u8::from(revert.dated == RevertDate::OfOriginal))
            .metadata(&revert.metadata),
        Command::SetMetadata { target, metadata } => bytes.tag(3).target(target).metadata(metadata),
        Command::DeleteMetadata { target, key } => bytes.tag(4).target(target).text(key),
        Command::InsertSchema(insert) => {
            bytes.tag(5).text(insert.version.as_str()).text(&insert.schema.content())
        }
    };
    let mut text = CompactString::default();
    text.push_str(&URL_SAFE.encode(bytes.0.finalize()));
    text
}

/// Writes values so that no two different sequences give the same bytes: lengths go before texts, counts before
/// lists.
struct Encoder(Sha256);

impl Encoder {
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
                // Never stored, since it is refused. No text is so long.
                VariableValue::Unfit => self.number(u64::MAX),
            };
        }
    }

    fn create(&mut self, create: &CreateTransaction) -> &mut Self {
        match &create.movement {
            Movement::Postings(postings) => {
                self.tag(0).number(postings.len() as u64);
                for posting in postings {
                    self.text(posting.source.as_str()).text(posting.destination.as_str());
                    self.text(&posting.amount.to_string()).text(posting.asset.as_str());
                }
            }
            Movement::Script(script) => {
                self.tag(1).text(&script.plain).tag(u8::from(script.runtime == Runtime::Interpreter));
                self.variables(&script.variables);
            }
            Movement::Template { name, variables, runtime } => {
                self.tag(2).text(name).tag(u8::from(*runtime == Runtime::Interpreter));
                self.variables(variables);
            }
        }
        self.metadata(&create.metadata).number(create.account_metadata.len() as u64);
        for (address, metadata) in &create.account_metadata {
            self.text(address.as_str()).metadata(metadata);
        }
        match create.timestamp {
            Some(at) => self.tag(1).number(at.as_micros() as u64),
            None => self.tag(0),
        };
        match &create.reference {
            Some(reference) => self.tag(1).text(reference.as_str()),
            None => self.tag(0),
        };
        self.tag(u8::from(create.overdraft == Overdraft::Allow))
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::{AccountAddress, TransactionId};

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
        let mut hashes: Vec<_> = commands.iter().map(hash_of).collect();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), commands.len());
    }

    #[test]
    fn the_encoding_stands_for_ever() {
        let command = Command::DeleteMetadata {
            target: Target::Transaction(TransactionId::new(7)),
            key: "note".into(),
        };
        assert_eq!(hash_of(&command), "c26ZQvARiT6vZDCWNtIDI3vxfj9FXYyDtkB7m_QKasI=");
    }
}
