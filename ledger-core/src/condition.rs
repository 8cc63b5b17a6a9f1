//! One condition of a filter: a property, an operator and a value that fit each other.

use std::fmt;

use compact_str::CompactString;

use crate::address::AddressPattern;
use crate::amount::Balance;
use crate::expression::AddressExpression;
use crate::field::{Field, Property, Resource};
use crate::limits::LIKE_PATTERN_BYTES_MAX;
use crate::names::AccountAddress;
use crate::timestamp::Timestamp;

/// How a property is compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `$match`: equal; for addresses, fits the pattern.
    Match,
    /// `$lt`: less.
    Lt,
    /// `$lte`: less or equal.
    Lte,
    /// `$gt`: greater.
    Gt,
    /// `$gte`: greater or equal.
    Gte,
    /// `$like`: fits a pattern with `%` and `_`; for addresses the same as `$match`.
    Like,
    /// `$in`: one of several.
    In,
    /// `$exists`: the key is present.
    Exists,
}

impl Operator {
    /// The operator of this name, which begins with `$`.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "$match" => Self::Match,
            "$lt" => Self::Lt,
            "$lte" => Self::Lte,
            "$gt" => Self::Gt,
            "$gte" => Self::Gte,
            "$like" => Self::Like,
            "$in" => Self::In,
            "$exists" => Self::Exists,
            _ => return None,
        })
    }

    /// Its name, with `$`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Match => "$match",
            Self::Lt => "$lt",
            Self::Lte => "$lte",
            Self::Gt => "$gt",
            Self::Gte => "$gte",
            Self::Like => "$like",
            Self::In => "$in",
            Self::Exists => "$exists",
        }
    }

    const fn comparison(self) -> Option<Comparison> {
        match self {
            Self::Match => Some(Comparison::Equal),
            Self::Lt => Some(Comparison::Less),
            Self::Lte => Some(Comparison::LessOrEqual),
            Self::Gt => Some(Comparison::Greater),
            Self::Gte => Some(Comparison::GreaterOrEqual),
            Self::Like | Self::In | Self::Exists => None,
        }
    }
}

/// A value that a caller gave, before it is known what it is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterValue {
    /// A text, which may turn out to be a date or a pattern.
    Text(CompactString),
    /// A whole number.
    Integer(Balance),
    /// True or false.
    Boolean(bool),
    /// Several texts.
    Texts(Vec<CompactString>),
    /// Anything else; no property takes it.
    Other,
}

/// What type of value a property wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Text.
    Text,
    /// Several texts.
    Texts,
    /// RFC 3339.
    Date,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
}

/// Why there is no such filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterError {
    /// The resource has no property of this name.
    UnknownField {
        /// As it was given.
        name: String,
    },
    /// The property does not take the operator.
    OperatorNotAllowed {
        /// The operator.
        operator: Operator,
        /// The property.
        property: Property,
    },
    /// The value has another type than the property.
    WrongValue {
        /// The property.
        property: Property,
        /// What it wants.
        expected: ValueType,
    },
    /// `$in` takes whole addresses, no patterns.
    PartialAddress,
    /// A pattern of `$like` longer than [`crate::limits::LIKE_PATTERN_BYTES_MAX`].
    PatternTooLong,
    /// More nodes than [`crate::limits::FILTER_NODES_MAX`].
    TooManyNodes,
    /// Deeper than [`crate::limits::FILTER_DEPTH_MAX`].
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
            Self::TooManyNodes => {
                write!(f, "a filter has at most {} nodes", crate::limits::FILTER_NODES_MAX)
            }
            Self::TooDeep => write!(f, "a filter is at most {} deep", crate::limits::FILTER_DEPTH_MAX),
        }
    }
}

impl std::error::Error for FilterError {}

/// An order relation between a property and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Less.
    Less,
    /// Less or equal.
    LessOrEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterOrEqual,
}

impl Comparison {
    /// Whether `have` stands in this relation to `want`.
    pub fn holds<T: Ord>(self, have: &T, want: &T) -> bool {
        match self {
            Self::Equal => have == want,
            Self::Less => have < want,
            Self::LessOrEqual => have <= want,
            Self::Greater => have > want,
            Self::GreaterOrEqual => have >= want,
        }
    }
}

