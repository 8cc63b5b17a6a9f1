//! The request bodies of v2, and their conversion into commands.
//!
//! Parsing checks the syntax: it refuses a body of the wrong shape as a whole. Conversion checks the meaning: a
//! posting that breaks a rule fails its own command only, also in a bulk.

use std::collections::BTreeMap;

use ledger_core::{
    AccountAddress, Amount, AmountError, Asset, Command, CreateTransaction, ErrorWording, Metadata, Movement,
    Overdraft, Posting, Postings, Reference, RevertDate, RevertTransaction, Script, Target, Timestamp,
    TransactionId,
};
use serde::de::{Deserialize, Deserializer, Error, MapAccess};
use serde_json::value::RawValue;

use crate::api::posting::PostingBody;
use crate::api::script_body::{Forms, ScriptBody};
use crate::http::error::{ApiError, Code};
use crate::http::json::{self, Array, Date, Digits, Entries, Fields, Flag, Object, Text, TextMap, field};

/// Converts the posting at a place of the request.
///
/// # Errors
///
/// Returns `VALIDATION` if the posting breaks a rule.
pub(crate) fn to_posting(at: usize, body: &PostingBody<'_>) -> Result<Posting, ApiError> {
    let amount =
        body.amount.ok_or_else(|| ApiError::validation(format!("postings[{at}]: no amount defined")))?;
    let amount: Amount =
        amount.parse().map_err(|error: AmountError| ApiError::validation(error.to_string()))?;
    let invalid = |what: &str, text: &Text<'_>| {
        ApiError::validation(format!("invalid {what} '{}'", text.0.chars().take(100).collect::<String>()))
    };
    Ok(Posting {
        source: AccountAddress::parse(&body.source.0).map_err(|_| invalid("source address", &body.source))?,
        destination: AccountAddress::parse(&body.destination.0)
            .map_err(|_| invalid("destination address", &body.destination))?,
        amount,
        asset: Asset::parse(&body.asset.0).map_err(|_| invalid("asset", &body.asset))?,
    })
}

/// A script in a request body, or the name of a stored script.
#[derive(Default)]
struct ScriptOrTemplate<'a> {
    script: ScriptBody<'a>,
    template: Text<'a>,
}

impl<'de> Fields<'de> for ScriptOrTemplate<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["template"]) {
            Some("template") => self.template = map.next_value()?,
            _ => return self.script.field(name, map),
        }
        Ok(true)
    }
}

/// The body of a create.
#[derive(Default)]
pub(crate) struct CreateBody<'a> {
    postings: Vec<PostingBody<'a>>,
    script: ScriptOrTemplate<'a>,
    timestamp: Option<Timestamp>,
    reference: Text<'a>,
    metadata: Metadata,
    account_metadata: Vec<(Text<'a>, TextMap)>,
    force: bool,
    runtime: Text<'a>,
}

impl<'de> Fields<'de> for CreateBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let fields = [
            "postings",
            "script",
            "timestamp",
            "reference",
            "metadata",
            "accountMetadata",
            "force",
            "runtime",
        ];
        match field(name, &fields) {
            Some("postings") => {
                let Array(postings) = map.next_value::<Array<Object<PostingBody<'de>>>>()?;
                self.postings = postings.into_iter().map(|Object(posting)| posting).collect();
            }
            Some("script") => self.script = map.next_value::<Object<_>>()?.0,
            Some("timestamp") => self.timestamp = map.next_value::<Date>()?.given(),
            Some("reference") => self.reference = map.next_value()?,
            Some("metadata") => self.metadata = map.next_value::<TextMap>()?.0,
            Some("accountMetadata") => self.account_metadata = map.next_value::<Entries<'de, _>>()?.0,
            Some("force") => self.force = map.next_value::<Flag>()?.0,
            Some("runtime") => self.runtime = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl CreateBody<'_> {
    /// Converts the body into a command. `overdraft` comes from the rest of the request, and the field `force` adds
    /// to it. `runtime` runs a script that does not name its own.
    ///
    /// # Errors
    ///
    /// Returns `VALIDATION` or `NO_POSTINGS`. The checks run in the order of the original API.
    pub(crate) fn into_command(
        self,
        overdraft: Overdraft,
        wording: ErrorWording,
    ) -> Result<Command, ApiError> {
        let has_script = !self.script.script.is_empty();
        let has_template = !self.script.template.0.is_empty();
        let has_postings = !self.postings.is_empty();
        if u8::from(has_script) + u8::from(has_template) + u8::from(has_postings) > 1 {
            return Err(ApiError::validation("cannot pass postings and numscript in the same request"));
        }
        let movement = if has_postings {
            let postings = self.postings.iter().enumerate().map(|(at, body)| to_posting(at, body));
            Movement::Postings(postings.collect::<Result<Postings, _>>()?)
        } else if has_script || has_template {
            let wording = match self.runtime.0.as_ref() {
                "" => wording,
                name => ErrorWording::parse(name).ok_or_else(|| {
                    let name: String = name.chars().take(100).collect();
                    ApiError::validation(format!("unknown runtime '{name}'"))
                })?,
            };
            let script = self.script.script.into_script(wording, Forms::Texts);
            if has_template {
                let name = self.script.template.0.as_ref().into();
                let Script { variables, language, .. } = script;
                Movement::Template { name, variables, wording, language }
            } else {
                Movement::Script(script)
            }
        } else {
            return Err(ApiError::new(
                Code::NoPostings,
                "you must pass either a posting array, a numscript script, or a template",
            ));
        };
        let mut account_metadata = BTreeMap::new();
        for (Text(address), TextMap(metadata)) in self.account_metadata {
            account_metadata.insert(address_of(&address)?, metadata);
        }
        let reference = match self.reference.0.as_ref() {
            "" => None,
            text => Some(Reference::parse(text).map_err(|error| ApiError::validation(error.to_string()))?),
        };
        Ok(Command::CreateTransaction(CreateTransaction {
            movement,
            metadata: self.metadata,
            account_metadata,
            timestamp: self.timestamp,
            reference,
            overdraft: if self.force { Overdraft::Allow } else { overdraft },
            rules: ledger_core::Rules::Current,
            template: None,
        }))
    }
}

