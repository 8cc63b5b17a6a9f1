//! Schemas in the model: a version is looked for in the log each time that it is named.

use std::collections::BTreeMap;

use super::Book;
use crate::command::{Command, Movement, Script, Target};
use crate::log::LogPayload;
use crate::metadata::Metadata;
use crate::names::{AccountAddress, SchemaVersion};
use crate::rejection::Rejection;
use crate::schema::{Enforcement, Schema, version_of};

/// A version with its schema.
pub(super) type Named = (SchemaVersion, Schema);

/// Refuses, or says what to report.
fn broken(rule: Rejection, enforcement: Enforcement) -> Result<Option<Rejection>, Rejection> {
    if enforcement == Enforcement::Strict { Err(rule) } else { Ok(Some(rule)) }
}

/// Accounts that an entry names, in order; those of a revert were named by its original.
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

/// What is to be reported if an entry names an account that is not in the chart.
pub(super) fn outside(
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
    /// The schema that a request names.
    pub(super) fn named(&self, version: Option<&SchemaVersion>) -> Result<Option<Named>, Rejection> {
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

    /// The command with a template's script in its place, and what is to be reported of it.
    pub(super) fn under(
        &self,
        command: &Command,
        named: Option<&Named>,
        enforcement: Enforcement,
    ) -> Result<(Command, Option<Rejection>), Rejection> {
        let mut command = command.clone();
        if let Command::CreateTransaction(create) = &mut command {
            if let Movement::Template { name, variables, runtime } = create.movement.clone() {
                let Some((version, schema)) = named else {
                    return Err(Rejection::TemplateWithoutVersion { template: name });
                };
                let Some(template) = schema.template(&name) else {
                    return Err(Rejection::TemplateNotFound { template: name, version: version.clone() });
                };
                create.movement = Movement::Script(Script {
                    plain: template.script.to_string(),
                    variables,
                    runtime: template.runtime.unwrap_or(runtime),
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

    /// What the chart gives to accounts that an entry is the first to name.
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
