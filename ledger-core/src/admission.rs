//! Admission: whether a request is executed, decided before its script runs.

use crate::command::{Command, Movement};
use crate::decide::check_before_script;
use crate::enforcement;
use crate::facts::{Facts, Needs};
use crate::log::Idempotency;
use crate::preconditions::Preconditions;
use crate::prior_request::{Operation, PriorRequest};
use crate::rejection::Rejection;
use crate::schema::{Enforcement, Schema};
use ledger_values::{SchemaVersion, Timestamp};

/// The options of a request, which are decided before its command.
///
/// ```
/// use ledger_core::schema::Enforcement;
/// use ledger_core::{
///     AccountAddress, Admission, Command, CreateTransaction, Facts, Postings, Preconditions, Rejection,
///     RequestOptions, Timestamp, admission_needs, admit,
/// };
/// let (ann, bob) = (AccountAddress::parse("users:ann")?, AccountAddress::parse("users:bob")?);
/// let preconditions = Preconditions { existing: vec![ann.clone()], new: vec![bob.clone()] };
/// let options = RequestOptions { preconditions: Some(&preconditions), ..RequestOptions::default() };
/// let mut command = Command::CreateTransaction(CreateTransaction::of(Postings::new()));
/// options.check_size()?;
/// assert_eq!(admission_needs(&command, options).existence, [&ann, &bob]);
///
/// let mut admitted = |existence: [bool; 2]| {
///     let facts = Facts { existence: existence.into(), ..Facts::default() };
///     admit(&mut command, options, &facts, Enforcement::Strict, Timestamp::default())
/// };
/// assert_eq!(admitted([true, false]), Ok(Admission::Execute { violation: None }));
/// assert_eq!(admitted([true, true]), Err(Rejection::AccountExists { account: bob }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOptions<'a> {
    /// The caller's idempotency key.
    pub idempotency: Option<&'a Idempotency>,
    /// The version of the ledger's schema that applies to the command.
    pub schema_version: Option<&'a SchemaVersion>,
    /// The accounts that must exist or be new.
    pub preconditions: Option<&'a Preconditions>,
    /// True if several commands share the idempotency key, and this is the first of them. Such a request repeats an
    /// earlier one only if both hashes are equal. The request of a single command also repeats it if one of the hashes
    /// is missing, or if another server computed the earlier one.
    pub several: bool,
}

impl RequestOptions<'_> {
    /// Checks the number of preconditions before anything is loaded for them.
    ///
    /// # Errors
    ///
    /// [`Rejection::TooManyPreconditions`].
    pub fn check_size(&self) -> Result<(), Rejection> {
        self.preconditions.map_or(Ok(()), Preconditions::check_size)
    }
}

/// The answer to whether a request is executed.
///
/// ```
/// use ledger_core::schema::Enforcement;
/// use ledger_core::{
///     Admission, Command, CreateTransaction, Facts, Idempotency, IdempotencyKey, Operation, Postings, PriorRequest,
///     RequestOptions, Timestamp, admit,
/// };
/// let given = Idempotency { key: IdempotencyKey::parse("order-17")?, hash: "abc".into() };
/// let options = RequestOptions { idempotency: Some(&given), ..RequestOptions::default() };
/// let prior = PriorRequest { hash: "abc".into(), foreign: false, operation: Operation::Create };
/// let facts = Facts { prior: Some(prior.into()), ..Facts::default() };
/// let mut command = Command::CreateTransaction(CreateTransaction::of(Postings::new()));
/// let admission = admit(&mut command, options, &facts, Enforcement::Strict, Timestamp::default())?;
/// assert_eq!(admission, Admission::Replay);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It repeats a request that was executed before, and gets the answer of that one.
    Replay,
    /// It is executed.
    Execute {
        /// The refusal that strict enforcement of the schema would have returned.
        violation: Option<Rejection>,
    },
}