/// Parses an account address that a request writes to.
///
/// # Errors
///
/// Returns `VALIDATION` if the address is malformed.
pub(crate) fn address_of(text: &str) -> Result<AccountAddress, ApiError> {
    AccountAddress::parse(text).map_err(|_| ApiError::validation("invalid account address format"))
}

/// The optional body of a revert.
#[derive(Default)]
pub(crate) struct RevertBody {
    pub(crate) metadata: Metadata,
}

impl<'de> Fields<'de> for RevertBody {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["metadata"]) {
            Some("metadata") => self.metadata = map.next_value::<TextMap>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The data of `REVERT_TRANSACTION` in a bulk.
#[derive(Default)]
pub(crate) struct RevertElement<'a> {
    id: Option<&'a str>,
    force: bool,
    at_effective_date: bool,
    metadata: Metadata,
}

impl<'de> Fields<'de> for RevertElement<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["id", "force", "atEffectiveDate", "metadata"]) {
            Some("id") => self.id = map.next_value::<Digits<'de>>()?.0,
            Some("force") => self.force = map.next_value::<Flag>()?.0,
            Some("atEffectiveDate") => self.at_effective_date = map.next_value::<Flag>()?.0,
            Some("metadata") => self.metadata = map.next_value::<TextMap>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl RevertElement<'_> {
    /// Converts the data into a command.
    ///
    /// # Errors
    ///
    /// Returns `VALIDATION` if the id is malformed.
    pub(crate) fn into_command(self) -> Result<Command, ApiError> {
        // A missing id is zero, because clients in some languages leave zeros out.
        let id = TransactionId::new(match self.id {
            None => 0,
            Some(digits) => digits.parse().map_err(|_| ApiError::validation("invalid transaction id"))?,
        });
        Ok(revert(id, self.force, self.at_effective_date, self.metadata))
    }
}

/// Builds the command of a revert.
pub(crate) fn revert(id: TransactionId, force: bool, at_effective_date: bool, metadata: Metadata) -> Command {
    Command::RevertTransaction(RevertTransaction {
        id,
        overdraft: if force { Overdraft::Allow } else { Overdraft::Refuse },
        dated: if at_effective_date { RevertDate::OfOriginal } else { RevertDate::Now },
        metadata,
        rules: ledger_core::Rules::Current,
    })
}

/// The id of a target of metadata: an address or an integer, as the client wrote it.
struct TargetId<'a>(&'a RawValue);

impl<'de> Deserialize<'de> for TargetId<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = <&RawValue>::deserialize(deserializer)?;
        match id.get().as_bytes().first() {
            Some(b'{' | b'[' | b't' | b'f') => Err(Error::custom("expected a string or an integer")),
            _ => Ok(Self(id)),
        }
    }
}

/// The data of `ADD_METADATA` and `DELETE_METADATA` in a bulk.
#[derive(Default)]
pub(crate) struct MetadataElement<'a> {
    target_type: Text<'a>,
    target_id: Option<TargetId<'a>>,
    metadata: Metadata,
    key: Text<'a>,
}

