//! Filters whose type determines the resource that they select.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use crate::condition::{Condition, Field, FilterError, FilterValue, Operator};
use crate::filter::{Filter, FilterNode};
use crate::limits::FILTER_DEPTH_MAX;
use crate::property::{Property, Resource};

mod sealed {
    pub trait Sealed {}
}

/// A kind of resource as a type, for [`FilterOf`].
///
/// ```
/// use ledger_core::{FilterOf, Resource, Selects, VolumeRows};
/// fn resource_of<R: Selects>(_: &FilterOf<R>) -> Resource {
///     <R as Selects>::RESOURCE
/// }
/// assert_eq!(resource_of(&FilterOf::<VolumeRows>::all()), Resource::Volumes);
/// ```
pub trait Selects: sealed::Sealed {
    /// The same kind as a value.
    const RESOURCE: Resource;
}

macro_rules! resource {
    ($(#[$doc:meta] $name:ident = $resource:ident),+ $(,)?) => {$(
        #[$doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {}

        impl sealed::Sealed for $name {}

        impl Selects for $name {
            const RESOURCE: Resource = Resource::$resource;
        }
    )+};
}

resource!(
    /// Marks filters of [`Resource::Accounts`].
    Accounts = Accounts,
    /// Marks filters of [`Resource::Transactions`].
    Transactions = Transactions,
    /// Marks filters of [`Resource::Volumes`].
    VolumeRows = Volumes,
    /// Marks filters of [`Resource::AggregatedBalances`].
    AggregatedBalances = AggregatedBalances,
    /// Marks filters of [`Resource::Logs`].
    Logs = Logs,
    /// Marks filters of [`Resource::Ledgers`].
    Ledgers = Ledgers,
    /// Marks filters of [`Resource::Schemas`].
    Schemas = Schemas,
);

/// A [`Filter`] of the resource `R`. A list takes only filters of the resource that it lists:
///
/// ```
/// use ledger_core::{Accounts, FilterOf, Operator};
/// let rich: FilterOf<Accounts> = FilterOf::field("balance[USD/2]", Operator::Gt, 1_000)?;
/// let users = FilterOf::field("address", Operator::Match, "users:")?;
/// let both: FilterOf<Accounts> = rich.and(users)?;
/// assert_eq!(both, FilterOf::parse(
///     r#"{"$and": [{"$gt": {"balance[USD/2]": 1000}}, {"$match": {"address": "users:"}}]}"#,
/// )?);
/// # Ok::<(), ledger_core::FilterError>(())
/// ```
///
/// ```compile_fail
/// use ledger_core::{Accounts, FilterOf, Transactions};
/// let accounts: FilterOf<Accounts> = FilterOf::all();
/// let transactions: FilterOf<Transactions> = accounts;
/// ```
pub struct FilterOf<R> {
    filter: Filter,
    selects: PhantomData<fn() -> R>,
}

impl<R: Selects> FilterOf<R> {
    /// Makes the filter that selects everything.
    pub const fn all() -> Self {
        Self { filter: Filter::all(R::RESOURCE), selects: PhantomData }
    }

    /// Makes a filter of a tree.
    ///
    /// # Errors
    ///
    /// The errors of [`Filter::new`], and [`FilterError::UnknownField`] for a condition on a property that the
    /// resource does not have.
    pub fn new(root: FilterNode) -> Result<Self, FilterError> {
        check(R::RESOURCE, &root, 0)?;
        Ok(Self { filter: Filter::new(R::RESOURCE, root)?, selects: PhantomData })
    }

    /// Makes a filter of one condition. `field` is a property such as `address`, or one with a key such as
    /// `metadata[kind]`.
    ///
    /// ```
    /// use ledger_core::{Accounts, FilterOf, Operator};
    /// let users = FilterOf::<Accounts>::field("address", Operator::Match, "users:")?;
    /// let shops = FilterOf::<Accounts>::field("address", Operator::Match, "shops:")?;
    /// let closed = FilterOf::<Accounts>::field("metadata[state]", Operator::Match, "closed")?;
    /// let open = users.or(shops)?.and(closed.negated()?)?;
    /// assert!(!open.is_all() && !open.asks_for_balances());
    /// let json = r#"{"$and": [{"$or": [{"$match": {"address": "users:"}}, {"$match": {"address": "shops:"}}]},
    ///     {"$not": {"$match": {"metadata[state]": "closed"}}}]}"#;
    /// assert_eq!(FilterOf::<Accounts>::parse(json)?.root(), open.into_filter().root());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FilterError`] if the resource has no such property, or operator or value do not fit it.
    pub fn field(
        field: &str,
        operator: Operator,
        value: impl Into<FilterValue>,
    ) -> Result<Self, FilterError> {
        let field = Field::parse(R::RESOURCE, field)?;
        Self::new(FilterNode::Is(Condition::new(&field, operator, value.into())?))
    }

    /// Parses the JSON text of a filter, in the form of API v2. An empty text, `null` and `{}` select everything.
    ///
    /// ```
    /// use ledger_core::{FilterOf, Transactions};
    /// let filter = FilterOf::<Transactions>::parse(r#"{"$match": {"metadata[kind]": "topup"}}"#)?;
    /// let error = FilterOf::<Transactions>::parse(r#"{"$match": {"colour": "red"}}"#).unwrap_err();
    /// assert_eq!(error.to_string(), "unknown key 'colour' when building query");
    /// # Ok::<(), ledger_core::FilterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FilterError`] with the defect of the text.
    pub fn parse(json: &str) -> Result<Self, FilterError> {
        let filter = Filter::parse(R::RESOURCE, json, Condition::new)?;
        Ok(Self { filter, selects: PhantomData })
    }

