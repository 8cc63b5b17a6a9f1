//! Checks the names in conditions. A condition with a malformed name is valid in the HTTP API, where it selects nothing.

use ledger_values::{Asset, BucketName, LedgerName, NameError, NameKind, Reference, SchemaVersion};

use super::{AddressTest, Condition, TextField, TextTest};

impl Condition {
    /// Checks that the names with which the condition compares follow their grammar.
    pub(crate) fn check_names(&self) -> Result<(), NameError> {
        match self {
            Self::Address { test, .. } => check_address(test),
            Self::Posting { test, either, .. } => check_address(test).and_then(|()| check_address(either)),
            Self::Text { field, test } => check_text(*field, test),
            Self::Balance { asset: Some(asset), .. } => Asset::parse(asset).map(drop),
            Self::Balance { asset: None, .. }
            | Self::Date { .. }
            | Self::Id { .. }
            | Self::Reverted(_)
            | Self::Metadata { .. }
            | Self::MetadataPath { .. }
            | Self::MetadataExists { .. }
            | Self::Feature { .. }
            | Self::FeatureExists { .. } => Ok(()),
        }
    }
}

fn check_address(test: &AddressTest) -> Result<(), NameError> {
    match test {
        AddressTest::Fits(pattern) if !pattern.can_match() => {
            Err(NameError::new(NameKind::Address, pattern.as_str()))
        }
        AddressTest::Fits(_) | AddressTest::In(_) | AddressTest::Like(_) | AddressTest::Below(_) => Ok(()),
    }
}

fn check_text(field: TextField, test: &TextTest) -> Result<(), NameError> {
    let check = |text: &str| match field {
        TextField::Reference => Reference::parse(text).map(drop),
        TextField::Bucket => BucketName::parse(text).map(drop),
        TextField::Name => LedgerName::parse(text).map(drop),
        TextField::Version => SchemaVersion::parse(text).map(drop),
        TextField::Type => Ok(()),
    };
    match test {
        TextTest::Equal(text) => check(text),
        TextTest::In(texts) => texts.iter().try_for_each(|text| check(text)),
        TextTest::Like(_) | TextTest::Compares(..) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::filter_of::{Accounts, FilterOf, Ledgers, Schemas, Selects, Transactions};

    fn is_accepted<R: Selects>(filter: &str) -> bool {
        FilterOf::<R>::parse(filter).expect(filter).check_names().is_ok()
    }

    #[test]
    fn refuses_malformed_names() {
        for refused in [
            r#"{"$match": {"address": "users:f 1"}}"#,
            r#"{"$match": {"address": "users:*"}}"#,
            r#"{"$not": {"$match": {"address": "a.b:..."}}}"#,
            r#"{"$or": [{"$match": {"address": "a"}}, {"$gt": {"balance[usd]": 1}}]}"#,
        ] {
            assert!(!is_accepted::<Accounts>(refused), "{refused}");
        }
        assert!(!is_accepted::<Transactions>(r#"{"$match": {"account": "f 1"}}"#));
        assert!(!is_accepted::<Transactions>(r#"{"$match": {"reference": ""}}"#));
        assert!(!is_accepted::<Transactions>(r#"{"$in": {"reference": ["order-1", ""]}}"#));
        assert!(!is_accepted::<Ledgers>(r#"{"$match": {"name": "a b"}}"#));
        assert!(!is_accepted::<Ledgers>(r#"{"$match": {"bucket": "a b"}}"#));
        assert!(!is_accepted::<Schemas>(r#"{"$match": {"version": ""}}"#));
    }

    #[test]
    fn accepts_patterns_and_other_texts() {
        for accepted in [
            "{}",
            r#"{"$match": {"address": "users::main"}}"#,
            r#"{"$match": {"address": "users:..."}}"#,
            r#"{"$match": {"address": ""}}"#,
            r#"{"$gt": {"balance[USD/2]": 1}}"#,
            r#"{"$gt": {"balance": 1}}"#,
            r#"{"$match": {"metadata[any key]": "f 1"}}"#,
        ] {
            assert!(is_accepted::<Accounts>(accepted), "{accepted}");
        }
        assert!(is_accepted::<Transactions>(r#"{"$like": {"reference": "%"}}"#));
    }
}
