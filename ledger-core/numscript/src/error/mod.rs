//! Errors of scripts: a closed set of kinds with their fields and classes.

mod messages;

use smol_str::SmolStr;

use super::options::Flag;
use super::span::Range;
use ledger_values::{AccountAddress, Amount, Balance};

/// Refusal or failure of a script, with its position in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Position of the fault, if it has one in the text.
    pub range: Option<Range>,
}

/// Groups of error kinds by the reaction that they ask of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The text is not a script.
    Syntax,
    /// The script asks for something impossible.
    Script,
    /// A variable, or the metadata that supplies it, is missing or wrong.
    Variables,
    /// The function `balance` met an account below zero.
    Balance,
    /// The script sends or saves an amount below zero.
    Negative,
    /// The sources lack the funds.
    Funds,
    /// The script ended with the statement `fail`.
    Failed,
}

impl ErrorClass {
    /// Returns the name of the class in the cases of the conformance suites.
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

/// Reason why a portion is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortionFault {
    /// The text is neither a percentage nor a fraction.
    Format,
    /// The denominator is zero.
    Fraction,
    /// The portion is below 0 or above 1.
    Range,
}

/// The kinds of errors.
///
/// Numbers are exact. Fields contain values in the text form that metadata would hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is not a script, or exceeds a limit.
    Syntax {
        /// The text that was found and the syntax that was expected.
        message: String,
    },
    /// The directive names a feature that does not exist.
    InvalidFeature {
        /// The name in the directive.
        feature: SmolStr,
    },
    /// A declaration names a type that does not exist.
    InvalidType {
        /// The name in the declaration.
        name: SmolStr,
    },
    /// Two declarations of one name.
    DuplicateVariable {
        /// The name, without `$`.
        name: SmolStr,
    },
    /// A variable that is not declared, or only further below.
    UnboundVariable {
        /// The name, without `$`.
        name: SmolStr,
    },
    /// A function that may not be called here.
    UnboundFunction {
        /// The name of the function.
        name: SmolStr,
    },
    /// Too many or too few arguments of a function.
    BadArity {
        /// Number of parameters of the function.
        expected: usize,
        /// Number of arguments in the call.
        given: usize,
    },
    /// The checker found an expression of the wrong type.
    TypeMismatch {
        /// The type or types that are allowed here.
        expected: &'static str,
        /// The type of the expression.
        got: &'static str,
    },
    /// The run found a value of the wrong type.
    TypeError {
        /// The type or types that are allowed here.
        expected: &'static str,
        /// The value as text.
        value: String,
    },
    /// Two `remaining` in one allotment.
    DuplicateRemaining,
    /// A share below 0 or above 1.
    InvalidPortion {
        /// The share as text.
        portion: String,
    },
    /// The checker found that the shares of an allotment cannot add up to one.
    BadAllotmentSum {
        /// The sum of the shares.
        sum: String,
    },
    /// The run found that the shares of an allotment do not add up to one.
    InvalidAllotmentSum {
        /// The sum of the shares.
        actual: String,
    },
    /// `[A *]` from an allotment.
    InvalidAllotmentInSendAll,
    /// `[A *]` from an unbounded source.
    InvalidUnboundedInSendAll {
        /// The account, or the expression for it in the text.
        name: String,
    },
    /// A division by zero.
    DivideByZero {
        /// The number above the line.
        numerator: String,
    },
    /// Two assets where the script needs a single one.
    MismatchedCurrency {
        /// The required asset.
        expected: SmolStr,
        /// The actual asset.
        got: SmolStr,
    },
    /// A finding that only some engines refuse.
    Refused {
        /// The message of the finding.
        message: String,
    },
    /// A feature that neither the script nor the caller turned on.
    ExperimentalFeature {
        /// The flag of the feature.
        flag: Flag,
    },
    /// A call of `meta` inside another expression.
    InvalidNestedMeta,
    /// A colour with characters other than capital letters.
    InvalidColor {
        /// The refused colour.
        color: SmolStr,
    },
    /// A value that cannot be a part of an address.
    CannotCastToString {
        /// The refused value.
        value: String,
    },
    /// `@world` as an account that pays by scaling.
    InvalidScaling,
    /// Two precisions of an asset that are too far apart to convert.
    ScaleOutOfRange {
        /// The asset that the account holds.
        asset: SmolStr,
    },
    /// The script does more than one transaction may.
    TooLarge {
        /// The thing that there is too much of.
        what: &'static str,
    },
    /// A posting that the ledger cannot record.
    InvalidPosting {
        /// The asset that the ledger does not accept.
        asset: SmolStr,
    },
    /// A variable without a value.
    MissingVariable {
        /// The name, without `$`.
        name: SmolStr,
    },
    /// A value for a variable that takes none from the caller.
    ExtraneousVariable {
        /// The name, without `$`.
        name: SmolStr,
    },
    /// A value that the variable may not have.
    InvalidVariable {
        /// The name, without `$`.
        name: SmolStr,
        /// The reason of the refusal.
        reason: &'static str,
    },
    /// A text that is not an account address.
    InvalidAccountName {
        /// The refused text.
        name: SmolStr,
    },
    /// A text that is not an asset.
    InvalidAsset {
        /// The refused text.
        name: SmolStr,
    },
    /// A text that is not a number.
    InvalidNumber {
        /// The refused text.
        source: SmolStr,
    },
    /// A text that is not a monetary.
    InvalidMonetary {
        /// The refused text.
        source: SmolStr,
    },
    /// A text that is not a portion.
    BadPortion {
        /// The refused text.
        source: SmolStr,
        /// The reason of the refusal.
        reason: PortionFault,
    },
    /// An account without the requested metadata.
    MetadataNotFound {
        /// The account that lacks the metadata.
        account: AccountAddress,
        /// The requested key.
        key: SmolStr,
    },
    /// A call of `balance` for an account below zero.
    NegativeBalance {
        /// The account below zero.
        account: AccountAddress,
        /// The balance of the account.
        balance: Balance,
    },
    /// An amount below zero to send or to save.
    NegativeAmount {
        /// The refused amount.
        amount: Balance,
    },
    /// The sources cannot pay.
    MissingFunds {
        /// The asset of the amount.
        asset: SmolStr,
        /// The amount that the sources had to pay.
        needed: Amount,
        /// The amount that the sources could pay.
        available: Amount,
        /// The accounts of the failing source in order, each once.
        accounts: Vec<AccountAddress>,
    },
    /// The script executed the statement `fail`.
    ScriptFailed,
}

/// The names and values of an error's fields, under the names that the conformance suites use.
pub type Fields = Vec<(&'static str, String)>;

impl ErrorKind {
    /// Returns the name of the kind in the cases of the conformance suites.
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

    /// Returns the class of the error.
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

    /// Returns the fields under the names that the conformance suites use.
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
