//! The script language: where money comes from and where it goes, as text.
//!
//! A script passes through stages, each with types of its own:
//!
//! ```text
//! text ─parse→ Tree ─check→ typed tree ─compile→ Program ─Run: needs, answers→ Outcome
//!                          └ findings
//! ```
//!
//! - [`parse`] reads a text into a [`Tree`] and reports every place where it is no script.
//! - [`Checked`] judges a tree without running it: types, names, shares, sources that can never pay. It gives names
//!   their meaning and expressions their types, and [`check`] lists what it finds.
//! - [`Program::compile`] makes a program of what the checker let pass: it numbers accounts and assets and computes
//!   what is constant, so that running it again costs little. A program is immutable and meant to be shared and kept.
//! - [`Run`] executes a program. It reads nothing itself: it says what it needs to know (balances, account
//!   metadata), is told, and asks again until nothing is missing. Equal answers give equal outcomes.
//! - [`format()`] lays a script out canonically.
//!
//! Failures are [`ScriptError`]s: a closed set of kinds, each with its fields and the place in the text. Nothing a
//! caller passes makes this module panic; what it may cost is bounded by [`crate::limits`].

mod check;
mod compile;
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
mod settle;
mod span;
mod switches;
mod token;
mod trace;
mod tree;
mod typed_text;
mod types;
mod value;

pub use check::{Checked, TypedRange, check, check_as_interpreter};
pub use diagnostic::{Diagnostic, DiagnosticKind, Misplaced, Severity, Version};
pub use error::{ErrorClass, ErrorKind, Fields, PortionFault, ScriptError};
pub use format::format;
pub use options::{EmptySends, Flag, Flags, Options, Profile, Tracing};
pub use outcome::{Outcome, ScriptPosting, colored_asset};
pub use parser::{SyntaxError, parse};
pub use program::Program;
pub use run::{Blank, Need, Progress, Reads, Run, Scratch, Variables};
pub use settle::settle;
pub use span::{Place, Range, Span};
pub use trace::{Bound, Drawn, PostingTrace, Trace};
pub use tree::Tree;
pub use types::Type;