/// Which addresses of a subject are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressRole {
    /// Its own.
    Own,
    /// Sources and destinations of its postings.
    Any,
    /// Sources of its postings.
    Source,
    /// Destinations of its postings.
    Destination,
}

/// Properties that are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextField {
    /// [`Property::Reference`].
    Reference,
    /// [`Property::Type`].
    Type,
    /// [`Property::Bucket`].
    Bucket,
    /// [`Property::Name`].
    Name,
    /// [`Property::Version`].
    Version,
}

/// Properties that are dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateField {
    /// [`Property::Timestamp`].
    Timestamp,
    /// [`Property::InsertedAt`].
    InsertedAt,
    /// [`Property::UpdatedAt`].
    UpdatedAt,
    /// [`Property::RevertedAt`].
    RevertedAt,
    /// [`Property::FirstUsage`].
    FirstUsage,
    /// [`Property::InsertionDate`].
    InsertionDate,
    /// [`Property::Date`].
    Date,
    /// [`Property::CreatedAt`].
    CreatedAt,
}

/// What an address is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressTest {
    /// It fits the pattern.
    Fits(AddressPattern),
    /// It is one of these, ascending, each once.
    In(Vec<AccountAddress>),
    /// It fits the regular expression.
    Like(AddressExpression),
    /// It is bytewise less than this.
    Below(CompactString),
}

impl AddressTest {
    /// Whether `address` passes.
    pub fn passes(&self, address: &str) -> bool {
        match self {
            Self::Fits(pattern) => pattern.matches(address),
            Self::In(all) => all.binary_search_by(|have| have.as_str().cmp(address)).is_ok(),
            Self::Like(expression) => expression.matches(address),
            Self::Below(bound) => address < bound.as_str(),
        }
    }
}

/// What a text is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextTest {
    /// It equals this.
    Equal(CompactString),
    /// It fits this pattern: `%` is any text, `_` any one character, `\` takes the next as it is.
    Like(CompactString),
    /// It is one of these, ascending, each once.
    In(Vec<CompactString>),
    /// It stands in this relation to a text, bytewise.
    Compares(Comparison, CompactString),
}

impl TextTest {
    /// Whether `text` passes.
    pub fn passes(&self, text: &str) -> bool {
        match self {
            Self::Equal(want) => want == text,
            Self::Like(pattern) => is_like(text, pattern),
            Self::In(all) => all.binary_search_by(|have| have.as_str().cmp(text)).is_ok(),
            Self::Compares(comparison, want) => comparison.holds(&text, &want.as_str()),
        }
    }
}

/// Whether a whole text fits a pattern with `%` and `_`. Time is at most the product of the lengths.
fn is_like(text: &str, pattern: &str) -> bool {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // Where to go on after the last `%`, were it to take one character more.
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let mut after = pattern.clone();
        let step = match after.next() {
            Some('%') => {
                retry = Some((text.clone(), after.clone()));
                pattern = after;
                continue;
            }
            Some('_') => text.next().is_some(),
            Some('\\') => after.next().is_some_and(|want| text.next() == Some(want)),
            Some(want) => text.next() == Some(want),
            None if text.as_str().is_empty() => return true,
            None => false,
        };
        if step {
            pattern = after;
            continue;
        }
        let Some((from, resume)) = &mut retry else { return false };
        if from.next().is_none() {
            return false;
        }
        text = from.clone();
        pattern = resume.clone();
    }
}

