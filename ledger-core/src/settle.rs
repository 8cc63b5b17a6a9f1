//! Runs the script of a command and replaces it by the resulting postings.

use std::collections::BTreeMap;

use crate::command::{CreateTransaction, Movement, VariableValue};
use crate::overdraft::Overdraft;
use crate::rejection::Rejection;
use crate::rules::Rules;
use ledger_numscript::{
    Compiled, CompiledScript, ErrorKind, Flags, Options, Profile, Reads, ScriptEffects, ScriptError, Tracing,
    Variables,
};
use ledger_values::{Metadata, Postings};

/// Returns the options of a run in a ledger.
fn options(rules: &Rules) -> Options {
    let empty_sends = rules.get().empty_sends();
    Options { profile: Profile::Default, flags: Flags::ALL, trace: Tracing::Off, empty_sends }
}

/// Runs the script of a command, and replaces it by the resulting postings and metadata. From then on the
/// command is decided, recorded and replayed like any other, without its script. `compiled` is the result of
/// compiling the script. A command without a script stays as it is.
///
/// The run ensures that the sources pay only what their clauses allow, so the rules do not check the funds of
/// these postings again.
///
/// # Errors
///
/// The outer error is that of `reads`, after which the outcome is unknown. The inner error is the refusal of
/// the command, which must not be used any more.
///
/// ```
/// use ledger_core::script::{EmptyLedger, Language};
/// use ledger_core::{CreateTransaction, Movement, Posting, Script, settle};
/// let plain = "send [USD/2 100] (source = @world destination = @users:001)";
/// let compiled = Language::NUMSCRIPT.compile(plain);
/// let mut create = CreateTransaction::of(Vec::<Posting>::new().into());
/// create.movement = Movement::Script(Script { plain: plain.into(), ..Script::default() });
/// settle(&mut create, &compiled, &mut EmptyLedger)??;
/// let Movement::Postings(postings) = &create.movement else { panic!("the script was settled") };
/// assert_eq!(postings[0].destination.as_str(), "users:001");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn settle<R: Reads>(
    create: &mut CreateTransaction,
    compiled: &Compiled,
    reads: &mut R,
) -> Result<Result<(), Rejection>, R::Error> {
    if !matches!(create.movement, Movement::Script(_)) {
        return Ok(Ok(()));
    }
    let Movement::Script(script) =
        std::mem::replace(&mut create.movement, Movement::Postings(Postings::new()))
    else {
        unreachable!("the movement was checked to be a script above");
    };
    let wording = script.wording;
    let refused = |error: ScriptError| Ok(Err(Rejection::Script { error: Box::new(error), wording }));
    let compiled = match compiled {
        Ok(compiled) => &**compiled,
        Err(error) => return refused(error.clone()),
    };
    let variables = match texts(script.variables, compiled) {
        Ok(variables) => variables,
        Err(error) => return refused(error),
    };
    match compiled.run(&variables, options(&create.rules), reads)? {
        Ok(effects) => Ok(replace_by(effects, create)),
        Err(error) => refused(error),
    }
}

/// Puts the effects of its script into a command.
fn replace_by(effects: ScriptEffects, create: &mut CreateTransaction) -> Result<(), Rejection> {
    let ScriptEffects { postings, metadata, account_metadata } = effects;
    if postings.is_empty() {
        return Err(Rejection::NoPostings);
    }
    for (key, value) in metadata.iter() {
        // An empty text counts as unset.
        if !value.text().is_empty() && create.metadata.get(key).is_some() {
            return Err(Rejection::MetadataOverride { key: key.into() });
        }
    }
    // The metadata of the request overrides that of the script.
    create.metadata = joined(metadata, std::mem::take(&mut create.metadata));
    for (account, metadata) in account_metadata {
        let of_request = create.account_metadata.entry(account).or_default();
        *of_request = joined(metadata, std::mem::take(of_request));
    }
    create.movement = Movement::Postings(postings);
    create.overdraft = Overdraft::Allow;
    Ok(())
}

/// Joins two sets of metadata. If both have a key, the value of `over` counts. Takes time in proportion to
/// their length.
fn joined(under: Metadata, over: Metadata) -> Metadata {
    if over.is_empty() {
        return under;
    }
    if under.is_empty() {
        return over;
    }
    let mut all = Metadata::with_capacity(under.len() + over.len());
    let mut rest = under.iter().peekable();
    for (key, value) in over.iter() {
        while let Some((before, value)) = rest.next_if(|(other, _)| *other <= key) {
            if before < key {
                all.insert(before, value.clone());
            }
        }
        all.insert(key, value.clone());
    }
    for (key, value) in rest {
        all.insert(key, value.clone());
    }
    all
}

/// Returns the texts of variables whose values fit the types in the script. Unknown variables are left for
/// the run to refuse.
fn texts(
    values: BTreeMap<String, VariableValue>,
    compiled: &dyn CompiledScript,
) -> Result<Variables, ScriptError> {
    let fits = |name: &str, declared| values.get(name).is_none_or(|value| value.fits(declared));
    if let Some(name) = compiled.unfit_variable(&fits) {
        let kind = ErrorKind::InvalidVariable { name: name.into(), reason: "a value of another type" };
        return Err(ScriptError { kind, range: None });
    }
    Ok(values.into_iter().map(|(name, value)| (name, value.into_text())).collect())
}