    /// Returns a filter that selects the subjects that both filters select.
    ///
    /// # Errors
    ///
    /// [`FilterError::TooManyNodes`] or [`FilterError::TooDeep`].
    pub fn and(self, other: Self) -> Result<Self, FilterError> {
        if self.is_all() {
            return Ok(other);
        }
        match self.filter.into_root() {
            FilterNode::And(mut nodes) => {
                nodes.push(other.filter.into_root());
                Self::new(FilterNode::And(nodes))
            }
            node => Self::new(FilterNode::And(vec![node, other.filter.into_root()])),
        }
    }

    /// Returns a filter that selects the subjects that at least one of the filters selects.
    ///
    /// # Errors
    ///
    /// As [`FilterOf::and`].
    pub fn or(self, other: Self) -> Result<Self, FilterError> {
        Self::new(FilterNode::Or(vec![self.filter.into_root(), other.filter.into_root()]))
    }

    /// Returns a filter that selects the subjects for which this filter is false. A condition on an absent property is
    /// neither true nor false.
    ///
    /// # Errors
    ///
    /// As [`FilterOf::and`].
    pub fn negated(self) -> Result<Self, FilterError> {
        Self::new(FilterNode::Not(Box::new(self.filter.into_root())))
    }

    /// Returns the filter without the type parameter.
    pub fn into_filter(self) -> Filter {
        self.filter
    }
}

/// Checks that all conditions are about the resource. Ignores deeply nested nodes, because [`Filter::new`] refuses
/// them.
fn check(resource: Resource, node: &FilterNode, depth: usize) -> Result<(), FilterError> {
    match node {
        _ if depth > FILTER_DEPTH_MAX => Err(FilterError::TooDeep),
        FilterNode::And(children) | FilterNode::Or(children) => {
            children.iter().try_for_each(|child| check(resource, child, depth + 1))
        }
        FilterNode::Not(child) => check(resource, child, depth + 1),
        FilterNode::Is(condition) => {
            let name = condition.property().name();
            match Property::of(resource, name) {
                Some(_) => Ok(()),
                None => Err(FilterError::UnknownField { name: name.to_owned() }),
            }
        }
    }
}

/// Checks that the filter is of this resource.
impl<R: Selects> TryFrom<Filter> for FilterOf<R> {
    type Error = FilterError;

    fn try_from(filter: Filter) -> Result<Self, FilterError> {
        if filter.resource() == R::RESOURCE {
            return Ok(Self { filter, selects: PhantomData });
        }
        Err(FilterError::OtherResource { expected: R::RESOURCE, found: filter.resource() })
    }
}

impl<R> Deref for FilterOf<R> {
    type Target = Filter;

    fn deref(&self) -> &Filter {
        &self.filter
    }
}

impl<R> Clone for FilterOf<R> {
    fn clone(&self) -> Self {
        Self { filter: self.filter.clone(), selects: PhantomData }
    }
}

impl<R> PartialEq for FilterOf<R> {
    fn eq(&self, other: &Self) -> bool {
        self.filter == other.filter
    }
}

impl<R> Eq for FilterOf<R> {}

impl<R: Selects> Default for FilterOf<R> {
    fn default() -> Self {
        Self::all()
    }
}

impl<R> fmt::Debug for FilterOf<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_filter_of_another_resource() {
        let accounts = Filter::all(Resource::Accounts);
        assert!(FilterOf::<Accounts>::try_from(accounts.clone()).is_ok());
        let error =
            FilterError::OtherResource { expected: Resource::Transactions, found: Resource::Accounts };
        assert_eq!(FilterOf::<Transactions>::try_from(accounts), Err(error));
    }

    #[test]
    fn joins_filters() {
        let of = |text: &str| FilterOf::<Accounts>::parse(text).expect(text);
        let (a, b) = (of(r#"{"$match":{"address":"a"}}"#), of(r#"{"$match":{"address":"b"}}"#));
        let text = r#"{"$and":[{"$match":{"address":"a"}},{"$match":{"address":"b"}}]}"#;
        assert_eq!(a.clone().and(b.clone()), Ok(of(text)));
        let three = of(text).and(a.clone()).expect("three conditions");
        assert!(matches!(three.root(), FilterNode::And(nodes) if nodes.len() == 3), "{three:?}");
        assert_eq!(FilterOf::all().and(a.clone()), Ok(a.clone()));
        assert_eq!(a.clone().or(b).expect("two"), of(&text.replace("$and", "$or")));
        assert_eq!(a.negated(), Ok(of(r#"{"$not":{"$match":{"address":"a"}}}"#)));
    }

    #[test]
    fn refuses_condition_of_another_resource() {
        let field = Field::parse(Resource::Transactions, "reverted").expect("a property");
        let node = Condition::new(&field, Operator::Match, FilterValue::Boolean(true)).map(FilterNode::Is);
        let node = node.expect("a condition");
        assert!(FilterOf::<Transactions>::new(node.clone()).is_ok());
        let error = FilterError::UnknownField { name: "reverted".to_owned() };
        assert_eq!(FilterOf::<Accounts>::new(FilterNode::Not(Box::new(node))), Err(error));
    }
}