/// One condition. Each variant holds exactly what its evaluation needs; values are parsed and fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Some address in this role passes.
    Address {
        /// Which addresses.
        role: AddressRole,
        /// What with.
        test: AddressTest,
    },
    /// Some posting has an address in a role that passes, and an end of the same posting passes another test.
    Posting {
        /// Which end: the source or the destination.
        role: AddressRole,
        /// What it is compared with.
        test: AddressTest,
        /// What either end is compared with.
        either: AddressTest,
    },
    /// A text passes; unknown where there is none.
    Text {
        /// Which.
        field: TextField,
        /// What with.
        test: TextTest,
    },
    /// A date compares so; unknown where there is none.
    Date {
        /// Which.
        field: DateField,
        /// How.
        comparison: Comparison,
        /// With what.
        value: Timestamp,
    },
    /// The id compares so.
    Id {
        /// How.
        comparison: Comparison,
        /// With what.
        value: Balance,
    },
    /// The transaction is reverted, or is not.
    Reverted(bool),
    /// The metadata of this key passes; false where the key is absent.
    Metadata {
        /// The key.
        key: CompactString,
        /// What with.
        test: TextTest,
    },
    /// What stands in the metadata at a path equals a text: that of the top-level key with this very name, or
    /// of the member that the path leads to, its names divided by dots. Strings, numbers and booleans have a
    /// text; objects, arrays and null have none and equal nothing.
    MetadataPath {
        /// The path.
        path: CompactString,
        /// The text.
        value: CompactString,
    },
    /// The metadata has this key.
    MetadataExists {
        /// The key.
        key: CompactString,
    },
    /// The balance of an asset, or without one some balance, compares so; unknown where the account never
    /// held it.
    Balance {
        /// The asset.
        asset: Option<CompactString>,
        /// How.
        comparison: Comparison,
        /// With what.
        value: Balance,
    },
    /// The account has held this asset.
    BalanceExists {
        /// The asset.
        asset: CompactString,
    },
    /// The feature of this name passes; false where it is absent.
    Feature {
        /// Its name.
        name: CompactString,
        /// What with.
        test: TextTest,
    },
    /// The ledger has this feature.
    FeatureExists {
        /// Its name.
        name: CompactString,
    },
}

impl Condition {
    /// As [`Condition::new`], and references may also be less or greater than a text, bytewise: so the first release
    /// of this generation has them.
    ///
    /// # Errors
    ///
    /// As [`Condition::new`].
    pub fn of_first_release(
        field: &Field,
        operator: Operator,
        value: FilterValue,
    ) -> Result<Self, FilterError> {
        match (field.property(), operator.comparison(), value) {
            (property @ Property::Reference, Some(comparison), value) => {
                let expected = ValueType::Text;
                let FilterValue::Text(text) = value else {
                    return Err(FilterError::WrongValue { property, expected });
                };
                let test = match comparison {
                    Comparison::Equal => TextTest::Equal(text),
                    _ => TextTest::Compares(comparison, text),
                };
                Ok(Self::Text { field: TextField::Reference, test })
            }
            (_, _, value) => Self::new(field, operator, value),
        }
    }

