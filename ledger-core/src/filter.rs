//! Filters: trees of conditions that select accounts, transactions, logs and the like.
//!
//! Evaluation is three-valued, as in the databases of this API: a condition on something that is not there
//! is neither true nor false, and a subject is selected only if the whole is true. So an account that never
//! held an asset is selected neither by a condition on its balance nor by the negation. Metadata is the
//! exception: a condition on an absent key is false, and its negation true.

use std::borrow::Cow;

use crate::amount::{Amount, Balance};
use crate::condition::{AddressRole, Condition, DateField, FilterError, TextField};
use crate::field::Resource;
use crate::json_path::is_text_at;
use crate::limits::{FILTER_DEPTH_MAX, FILTER_NODES_MAX};
use crate::metadata::MetadataValue;
use crate::timestamp::Timestamp;

/// A node of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterNode {
    /// Every child is true; without children always true.
    And(Vec<FilterNode>),
    /// Some child is true; without children always true.
    Or(Vec<FilterNode>),
    /// The child is false.
    Not(Box<FilterNode>),
    /// The condition is true.
    Is(Condition),
}

/// A filter for one kind of resource, within the limits of its size.
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
    /// Checks the size of a tree whose conditions are all about `resource`.
    ///
    /// # Errors
    ///
    /// [`FilterError::TooManyNodes`], [`FilterError::TooDeep`].
    pub fn new(resource: Resource, root: FilterNode) -> Result<Self, FilterError> {
        let mut nodes = 0;
        measure(&root, 1, &mut nodes)?;
        Ok(Self { resource, root })
    }

    /// The filter that selects everything.
    pub const fn all(resource: Resource) -> Self {
        Self { resource, root: FilterNode::And(Vec::new()) }
    }

    /// What it selects from.
    pub const fn resource(&self) -> Resource {
        self.resource
    }

    /// The tree, for a reader that plans by it.
    pub const fn root(&self) -> &FilterNode {
        &self.root
    }

    /// Whether the filter asks nothing.
    pub const fn is_all(&self) -> bool {
        matches!(&self.root, FilterNode::And(children) | FilterNode::Or(children) if children.is_empty())
    }

    /// Whether some condition is about a balance.
    pub fn asks_for_balances(&self) -> bool {
        asks_for_balances(&self.root)
    }

    /// Whether the filter selects `subject`.
    ///
    /// # Errors
    ///
    /// The first error of the subject; what is not needed for the answer is not asked.
    pub fn matches<S: FilterSubject + ?Sized>(&self, subject: &S) -> Result<bool, S::Error> {
        Ok(self.evaluate(&self.root, subject)? == Some(true))
    }

    /// True, false, or `None` where it cannot be said.
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

    /// Joins children: one that is `decisive` decides, else one that cannot be said leaves it open.
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
                    // A row is of one asset: of another one it can be said that it is not that.
                    None if self.resource == Resource::Volumes => Some(false),
                    truth => truth,
                }
            }
            Condition::Balance { asset: None, comparison, value } => {
                subject.any_balance(&|have| comparison.holds(have, value))?
            }
            Condition::BalanceExists { asset } => Some(subject.balance(asset)?.is_some()),
            Condition::Feature { name, test } => {
                Some(subject.feature(name)?.is_some_and(|have| test.passes(&have)))
            }
            Condition::FeatureExists { name } => Some(subject.feature(name)?.is_some()),
        })
    }
}

/// Whether metadata has a text at a path, see [`Condition::MetadataPath`].
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

fn asks_for_balances(node: &FilterNode) -> bool {
    match node {
        FilterNode::And(children) | FilterNode::Or(children) => children.iter().any(asks_for_balances),
        FilterNode::Not(child) => asks_for_balances(child),
        FilterNode::Is(condition) => {
            matches!(condition, Condition::Balance { .. } | Condition::BalanceExists { .. })
        }
    }
}

/// Counts nodes; stops at the first that is too many or too deep.
fn measure(node: &FilterNode, depth: usize, nodes: &mut usize) -> Result<(), FilterError> {
    *nodes += 1;
    if *nodes > FILTER_NODES_MAX {
        return Err(FilterError::TooManyNodes);
    }
    if depth > FILTER_DEPTH_MAX {
        return Err(FilterError::TooDeep);
    }
    match node {
        FilterNode::And(children) | FilterNode::Or(children) => {
            children.iter().try_for_each(|child| measure(child, depth + 1, nodes))
        }
        FilterNode::Not(child) => measure(child, depth + 1, nodes),
        FilterNode::Is(_) => Ok(()),
    }
}

/// Something that a filter can be asked about.
///
/// Each method has an answer for subjects that lack the property: nothing there. A kind of subject
/// overrides those that it has. They may read storage, and fail by it.
pub trait FilterSubject {
    /// What reading can fail with; [`std::convert::Infallible`] for what is in memory.
    type Error;

