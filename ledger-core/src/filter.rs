//! Filters: trees of conditions that select accounts, transactions, log entries and other resources.
//!
//! Evaluation is three-valued, as in the databases behind other servers of this API. A condition on an absent
//! property is unknown, and a filter selects a subject only if the whole tree is true. So neither a condition
//! on the balance of an asset that an account never held nor its negation selects the account. Metadata
//! differs: a condition on an absent key is false, and its negation is true.

use std::borrow::Cow;

use crate::condition::{AddressRole, Condition, DateField, FilterError, TextField};
use crate::json_path::is_text_at;
use crate::limits::{FILTER_DEPTH_MAX, FILTER_NODES_MAX};
use crate::property::Resource;
use ledger_values::{Amount, Balance, MetadataValue, NameError, Timestamp};

/// A node of a filter, whose leaves are conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterNode<C = Condition> {
    /// True if every child is true, or if there are no children.
    And(Vec<FilterNode<C>>),
    /// True if at least one child is true. A [`Filter`] is also true if there are no children.
    Or(Vec<FilterNode<C>>),
    /// True if the child is false.
    Not(Box<FilterNode<C>>),
    /// True if the condition is true.
    Is(C),
}

impl<C> FilterNode<C> {
    /// Checks the size of the tree. The depth of a single condition is 1.
    ///
    /// # Errors
    ///
    /// [`FilterError::TooManyNodes`] or [`FilterError::TooDeep`].
    pub fn check_size(&self, nodes_max: usize, depth_max: usize) -> Result<(), FilterError> {
        let mut nodes_left = nodes_max;
        self.count(&mut nodes_left, depth_max)
    }

    /// Counts nodes and stops as soon as there are too many or they are too deep.
    fn count(&self, nodes_left: &mut usize, depth_left: usize) -> Result<(), FilterError> {
        *nodes_left = nodes_left.checked_sub(1).ok_or(FilterError::TooManyNodes)?;
        let below = depth_left.checked_sub(1).ok_or(FilterError::TooDeep)?;
        match self {
            Self::And(children) | Self::Or(children) => {
                children.iter().try_for_each(|child| child.count(nodes_left, below))
            }
            Self::Not(child) => child.count(nodes_left, below),
            Self::Is(_) => Ok(()),
        }
    }
}

/// A filter for one kind of resource. Its size is within the limits.
///
/// ```
/// use ledger_core::{Condition, Field, Filter, FilterNode, FilterValue, Operator, Resource};
/// let field = Field::parse(Resource::Accounts, "address")?;
/// let users = Condition::new(&field, Operator::Match, FilterValue::Text("users:".into()))?;
/// let filter = Filter::new(Resource::Accounts, FilterNode::Not(Box::new(FilterNode::Is(users))))?;
/// # Ok::<(), ledger_core::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    resource: Resource,
    root: FilterNode,
}

impl Filter {
    /// Makes a filter of a tree. All its conditions must be about `resource`.
    ///
    /// # Errors
    ///
    /// [`FilterError::TooManyNodes`] or [`FilterError::TooDeep`].
    pub fn new(resource: Resource, root: FilterNode) -> Result<Self, FilterError> {
        root.check_size(FILTER_NODES_MAX, FILTER_DEPTH_MAX)?;
        Ok(Self { resource, root })
    }

    /// Makes the filter that selects everything.
    pub const fn all(resource: Resource) -> Self {
        Self { resource, root: FilterNode::And(Vec::new()) }
    }

    /// Returns the kind of resource that the filter selects.
    pub const fn resource(&self) -> Resource {
        self.resource
    }

    /// Returns the tree, for query planners.
    pub const fn root(&self) -> &FilterNode {
        &self.root
    }

    pub(crate) fn into_root(self) -> FilterNode {
        self.root
    }

    /// Tells whether the filter has no conditions.
    pub const fn is_all(&self) -> bool {
        matches!(&self.root, FilterNode::And(children) | FilterNode::Or(children) if children.is_empty())
    }

    /// Tells whether any condition is about a balance.
    pub fn asks_for_balances(&self) -> bool {
        asks_for_balances(&self.root)
    }

    /// Checks that all names in the filter follow their grammar: address patterns, assets, references, and the names of
    /// ledgers, buckets and schema versions. A condition with a malformed name is valid, but nothing can fulfil it.
    ///
    /// # Errors
    ///
    /// [`NameError`] for the first malformed name.
    pub fn check_names(&self) -> Result<(), NameError> {
        check_names(&self.root)
    }

    /// Tells whether the filter selects `subject`.
    ///
    /// # Errors
    ///
    /// The first error of the subject. The evaluation reads nothing that the result does not depend on.
    pub fn matches<S: FilterSubject + ?Sized>(&self, subject: &S) -> Result<bool, S::Error> {
        Ok(self.evaluate(&self.root, subject)? == Some(true))
    }

