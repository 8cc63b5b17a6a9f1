//! The posting rule of an installation: the script that turns its payments into transactions, and their ledger.

use std::sync::Arc;

use ledger_core::script::{Profile, Program};
use ledger_core::{AccountAddress, LedgerName, SchemaVersion, Timestamp};
use ledger_store::{Collection, DocumentKey, ReadError, Snapshot};

use crate::collections::POSTING_RULES;
use crate::http::error::ApiError;
use crate::payments::codec::{Decoder, Encoder};
use crate::payments::ids::ConnectorId;
use crate::payments::postings::variables;
use crate::payments::record::{self, Record, Versioned};
use crate::uuid::Uuid;

/// Maximum size of a script in bytes. Every commit of payments reads the script.
pub(crate) const SCRIPT_BYTES_MAX: usize = 64 << 10;

/// Maximum size of an account prefix in bytes. Leaves space in an address for the reference of an account.
const PREFIX_BYTES_MAX: usize = 256;

/// The rule of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PostingRule {
    pub(crate) connector: ConnectorId,
    pub(crate) ledger: LedgerName,
    pub(crate) script: String,
    /// First segments of the ledger accounts that represent accounts at the provider.
    pub(crate) account_prefix: String,
    pub(crate) set_at: Timestamp,
    /// The version of the ledger's schema that validates the transactions.
    pub(crate) schema_version: Option<SchemaVersion>,
}

/// The parts of a rule in a request.
#[derive(Clone, Debug)]
pub(crate) struct NewRule {
    pub(crate) ledger: String,
    pub(crate) script: String,
    pub(crate) account_prefix: String,
    /// Schema version, or an empty text for none.
    pub(crate) schema_version: String,
}

impl PostingRule {
    /// Creates a rule from its parts.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if a name is invalid, if the script does not compile, or if it declares a variable that payments do
    /// not provide.
    pub(crate) fn new(connector: ConnectorId, new: NewRule, set_at: Timestamp) -> Result<Self, ApiError> {
        let NewRule { ledger, script, account_prefix, schema_version } = new;
        let ledger = LedgerName::parse(&ledger).map_err(|error| ApiError::validation(error.to_string()))?;
        let schema_version = match &*schema_version {
            "" => None,
            text => {
                Some(SchemaVersion::parse(text).map_err(|error| ApiError::validation(error.to_string()))?)
            }
        };
        if account_prefix.len() > PREFIX_BYTES_MAX || AccountAddress::parse(&account_prefix).is_err() {
            let message = format!("accountPrefix is no account address of at most {PREFIX_BYTES_MAX} bytes");
            return Err(ApiError::validation(message));
        }
        check_script(&script)?;
        Ok(Self { connector, ledger, script, account_prefix, set_at, schema_version })
    }

    /// Returns the account prefix for a rule that does not specify one.
    pub(crate) fn default_prefix(installation_name: &str) -> String {
        format!("payments:{}", variables::segment(installation_name))
    }
}

fn check_script(script: &str) -> Result<(), ApiError> {
    if script.len() > SCRIPT_BYTES_MAX {
        return Err(ApiError::validation(format!("the script has more than {SCRIPT_BYTES_MAX} bytes")));
    }
    let program = Program::compile(script, Profile::Default)
        .map_err(|error| ApiError::validation(format!("the script does not compile: {error}")))?;
    for (name, declared) in program.needed_variables() {
        let Some(given) = variables::type_of(name) else {
            let names = variables::names().collect::<Vec<_>>().join(", ");
            let message = format!("payments give no variable ${name}; they give {names}");
            return Err(ApiError::validation(message));
        };
        if given != declared {
            let (given, declared) = (given.name(), declared.name());
            let message = format!("the variable ${name} of a payment is of type {given}, not {declared}");
            return Err(ApiError::validation(message));
        }
    }
    Ok(())
}

impl Record for PostingRule {
    const COLLECTION: Collection = POSTING_RULES;
    const NAME: &'static str = "the posting rule of an installation";

    fn key(&self) -> Vec<u8> {
        self.connector.installation.bytes().to_vec()
    }

    fn keys(&self) -> Vec<DocumentKey> {
        vec![]
    }

    fn encode(&self, out: &mut Encoder) {
        out.text(&self.connector.provider).text(self.ledger.as_str()).text(&self.script);
        out.text(&self.account_prefix).time(self.set_at);
        // Rules of earlier releases do not have this field.
        if let Some(version) = &self.schema_version {
            out.text(version.as_str());
        }
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        let provider: Arc<str> = input.text()?.into();
        let installation = Uuid::from_bytes(key.try_into().ok()?);
        Some(Self {
            connector: ConnectorId { provider, installation },
            ledger: LedgerName::parse(input.text()?).ok()?,
            script: input.string()?,
            account_prefix: input.string()?,
            set_at: input.time()?,
            schema_version: if input.is_empty() {
                None
            } else {
                Some(SchemaVersion::parse(input.text()?).ok()?)
            },
        })
    }
}

/// Returns the rule of an installation, or `None` if its payments are not posted.
pub(crate) fn find(
    snapshot: &Snapshot,
    connector: &ConnectorId,
) -> Result<Option<Versioned<PostingRule>>, ReadError> {
    let found = record::find::<PostingRule>(snapshot, connector.installation.bytes())?;
    Ok(found.filter(|found| found.value.connector == *connector))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(ledger: &str, script: &str, prefix: &str) -> Result<PostingRule, ApiError> {
        let connector = ConnectorId { provider: "GENERIC".into(), installation: Uuid::from_bytes([7; 16]) };
        let new = NewRule {
            ledger: ledger.to_owned(),
            script: script.to_owned(),
            account_prefix: prefix.to_owned(),
            schema_version: String::new(),
        };
        PostingRule::new(connector, new, Timestamp::from_micros(9))
    }

    const SCRIPT: &str = "vars {\n monetary $amount\n account $destination\n}\nsend $amount (source = @world destination = $destination)";

    #[test]
    fn rule_is_read_as_written() {
        let plain = rule("main", SCRIPT, "banks:core").expect("a rule");
        let version = SchemaVersion::parse("v1").expect("a version");
        let versioned = PostingRule { schema_version: Some(version), ..plain.clone() };
        for rule in [plain, versioned] {
            let mut out = Encoder::default();
            rule.encode(&mut out);
            let bytes = out.into_bytes();
            assert_eq!(PostingRule::decode(&rule.key(), &mut Decoder::new(&bytes)), Some(rule));
        }
    }

    #[test]
    fn refuses_rule_that_no_payment_can_follow() {
        let other_type = SCRIPT
            .replace("monetary $amount", "number $amount")
            .replace("send $amount", "send [EUR $amount]");
        let unknown = SCRIPT.replace("$destination", "$receiver");
        for (ledger, script, prefix, part) in [
            ("a b", SCRIPT, "p", "ledger name"),
            ("main", SCRIPT, "p:", "accountPrefix"),
            ("main", "send", "p", "does not compile"),
            ("main", &other_type, "p", "$amount of a payment is of type monetary"),
            ("main", &unknown, "p", "no variable $receiver; they give amount"),
            ("main", &" ".repeat(SCRIPT_BYTES_MAX + 1), "p", "more than"),
        ] {
            let refused = rule(ledger, script, prefix).expect_err(part);
            assert!(refused.message.contains(part), "{}", refused.message);
        }
    }
}
