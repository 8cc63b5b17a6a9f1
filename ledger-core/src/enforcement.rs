//! Enforcement of a schema on commands.
//!
//! During [admission](crate::admit), a template is replaced by its script, and a command that the version does not allow is
//! refused. Then the command is decided like any other. Finally, [`check`] compares the decision with the chart, and
//! [`defaults`] returns the default metadata of new accounts.
//!
//! ```
//! use ledger_core::enforcement::check;
//! use ledger_core::schema::{Enforcement, Schema};
//! use ledger_core::{AccountAddress, Command, Facts, Rejection, SchemaVersion, Target, Timestamp, decide};
//! let (version, schema) = (SchemaVersion::parse("v1")?, Schema::parse(r#"{"chart": {"users": {"$id": {}}}}"#)?);
//! let account = AccountAddress::parse("shops:1")?;
//! let delete = Command::DeleteMetadata { target: Target::Account(account.clone()), key: "note".into() };
//! let decision = decide(&delete, &[], &mut Facts::default(), Timestamp::MIN)?;
//! let found = check(&decision, &version, &schema, Enforcement::Audit)?;
//! assert_eq!(found, Some(Rejection::AccountOutsideChart { account, version }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use crate::command::{Command, Movement, Script, Target};
use crate::decide::Decision;
use crate::rejection::Rejection;
use crate::schema::{Enforcement, Schema};
use ledger_values::{AccountAddress, Metadata, SchemaVersion};

/// Replaces a template by its script, and checks which version and template a request must name. `named` is the
/// version that the request names, with its schema, and `has_schemas` is whether its ledger has any.
///
/// # Errors
///
/// The [`Rejection`] of a command that no mode allows. A violation that only [`Enforcement::Strict`] refuses is an
/// error in that mode; in other modes the function returns it, so that the caller can report it.
pub(crate) fn resolve(
    command: &mut Command,
    named: Option<(&SchemaVersion, &Schema)>,
    has_schemas: bool,
    enforcement: Enforcement,
) -> Result<Option<Rejection>, Rejection> {
    if let Command::CreateTransaction(create) = command {
        match (&mut create.movement, named) {
            // In strict mode, a missing version is reported before a missing template.
            (Movement::Template { .. }, None) if has_schemas && enforcement == Enforcement::Strict => {
                return Err(Rejection::SchemaNotSpecified);
            }
            (Movement::Template { name, .. }, None) => {
                return Err(Rejection::TemplateWithoutVersion { template: name.clone() });
            }
            (Movement::Template { name, variables, wording, language }, Some((version, schema))) => {
                let Some(template) = schema.template(name) else {
                    return Err(Rejection::TemplateNotFound {
                        template: name.clone(),
                        version: version.clone(),
                    });
                };
                create.template = Some(name.as_str().into());
                create.movement = Movement::Script(Script {
                    plain: template.script.to_string(),
                    variables: std::mem::take(variables),
                    wording: template.wording.unwrap_or(*wording),
                    language: *language,
                });
            }
            (_, Some((version, schema))) if schema.has_templates() => {
                return Err(Rejection::TemplateRequired { version: version.clone() });
            }
            _ => {}
        }
    }
    let is_free = named.is_some() || !has_schemas || matches!(command, Command::InsertSchema(_));
    if is_free {
        return Ok(None);
    }
    by(enforcement, Rejection::SchemaNotSpecified)
}

/// Checks that the chart contains all accounts that a request names. A revert names none.
///
/// # Errors
///
/// A violation that only [`Enforcement::Strict`] refuses is an error in that mode; in other modes the function returns it,
/// so that the caller can report it.
pub fn check(
    decision: &Decision<'_>,
    version: &SchemaVersion,
    schema: &Schema,
    enforcement: Enforcement,
) -> Result<Option<Rejection>, Rejection> {
    let chart = schema.chart();
    let outside = |account: &&AccountAddress| chart.find(account).is_none();
    let outside = match decision {
        Decision::Transaction(new) if new.reverts.is_none() => {
            let moved = new.postings.iter().flat_map(|posting| [&posting.source, &posting.destination]);
            moved.chain(new.account_metadata.keys()).find(outside)
        }
        Decision::SetMetadata { target: Target::Account(account), .. }
        | Decision::DeleteMetadata { target: Target::Account(account), .. } => Some(account).filter(outside),
        Decision::Transaction(_)
        | Decision::SetMetadata { .. }
        | Decision::DeleteMetadata { .. }
        | Decision::InsertSchema { .. } => None,
    };
    match outside {
        None => Ok(None),
        Some(account) => by(
            enforcement,
            Rejection::AccountOutsideChart { account: account.clone(), version: version.clone() },
        ),
    }
}

/// Returns the default metadata of new accounts, sorted by address. Accounts without defaults are left out.
pub fn defaults<'a>(
    schema: &Schema,
    new_accounts: impl IntoIterator<Item = &'a AccountAddress>,
) -> Vec<(AccountAddress, Metadata)> {
    if !schema.chart().has_defaults() {
        return Vec::new();
    }
    let mut given = BTreeMap::new();
    for account in new_accounts {
        let Some(found) = schema.chart().find(account) else { continue };
        if !found.defaults().is_empty() {
            given.insert(account.clone(), found.defaults().clone());
        }
    }
    given.into_iter().collect()
}