    /// Joins a field, an operator and a value, if they fit each other.
    ///
    /// `$exists` and `$match` on a map without a key take the key as their value; with a key `$exists`
    /// takes `true`.
    ///
    /// # Errors
    ///
    /// [`FilterError::OperatorNotAllowed`], [`FilterError::WrongValue`], [`FilterError::PartialAddress`],
    /// [`FilterError::PatternTooLong`].
    pub fn new(field: &Field, operator: Operator, value: FilterValue) -> Result<Self, FilterError> {
        let property = field.property();
        let refused = FilterError::OperatorNotAllowed { operator, property };
        let wrong = |expected| FilterError::WrongValue { property, expected };
        let address =
            |role, value| Ok(Self::Address { role, test: address_test(operator, value, &refused, &wrong)? });
        let text =
            |field, value| Ok(Self::Text { field, test: text_test(operator, value, &refused, &wrong)? });
        let date = |field, value| {
            let comparison = operator.comparison().ok_or_else(|| refused.clone())?;
            let FilterValue::Text(text) = value else { return Err(wrong(ValueType::Date)) };
            let value = Timestamp::parse(&text).map_err(|_| wrong(ValueType::Date))?;
            Ok(Self::Date { field, comparison, value })
        };
        match property {
            Property::Address => address(AddressRole::Own, value),
            Property::Account => address(AddressRole::Any, value),
            Property::Source => address(AddressRole::Source, value),
            Property::Destination => address(AddressRole::Destination, value),
            Property::Reference => text(TextField::Reference, value),
            Property::Type => text(TextField::Type, value),
            Property::Bucket => text(TextField::Bucket, value),
            Property::Name => text(TextField::Name, value),
            Property::Version => text(TextField::Version, value),
            Property::Timestamp => date(DateField::Timestamp, value),
            Property::InsertedAt => date(DateField::InsertedAt, value),
            Property::UpdatedAt => date(DateField::UpdatedAt, value),
            Property::RevertedAt => date(DateField::RevertedAt, value),
            Property::FirstUsage => date(DateField::FirstUsage, value),
            Property::InsertionDate => date(DateField::InsertionDate, value),
            Property::Date => date(DateField::Date, value),
            Property::CreatedAt => date(DateField::CreatedAt, value),
            Property::Id => {
                let comparison = operator.comparison().ok_or(refused)?;
                let FilterValue::Integer(value) = value else { return Err(wrong(ValueType::Integer)) };
                Ok(Self::Id { comparison, value })
            }
            Property::Reverted => match (operator, value) {
                (Operator::Match, FilterValue::Boolean(value)) => Ok(Self::Reverted(value)),
                (Operator::Match, _) => Err(wrong(ValueType::Boolean)),
                _ => Err(refused),
            },
            Property::Metadata | Property::Features => {
                let of_metadata = property == Property::Metadata;
                let exists = |key| {
                    if of_metadata { Self::MetadataExists { key } } else { Self::FeatureExists { name: key } }
                };
                match (field.key(), operator) {
                    // A quirk of servers of this API: a match of the whole map asks for a key.
                    (_, Operator::Exists) | (None, Operator::Match) => {
                        Ok(exists(existing_key(field, value, &wrong)?))
                    }
                    (None, _) => Err(refused),
                    (Some(key), _) => {
                        let (key, test) =
                            (CompactString::new(key), text_test(operator, value, &refused, &wrong)?);
                        Ok(if of_metadata {
                            Self::Metadata { key, test }
                        } else {
                            Self::Feature { name: key, test }
                        })
                    }
                }
            }
            Property::Balance if operator == Operator::Exists => {
                Ok(Self::BalanceExists { asset: existing_key(field, value, &wrong)? })
            }
            // A row of volumes has one balance; only an account can be asked about any of several.
            Property::Balance if field.key().is_none() && field.resource() != Resource::Accounts => {
                Err(refused)
            }
            Property::Balance => {
                let comparison = operator.comparison().ok_or(refused)?;
                let FilterValue::Integer(value) = value else { return Err(wrong(ValueType::Integer)) };
                Ok(Self::Balance { asset: field.key().map(CompactString::new), comparison, value })
            }
        }
    }
}

/// The key that `$exists` asks for: the field's own, with `true` as value, or else the value.
fn existing_key(
    field: &Field,
    value: FilterValue,
    wrong: &dyn Fn(ValueType) -> FilterError,
) -> Result<CompactString, FilterError> {
    match (field.key(), value) {
        (Some(key), FilterValue::Boolean(true)) => Ok(CompactString::new(key)),
        (Some(_), _) => Err(wrong(ValueType::Boolean)),
        (None, FilterValue::Text(key)) => Ok(key),
        (None, _) => Err(wrong(ValueType::Text)),
    }
}

fn text_test(
    operator: Operator,
    value: FilterValue,
    refused: &FilterError,
    wrong: &dyn Fn(ValueType) -> FilterError,
) -> Result<TextTest, FilterError> {
    match (operator, value) {
        (Operator::Match, FilterValue::Text(text)) => Ok(TextTest::Equal(text)),
        (Operator::Like, FilterValue::Text(text)) if text.len() > LIKE_PATTERN_BYTES_MAX => {
            Err(FilterError::PatternTooLong)
        }
        (Operator::Like, FilterValue::Text(text)) => Ok(TextTest::Like(text)),
        (Operator::Match | Operator::Like, _) => Err(wrong(ValueType::Text)),
        (Operator::In, FilterValue::Texts(mut texts)) => {
            texts.sort_unstable();
            texts.dedup();
            Ok(TextTest::In(texts))
        }
        (Operator::In, _) => Err(wrong(ValueType::Texts)),
        _ => Err(refused.clone()),
    }
}