/// Lists the facts that [`admit`] requires.
#[expect(
    clippy::field_reassign_with_default,
    reason = "an initializer makes the needs elsewhere and copies them"
)]
pub fn admission_needs<'a>(command: &'a Command, options: RequestOptions<'a>) -> Needs<'a> {
    let mut needs = Needs::default();
    needs.idempotency_key = options.idempotency.map(|idempotency| &idempotency.key);
    needs.named_schema = options.schema_version;
    needs.has_schemas = true;
    needs.transaction = command.transaction();
    if let Some(preconditions) = options.preconditions {
        needs.existence = preconditions.accounts().collect();
    }
    if let Command::CreateTransaction(create) = command
        && has_script(&create.movement)
    {
        create.rules.get().add_needs_before_script(create.reference.as_ref(), &mut needs);
    }
    needs
}

/// Decides whether to execute a request, given the facts about its ledger. Replaces the command's template by its script.
/// `now` is the insertion date.
///
/// # Errors
///
/// The [`Rejection`] of the first check that fails.
///
/// # Panics
///
/// Panics if `facts` lack something that [`admission_needs`] asked for. This is a bug of the caller.
pub fn admit(
    command: &mut Command,
    options: RequestOptions<'_>,
    facts: &Facts,
    enforcement: Enforcement,
    now: Timestamp,
) -> Result<Admission, Rejection> {
    if let (Some(given), Some(prior)) = (options.idempotency, &facts.prior) {
        return decide_reused_key(command, given, prior, options.several);
    }
    if let Some(preconditions) = options.preconditions {
        preconditions.decide(facts)?;
    }
    let named = named_schema(options.schema_version, facts)?;
    let violation = enforcement::resolve(command, named, facts.has_schemas, enforcement)?;
    if let Command::CreateTransaction(create) = command
        && has_script(&create.movement)
    {
        check_before_script(create, facts, now)?;
    }
    Ok(Admission::Execute { violation })
}

/// Decides a request whose idempotency key was used before.
fn decide_reused_key(
    command: &Command,
    given: &Idempotency,
    prior: &PriorRequest,
    several: bool,
) -> Result<Admission, Rejection> {
    if prior.is_repeated_by(&given.hash, Operation::of(command), several) {
        return Ok(Admission::Replay);
    }
    Err(Rejection::IdempotencyMismatch {
        key: given.key.as_str().into(),
        computed: given.hash.clone(),
        stored: prior.hash.clone(),
    })
}

/// Returns the schema version that a request names, with its schema.
fn named_schema<'a>(
    version: Option<&'a SchemaVersion>,
    facts: &'a Facts,
) -> Result<Option<(&'a SchemaVersion, &'a Schema)>, Rejection> {
    let Some(version) = version else { return Ok(None) };
    match facts.named_schema.as_deref() {
        None => Err(Rejection::SchemaNotFound { version: version.clone() }),
        Some(Ok(schema)) => Ok(Some((version, schema))),
        Some(Err(error)) => {
            let (version, reason) = (version.clone(), error.to_string().into());
            Err(Rejection::SchemaUnreadable { version, reason })
        }
    }
}

