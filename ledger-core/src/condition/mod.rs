//! One condition of a filter: a property, an operator and a value that fit together.

mod build;
mod error;
mod field;
mod matching;
mod names;
mod operator;

use ledger_values::{Balance, Timestamp};
use smol_str::SmolStr;

use crate::property::Property;

pub use self::error::{FilterError, FilterSyntaxError};
pub use self::field::Field;
pub use self::matching::{AddressTest, TextTest};
pub(crate) use self::operator::NodeWord;
pub use self::operator::{Comparison, FilterValue, Operator, ValueType};

/// The role of an address in an account or transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressRole {
    /// The address of the account itself.
    Own,
    /// Source or destination of a posting.
    Any,
    /// Source of a posting.
    Source,
    /// Destination of a posting.
    Destination,
}

/// Properties that are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextField {
    /// [`Property::Reference`](crate::Property::Reference).
    Reference,
    /// [`Property::Type`](crate::Property::Type).
    Type,
    /// [`Property::Bucket`](crate::Property::Bucket).
    Bucket,
    /// [`Property::Name`](crate::Property::Name).
    Name,
    /// [`Property::Version`](crate::Property::Version).
    Version,
}

/// Properties that are dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateField {
    /// [`Property::Timestamp`](crate::Property::Timestamp).
    Timestamp,
    /// [`Property::InsertedAt`](crate::Property::InsertedAt).
    InsertedAt,
    /// [`Property::UpdatedAt`](crate::Property::UpdatedAt).
    UpdatedAt,
    /// [`Property::RevertedAt`](crate::Property::RevertedAt).
    RevertedAt,
    /// [`Property::FirstUsage`](crate::Property::FirstUsage).
    FirstUsage,
    /// [`Property::InsertionDate`](crate::Property::InsertionDate).
    InsertionDate,
    /// [`Property::Date`](crate::Property::Date).
    Date,
    /// [`Property::CreatedAt`](crate::Property::CreatedAt).
    CreatedAt,
}

/// One condition. Each variant holds the parsed values that its evaluation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// At least one address in this role passes the test.
    Address {
        /// The role of the address.
        role: AddressRole,
        /// The test of the address.
        test: AddressTest,
    },
    /// At least one posting has an address in a role that passes a test, while either of its addresses passes
    /// another test.
    Posting {
        /// The source or the destination of the posting.
        role: AddressRole,
        /// The test of the address in that role.
        test: AddressTest,
        /// The test of either address.
        either: AddressTest,
    },
    /// A text passes the test. Unknown if the text is absent.
    Text {
        /// The property to test.
        field: TextField,
        /// The test of the text.
        test: TextTest,
    },
    /// A date is in a relation to a value. Unknown if the date is absent.
    Date {
        /// The property to compare.
        field: DateField,
        /// The relation to the value.
        comparison: Comparison,
        /// The value to compare with.
        value: Timestamp,
    },
    /// The id is in a relation to a value.
    Id {
        /// The relation to the value.
        comparison: Comparison,
        /// The value to compare with.
        value: Balance,
    },
    /// The transaction is reverted (`true`) or is not (`false`).
    Reverted(bool),
    /// The metadata value of a key passes the test. False if the key is absent.
    Metadata {
        /// The metadata key.
        key: SmolStr,
        /// The test of the value.
        test: TextTest,
    },
    /// The metadata value at a path equals a text. The path is either the name of a top-level key, or member
    /// names separated by dots. Strings, numbers and booleans have a text; objects, arrays and null have none
    /// and equal nothing.
    MetadataPath {
        /// The path to the value.
        path: SmolStr,
        /// The text to compare with.
        value: SmolStr,
    },
    /// The metadata has this key.
    MetadataExists {
        /// The metadata key.
        key: SmolStr,
    },
    /// The balance of one asset, or any balance if no asset is named, is in a relation to a value. Unknown if
    /// the account never held the asset.
    Balance {
        /// The asset, or `None` for any balance.
        asset: Option<SmolStr>,
        /// The relation to the value.
        comparison: Comparison,
        /// The value to compare with.
        value: Balance,
    },
    /// The value of a feature passes the test. False if the feature is absent.
    Feature {
        /// Name of the feature.
        name: SmolStr,
        /// The test of the value.
        test: TextTest,
    },
    /// The ledger has this feature.
    FeatureExists {
        /// Name of the feature.
        name: SmolStr,
    },
}

impl Condition {
    /// Returns the property that the condition is about.
    pub fn property(&self) -> Property {
        match self {
            Self::Address { role, .. } | Self::Posting { role, .. } => match role {
                AddressRole::Own => Property::Address,
                AddressRole::Any => Property::Account,
                AddressRole::Source => Property::Source,
                AddressRole::Destination => Property::Destination,
            },
            Self::Text { field, .. } => match field {
                TextField::Reference => Property::Reference,
                TextField::Type => Property::Type,
                TextField::Bucket => Property::Bucket,
                TextField::Name => Property::Name,
                TextField::Version => Property::Version,
            },
            Self::Date { field, .. } => match field {
                DateField::Timestamp => Property::Timestamp,
                DateField::InsertedAt => Property::InsertedAt,
                DateField::UpdatedAt => Property::UpdatedAt,
                DateField::RevertedAt => Property::RevertedAt,
                DateField::FirstUsage => Property::FirstUsage,
                DateField::InsertionDate => Property::InsertionDate,
                DateField::Date => Property::Date,
                DateField::CreatedAt => Property::CreatedAt,
            },
            Self::Id { .. } => Property::Id,
            Self::Reverted(_) => Property::Reverted,
            Self::Metadata { .. } | Self::MetadataPath { .. } | Self::MetadataExists { .. } => {
                Property::Metadata
            }
            Self::Balance { .. } => Property::Balance,
            Self::Feature { .. } | Self::FeatureExists { .. } => Property::Features,
        }
    }
}