fn address_test(
    operator: Operator,
    value: FilterValue,
    refused: &FilterError,
    wrong: &dyn Fn(ValueType) -> FilterError,
) -> Result<AddressTest, FilterError> {
    match text_test(operator, value, refused, wrong)? {
        TextTest::Equal(text) | TextTest::Like(text) => Ok(AddressTest::Fits(AddressPattern::parse(&text))),
        TextTest::In(texts) => {
            let all = texts.iter().map(|text| AccountAddress::parse(text)).collect::<Result<Vec<_>, _>>();
            Ok(AddressTest::In(all.map_err(|_| FilterError::PartialAddress)?))
        }
        TextTest::Compares(..) => Err(refused.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(
        resource: Resource,
        operator: Operator,
        key: &str,
        value: FilterValue,
    ) -> Result<Condition, FilterError> {
        Condition::new(&Field::parse(resource, key)?, operator, value)
    }

    fn text(text: &str) -> FilterValue {
        FilterValue::Text(text.into())
    }

    #[test]
    fn a_text_is_like_a_pattern() {
        for (subject, pattern, fits) in [
            ("", "", true),
            ("a", "", false),
            ("", "%", true),
            ("abc", "abc", true),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "a_c", true),
            ("aäc", "a_c", true),
            ("abc", "a_", false),
            ("abcabd", "%ab_", true),
            ("aaab", "%aab", true),
            ("100%", "100\\%", true),
            ("1000", "100\\%", false),
            ("a", "%%_", true),
            ("", "_", false),
        ] {
            assert_eq!(is_like(subject, pattern), fits, "{subject} like {pattern}");
        }
    }

    #[test]
    fn operators_and_values_must_fit_the_property() {
        use Resource::*;
        let refused = |operator, property| Err(FilterError::OperatorNotAllowed { operator, property });
        let wrong = |property, expected| Err(FilterError::WrongValue { property, expected });
        let one = || FilterValue::Integer(Balance::from(1));
        for (resource, operator, key, value, error) in [
            (Accounts, Operator::Lt, "metadata[k]", text("v"), refused(Operator::Lt, Property::Metadata)),
            (Accounts, Operator::Gt, "metadata", text("v"), refused(Operator::Gt, Property::Metadata)),
            (Accounts, Operator::Exists, "address", text("v"), refused(Operator::Exists, Property::Address)),
            (Accounts, Operator::Match, "address", one(), wrong(Property::Address, ValueType::Text)),
            (Accounts, Operator::Like, "balance[USD]", one(), refused(Operator::Like, Property::Balance)),
            (Accounts, Operator::Lt, "balance[USD]", text("1"), wrong(Property::Balance, ValueType::Integer)),
            (Volumes, Operator::Lt, "balance", one(), refused(Operator::Lt, Property::Balance)),
            (Transactions, Operator::Lt, "reference", text("a"), refused(Operator::Lt, Property::Reference)),
            (
                Transactions,
                Operator::Lt,
                "timestamp",
                text("yesterday"),
                wrong(Property::Timestamp, ValueType::Date),
            ),
            (
                Transactions,
                Operator::Lt,
                "reverted",
                FilterValue::Boolean(true),
                refused(Operator::Lt, Property::Reverted),
            ),
            (
                Transactions,
                Operator::Match,
                "reverted",
                text("true"),
                wrong(Property::Reverted, ValueType::Boolean),
            ),
            (Transactions, Operator::In, "id", FilterValue::Other, refused(Operator::In, Property::Id)),
            (
                Transactions,
                Operator::In,
                "source",
                FilterValue::Texts(vec!["a:".into()]),
                Err(FilterError::PartialAddress),
            ),
            (Logs, Operator::In, "type", text("x"), wrong(Property::Type, ValueType::Texts)),
            (Logs, Operator::Like, "type", text(&"x".repeat(257)), Err(FilterError::PatternTooLong)),
        ] {
            assert_eq!(build(resource, operator, key, value), error, "{resource:?} {operator:?} {key}");
        }
    }

    #[test]
    fn a_match_of_the_whole_map_asks_for_a_key() {
        let exists = Ok(Condition::MetadataExists { key: "k".into() });
        assert_eq!(build(Resource::Accounts, Operator::Match, "metadata", text("k")), exists);
        assert_eq!(build(Resource::Accounts, Operator::Exists, "metadata", text("k")), exists);
        let yes = FilterValue::Boolean(true);
        assert_eq!(build(Resource::Accounts, Operator::Exists, "metadata[k]", yes), exists);
    }
}
