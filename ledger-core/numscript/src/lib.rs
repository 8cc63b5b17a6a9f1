//! Numscript, a script language for payments. A script says where money comes from and where it goes. The page
//! [`language`] explains how to write one.
//!
//! A script passes through stages, each with its own types:
//!
//! ```text
//! text ─parse→ Tree ─check→ typed tree ─compile→ Program ─Run: needs, answers→ Outcome
//!                          └ findings
//! ```
//!
//! - [`parse`] reads a text into a [`Tree`] and reports every syntax error.
//! - [`Checked`] examines a tree without running it: types, names, shares, sources that can never pay. It
//!   resolves names and gives types to expressions. [`check`] lists the findings.
//! - [`Program::compile`] turns a checked script into a program. It numbers accounts and assets and computes
//!   constants, so that each run costs little. A program is immutable; share it and keep it.
//! - [`Run`] executes a program. It reads nothing itself: it lists the balances and account metadata that it
//!   needs, takes the answers, and goes on until nothing is missing. Equal answers give equal outcomes.
//! - [`CompiledScript`] does all of this for a host that takes scripts in any [`Language`].
//! - [`format()`] prints a script in its canonical layout.
//!
//! Failures are [`ScriptError`]s: a closed set of kinds, each with its fields and its position in the text.
//! No input makes this crate panic, and [`limits`] bound the cost of every input.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers in tests are small"
    )
)]

pub mod limits;

#[doc = include_str!("language.md")]
pub mod language {}

#[cfg(feature = "cli")]
pub mod cli;

mod check;
mod compile;
mod compiled;
mod diagnostic;
mod error;
mod fault;
mod format;
mod names;
mod options;
mod outcome;
mod parser;
mod portion;
mod program;
mod run;
mod span;
mod switches;
mod token;
mod trace;
mod tree;
pub(crate) mod types;
mod value;

pub use check::{Checked, TypedRange, check, check_as_interpreter};
pub use compiled::{Compiled, CompiledScript, Language, ReadFailed, ScriptEffects};
pub use diagnostic::{Diagnostic, DiagnosticKind, Misplaced, Severity, Version};
pub use error::{ErrorClass, ErrorKind, Fields, PortionFault, ScriptError};
pub use format::format;
pub use options::{EmptySends, Flag, Flags, Options, Profile, Tracing};
pub use outcome::{Outcome, ScriptPosting, colored_asset};
pub use parser::{SyntaxError, parse};
pub use program::Program;
pub use run::{EmptyLedger, Need, Progress, Reads, Run, Scratch, Variables};
pub use span::{Position, Range, Span};
pub use trace::{Bound, PostingTrace, Trace, Withdrawal};
pub use tree::Tree;
pub use types::{Type, function_names};

#[cfg(test)]
mod tests {
    use super::{Profile, Program};

    #[test]
    fn compiles_scripts_of_language_page() {
        let page = include_str!("language.md");
        let scripts = page.split("```numscript\n").skip(1).filter_map(|rest| rest.split("```").next());
        let mut count = 0;
        for script in scripts {
            let compiled = Program::compile(script, Profile::Default);
            assert!(compiled.is_ok(), "{script}: {:?}", compiled.err());
            count += 1;
        }
        assert!(count > 0);
    }
}