const fn has_script(movement: &Movement) -> bool {
    matches!(movement, Movement::Script(_) | Movement::Template { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CreateTransaction, InsertSchema, Script};
    use ledger_values::{AccountAddress, IdempotencyKey, Postings, Reference};
    use std::sync::Arc;

    fn create() -> Command {
        Command::CreateTransaction(CreateTransaction::of(Postings::new()))
    }

    fn idempotency(hash: &str) -> Idempotency {
        Idempotency { key: IdempotencyKey::parse("k").expect("a key"), hash: hash.into() }
    }

    fn admitted(
        command: &Command,
        options: RequestOptions<'_>,
        facts: &Facts,
    ) -> Result<Admission, Rejection> {
        admit(&mut command.clone(), options, facts, Enforcement::Strict, Timestamp::from_micros(5))
    }

    #[test]
    fn used_key_repeats_equal_requests() {
        let schema = || Box::new(Schema::parse(r#"{"chart":{}}"#).expect("a schema"));
        let version = SchemaVersion::parse("v1").expect("a version");
        let insert = Command::InsertSchema(InsertSchema { version, schema: schema() });
        for (hash, prior_hash, foreign, several, command, repeats) in [
            ("a", "a", false, false, create(), true),
            ("a", "b", false, false, create(), false),
            ("a", "b", true, false, create(), true),
            ("a", "", false, false, create(), true),
            ("", "b", false, false, create(), true),
            ("a", "a", false, true, create(), true),
            ("a", "b", true, true, create(), false),
            ("", "", false, true, create(), false),
            ("a", "a", false, false, insert, false),
        ] {
            let given = idempotency(hash);
            let options = RequestOptions { idempotency: Some(&given), several, ..RequestOptions::default() };
            let prior = PriorRequest { hash: prior_hash.into(), foreign, operation: Operation::Create };
            let facts = Facts { prior: Some(prior.into()), ..Facts::default() };
            let refused = Rejection::IdempotencyMismatch {
                key: "k".into(),
                computed: hash.into(),
                stored: prior_hash.into(),
            };
            let expected = if repeats { Ok(Admission::Replay) } else { Err(refused) };
            assert_eq!(
                admitted(&command, options, &facts),
                expected,
                "{hash} {prior_hash} {foreign} {several}"
            );
        }
    }

    /// Each step mends the fault that the step before was refused for.
    #[test]
    fn refuses_in_order_key_preconditions_schema() {
        let given = idempotency("a");
        let version = SchemaVersion::parse("v1").expect("a version");
        let account = AccountAddress::parse("users:ann").expect("an address");
        let preconditions = Preconditions { existing: vec![account.clone()], new: Vec::new() };
        let options = RequestOptions {
            idempotency: Some(&given),
            schema_version: Some(&version),
            preconditions: Some(&preconditions),
            several: false,
        };
        let prior = PriorRequest { hash: "b".into(), foreign: false, operation: Operation::Create };
        let mut facts = Facts { prior: Some(prior.into()), existence: vec![false], ..Facts::default() };
        let refusal = |facts: &Facts| admitted(&create(), options, facts).expect_err("it is refused");
        assert!(matches!(refusal(&facts), Rejection::IdempotencyMismatch { .. }));
        facts.prior = None;
        assert_eq!(refusal(&facts), Rejection::AccountNotFound { account });
        facts.existence = vec![true];
        assert_eq!(refusal(&facts), Rejection::SchemaNotFound { version: version.clone() });
        facts.named_schema = Some(Arc::new(Schema::parse("[]")));
        assert!(matches!(refusal(&facts), Rejection::SchemaUnreadable { .. }));
        let with_templates = r#"{"chart":{},"transactions":{"t":{"script":"print 1"}}}"#;
        facts.named_schema = Some(Arc::new(Schema::parse(with_templates)));
        assert_eq!(refusal(&facts), Rejection::TemplateRequired { version: version.clone() });
        facts.named_schema = Some(Arc::new(Schema::parse(r#"{"chart":{}}"#)));
        assert_eq!(admitted(&create(), options, &facts), Ok(Admission::Execute { violation: None }));
    }

    #[test]
    fn v1_scripts_need_reference_and_last_date() {
        let reference = Reference::parse("r").expect("a reference");
        let script = Movement::Script(Script {
            plain: "print 1".into(),
            variables: std::collections::BTreeMap::new(),
            wording: crate::ErrorWording::Machine,
            language: crate::script::Language::NUMSCRIPT,
        });
        let past_dates = crate::PastDates::Refuse;
        let v1 = crate::LegacyRules { past_dates, ..crate::LegacyRules::default() };
        let v1 = crate::Rules::Legacy(v1.into());
        for (rules, movement, is_needed) in [
            (v1.clone(), script.clone(), true),
            (v1, Movement::Postings(Postings::new()), false),
            (crate::Rules::Current, script, false),
        ] {
            let reference = Some(reference.clone());
            let create =
                CreateTransaction { movement, reference, rules, ..CreateTransaction::of(Postings::new()) };
            let command = Command::CreateTransaction(create);
            let needs = admission_needs(&command, RequestOptions::default());
            assert_eq!((needs.reference.is_some(), needs.last_date), (is_needed, is_needed));
            let facts = Facts { reference_taken: true, ..Facts::default() };
            let options = RequestOptions::default();
            assert_eq!(
                admitted(&command, options, &facts).is_err(),
                is_needed,
                "a taken reference is refused"
            );
        }
    }
}