    /// Whether some address in this role passes.
    ///
    /// # Errors
    ///
    /// If reading fails; so with every method below.
    fn any_address(&self, role: AddressRole, test: &dyn Fn(&str) -> bool) -> Result<bool, Self::Error> {
        let _ = (role, test);
        Ok(false)
    }

    /// Whether the source and the destination of some posting pass.
    ///
    /// # Errors
    ///
    /// If reading fails.
    fn any_posting(&self, test: &dyn Fn(&str, &str) -> bool) -> Result<bool, Self::Error> {
        let _ = test;
        Ok(false)
    }

    /// The metadata of a key, as text: see [`crate::MetadataValue::as_shown`].
    ///
    /// # Errors
    ///
    /// If reading fails.
    fn metadata(&self, key: &str) -> Result<Option<Cow<'_, str>>, Self::Error> {
        let _ = key;
        Ok(None)
    }

    /// The metadata of a key, as it is stored.
    ///
    /// # Errors
    ///
    /// If reading fails.
    fn metadata_value(&self, key: &str) -> Result<Option<Cow<'_, MetadataValue>>, Self::Error> {
        let _ = key;
        Ok(None)
    }

    /// The balance of an asset; `None` if it was never held, or if this is a row of another asset. The text
    /// may be no asset at all.
    ///
    /// # Errors
    ///
    /// If reading fails.
    fn balance(&self, asset: &str) -> Result<Option<Balance>, Self::Error> {
        let _ = asset;
        Ok(None)
    }

    /// Whether some balance passes; `None` if there is none.
    ///
    /// # Errors
    ///
    /// If reading fails.
    fn any_balance(&self, test: &dyn Fn(&Balance) -> bool) -> Result<Option<bool>, Self::Error> {
        let _ = test;
        Ok(None)
    }

    /// A text.
    ///
    /// # Errors
    ///
    /// If reading fails.
    fn text(&self, field: TextField) -> Result<Option<Cow<'_, str>>, Self::Error> {
        let _ = field;
        Ok(None)
    }

    /// A date.
    ///
    /// # Errors
    ///
    /// If reading fails.
    fn date(&self, field: DateField) -> Result<Option<Timestamp>, Self::Error> {
        let _ = field;
        Ok(None)
    }

    /// The number of a transaction or log entry.
    ///
    /// # Errors
    ///
    /// If reading fails.
    fn id(&self) -> Result<Option<u64>, Self::Error> {
        Ok(None)
    }

    /// Whether a transaction is reverted.
    ///
    /// # Errors
    ///
    /// If reading fails.
    fn reverted(&self) -> Result<Option<bool>, Self::Error> {
        Ok(None)
    }

    /// The value of a feature of a ledger, by its name on the wire.
    ///
    /// # Errors
    ///
    /// If reading fails.
    fn feature(&self, name: &str) -> Result<Option<Cow<'_, str>>, Self::Error> {
        let _ = name;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::condition::{FilterValue, Operator};
    use crate::field::Field;

    /// An account `users:1` with metadata `tier=gold` and 100 USD, or a row of volumes of it.
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
    fn an_absent_balance_is_selected_neither_way() {
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
    fn an_absent_metadata_key_is_plainly_false() {
        use Resource::Accounts;
        let tier = |key, value: &str| is(Accounts, Operator::Match, key, FilterValue::Text(value.into()));
        check(Accounts, tier("metadata[tier]", "gold"), true);
        check(Accounts, not(tier("metadata[tier]", "gold")), false);
        check(Accounts, tier("metadata[none]", "gold"), false);
        check(Accounts, not(tier("metadata[none]", "gold")), true);
        check(Accounts, tier("metadata", "tier"), true);
    }

    #[test]
    fn an_absent_date_is_selected_neither_way() {
        use Resource::Transactions;
        let at = || {
            let value = FilterValue::Text("2024-01-01T00:00:00Z".into());
            is(Transactions, Operator::Gt, "reverted_at", value)
        };
        check(Transactions, at(), false);
        check(Transactions, not(at()), false);
    }

    #[test]
    fn what_cannot_be_said_yields_to_what_decides() {
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
    fn a_tree_that_is_too_large_is_refused() {
        let leaf = || FilterNode::And(vec![]);
        let wide = |leaves| FilterNode::And((0..leaves).map(|_| leaf()).collect());
        assert!(Filter::new(Resource::Accounts, wide(FILTER_NODES_MAX - 1)).is_ok());
        assert_eq!(Filter::new(Resource::Accounts, wide(FILTER_NODES_MAX)), Err(FilterError::TooManyNodes));
        let deep = |levels| (1..levels).fold(leaf(), |node, _| not(node));
        assert!(Filter::new(Resource::Accounts, deep(FILTER_DEPTH_MAX)).is_ok());
        assert_eq!(Filter::new(Resource::Accounts, deep(FILTER_DEPTH_MAX + 1)), Err(FilterError::TooDeep));
    }
}
