//! Schemas in the model. Each use of a version searches the log for it.

use std::collections::BTreeMap;

use super::book::Book;
use crate::command::{Command, Movement, Script, Target};
use crate::log::{LogEntry, LogPayload};
use crate::rejection::Rejection;
use crate::schema::{Enforcement, Schema, version_of};
use ledger_values::{AccountAddress, Metadata, SchemaVersion};

/// A version with its schema.
pub(super) type Named = (SchemaVersion, Schema);

/// Refuses a violation, or returns it to report it, depending on the enforcement.
fn broken(rule: Rejection, enforcement: Enforcement) -> Result<Option<Rejection>, Rejection> {
    if enforcement == Enforcement::Strict { Err(rule) } else { Ok(Some(rule)) }
}

/// Lists the accounts that an entry names, in order. A revert names none, because its original did.
fn named_accounts(payload: &LogPayload) -> Vec<AccountAddress> {
    match payload {
        LogPayload::NewTransaction { transaction, account_metadata, .. } => {
            let mut all = Vec::new();
            for posting in &transaction.postings {
                all.extend([posting.source.clone(), posting.destination.clone()]);
            }
            all.extend(account_metadata.iter().map(|(account, _)| account.clone()));
            all
        }
        LogPayload::SetMetadata { target: Target::Account(account), .. }
        | LogPayload::DeleteMetadata { target: Target::Account(account), .. } => vec![account.clone()],
        _ => Vec::new(),
    }
}

/// Returns the violation if an entry names an account outside the chart, or refuses it under strict enforcement.
pub(super) fn check_chart(
    payload: &LogPayload,
    named: Option<&Named>,
    enforcement: Enforcement,
) -> Result<Option<Rejection>, Rejection> {
    let Some((version, schema)) = named else { return Ok(None) };
    for account in named_accounts(payload) {
        if schema.chart().find(&account).is_none() {
            let rule = Rejection::AccountOutsideChart { account, version: version.clone() };
            return broken(rule, enforcement);
        }
    }
    Ok(None)
}

impl Book {
    /// Returns the schema that a request names.
    pub(super) fn requested_schema(
        &self,
        version: Option<&SchemaVersion>,
    ) -> Result<Option<Named>, Rejection> {
        let Some(version) = version else { return Ok(None) };
        for entry in &self.log {
            if let LogPayload::InsertedSchema { schema } = &entry.payload
                && version_of(schema).as_ref() == Some(version)
                && let Ok(schema) = Schema::parse(schema)
            {
                return Ok(Some((version.clone(), schema)));
            }
        }
        Err(Rejection::SchemaNotFound { version: version.clone() })
    }

    /// Replaces a template by its script. Returns the command with a violation to report, if there is one.
    pub(super) fn resolve_template(
        &self,
        command: &Command,
        named: Option<&Named>,
        enforcement: Enforcement,
    ) -> Result<(Command, Option<Rejection>), Rejection> {
        let mut command = command.clone();
        if let Command::CreateTransaction(create) = &mut command {
            if let Movement::Template { name, variables, wording, language } = create.movement.clone() {
                let Some((version, schema)) = named else {
                    let is_schema =
                        |entry: &LogEntry| matches!(entry.payload, LogPayload::InsertedSchema { .. });
                    if enforcement == Enforcement::Strict && self.log.iter().any(is_schema) {
                        return Err(Rejection::SchemaNotSpecified);
                    }
                    return Err(Rejection::TemplateWithoutVersion { template: name });
                };
                let Some(template) = schema.template(&name) else {
                    return Err(Rejection::TemplateNotFound { template: name, version: version.clone() });
                };
                create.movement = Movement::Script(Script {
                    plain: template.script.to_string(),
                    variables,
                    wording: template.wording.unwrap_or(wording),
                    language,
                });
                create.template = Some(name.as_str().into());
            } else if let Some((version, schema)) = named
                && schema.has_templates()
            {
                return Err(Rejection::TemplateRequired { version: version.clone() });
            }
        }
        let mut schemas =
            self.log.iter().filter(|entry| matches!(entry.payload, LogPayload::InsertedSchema { .. }));
        let adds = matches!(command, Command::InsertSchema(_));
        let report = if named.is_none() && !adds && schemas.next().is_some() {
            broken(Rejection::SchemaNotSpecified, enforcement)?
        } else {
            None
        };
        Ok((command, report))
    }

    /// Returns the default metadata of accounts that an entry names first.
    pub(super) fn defaults(
        &self,
        payload: &LogPayload,
        named: Option<&Named>,
    ) -> Vec<(AccountAddress, Metadata)> {
        let Some((_, schema)) = named else { return Vec::new() };
        if matches!(payload, LogPayload::DeleteMetadata { .. }) {
            return Vec::new();
        }
        let there = self.addresses();
        let mut given = BTreeMap::new();
        for account in named_accounts(payload) {
            if !there.contains(&account)
                && let Some(found) = schema.chart().find(&account)
                && !found.defaults().is_empty()
            {
                given.insert(account, found.defaults().clone());
            }
        }
        given.into_iter().collect()
    }
}