fn by(enforcement: Enforcement, violation: Rejection) -> Result<Option<Rejection>, Rejection> {
    match enforcement {
        Enforcement::Audit => Ok(Some(violation)),
        Enforcement::Strict => Err(violation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{CreateTransaction, InsertSchema, RevertDate, RevertTransaction};
    use crate::error_wording::ErrorWording;
    use crate::{Overdraft, Rules};
    use ledger_numscript::Language;
    use ledger_values::{Postings, TransactionId};

    const CHART: &str = r#""chart":{"a":{},"b":{"$x":{".metadata":{"k":{"default":"v"}}}}}"#;
    const TEMPLATES: &str =
        r#""transactions":{"t":{"script":"print 1","runtime":"experimental-interpreter"}}"#;

    fn schema(templates: bool) -> Schema {
        let text = if templates { format!("{{{CHART},{TEMPLATES}}}") } else { format!("{{{CHART}}}") };
        Schema::parse(&text).expect("a schema")
    }

    fn version() -> SchemaVersion {
        SchemaVersion::parse("v1").expect("a version")
    }

    fn address(text: &str) -> AccountAddress {
        AccountAddress::parse(text).expect(text)
    }

    fn create(movement: Movement) -> Command {
        Command::CreateTransaction(CreateTransaction { movement, ..CreateTransaction::of(Postings::new()) })
    }

    fn template(name: &str) -> Command {
        create(Movement::Template {
            name: name.into(),
            variables: BTreeMap::new(),
            wording: ErrorWording::Machine,
            language: Language::NUMSCRIPT,
        })
    }

    fn revert() -> Command {
        Command::RevertTransaction(RevertTransaction {
            id: TransactionId::new(1),
            overdraft: Overdraft::Refuse,
            dated: RevertDate::Now,
            metadata: Metadata::EMPTY,
            rules: Rules::Current,
        })
    }

    #[test]
    fn version_with_templates_requires_one() {
        let (schema_of, version) = (schema, version());
        let resolved = |mut command: Command, schema: Option<&Schema>| {
            resolve(&mut command, schema.map(|schema| (&version, schema)), true, Enforcement::Audit)
                .map(|_| command)
        };
        let (with, without) = (schema_of(true), schema_of(false));
        let Ok(Command::CreateTransaction(create_of)) = resolved(template("t"), Some(&with)) else {
            panic!("the template is there")
        };
        assert_eq!(create_of.template.as_deref(), Some("t"));
        assert!(matches!(&create_of.movement,
            Movement::Script(script) if script.plain == "print 1" && script.wording == ErrorWording::Interpreter));
        for (command, schema, refused) in [
            (template("u"), Some(&with), true),
            (template("t"), Some(&without), true),
            (template("t"), None, true),
            (create(Movement::Postings(Postings::new())), Some(&with), true),
            (create(Movement::Postings(Postings::new())), Some(&without), false),
            (create(Movement::Postings(Postings::new())), None, false),
            (revert(), Some(&with), false),
        ] {
            assert_eq!(resolved(command.clone(), schema).is_err(), refused, "{command:?}");
        }
    }

    #[test]
    fn strict_mode_requires_a_version_if_any_exist() {
        let added =
            Command::InsertSchema(InsertSchema { version: version(), schema: Box::new(schema(false)) });
        for (mut command, has_schemas, enforcement, refused, reported) in [
            (revert(), true, Enforcement::Strict, true, false),
            (revert(), true, Enforcement::Audit, false, true),
            (revert(), false, Enforcement::Strict, false, false),
            (added, true, Enforcement::Strict, false, false),
        ] {
            let resolved = resolve(&mut command, None, has_schemas, enforcement);
            assert_eq!(resolved.is_err(), refused, "{command:?}");
            assert_eq!(resolved.is_ok_and(|found| found.is_some()), reported, "{command:?}");
        }
    }

    #[test]
    fn checks_accounts_and_returns_defaults() {
        let (schema, version) = (schema(false), version());
        for (account, known) in [("a", true), ("b:1", true), ("world", true), ("b", false), ("c", false)] {
            let target = Target::Account(address(account));
            for decision in [
                Decision::SetMetadata { target: &target, metadata: &Metadata::EMPTY },
                Decision::DeleteMetadata { target: &target, key: "k" },
            ] {
                let strict = check(&decision, &version, &schema, Enforcement::Strict);
                assert_eq!(strict.is_ok(), known, "{account}");
                let audit =
                    check(&decision, &version, &schema, Enforcement::Audit).expect("audit refuses nothing");
                assert_eq!(audit.is_none(), known, "{account}");
            }
        }
        let accounts = ["b:2", "a", "c", "b:1", "b:2"].map(address);
        let given = defaults(&schema, &accounts);
        let names: Vec<_> = given.iter().map(|(account, _)| account.as_str()).collect();
        assert_eq!(names, ["b:1", "b:2"]);
        assert_eq!(given[0].1, [("k", "v")].into_iter().collect());
    }
}
