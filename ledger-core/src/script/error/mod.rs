//! Why a script fails: one closed set of kinds, each with its fields and its class.

mod words;

use compact_str::CompactString;

use super::options::Flag;
use super::span::Range;
use crate::amount::{Amount, Balance};
use crate::names::AccountAddress;

/// Why a script was refused or failed, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Why.
    pub kind: ErrorKind,
    /// Where, if the fault has a place in the text.
    pub range: Option<Range>,
}

/// Groups of kinds; what a caller can do about them differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The text is no script.
    Syntax,
    /// The script says something that cannot be done.
    Script,
    /// A variable, or the metadata that one comes from, is missing or wrong.
    Variables,
    /// `balance` was asked for an account below zero.
    Balance,
    /// An amount below zero was to be sent or saved.
    Negative,
    /// The sources lack the funds.
    Funds,
    /// The script ended itself.
    Failed,
}

impl ErrorClass {
    /// The word that cases of the conformance suites use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Script => "script",
            Self::Variables => "variables",
            Self::Balance => "balance",
            Self::Negative => "negative",
            Self::Funds => "funds",
            Self::Failed => "failed",
        }
    }
}

/// Why a portion is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortionFault {
    /// The text is neither a percentage nor a fraction.
    Format,
    /// A denominator of zero.
    Fraction,
    /// Below 0 or above 1.
    Range,
}

/// Why a script was refused or failed.
///
/// Numbers are exact; a value in a field is in the text form in which it would be written to metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is no script, or exceeds a limit.
    Syntax {
        /// What was found and what was expected.
        message: String,
    },
    /// The directive names a feature that does not exist.
    InvalidFeature {
        /// The name.
        feature: CompactString,
    },
    /// A declaration names a type that does not exist.
    InvalidType {
        /// The name.
        name: CompactString,
    },
    /// Two declarations of one name.
    DuplicateVariable {
        /// The name, without `$`.
        name: CompactString,
    },
    /// A variable that is not declared, or is used above its declaration.
    UnboundVariable {
        /// The name, without `$`.
        name: CompactString,
    },
    /// No function of this name may stand here.
    UnboundFunction {
        /// The name.
        name: CompactString,
    },
    /// A function with too many or too few arguments.
    BadArity {
        /// How many it takes.
        expected: usize,
        /// How many there are.
        given: usize,
    },
    /// Found before the run: an expression of the wrong type.
    TypeMismatch {
        /// The type or types that may stand here.
        expected: &'static str,
        /// The type that does.
        got: &'static str,
    },
    /// Found in the run: a value of the wrong type.
    TypeError {
        /// The type or types that may stand here.
        expected: &'static str,
        /// The value.
        value: String,
    },
    /// Two `remaining` in one allotment.
    DuplicateRemaining,
    /// A share below 0 or above 1.
    InvalidPortion {
        /// The share.
        portion: String,
    },
    /// Found before the run: the shares of an allotment cannot make one whole.
    BadAllotmentSum {
        /// Their sum.
        sum: String,
    },
    /// Found in the run: the shares of an allotment do not make one whole.
    InvalidAllotmentSum {
        /// Their sum.
        actual: String,
    },
    /// `[A *]` from an allotment.
    InvalidAllotmentInSendAll,
    /// `[A *]` from a source without an end.
    InvalidUnboundedInSendAll {
        /// The account, or what stands for it in the text.
        name: String,
    },
    /// A division by zero.
    DivideByZero {
        /// What was to be divided.
        numerator: String,
    },
    /// Two assets where one is needed.
    MismatchedCurrency {
        /// The asset that is needed.
        expected: CompactString,
        /// The asset found.
        got: CompactString,
    },
    /// A finding by which only some engines refuse a script.
    Refused {
        /// The finding.
        message: String,
    },
    /// A feature that is not turned on.
    ExperimentalFeature {
        /// The feature.
        flag: Flag,
    },
    /// `meta` inside of another expression.
    InvalidNestedMeta,
    /// A colour with other characters than capital letters.
    InvalidColor {
        /// The text.
        color: CompactString,
    },
    /// A value that cannot be a part of an address.
    CannotCastToString {
        /// The value.
        value: String,
    },
    /// `@world` cannot pay by scaling.
    InvalidScaling,
    /// Precisions of an asset that are too far apart to be exchanged.
    ScaleOutOfRange {
        /// The asset that is owned.
        asset: CompactString,
    },
    /// The script does more than one transaction may.
    TooLarge {
        /// What there is too much of.
        what: &'static str,
    },
    /// Something that the ledger cannot hold was to be posted.
    InvalidPosting {
        /// The asset that is no asset of a ledger.
        asset: CompactString,
    },
    /// A variable has no value.
    MissingVariable {
        /// The name, without `$`.
        name: CompactString,
    },
    /// A value for a variable that has none or an origin of its own.
    ExtraneousVariable {
        /// The name, without `$`.
        name: CompactString,
    },
    /// A value that this variable may not have.
    InvalidVariable {
        /// The name, without `$`.
        name: CompactString,
        /// Why not.
        reason: &'static str,
    },
    /// No address.
    InvalidAccountName {
        /// The text.
        name: CompactString,
    },
    /// No asset.
    InvalidAsset {
        /// The text.
        name: CompactString,
    },
    /// No number.
    InvalidNumber {
        /// The text.
        source: CompactString,
    },
    /// No monetary.
    InvalidMonetary {
        /// The text.
        source: CompactString,
    },
    /// No portion.
    BadPortion {
        /// The text.
        source: CompactString,
        /// Why not.
        reason: PortionFault,
    },
    /// An account has no such metadata.
    MetadataNotFound {
        /// The account.
        account: AccountAddress,
        /// The key.
        key: CompactString,
    },
    /// `balance` of an account that is below zero.
    NegativeBalance {
        /// The account.
        account: AccountAddress,
        /// Its balance.
        balance: Balance,
    },
    /// An amount below zero was to be sent or saved.
    NegativeAmount {
        /// The amount.
        amount: Balance,
    },
    /// The sources cannot pay.
    MissingFunds {
        /// The asset.
        asset: CompactString,
        /// What they were to pay.
        needed: Amount,
        /// What they could.
        available: Amount,
        /// The accounts of the failing source, in order, each once.
        accounts: Vec<AccountAddress>,
    },
    /// The statement `fail`.
    ScriptFailed,
}

