//! Operators of filters, the values that they take, and order relations.

use ledger_values::{Balance, Timestamp};
use smol_str::SmolStr;

/// An operator between a property and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `$match`: the values are equal, or the address matches the pattern.
    Match,
    /// `$lt`: the property is less.
    Lt,
    /// `$lte`: the property is less or equal.
    Lte,
    /// `$gt`: the property is greater.
    Gt,
    /// `$gte`: the property is greater or equal.
    Gte,
    /// `$like`: the property matches a pattern with `%` and `_`. On addresses, the same as `$match`.
    Like,
    /// `$in`: the property is one of several values.
    In,
    /// `$exists`: the key is present.
    Exists,
}

impl Operator {
    /// All operators.
    ///
    /// ```
    /// use ledger_core::Operator;
    /// let names = Operator::ALL.map(Operator::name);
    /// assert_eq!(names, ["$match", "$lt", "$lte", "$gt", "$gte", "$like", "$in", "$exists"]);
    /// ```
    pub const ALL: [Self; 8] =
        [Self::Match, Self::Lt, Self::Lte, Self::Gt, Self::Gte, Self::Like, Self::In, Self::Exists];

    /// Finds an operator by its name, which begins with `$`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| operator.name() == name)
    }

    /// Returns the name of the operator with its `$`.
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

    /// Returns the order relation that the operator tests, if it tests one.
    ///
    /// ```
    /// use ledger_core::{Comparison, Operator};
    /// assert_eq!(Operator::Lte.comparison(), Some(Comparison::LessOrEqual));
    /// assert_eq!(Operator::Like.comparison(), None);
    /// ```
    pub const fn comparison(self) -> Option<Comparison> {
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

/// A word that names the operator of a node in the JSON of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeWord {
    /// `$and`: joins filters that must all be true.
    And,
    /// `$or`: joins filters of which one must be true.
    Or,
    /// `$not`: negates a filter.
    Not,
    /// Compares a property with a value.
    Compare(Operator),
}

impl NodeWord {
    /// Finds a word, which begins with `$`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let joining = [Self::And, Self::Or, Self::Not].into_iter().find(|word| word.text() == text);
        joining.or_else(|| Operator::parse(text).map(Self::Compare))
    }

    /// Returns the word with its `$`.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::And => "$and",
            Self::Or => "$or",
            Self::Not => "$not",
            Self::Compare(operator) => operator.name(),
        }
    }
}

/// A value in a caller's filter, before its property is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterValue {
    /// A text, possibly a date or a pattern.
    Text(SmolStr),
    /// A whole number.
    Integer(Balance),
    /// True or false.
    Boolean(bool),
    /// Several texts.
    Texts(Vec<SmolStr>),
    /// Any other value. No property accepts it.
    Other,
}

impl From<&str> for FilterValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for FilterValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for FilterValue {
    fn from(number: i64) -> Self {
        Self::Integer(number.into())
    }
}

impl From<Balance> for FilterValue {
    fn from(number: Balance) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for FilterValue {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<Timestamp> for FilterValue {
    fn from(at: Timestamp) -> Self {
        Self::Text(at.to_string().into())
    }
}

impl From<&[&str]> for FilterValue {
    fn from(texts: &[&str]) -> Self {
        Self::Texts(texts.iter().map(|text| (*text).into()).collect())
    }
}

/// The type of value that a property accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Text.
    Text,
    /// Several texts.
    Texts,
    /// A date in the format of RFC 3339.
    Date,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
}

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
    /// Tells whether `have` is in this relation to `want`.
    ///
    /// ```
    /// use ledger_core::Comparison;
    /// assert!(Comparison::Less.holds(&1, &2) && !Comparison::Less.holds(&2, &2));
    /// ```
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
