//! Findings of the checker.

use std::fmt;

use smol_str::SmolStr;

use super::error::{ErrorKind, Fields};
use super::fault::Fault;
use super::options::Flag;
use super::span::{Range, Span};
use super::types::Type;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The script cannot work, or works only in some engines.
    Error,
    /// The script works, but perhaps not as its author intended.
    Warning,
}

/// A finding of the checker with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Kind of the finding.
    pub kind: DiagnosticKind,
    /// Position of the finding in lines and columns.
    pub range: Range,
    /// Position of the finding in bytes.
    pub span: Span,
    /// True if a ledger refuses the script because of this finding. Other findings are advice.
    pub fatal: bool,
}

/// A version of the language, as a comment `// @version …` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// The machine, the older engine.
    Machine,
    /// The interpreter, the newer engine, by release number.
    Interpreter(u32, u32, u32),
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => f.write_str("machine"),
            Self::Interpreter(major, minor, patch) => write!(f, "interpreter {major}.{minor}.{patch}"),
        }
    }
}

/// The place where a misplaced function may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// No place: the function does not exist.
    Unknown,
    /// An expression: the function has a value.
    InOrigin,
    /// A statement: the function has no value.
    AsStatement,
}

/// The kinds of findings, with the data of their messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages below show the meaning of the fields")]
pub enum DiagnosticKind {
    /// A syntax error.
    Parsing { description: String },
    /// The directive names a feature that does not exist.
    InvalidFeature { feature: SmolStr },
    /// A declaration names a type that does not exist.
    InvalidType { name: SmolStr },
    /// Two declarations of one name.
    DuplicateVariable { name: SmolStr },
    /// A variable that is not declared, or only further below.
    UnboundVariable { name: SmolStr, expected: &'static str },
    /// A variable that the script never uses.
    UnusedVar { name: SmolStr },
    /// An expression of the wrong type.
    TypeMismatch { expected: &'static str, got: &'static str },
    /// Two assets where the script needs a single one.
    AssetMismatch { expected: SmolStr, got: SmolStr },
    /// A function that may not be called here.
    UnknownFunction { name: SmolStr, misplaced: Misplaced },
    /// Too many or too few arguments of a function.
    BadArity { expected: usize, actual: usize },
    /// A share with a denominator of zero.
    DivByZero { numerator: String },
    /// `remaining` in another position than the last.
    RemainingIsNotLast,
    /// Two `remaining` in one allotment.
    DuplicateRemaining,
    /// Shares that cannot make one whole.
    BadAllotmentSum { sum: String, over: bool },
    /// A share below 0 or above 1.
    InvalidPortion { portion: String },
    /// A share with a variable that only one value satisfies.
    FixedPortionVariable { value: String },
    /// A `remaining` that receives nothing.
    RedundantRemaining,
    /// An overdraft of `@world`, which needs none.
    InvalidWorldOverdraft,
    /// `[A *]` from an allotment.
    NoAllotmentInSendAll,
    /// `[A *]` from an unbounded source.
    InvalidUnboundedAccount { name: SmolStr },
    /// A source that is never reached.
    UnboundedAccountIsNotLast,
    /// A source that an earlier source emptied.
    EmptiedAccount { name: SmolStr },
    /// A variable of which the script fixes the asset.
    BoundAsset { declared: Type, asset: SmolStr },
    /// A construct that is newer than the version that the script names.
    VersionMismatch { got: Version, required: Version },
    /// A construct whose feature flag the script does not name.
    ExperimentalFeature { flag: Flag },
}

impl DiagnosticKind {
    /// Returns the name of the kind in the cases of the conformance suites.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Parsing { .. } => "Parsing",
            Self::InvalidFeature { .. } => "InvalidFeature",
            Self::InvalidType { .. } => "InvalidType",
            Self::DuplicateVariable { .. } => "DuplicateVariable",
            Self::UnboundVariable { .. } => "UnboundVariable",
            Self::UnusedVar { .. } => "UnusedVar",
            Self::TypeMismatch { .. } => "TypeMismatch",
            Self::AssetMismatch { .. } => "AssetMismatch",
            Self::UnknownFunction { .. } => "UnknownFunction",
            Self::BadArity { .. } => "BadArity",
            Self::DivByZero { .. } => "DivByZero",
            Self::RemainingIsNotLast => "RemainingIsNotLast",
            Self::DuplicateRemaining => "DuplicateRemaining",
            Self::BadAllotmentSum { .. } => "BadAllotmentSum",
            Self::InvalidPortion { .. } => "InvalidPortion",
            Self::FixedPortionVariable { .. } => "FixedPortionVariable",
            Self::RedundantRemaining => "RedundantRemaining",
            Self::InvalidWorldOverdraft => "InvalidWorldOverdraft",
            Self::NoAllotmentInSendAll => "NoAllotmentInSendAll",
            Self::InvalidUnboundedAccount { .. } => "InvalidUnboundedAccount",
            Self::UnboundedAccountIsNotLast => "UnboundedAccountIsNotLast",
            Self::EmptiedAccount { .. } => "EmptiedAccount",
            Self::BoundAsset { .. } => "BoundAsset",
            Self::VersionMismatch { .. } => "VersionMismatch",
            Self::ExperimentalFeature { .. } => "ExperimentalFeature",
        }
    }

    /// Returns the severity for people. [`Diagnostic::fatal`] tells what a ledger refuses.
    pub const fn severity(&self) -> Severity {
        match self {
            Self::UnusedVar { .. }
            | Self::FixedPortionVariable { .. }
            | Self::RedundantRemaining
            | Self::InvalidWorldOverdraft
            | Self::NoAllotmentInSendAll
            | Self::UnboundedAccountIsNotLast
            | Self::EmptiedAccount { .. }
            | Self::BoundAsset { .. } => Severity::Warning,
            Self::Parsing { .. }
            | Self::InvalidFeature { .. }
            | Self::InvalidType { .. }
            | Self::DuplicateVariable { .. }
            | Self::UnboundVariable { .. }
            | Self::TypeMismatch { .. }
            | Self::AssetMismatch { .. }
            | Self::UnknownFunction { .. }
            | Self::BadArity { .. }
            | Self::DivByZero { .. }
            | Self::RemainingIsNotLast
            | Self::DuplicateRemaining
            | Self::BadAllotmentSum { .. }
            | Self::InvalidPortion { .. }
            | Self::InvalidUnboundedAccount { .. }
            | Self::VersionMismatch { .. }
            | Self::ExperimentalFeature { .. } => Severity::Error,
        }
    }

    /// Tells whether a ledger refuses a script with this finding.
    pub(super) const fn is_fatal(&self) -> bool {
        match self {
            Self::Parsing { .. }
            | Self::InvalidFeature { .. }
            | Self::InvalidType { .. }
            | Self::DuplicateVariable { .. }
            | Self::UnboundVariable { .. }
            | Self::UnknownFunction { .. }
            | Self::BadArity { .. }
            | Self::TypeMismatch { .. }
            | Self::DivByZero { .. }
            | Self::DuplicateRemaining
            | Self::InvalidUnboundedAccount { .. }
            | Self::NoAllotmentInSendAll
            | Self::BadAllotmentSum { .. }
            | Self::InvalidPortion { .. } => true,
            Self::UnusedVar { .. }
            | Self::AssetMismatch { .. }
            | Self::RemainingIsNotLast
            | Self::FixedPortionVariable { .. }
            | Self::RedundantRemaining
            | Self::InvalidWorldOverdraft
            | Self::UnboundedAccountIsNotLast
            | Self::EmptiedAccount { .. }
            | Self::BoundAsset { .. }
            | Self::VersionMismatch { .. }
            | Self::ExperimentalFeature { .. } => false,
        }
    }

    /// Tells whether the machine refuses a script with this finding although other engines run it.
    pub(super) const fn is_fatal_to_machine(&self) -> bool {
        matches!(
            self,
            Self::FixedPortionVariable { .. }
                | Self::RedundantRemaining
                | Self::InvalidWorldOverdraft
                | Self::UnboundedAccountIsNotLast
                | Self::EmptiedAccount { .. }
        )
    }

    /// Returns the fields under the names that the conformance suites use.
    pub fn fields(&self) -> Fields {
        match self {
            Self::Parsing { description } => vec![("Description", description.clone())],
            Self::InvalidFeature { feature } => vec![("Feature", feature.to_string())],
            Self::InvalidType { name }
            | Self::DuplicateVariable { name }
            | Self::UnusedVar { name }
            | Self::UnknownFunction { name, .. }
            | Self::EmptiedAccount { name } => vec![("Name", name.to_string())],
            Self::UnboundVariable { name, expected } => {
                vec![("Name", name.to_string()), ("Type", (*expected).to_owned())]
            }
            Self::TypeMismatch { expected, got } => {
                vec![("Expected", (*expected).to_owned()), ("Got", (*got).to_owned())]
            }
            Self::AssetMismatch { expected, got } => {
                vec![("Expected", expected.to_string()), ("Got", got.to_string())]
            }
            Self::BadArity { expected, actual } => {
                vec![("Expected", expected.to_string()), ("Actual", actual.to_string())]
            }
            Self::BadAllotmentSum { sum, .. } => vec![("Sum", sum.clone())],
            Self::InvalidPortion { portion } => vec![("Portion", portion.clone())],
            Self::FixedPortionVariable { value } => vec![("Value", value.clone())],
            Self::BoundAsset { declared, asset } => {
                vec![("Type", declared.name().to_owned()), ("InferredAsset", asset.to_string())]
            }
            Self::VersionMismatch { got, required } => {
                vec![("GotVersion", got.to_string()), ("RequiredVersion", required.to_string())]
            }
            Self::ExperimentalFeature { flag } => vec![("Name", flag.name().to_owned())],
            Self::DivByZero { .. }
            | Self::RemainingIsNotLast
            | Self::DuplicateRemaining
            | Self::RedundantRemaining
            | Self::InvalidWorldOverdraft
            | Self::NoAllotmentInSendAll
            | Self::InvalidUnboundedAccount { .. }
            | Self::UnboundedAccountIsNotLast => Vec::new(),
        }
    }

    /// Converts the finding into the error that refuses the script.
    pub(super) fn into_fault(self, span: Span) -> Fault {
        let kind = match self {
            Self::InvalidFeature { feature } => ErrorKind::InvalidFeature { feature },
            Self::InvalidType { name } => ErrorKind::InvalidType { name },
            Self::DuplicateVariable { name } => ErrorKind::DuplicateVariable { name },
            Self::UnboundVariable { name, .. } => ErrorKind::UnboundVariable { name },
            Self::UnknownFunction { name, .. } => ErrorKind::UnboundFunction { name },
            Self::BadArity { expected, actual } => ErrorKind::BadArity { expected, given: actual },
            Self::TypeMismatch { expected, got } => ErrorKind::TypeMismatch { expected, got },
            Self::DivByZero { numerator } => ErrorKind::DivideByZero { numerator },
            Self::DuplicateRemaining => ErrorKind::DuplicateRemaining,
            Self::InvalidUnboundedAccount { name } => {
                ErrorKind::InvalidUnboundedInSendAll { name: name.to_string() }
            }
            Self::NoAllotmentInSendAll => ErrorKind::InvalidAllotmentInSendAll,
            Self::BadAllotmentSum { sum, .. } => ErrorKind::BadAllotmentSum { sum },
            Self::InvalidPortion { portion } => ErrorKind::InvalidPortion { portion },
            Self::Parsing { .. }
            | Self::UnusedVar { .. }
            | Self::AssetMismatch { .. }
            | Self::RemainingIsNotLast
            | Self::FixedPortionVariable { .. }
            | Self::RedundantRemaining
            | Self::InvalidWorldOverdraft
            | Self::UnboundedAccountIsNotLast
            | Self::EmptiedAccount { .. }
            | Self::BoundAsset { .. }
            | Self::VersionMismatch { .. }
            | Self::ExperimentalFeature { .. } => ErrorKind::Refused { message: self.to_string() },
        };
        Fault::at(span, kind)
    }
}

