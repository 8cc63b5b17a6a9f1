//! Compiled scripts behind an interface.
//!
//! A host runs the scripts of its callers through [`CompiledScript`], and the caller names the [`Language`] together with
//! the text. So the host does not refer to the language, and a program without scripts does not contain it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

use smol_str::SmolStr;

use crate::error::ScriptError;
use crate::options::{Options, Profile};
use crate::program::Program;
use crate::run::{Progress, Reads, Run, Scratch, Variables};
use crate::types::Type;
use ledger_values::{AccountAddress, Balance, Metadata, MetadataValue, Postings};

thread_local! {
    /// The memory of the last run on this thread, for the next one.
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// The result of compiling a script.
pub type Compiled = Result<Box<dyn CompiledScript>, ScriptError>;

/// The language of a script. Languages with one name are equal.
#[derive(Clone, Copy)]
pub struct Language {
    name: &'static str,
    compile: fn(&str) -> Compiled,
}

impl Language {
    /// Numscript with the features of the default profile.
    pub const NUMSCRIPT: Self = Self { name: "Numscript", compile: compile_numscript };

    /// Compiles a script.
    ///
    /// # Errors
    ///
    /// The first error of the script.
    pub fn compile(self, text: &str) -> Compiled {
        (self.compile)(text)
    }
}

fn compile_numscript(text: &str) -> Compiled {
    Ok(Box::new(Program::compile(text, Profile::Default)?))
}

impl Default for Language {
    fn default() -> Self {
        Self::NUMSCRIPT
    }
}

impl PartialEq for Language {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Language {}

impl fmt::Debug for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// The effects of a script on a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptEffects {
    /// The postings as a ledger records them.
    pub postings: Postings,
    /// Metadata of the transaction.
    pub metadata: Metadata,
    /// Metadata of accounts.
    pub account_metadata: BTreeMap<AccountAddress, Metadata>,
}

/// A script that can be run many times.
pub trait CompiledScript: fmt::Debug + Send + Sync {
    /// Estimates the memory of the script in bytes. Caches use it to stay within a budget.
    fn memory(&self) -> usize;

    /// Returns the first variable that the caller must give and whose value does not fit its type.
    fn unfit_variable(&self, fits: &dyn Fn(&str, Type) -> bool) -> Option<&str>;

    /// Runs the script.
    ///
    /// # Errors
    ///
    /// The outer error says that a read failed. The inner one is the error of the script.
    fn execute(
        &self,
        variables: &Variables,
        options: Options,
        reads: &mut dyn Reads<Error = ReadFailed>,
    ) -> Result<Result<ScriptEffects, ScriptError>, ReadFailed>;
}

/// A read failed, and its reader has kept the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadFailed;

impl dyn CompiledScript {
    /// Runs the script.
    ///
    /// # Errors
    ///
    /// The outer error is that of `reads`. The inner one is the error of the script.
    pub fn run<R: Reads>(
        &self,
        variables: &Variables,
        options: Options,
        reads: &mut R,
    ) -> Result<Result<ScriptEffects, ScriptError>, R::Error> {
        let mut reads = ErrorKeeper { reads, error: None };
        let executed = self.execute(variables, options, &mut reads);
        match reads.error {
            Some(error) => Err(error),
            None => Ok(executed.expect("a reader that did not fail")),
        }
    }
}

/// A reader that keeps its first error.
struct ErrorKeeper<'a, R: Reads> {
    reads: &'a mut R,
    error: Option<R::Error>,
}

impl<R: Reads> ErrorKeeper<'_, R> {
    fn keep<T>(&mut self, answer: Result<T, R::Error>) -> Result<T, ReadFailed> {
        answer.map_err(|error| {
            self.error.get_or_insert(error);
            ReadFailed
        })
    }
}

impl<R: Reads> Reads for ErrorKeeper<'_, R> {
    type Error = ReadFailed;

    fn balance(&mut self, account: &AccountAddress, asset: &str, color: &str) -> Result<Balance, ReadFailed> {
        let answer = self.reads.balance(account, asset, color);
        self.keep(answer)
    }

    fn scales(
        &mut self,
        account: &AccountAddress,
        base: &str,
    ) -> Result<Vec<(SmolStr, Balance)>, ReadFailed> {
        let answer = self.reads.scales(account, base);
        self.keep(answer)
    }

    fn metadata(&mut self, account: &AccountAddress, key: &str) -> Result<Option<MetadataValue>, ReadFailed> {
        let answer = self.reads.metadata(account, key);
        self.keep(answer)
    }
}

impl CompiledScript for Program {
    fn memory(&self) -> usize {
        self.memory()
    }

    fn unfit_variable(&self, fits: &dyn Fn(&str, Type) -> bool) -> Option<&str> {
        self.needed_variables().find(|(name, declared)| !fits(name, *declared)).map(|(name, _)| name)
    }

    fn execute(
        &self,
        variables: &Variables,
        options: Options,
        reads: &mut dyn Reads<Error = ReadFailed>,
    ) -> Result<Result<ScriptEffects, ScriptError>, ReadFailed> {
        let mut scratch = SCRATCH.take();
        let effects = effects(Run::new(self, variables, options, &mut scratch), reads);
        // Do not keep the memory of an unusually large script.
        if scratch.is_small() {
            SCRATCH.set(scratch);
        }
        effects
    }
}

/// Advances a run to its end.
fn effects(
    mut run: Run<'_>,
    reads: &mut dyn Reads<Error = ReadFailed>,
) -> Result<Result<ScriptEffects, ScriptError>, ReadFailed> {
    loop {
        match run.advance() {
            Ok(Progress::Needs) => run.answer(reads)?,
            Ok(Progress::Done) => break,
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(run.ledger_postings().map(|postings| {
        let (metadata, account_metadata) = run.take_metadata();
        ScriptEffects { postings, metadata, account_metadata }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ledger whose every read fails with the next number.
    struct Broken(u32);

    impl Reads for Broken {
        type Error = u32;

        fn balance(&mut self, _: &AccountAddress, _: &str, _: &str) -> Result<Balance, u32> {
            self.0 += 1;
            Err(self.0)
        }

        fn scales(&mut self, _: &AccountAddress, _: &str) -> Result<Vec<(SmolStr, Balance)>, u32> {
            Err(0)
        }

        fn metadata(&mut self, _: &AccountAddress, _: &str) -> Result<Option<MetadataValue>, u32> {
            Err(0)
        }
    }

    #[test]
    fn returns_error_of_reader() {
        let script = "send [USD 5] ( source = { @a @b } destination = @c )";
        let compiled = Language::NUMSCRIPT.compile(script).expect("a script");
        let mut ledger = Broken(0);
        let mut run = || compiled.run(&Variables::new(), Options::default(), &mut ledger);
        assert_eq!((run(), run()), (Err(1), Err(2)));
    }
}
