//! The reasons for which a filter is refused.

use std::fmt;

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
    Malformed {
        /// The defect of the text.
        reason: String,
    },
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
            Self::Malformed { reason } => f.write_str(reason),
            Self::TooManyNodes => {
                write!(f, "a filter has at most {} nodes", crate::limits::FILTER_NODES_MAX)
            }
            Self::TooDeep => write!(f, "a filter is at most {} deep", crate::limits::FILTER_DEPTH_MAX),
        }
    }
}

impl std::error::Error for FilterError {}