impl fmt::Display for DiagnosticKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parsing { description } => f.write_str(description),
            Self::InvalidFeature { feature } => write!(f, "Unknown feature: {feature}"),
            Self::InvalidType { name } => write!(
                f,
                "'{name}' is not a valid type. Allowed types are: monetary, account, portion, asset, number, string"
            ),
            Self::DuplicateVariable { name } => {
                write!(f, "A variable with the name '${name}' was already declared")
            }
            Self::UnboundVariable { name, .. } => write!(f, "The variable '${name}' was not declared"),
            Self::UnusedVar { name } => write!(f, "The variable '${name}' is never used"),
            Self::TypeMismatch { expected, got } => {
                write!(f, "Type mismatch (expected '{expected}', got '{got}' instead)")
            }
            Self::AssetMismatch { expected, got } => {
                write!(f, "Asset mismatch (expected '{expected}', got '{got}' instead)")
            }
            Self::UnknownFunction { name, misplaced: Misplaced::Unknown } => {
                write!(f, "The function '{name}' does not exist")
            }
            Self::UnknownFunction { misplaced: Misplaced::InOrigin, .. } => {
                f.write_str("You cannot use this function here (try to use it in a variable origin context)")
            }
            Self::UnknownFunction { misplaced: Misplaced::AsStatement, .. } => {
                f.write_str("You cannot use this function here (try to use it in a statement context)")
            }
            Self::BadArity { expected, actual } => {
                write!(f, "Wrong number of arguments (expected {expected}, got {actual} instead)")
            }
            Self::DivByZero { .. } => f.write_str("Cannot divide by zero"),
            Self::RemainingIsNotLast => {
                f.write_str("A 'remaining' clause should be the last in an allotment expression")
            }
            Self::DuplicateRemaining => f.write_str("Only one 'remaining' clause may stand in an allotment"),
            Self::BadAllotmentSum { sum, over: true } => {
                write!(f, "Allotment portions are greater than one (Got {sum})")
            }
            Self::BadAllotmentSum { sum, over: false } => write!(
                f,
                "Allotment portions are lesser than one (Got {sum}). Maybe try adding a 'remaining' clause?"
            ),
            Self::InvalidPortion { portion } => {
                write!(f, "A share is between 0% and 100% (Got {portion})")
            }
            Self::FixedPortionVariable { value } => {
                write!(f, "This share can only be {value}: the others leave no choice")
            }
            Self::RedundantRemaining => {
                f.write_str("Redundant 'remaining' clause (allotment already sums to 1)")
            }
            // The spelling mistake is part of the original message.
            Self::InvalidWorldOverdraft => f.write_str("@world is already set to be ovedraft"),
            Self::NoAllotmentInSendAll => f.write_str("Cannot take all balance of an allotment source"),
            Self::InvalidUnboundedAccount { .. } => {
                f.write_str("Cannot take all balance of an unbounded source")
            }
            Self::UnboundedAccountIsNotLast => {
                f.write_str("Inorder sources after an unbounded overdraft are never reached")
            }
            Self::EmptiedAccount { name } => write!(f, "@{name} is already empty at this point"),
            Self::BoundAsset { declared, asset } => {
                write!(f, "This {} can only be of the asset {asset}", declared.name())
            }
            Self::VersionMismatch { got, required } => {
                write!(f, "Version mismatch. Required version '{required}' (but got '{got}' instead)")
            }
            Self::ExperimentalFeature { flag } => write!(
                f,
                "This feature is experimental. Add this comment to your script:\n// @feature_flag {}",
                flag.name()
            ),
        }
    }
}