    /// Evaluates a node: true, false, or `None` for unknown.
    fn evaluate<S: FilterSubject + ?Sized>(
        &self,
        node: &FilterNode,
        subject: &S,
    ) -> Result<Option<bool>, S::Error> {
        match node {
            FilterNode::And(children) => self.fold(children, false, subject),
            FilterNode::Or(children) if children.is_empty() => Ok(Some(true)),
            FilterNode::Or(children) => self.fold(children, true, subject),
            FilterNode::Not(child) => Ok(self.evaluate(child, subject)?.map(|truth| !truth)),
            FilterNode::Is(condition) => self.test(condition, subject),
        }
    }

    /// Combines children: a `decisive` child decides, otherwise an unknown child makes the result unknown.
    fn fold<S: FilterSubject + ?Sized>(
        &self,
        children: &[FilterNode],
        decisive: bool,
        subject: &S,
    ) -> Result<Option<bool>, S::Error> {
        let mut joined = Some(!decisive);
        for child in children {
            match self.evaluate(child, subject)? {
                Some(truth) if truth == decisive => return Ok(Some(decisive)),
                Some(_) => {}
                None => joined = None,
            }
        }
        Ok(joined)
    }

    fn test<S: FilterSubject + ?Sized>(
        &self,
        condition: &Condition,
        subject: &S,
    ) -> Result<Option<bool>, S::Error> {
        Ok(match condition {
            Condition::Address { role, test } => {
                Some(subject.any_address(*role, &|address| test.passes(address))?)
            }
            Condition::Posting { role, test, either } => {
                Some(subject.any_posting(&|source, destination| {
                    let end = if *role == AddressRole::Source { source } else { destination };
                    test.passes(end) && (either.passes(source) || either.passes(destination))
                })?)
            }
            Condition::Text { field, test } => subject.text(*field)?.map(|have| test.passes(&have)),
            Condition::Date { field, comparison, value } => {
                subject.date(*field)?.map(|have| comparison.holds(&have, value))
            }
            Condition::Id { comparison, value } => {
                subject.id()?.map(|have| comparison.holds(&Amount::from(have).into(), value))
            }
            Condition::Reverted(value) => subject.reverted()?.map(|have| have == *value),
            Condition::Metadata { key, test } => {
                Some(subject.metadata(key)?.is_some_and(|have| test.passes(&have)))
            }
            Condition::MetadataPath { path, value } => Some(metadata_at_path(subject, path, value)?),
            Condition::MetadataExists { key } => Some(subject.metadata(key)?.is_some()),
            Condition::Balance { asset: Some(asset), comparison, value } => {
                match subject.balance(asset)?.map(|have| comparison.holds(&have, value)) {
                    // A row of volumes has one asset, so another asset is known to be absent.
                    None if self.resource == Resource::Volumes => Some(false),
                    truth => truth,
                }
            }
            Condition::Balance { asset: None, comparison, value } => {
                subject.any_balance(&|have| comparison.holds(have, value))?
            }
            Condition::Feature { name, test } => {
                Some(subject.feature(name)?.is_some_and(|have| test.passes(&have)))
            }
            Condition::FeatureExists { name } => Some(subject.feature(name)?.is_some()),
        })
    }
}

/// Tells whether metadata has a text at a path. See [`Condition::MetadataPath`].
fn metadata_at_path<S: FilterSubject + ?Sized>(
    subject: &S,
    path: &str,
    value: &str,
) -> Result<bool, S::Error> {
    if subject.metadata_value(path)?.is_some_and(|have| is_text_at(&have, "", value)) {
        return Ok(true);
    }
    let Some((key, rest)) = path.split_once('.') else { return Ok(false) };
    Ok(subject.metadata_value(key)?.is_some_and(|have| is_text_at(&have, rest, value)))
}

fn check_names(node: &FilterNode) -> Result<(), NameError> {
    match node {
        FilterNode::And(children) | FilterNode::Or(children) => children.iter().try_for_each(check_names),
        FilterNode::Not(child) => check_names(child),
        FilterNode::Is(condition) => condition.check_names(),
    }
}

fn asks_for_balances(node: &FilterNode) -> bool {
    match node {
        FilterNode::And(children) | FilterNode::Or(children) => children.iter().any(asks_for_balances),
        FilterNode::Not(child) => asks_for_balances(child),
        FilterNode::Is(condition) => {
            matches!(condition, Condition::Balance { .. })
        }
    }
}

