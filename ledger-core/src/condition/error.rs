//! The reasons for which a filter is refused.

use std::fmt;

use ledger_values::{AmountError, JsonError};

use super::operator::{Operator, ValueType};
use crate::limits::LIKE_PATTERN_BYTES_MAX;
use crate::property::{Property, Resource};

/// Reason why a filter is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterError {
    /// The resource has no property of this name.
    UnknownField {
        /// The name in the filter.
        name: String,
    },
    /// The property does not accept the operator.
    OperatorNotAllowed {
        /// The operator in the filter.
        operator: Operator,
        /// The property in the filter.
        property: Property,
    },
    /// The value has another type than the property accepts.
    WrongValue {
        /// The property in the filter.
        property: Property,
        /// The type that the property accepts.
        expected: ValueType,
    },
    /// An address pattern under `$in`, which accepts only whole addresses.
    PartialAddress,
    /// A `$like` pattern longer than [`crate::limits::LIKE_PATTERN_BYTES_MAX`].
    PatternTooLong,
    /// A filter of another resource than the list.
    OtherResource {
        /// The resource of the list.
        expected: Resource,
        /// The resource of the filter.
        found: Resource,
    },
    /// A text that is not a filter.
    Malformed(FilterSyntaxError),
    /// A filter with more nodes than [`crate::limits::FILTER_NODES_MAX`].
    TooManyNodes,
    /// A filter with deeper nesting than [`crate::limits::FILTER_DEPTH_MAX`].
    TooDeep,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField { name } => write!(f, "unknown key '{name}' when building query"),
            Self::OperatorNotAllowed { operator, property } => {
                write!(f, "operator '{}' is not allowed for property '{}'", operator.name(), property.name())
            }
            Self::WrongValue { property, expected } => {
                let expected = match expected {
                    ValueType::Text => "string",
                    ValueType::Texts => "array of strings",
                    ValueType::Date => "date",
                    ValueType::Integer => "integer",
                    ValueType::Boolean => "boolean",
                };
                write!(f, "invalid value for property '{}': expected {expected} value", property.name())
            }
            Self::PartialAddress => f.write_str("IN operator only supports full addresses"),
            Self::PatternTooLong => {
                write!(f, "a pattern has at most {LIKE_PATTERN_BYTES_MAX} bytes")
            }
            Self::OtherResource { expected, found } => {
                write!(f, "a filter of {found:?} cannot select {expected:?}")
            }
            Self::Malformed(error) => error.fmt(f),
            Self::TooManyNodes => {
                write!(f, "a filter has at most {} nodes", crate::limits::FILTER_NODES_MAX)
            }
            Self::TooDeep => write!(f, "a filter is at most {} deep", crate::limits::FILTER_DEPTH_MAX),
        }
    }
}

impl std::error::Error for FilterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Malformed(error) => Some(error),
            _ => None,
        }
    }
}

impl From<FilterSyntaxError> for FilterError {
    fn from(error: FilterSyntaxError) -> Self {
        Self::Malformed(error)
    }
}

/// Reason why JSON is not a filter, whatever its properties are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterSyntaxError {
    /// The text is not JSON.
    NotJson(JsonError),
    /// A filter that is not an object.
    NotAnObject,
    /// An object with several operators.
    SeveralOperators,
    /// An operator of this name does not exist.
    UnknownOperator {
        /// The name in the filter.
        name: String,
    },
    /// An operator that joins filters, with something else than an array.
    ArrayExpected {
        /// The name of the operator.
        operator: &'static str,
    },
    /// An operator that compares, with something else than an object.
    ObjectExpected {
        /// The name of the operator.
        operator: &'static str,
    },
    /// A comparison without a property.
    NoProperty {
        /// The name of the operator.
        operator: &'static str,
    },
    /// A comparison with several properties.
    SeveralProperties {
        /// The name of the operator.
        operator: &'static str,
    },
    /// A number with a fraction or an exponent.
    NotAnInteger {
        /// The name of the operator.
        operator: &'static str,
    },
    /// An integer out of range.
    Number {
        /// The name of the operator.
        operator: &'static str,
        /// The defect of the number.
        error: AmountError,
    },
}

impl fmt::Display for FilterSyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(error) => write!(f, "a filter is JSON: {error}"),
            Self::NotAnObject => f.write_str("a filter is an object"),
            Self::SeveralOperators => f.write_str("a filter has one operator"),
            Self::UnknownOperator { name } => write!(f, "unknown operator '{name}'"),
            Self::ArrayExpected { operator } => write!(f, "{operator} takes an array of filters"),
            Self::ObjectExpected { operator } => write!(f, "{operator} takes an object"),
            Self::NoProperty { operator } => write!(f, "{operator} takes one property, and found none"),
            Self::SeveralProperties { operator } => {
                write!(f, "{operator} takes one property, and found several")
            }
            Self::NotAnInteger { operator } => write!(f, "{operator} takes whole numbers"),
            Self::Number { operator, error } => write!(f, "the number of {operator}: {error}"),
        }
    }
}

impl std::error::Error for FilterSyntaxError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotJson(error) => Some(error),
            Self::Number { error, .. } => Some(error),
            _ => None,
        }
    }
}
