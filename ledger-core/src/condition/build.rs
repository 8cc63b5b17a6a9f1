//! Builds conditions from fields, operators and values. Refuses combinations that make no sense, such as a date with
//! `$like`.

use ledger_values::{AccountAddress, Balance, Timestamp};
use smol_str::SmolStr;

use super::field::Field;
use super::{
    AddressRole, AddressTest, Comparison, Condition, DateField, FilterError, FilterValue, Operator,
    TextField, TextTest, ValueType,
};
use crate::address::AddressPattern;
use crate::limits::LIKE_PATTERN_BYTES_MAX;
use crate::property::{Property, Resource};

impl Condition {
    /// Makes a condition by the rules of the first release of API v2. They are those of [`Condition::new`], except
    /// that references also accept `$lt`, `$lte`, `$gt` and `$gte`.
    ///
    /// # Errors
    ///
    /// The same errors as [`Condition::new`].
    ///
    /// ```
    /// use ledger_core::{Condition, Filter, Resource};
    /// let after = r#"{"$gt": {"reference": "order-17"}}"#;
    /// assert!(Filter::parse(Resource::Transactions, after, Condition::of_first_release).is_ok());
    /// assert!(Filter::parse(Resource::Transactions, after, Condition::new).is_err());
    /// ```
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

    /// Makes a condition of a field, an operator and a value if they fit together.
    ///
    /// Metadata and features are maps. If the field names no key of the map, `$exists` and `$match` take the key as
    /// their value: `{"$exists": {"metadata": "k"}}`. If it names one, `$exists` takes `true`:
    /// `{"$exists": {"metadata[k]": true}}`.
    ///
    /// # Errors
    ///
    /// [`FilterError::OperatorNotAllowed`], [`FilterError::WrongValue`], [`FilterError::PartialAddress`],
    /// [`FilterError::PatternTooLong`].
    pub fn new(field: &Field, operator: Operator, value: FilterValue) -> Result<Self, FilterError> {
        let builder = Builder { field, operator };
        match field.property() {
            Property::Address => builder.address(AddressRole::Own, value),
            Property::Account => builder.address(AddressRole::Any, value),
            Property::Source => builder.address(AddressRole::Source, value),
            Property::Destination => builder.address(AddressRole::Destination, value),
            Property::Reference => builder.text(TextField::Reference, value),
            Property::Type => builder.text(TextField::Type, value),
            Property::Bucket => builder.text(TextField::Bucket, value),
            Property::Name => builder.text(TextField::Name, value),
            Property::Version => builder.text(TextField::Version, value),
            Property::Timestamp => builder.date(DateField::Timestamp, value),
            Property::InsertedAt => builder.date(DateField::InsertedAt, value),
            Property::UpdatedAt => builder.date(DateField::UpdatedAt, value),
            Property::RevertedAt => builder.date(DateField::RevertedAt, value),
            Property::FirstUsage => builder.date(DateField::FirstUsage, value),
            Property::InsertionDate => builder.date(DateField::InsertionDate, value),
            Property::Date => builder.date(DateField::Date, value),
            Property::CreatedAt => builder.date(DateField::CreatedAt, value),
            Property::Id => {
                let (comparison, value) = builder.compared_integer(value)?;
                Ok(Self::Id { comparison, value })
            }
            Property::Reverted => builder.reverted(value),
            Property::Metadata => builder.map_value(
                value,
                |key| Self::MetadataExists { key },
                |key, test| Self::Metadata { key, test },
            ),
            Property::Features => builder.map_value(
                value,
                |name| Self::FeatureExists { name },
                |name, test| Self::Feature { name, test },
            ),
            Property::Balance => builder.balance(value),
        }
    }
}

/// The field and the operator of a condition that is being built.
struct Builder<'a> {
    field: &'a Field,
    operator: Operator,
}