/// Name and value of each field that an error carries, as cases of the conformance suites name them.
pub type Fields = Vec<(&'static str, String)>;

impl ErrorKind {
    /// The name by which cases of the conformance suites know the kind.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "ParserError",
            Self::InvalidFeature { .. } => "InvalidFeature",
            Self::InvalidType { .. } => "InvalidTypeErr",
            Self::DuplicateVariable { .. } => "DuplicateVariable",
            Self::UnboundVariable { .. } => "UnboundVariableErr",
            Self::UnboundFunction { .. } => "UnboundFunctionErr",
            Self::BadArity { .. } => "BadArityErr",
            Self::TypeMismatch { .. } => "TypeMismatch",
            Self::TypeError { .. } => "TypeError",
            Self::DuplicateRemaining => "DuplicateRemaining",
            Self::InvalidPortion { .. } => "InvalidPortion",
            Self::BadAllotmentSum { .. } => "BadAllotmentSum",
            Self::InvalidAllotmentSum { .. } => "InvalidAllotmentSum",
            Self::InvalidAllotmentInSendAll => "InvalidAllotmentInSendAll",
            Self::InvalidUnboundedInSendAll { .. } => "InvalidUnboundedInSendAll",
            Self::DivideByZero { .. } => "DivideByZero",
            Self::MismatchedCurrency { .. } => "MismatchedCurrencyError",
            Self::Refused { .. } => "Refused",
            Self::ExperimentalFeature { .. } => "ExperimentalFeature",
            Self::InvalidNestedMeta => "InvalidNestedMeta",
            Self::InvalidColor { .. } => "InvalidColor",
            Self::CannotCastToString { .. } => "CannotCastToString",
            Self::InvalidScaling => "InvalidUnboundedAddressInScalingAddress",
            Self::ScaleOutOfRange { .. } => "ScaleOutOfRange",
            Self::TooLarge { .. } => "TooLarge",
            Self::InvalidPosting { .. } => "InternalError",
            Self::MissingVariable { .. } => "MissingVariableErr",
            Self::ExtraneousVariable { .. } => "ExtraneousVariable",
            Self::InvalidVariable { .. } => "InvalidVariable",
            Self::InvalidAccountName { .. } => "InvalidAccountName",
            Self::InvalidAsset { .. } => "InvalidAsset",
            Self::InvalidNumber { .. } => "InvalidNumberLiteral",
            Self::InvalidMonetary { .. } => "InvalidMonetaryLiteral",
            Self::BadPortion { .. } => "BadPortionParsingErr",
            Self::MetadataNotFound { .. } => "MetadataNotFound",
            Self::NegativeBalance { .. } => "NegativeBalanceError",
            Self::NegativeAmount { .. } => "NegativeAmountErr",
            Self::MissingFunds { .. } => "MissingFundsErr",
            Self::ScriptFailed => "ScriptFailed",
        }
    }

    /// Its class.
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::Syntax { .. } => ErrorClass::Syntax,
            Self::MissingVariable { .. }
            | Self::ExtraneousVariable { .. }
            | Self::InvalidVariable { .. }
            | Self::InvalidAccountName { .. }
            | Self::InvalidAsset { .. }
            | Self::InvalidNumber { .. }
            | Self::InvalidMonetary { .. }
            | Self::BadPortion { .. }
            | Self::MetadataNotFound { .. } => ErrorClass::Variables,
            Self::NegativeBalance { .. } => ErrorClass::Balance,
            Self::NegativeAmount { .. } => ErrorClass::Negative,
            Self::MissingFunds { .. } => ErrorClass::Funds,
            Self::ScriptFailed => ErrorClass::Failed,
            Self::InvalidFeature { .. }
            | Self::InvalidType { .. }
            | Self::DuplicateVariable { .. }
            | Self::UnboundVariable { .. }
            | Self::UnboundFunction { .. }
            | Self::BadArity { .. }
            | Self::TypeMismatch { .. }
            | Self::TypeError { .. }
            | Self::DuplicateRemaining
            | Self::InvalidPortion { .. }
            | Self::BadAllotmentSum { .. }
            | Self::InvalidAllotmentSum { .. }
            | Self::InvalidAllotmentInSendAll
            | Self::InvalidUnboundedInSendAll { .. }
            | Self::DivideByZero { .. }
            | Self::MismatchedCurrency { .. }
            | Self::Refused { .. }
            | Self::ExperimentalFeature { .. }
            | Self::InvalidNestedMeta
            | Self::InvalidColor { .. }
            | Self::CannotCastToString { .. }
            | Self::InvalidScaling
            | Self::ScaleOutOfRange { .. }
            | Self::TooLarge { .. }
            | Self::InvalidPosting { .. } => ErrorClass::Script,
        }
    }

    /// Its fields, by the names of the conformance suites.
    pub fn fields(&self) -> Fields {
        match self {
            Self::Syntax { message } | Self::Refused { message } => vec![("Description", message.clone())],
            Self::InvalidFeature { feature } => vec![("Feature", feature.to_string())],
            Self::InvalidType { name }
            | Self::DuplicateVariable { name }
            | Self::UnboundVariable { name }
            | Self::UnboundFunction { name }
            | Self::MissingVariable { name }
            | Self::ExtraneousVariable { name }
            | Self::InvalidVariable { name, .. }
            | Self::InvalidAccountName { name }
            | Self::InvalidAsset { name } => vec![("Name", name.to_string())],
            Self::BadArity { expected, given } => {
                vec![("ExpectedArity", expected.to_string()), ("GivenArguments", given.to_string())]
            }
            Self::TypeMismatch { expected, got } => {
                vec![("Expected", (*expected).to_owned()), ("Got", (*got).to_owned())]
            }
            Self::TypeError { expected, value } => {
                vec![("Expected", (*expected).to_owned()), ("Value", value.clone())]
            }
            Self::InvalidPortion { portion } => vec![("Portion", portion.clone())],
            Self::BadAllotmentSum { sum } => vec![("Sum", sum.clone())],
            Self::InvalidAllotmentSum { actual } => vec![("ActualSum", actual.clone())],
            Self::InvalidUnboundedInSendAll { name } => vec![("Name", name.clone())],
            Self::DivideByZero { numerator } => vec![("Numerator", numerator.clone())],
            Self::MismatchedCurrency { expected, got } => {
                vec![("Expected", expected.to_string()), ("Got", got.to_string())]
            }
            Self::ExperimentalFeature { flag } => vec![("FlagName", flag.name().to_owned())],
            Self::InvalidColor { color } => vec![("Color", color.to_string())],
            Self::CannotCastToString { value } => vec![("Value", value.clone())],
            Self::ScaleOutOfRange { asset } | Self::InvalidPosting { asset } => {
                vec![("Asset", asset.to_string())]
            }
            Self::TooLarge { what } => vec![("What", (*what).to_owned())],
            Self::InvalidNumber { source } | Self::InvalidMonetary { source } => {
                vec![("Source", source.to_string())]
            }
            Self::BadPortion { source, reason } => {
                vec![("Source", source.to_string()), ("Reason", reason.to_string())]
            }
            Self::MetadataNotFound { account, key } => {
                vec![("Account", account.to_string()), ("Key", key.to_string())]
            }
            Self::NegativeBalance { account, balance } => {
                vec![("Account", account.to_string()), ("Amount", balance.to_string())]
            }
            Self::NegativeAmount { amount } => vec![("Amount", amount.to_string())],
            Self::MissingFunds { asset, needed, available, .. } => vec![
                ("Asset", asset.to_string()),
                ("Needed", needed.to_string()),
                ("Available", available.to_string()),
            ],
            Self::DuplicateRemaining
            | Self::InvalidAllotmentInSendAll
            | Self::InvalidNestedMeta
            | Self::InvalidScaling
            | Self::ScriptFailed => Vec::new(),
        }
    }
}
