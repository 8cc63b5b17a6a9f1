//! The messages of errors.

use std::fmt;

use super::{ErrorKind, PortionFault, ScriptError};

impl fmt::Display for PortionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Format => "invalid format",
            Self::Fraction => "invalid fractional format",
            Self::Range => "portion must be between 0% and 100% inclusive",
        })
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { message } | Self::Refused { message } => f.write_str(message),
            Self::InvalidFeature { feature } => write!(f, "Invalid feature: {feature}"),
            Self::InvalidType { name } => write!(f, "This type does not exist: {name}"),
            Self::DuplicateVariable { name } => {
                write!(f, "A variable with the name '${name}' was already declared")
            }
            Self::UnboundVariable { name } => write!(f, "Unbound variable: ${name}"),
            Self::UnboundFunction { name } => write!(f, "Invalid function: {name}"),
            Self::BadArity { expected, given } => {
                write!(f, "Bad arity: expected {expected} arguments (got {given} instead)")
            }
            Self::TypeMismatch { expected, got } => {
                write!(f, "Type mismatch (expected '{expected}', got '{got}' instead)")
            }
            Self::TypeError { expected, value } => {
                write!(f, "Invalid value received. Expecting value of type {expected} (got {value} instead)")
            }
            Self::DuplicateRemaining => f.write_str("two 'remaining' clauses in one allotment"),
            Self::InvalidPortion { portion } => {
                write!(f, "Invalid portion: {portion} is not between 0% and 100%")
            }
            Self::BadAllotmentSum { sum } => {
                write!(f, "Allotment portions do not make one whole (got {sum})")
            }
            Self::InvalidAllotmentSum { actual } => {
                write!(f, "Invalid allotment: portions sum should be 1 (got {actual} instead)")
            }
            Self::InvalidAllotmentInSendAll => f.write_str("cannot take all balance of an allotment source"),
            Self::InvalidUnboundedInSendAll { .. } => {
                f.write_str("cannot take all balance from an unbounded source")
            }
            Self::DivideByZero { numerator } => write!(f, "cannot divide by zero (in {numerator}/0)"),
            Self::MismatchedCurrency { expected, got } => {
                write!(f, "Mismatched currency (expected '{expected}', got '{got}' instead)")
            }
            Self::ExperimentalFeature { flag } => write!(
                f,
                "this feature is experimental. You need the '{}' feature flag to enable it",
                flag.name()
            ),
            Self::InvalidNestedMeta => f.write_str(
                "Invalid usage of meta() function: the meta function cannot be nested in a sub-expression.",
            ),
            Self::InvalidColor { color } => {
                write!(f, "Invalid color name: '{color}'. Only uppercase letters are allowed.")
            }
            Self::CannotCastToString { value } => write!(f, "Cannot cast this value to string: {value}"),
            Self::InvalidScaling => f.write_str("Invalid usage of @world account in scaling context"),
            Self::ScaleOutOfRange { asset } => {
                write!(f, "{asset} is too far from the precision that is sent to be scaled")
            }
            Self::TooLarge { what } => write!(f, "the script does too much: {what}"),
            Self::InvalidPosting { asset } => write!(f, "invalid asset in a posting: '{asset}'"),
            Self::MissingVariable { name } => write!(f, "Variable is missing in json: {name}"),
            Self::ExtraneousVariable { name } => write!(f, "extraneous variable ${name}"),
            Self::InvalidVariable { name, reason } => {
                write!(f, "invalid value of variable ${name}: {reason}")
            }
            Self::InvalidAccountName { name } => write!(f, "Invalid account name: @{name}"),
            Self::InvalidAsset { name } => write!(f, "Invalid asset name: {name}"),
            Self::InvalidNumber { source } => write!(f, "invalid number literal: '{source}'"),
            Self::InvalidMonetary { source } => write!(f, "invalid monetary literal: '{source}'"),
            Self::BadPortion { reason, .. } => write!(f, "Bad portion: {reason}"),
            Self::MetadataNotFound { account, key } => {
                write!(f, "account '@{account}' doesn't have metadata associated to the '{key}' key")
            }
            Self::NegativeBalance { account, .. } => {
                write!(f, "Cannot fetch negative balance from account @{account}")
            }
            Self::NegativeAmount { amount } => write!(f, "Cannot send negative amount: {amount}"),
            Self::MissingFunds { asset, needed, available, .. } => {
                write!(
                    f,
                    "Not enough funds. Needed [{asset} {needed}] (only [{asset} {available}] available)"
                )
            }
            Self::ScriptFailed => f.write_str("script exited with error code"),
        }
    }
}

/// Formats `line:column message`, both counted from 1 as in editors. An error without a position has only its
/// message.
impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(range) = self.range {
            write!(f, "{}:{} ", range.start.line + 1, range.start.column + 1)?;
        }
        self.kind.fmt(f)
    }
}

impl std::error::Error for ScriptError {}