impl Builder<'_> {
    fn operator_refused(&self) -> FilterError {
        FilterError::OperatorNotAllowed { operator: self.operator, property: self.field.property() }
    }

    fn wrong_value(&self, expected: ValueType) -> FilterError {
        FilterError::WrongValue { property: self.field.property(), expected }
    }

    fn comparison(&self) -> Result<Comparison, FilterError> {
        self.operator.comparison().ok_or_else(|| self.operator_refused())
    }

    fn address(&self, role: AddressRole, value: FilterValue) -> Result<Condition, FilterError> {
        let test = match self.text_test(value)? {
            TextTest::Equal(text) | TextTest::Like(text) => AddressTest::Fits(AddressPattern::parse(&text)),
            TextTest::In(texts) => {
                let all = texts.iter().map(|text| AccountAddress::parse(text)).collect::<Result<Vec<_>, _>>();
                AddressTest::In(all.map_err(|_| FilterError::PartialAddress)?)
            }
            TextTest::Compares(..) => return Err(self.operator_refused()),
        };
        Ok(Condition::Address { role, test })
    }

    fn text(&self, field: TextField, value: FilterValue) -> Result<Condition, FilterError> {
        Ok(Condition::Text { field, test: self.text_test(value)? })
    }

    fn date(&self, field: DateField, value: FilterValue) -> Result<Condition, FilterError> {
        let comparison = self.comparison()?;
        let FilterValue::Text(text) = value else { return Err(self.wrong_value(ValueType::Date)) };
        let value = Timestamp::parse(&text).map_err(|_| self.wrong_value(ValueType::Date))?;
        Ok(Condition::Date { field, comparison, value })
    }

    fn compared_integer(&self, value: FilterValue) -> Result<(Comparison, Balance), FilterError> {
        let comparison = self.comparison()?;
        let FilterValue::Integer(value) = value else { return Err(self.wrong_value(ValueType::Integer)) };
        Ok((comparison, value))
    }

    fn reverted(&self, value: FilterValue) -> Result<Condition, FilterError> {
        match (self.operator, value) {
            (Operator::Match, FilterValue::Boolean(value)) => Ok(Condition::Reverted(value)),
            (Operator::Match, _) => Err(self.wrong_value(ValueType::Boolean)),
            _ => Err(self.operator_refused()),
        }
    }

    /// Builds a condition on metadata or features. `exists` makes a condition that a key is present, and `passes`
    /// makes one that the value of a key passes a test.
    fn map_value(
        &self,
        value: FilterValue,
        exists: impl FnOnce(SmolStr) -> Condition,
        passes: impl FnOnce(SmolStr, TextTest) -> Condition,
    ) -> Result<Condition, FilterError> {
        match (self.field.key(), self.operator) {
            // Formance's servers read a `$match` on the map itself as a test for the presence of a key.
            (_, Operator::Exists) | (None, Operator::Match) => Ok(exists(self.existing_key(value)?)),
            (None, _) => Err(self.operator_refused()),
            (Some(key), _) => Ok(passes(SmolStr::new(key), self.text_test(value)?)),
        }
    }

    fn balance(&self, value: FilterValue) -> Result<Condition, FilterError> {
        // Without an asset, the condition is about any balance of an account. A list of volumes has one row for each
        // account and asset, so there the condition must name its asset.
        if self.field.key().is_none() && self.field.resource() != Resource::Accounts {
            return Err(self.operator_refused());
        }
        let (comparison, value) = self.compared_integer(value)?;
        Ok(Condition::Balance { asset: self.field.key().map(SmolStr::new), comparison, value })
    }

    /// Returns the key that `$exists` tests: the key of the field with the value `true`, or else the value itself.
    fn existing_key(&self, value: FilterValue) -> Result<SmolStr, FilterError> {
        match (self.field.key(), value) {
            (Some(key), FilterValue::Boolean(true)) => Ok(SmolStr::new(key)),
            (Some(_), _) => Err(self.wrong_value(ValueType::Boolean)),
            (None, FilterValue::Text(key)) => Ok(key),
            (None, _) => Err(self.wrong_value(ValueType::Text)),
        }
    }

    fn text_test(&self, value: FilterValue) -> Result<TextTest, FilterError> {
        match (self.operator, value) {
            (Operator::Match, FilterValue::Text(text)) => Ok(TextTest::Equal(text)),
            (Operator::Like, FilterValue::Text(text)) if text.len() > LIKE_PATTERN_BYTES_MAX => {
                Err(FilterError::PatternTooLong)
            }
            (Operator::Like, FilterValue::Text(text)) => Ok(TextTest::Like(text)),
            (Operator::Match | Operator::Like, _) => Err(self.wrong_value(ValueType::Text)),
            (Operator::In, FilterValue::Texts(mut texts)) => {
                texts.sort_unstable();
                texts.dedup();
                Ok(TextTest::In(texts))
            }
            (Operator::In, _) => Err(self.wrong_value(ValueType::Texts)),
            (Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte | Operator::Exists, _) => {
                Err(self.operator_refused())
            }
        }
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
    fn refuses_operators_that_do_not_fit() {
        use Resource::*;
        let refused = |operator, property| Err(FilterError::OperatorNotAllowed { operator, property });
        let wrong = |property, expected| Err(FilterError::WrongValue { property, expected });
        let one = || FilterValue::Integer(Balance::from(1));
        for (resource, operator, key, value, error) in [
            (Accounts, Operator::Lt, "metadata[k]", text("v"), refused(Operator::Lt, Property::Metadata)),
            (Accounts, Operator::Gt, "metadata", text("v"), refused(Operator::Gt, Property::Metadata)),
            (Accounts, Operator::Exists, "address", text("v"), refused(Operator::Exists, Property::Address)),
            (
                Accounts,
                Operator::Exists,
                "balance",
                text("USD"),
                refused(Operator::Exists, Property::Balance),
            ),
            (Volumes, Operator::Exists, "balance", text("USD"), refused(Operator::Exists, Property::Balance)),
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
    fn match_on_a_map_tests_for_a_key() {
        let exists = Ok(Condition::MetadataExists { key: "k".into() });
        assert_eq!(build(Resource::Accounts, Operator::Match, "metadata", text("k")), exists);
        assert_eq!(build(Resource::Accounts, Operator::Exists, "metadata", text("k")), exists);
        let yes = FilterValue::Boolean(true);
        assert_eq!(build(Resource::Accounts, Operator::Exists, "metadata[k]", yes), exists);
    }
}
