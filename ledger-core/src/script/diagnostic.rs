//! What the checker finds.

use std::fmt;

use compact_str::CompactString;

use super::error::{ErrorKind, Fields};
use super::fault::Fault;
use super::options::Flag;
use super::span::{Range, Span};
use super::types::Type;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The script cannot work, or not everywhere.
    Error,
    /// The script works, but perhaps not as it was meant.
    Warning,
}

/// Something that the checker found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What.
    pub kind: DiagnosticKind,
    /// Where.
    pub range: Range,
    /// Where, in bytes.
    pub span: Span,
    /// Whether a ledger refuses the script because of it. The others are advice.
    pub fatal: bool,
}

/// A release of the language, as a comment `// @version …` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// The old machine.
    Machine,
    /// The interpreter, by its number.
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

/// Where a function that is not allowed here may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// Nowhere: it does not exist.
    Unknown,
    /// It has a value.
    InOrigin,
    /// It is a statement.
    AsStatement,
}

/// The kinds of findings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the messages below")]
pub enum DiagnosticKind {
    /// The text is no script.
    Parsing { description: String },
    /// The directive names a feature that does not exist.
    InvalidFeature { feature: CompactString },
    /// A declaration names a type that does not exist.
    InvalidType { name: CompactString },
    /// Two declarations of one name.
    DuplicateVariable { name: CompactString },
    /// A variable that is not declared, or is used above its declaration.
    UnboundVariable { name: CompactString, expected: &'static str },
    /// A variable without a use.
    UnusedVar { name: CompactString },
    /// An expression of the wrong type.
    TypeMismatch { expected: &'static str, got: &'static str },
    /// Two assets where there must be one.
    AssetMismatch { expected: CompactString, got: CompactString },
    /// No function of this name may be called here.
    UnknownFunction { name: CompactString, misplaced: Misplaced },
    /// Too many or too few arguments.
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
    /// A share that has only one value that works.
    FixedPortionVariable { value: String },
    /// `remaining` where nothing remains.
    RedundantRemaining,
    /// `@world` with an overdraft.
    InvalidWorldOverdraft,
    /// `[A *]` from an allotment.
    NoAllotmentInSendAll,
    /// `[A *]` from a source without an end.
    InvalidUnboundedAccount { name: CompactString },
    /// A source that is never reached.
    UnboundedAccountIsNotLast,
    /// A source that was emptied before.
    EmptiedAccount { name: CompactString },
    /// A variable whose asset the script leaves no choice of.
    BoundAsset { declared: Type, asset: CompactString },
    /// A construct newer than the version that the script names.
    VersionMismatch { got: Version, required: Version },
    /// A construct whose flag the script does not name.
    ExperimentalFeature { flag: Flag },
}

impl DiagnosticKind {
    /// The name by which cases of the conformance suites know the kind.
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

    /// How much it matters to a person. What a ledger refuses is [`Diagnostic::fatal`].
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

    /// Whether a ledger refuses a script with such a finding.
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

    /// Whether the old machine refused a script with such a finding, although others run it.
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

    /// Its fields, by the names of the conformance suites.
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

    /// The error by which a script with this finding is refused.
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
            // The word is the original's.
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