impl<'de> Fields<'de> for MetadataElement<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["targetType", "targetId", "metadata", "key"]) {
            Some("targetType") => self.target_type = map.next_value()?,
            Some("targetId") => self.target_id = Some(map.next_value()?),
            Some("metadata") => self.metadata = map.next_value::<TextMap>()?.0,
            Some("key") => self.key = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl MetadataElement<'_> {
    fn target(&self) -> Result<Target, ApiError> {
        let text = self.target_id.as_ref().map_or("", |TargetId(id)| id.get());
        match self.target_type.0.as_ref() {
            "ACCOUNT" => {
                let Text(address) = json::first::<Text<'_>>(text.as_bytes())
                    .map_err(|_| ApiError::validation("invalid account address format"))?;
                Ok(Target::Account(address_of(&address)?))
            }
            "TRANSACTION" => {
                let id = text.parse().map_err(|_| ApiError::validation("invalid transaction id"))?;
                Ok(Target::Transaction(TransactionId::new(id)))
            }
            other => {
                let other: String = other.chars().take(100).collect();
                // Other servers answer with this code too.
                Err(ApiError::new(Code::Internal, format!("invalid targetType '{other}'")))
            }
        }
    }

    /// Converts the data into the command that sets metadata.
    ///
    /// # Errors
    ///
    /// Returns `VALIDATION` if the target is malformed, and `INTERNAL` if its type is unknown.
    pub(crate) fn into_set(self) -> Result<Command, ApiError> {
        Ok(Command::SetMetadata { target: self.target()?, metadata: self.metadata })
    }

    /// Converts the data into the command that deletes metadata.
    ///
    /// # Errors
    ///
    /// Returns `VALIDATION` if the target is malformed, and `INTERNAL` if its type is unknown.
    pub(crate) fn into_delete(self) -> Result<Command, ApiError> {
        Ok(Command::DeleteMetadata { target: self.target()?, key: self.key.0.into() })
    }
}

/// The body that creates a ledger.
#[derive(Default)]
pub(crate) struct LedgerBody<'a> {
    pub(crate) bucket: Text<'a>,
    pub(crate) metadata: Metadata,
    pub(crate) features: Vec<(Text<'a>, Text<'a>)>,
}

impl<'de> Fields<'de> for LedgerBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["bucket", "metadata", "features"]) {
            Some("bucket") => self.bucket = map.next_value()?,
            Some("metadata") => self.metadata = map.next_value::<TextMap>()?.0,
            Some("features") => self.features = map.next_value::<Entries<'de, _>>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(body: &str) -> Result<Command, ApiError> {
        let Object(body) = json::first::<Object<CreateBody<'_>>>(body.as_bytes()).expect("well-formed");
        body.into_command(Overdraft::Refuse, ErrorWording::Machine)
    }

    #[test]
    fn a_create_is_converted_whole() {
        let command = create(
            r#"{"postings":[{"source":"world","destination":"users:1","amount":340282366920938463463374607431768211456,
                "asset":"USD/2"}],"reference":"r","metadata":{"k":"v"},"accountMetadata":{"users:1":{"a":"b"}},
                "timestamp":"2024-05-01T10:00:00Z","force":true}"#,
        );
        let Ok(Command::CreateTransaction(create)) = command else { panic!("{command:?}") };
        let Movement::Postings(postings) = &create.movement else { panic!("{create:?}") };
        assert_eq!(postings[0].amount.to_string(), "340282366920938463463374607431768211456");
        assert_eq!(create.reference.as_ref().map(Reference::as_str), Some("r"));
        assert_eq!(create.metadata.len(), 1);
        assert_eq!(create.account_metadata.len(), 1);
        assert_eq!(create.timestamp.map(|at| at.to_string()).as_deref(), Some("2024-05-01T10:00:00Z"));
        assert_eq!(create.overdraft, Overdraft::Allow);
    }

    #[test]
    fn distinguishes_invalid_values_from_wrong_shapes() {
        let posting = |source: &str, amount: &str, asset: &str| {
            let amount = if amount.is_empty() { String::new() } else { format!("\"amount\":{amount},") };
            format!(r#"{{"postings":[{{"source":"{source}",{amount}"destination":"b","asset":"{asset}"}}]}}"#)
        };
        for (body, message) in [
            (posting("a b", "1", "USD"), "invalid source address 'a b'"),
            (posting("a", "-1", "USD"), "negative amount"),
            (posting("a", "", "USD"), "postings[0]: no amount defined"),
            (posting("a", "null", "USD"), "postings[0]: no amount defined"),
            (
                posting("a", "", "USD")
                    .replace('[', r#"[{"source":"a","amount":1,"destination":"b","asset":"USD"},"#),
                "postings[1]: no amount defined",
            ),
            (posting("a", "1", "usd"), "invalid asset 'usd'"),
            ("{}".into(), "you must pass either a posting array, a numscript script, or a template"),
            (
                posting("a", "1", "USD")
                    .replace("{\"postings\"", "{\"script\":{\"plain\":\"x\"},\"postings\""),
                "cannot pass postings and numscript in the same request",
            ),
        ] {
            assert_eq!(create(&body).map_err(|error| error.message.into_owned()), Err(message.to_owned()));
        }
    }
}