/// An object that filters can select.
///
/// Every method has a default for objects without the property: the property is absent. Implementations
/// override the methods of the properties that they have. These may read storage and fail.
///
/// ```
/// use std::convert::Infallible;
/// use ledger_core::{AddressRole, Condition, Filter, FilterSubject, MetadataValue, Resource};
///
/// /// An account in a cache of the application.
/// struct Cached(&'static str);
///
/// impl FilterSubject for Cached {
///     type Error = Infallible;
///
///     fn any_address(&self, role: AddressRole, test: &dyn Fn(&str) -> bool) -> Result<bool, Infallible> {
///         Ok(role == AddressRole::Own && test(self.0))
///     }
/// }
///
/// let users = Filter::parse(Resource::Accounts, r#"{"$match": {"address": "users:"}}"#, Condition::new)?;
/// assert_eq!(users.resource(), Resource::Accounts);
/// assert!(users.check_names().is_ok());
/// assert!(users.matches(&Cached("users:1"))? && !users.matches(&Cached("shops:1"))?);
/// // A cached account has no metadata and no balances, so conditions on them select nothing.
/// let cached = Cached("users:1");
/// assert_eq!((cached.metadata_value("kind")?, cached.feature("HASH_LOGS")?), (None, None));
/// assert!(cached.any_address(AddressRole::Own, &|address| address.ends_with(":1"))?);
/// assert_eq!((cached.any_balance(&|_| true)?, cached.any_posting(&|_, _| true)?), (None, false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FilterSubject {
    /// Error of a read, or [`std::convert::Infallible`] for objects in memory.
    type Error;

    /// Tells whether any address in this role passes.
    ///
    /// # Errors
    ///
    /// If a read fails.
    fn any_address(&self, role: AddressRole, test: &dyn Fn(&str) -> bool) -> Result<bool, Self::Error> {
        let _ = (role, test);
        Ok(false)
    }

    /// Tells whether the source and destination of any posting pass.
    ///
    /// # Errors
    ///
    /// If a read fails.
    fn any_posting(&self, test: &dyn Fn(&str, &str) -> bool) -> Result<bool, Self::Error> {
        let _ = test;
        Ok(false)
    }

    /// Returns the metadata of a key as text. See [`crate::MetadataValue::as_shown`].
    ///
    /// # Errors
    ///
    /// If a read fails.
    fn metadata(&self, key: &str) -> Result<Option<Cow<'_, str>>, Self::Error> {
        let _ = key;
        Ok(None)
    }

    /// Returns the stored metadata of a key.
    ///
    /// # Errors
    ///
    /// If a read fails.
    fn metadata_value(&self, key: &str) -> Result<Option<Cow<'_, MetadataValue>>, Self::Error> {
        let _ = key;
        Ok(None)
    }

    /// Returns the balance of an asset. Returns `None` if the asset was never held, or if this is a row of
    /// another asset. The text may not be a valid asset.
    ///
    /// # Errors
    ///
    /// If a read fails.
    fn balance(&self, asset: &str) -> Result<Option<Balance>, Self::Error> {
        let _ = asset;
        Ok(None)
    }

    /// Tells whether any balance passes, or returns `None` if there is none.
    ///
    /// # Errors
    ///
    /// If a read fails.
    fn any_balance(&self, test: &dyn Fn(&Balance) -> bool) -> Result<Option<bool>, Self::Error> {
        let _ = test;
        Ok(None)
    }

    /// Returns the value of a text property.
    ///
    /// # Errors
    ///
    /// If a read fails.
    fn text(&self, field: TextField) -> Result<Option<Cow<'_, str>>, Self::Error> {
        let _ = field;
        Ok(None)
    }

    /// Returns the value of a date property.
    ///
    /// # Errors
    ///
    /// If a read fails.
    fn date(&self, field: DateField) -> Result<Option<Timestamp>, Self::Error> {
        let _ = field;
        Ok(None)
    }

    /// Returns the number of a transaction or log entry.
    ///
    /// # Errors
    ///
    /// If a read fails.
    fn id(&self) -> Result<Option<u64>, Self::Error> {
        Ok(None)
    }

    /// Tells whether a transaction is reverted.
    ///
    /// # Errors
    ///
    /// If a read fails.
    fn reverted(&self) -> Result<Option<bool>, Self::Error> {
        Ok(None)
    }

    /// Returns the value of a feature of a ledger by its name on the wire.
    ///
    /// # Errors
    ///
    /// If a read fails.
    fn feature(&self, name: &str) -> Result<Option<Cow<'_, str>>, Self::Error> {
        let _ = name;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::condition::Field;
    use crate::condition::{FilterValue, Operator};

    /// The account `users:1` with metadata `tier=gold` and 100 USD, or its row of volumes.
    struct User;

    impl FilterSubject for User {
        type Error = Infallible;

        fn any_address(&self, role: AddressRole, test: &dyn Fn(&str) -> bool) -> Result<bool, Infallible> {
            Ok(role == AddressRole::Own && test("users:1"))
        }

        fn metadata(&self, key: &str) -> Result<Option<Cow<'_, str>>, Infallible> {
            Ok((key == "tier").then_some(Cow::Borrowed("gold")))
        }

        fn balance(&self, asset: &str) -> Result<Option<Balance>, Infallible> {
            Ok((asset == "USD").then(|| Balance::from(100)))
        }

        fn any_balance(&self, test: &dyn Fn(&Balance) -> bool) -> Result<Option<bool>, Infallible> {
            Ok(Some(test(&Balance::from(100))))
        }
    }

    fn is(resource: Resource, operator: Operator, key: &str, value: FilterValue) -> FilterNode {
        let field = Field::parse(resource, key).unwrap();
        FilterNode::Is(Condition::new(&field, operator, value).unwrap())
    }

    fn not(node: FilterNode) -> FilterNode {
        FilterNode::Not(Box::new(node))
    }

    #[track_caller]
    fn check(resource: Resource, node: FilterNode, selected: bool) {
        let filter = Filter::new(resource, node).unwrap();
        assert_eq!(filter.matches(&User), Ok(selected), "{filter:?}");
    }

    fn balance(resource: Resource, operator: Operator, key: &str, value: i64) -> FilterNode {
        is(resource, operator, key, FilterValue::Integer(Balance::from(value)))
    }

    #[test]
    fn absent_balance_is_unknown() {
        use Resource::{Accounts, Volumes};
        for (asset, value, direct, negated) in
            [("USD", 101, true, false), ("USD", 100, false, true), ("EUR", 101, false, false)]
        {
            let key = format!("balance[{asset}]");
            check(Accounts, balance(Accounts, Operator::Lt, &key, value), direct);
            check(Accounts, not(balance(Accounts, Operator::Lt, &key, value)), negated);
        }
        check(Volumes, not(balance(Volumes, Operator::Lt, "balance[EUR]", 1)), true);
        check(Accounts, balance(Accounts, Operator::Gte, "balance", 100), true);
    }

    #[test]
    fn absent_metadata_key_is_false() {
        use Resource::Accounts;
        let tier = |key, value: &str| is(Accounts, Operator::Match, key, FilterValue::Text(value.into()));
        check(Accounts, tier("metadata[tier]", "gold"), true);
        check(Accounts, not(tier("metadata[tier]", "gold")), false);
        check(Accounts, tier("metadata[none]", "gold"), false);
        check(Accounts, not(tier("metadata[none]", "gold")), true);
        check(Accounts, tier("metadata", "tier"), true);
    }

    #[test]
    fn absent_date_is_unknown() {
        use Resource::Transactions;
        let at = || {
            let value = FilterValue::Text("2024-01-01T00:00:00Z".into());
            is(Transactions, Operator::Gt, "reverted_at", value)
        };
        check(Transactions, at(), false);
        check(Transactions, not(at()), false);
    }

    #[test]
    fn decisive_child_overrides_unknown_ones() {
        use Resource::Accounts;
        let unknown = || balance(Accounts, Operator::Lt, "balance[EUR]", 1);
        let yes = || balance(Accounts, Operator::Gt, "balance[USD]", 1);
        let no = || balance(Accounts, Operator::Lt, "balance[USD]", 1);
        check(Accounts, FilterNode::Or(vec![unknown(), yes()]), true);
        check(Accounts, FilterNode::And(vec![unknown(), yes()]), false);
        check(Accounts, not(FilterNode::And(vec![unknown(), yes()])), false);
        check(Accounts, not(FilterNode::And(vec![unknown(), no()])), true);
        check(Accounts, not(FilterNode::Or(vec![unknown(), no()])), false);
    }

    #[test]
    fn empty_lists_are_true() {
        check(Resource::Accounts, FilterNode::And(vec![]), true);
        check(Resource::Accounts, FilterNode::Or(vec![]), true);
        check(Resource::Accounts, not(FilterNode::Or(vec![])), false);
        assert!(Filter::all(Resource::Logs).is_all());
    }

    #[test]
    fn refuses_trees_that_are_too_large() {
        let leaf = || FilterNode::And(vec![]);
        let wide = |leaves| FilterNode::And((0..leaves).map(|_| leaf()).collect());
        assert!(Filter::new(Resource::Accounts, wide(FILTER_NODES_MAX - 1)).is_ok());
        assert_eq!(Filter::new(Resource::Accounts, wide(FILTER_NODES_MAX)), Err(FilterError::TooManyNodes));
        let deep = |levels| (1..levels).fold(leaf(), |node, _| not(node));
        assert!(Filter::new(Resource::Accounts, deep(FILTER_DEPTH_MAX)).is_ok());
        assert_eq!(Filter::new(Resource::Accounts, deep(FILTER_DEPTH_MAX + 1)), Err(FilterError::TooDeep));
    }
}
