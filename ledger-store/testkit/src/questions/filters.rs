//! Random filters for questions about a ledger.

use ledger_core::{
    Balance, Condition, Field, FilterNode, FilterOf, FilterValue, Operator, Resource, Selects,
};

use super::round::Round;
use crate::Rng;
use crate::filters::{COMPARISONS, number, on_address, on_balance, on_metadata, on_reference, text};

impl Round<'_, '_> {
    fn leaf(&mut self, resource: Resource) -> (String, Operator, FilterValue) {
        let date = self.date().to_string();
        let (addresses, ids) = (self.addresses, self.model.log(self.ledger).len() as u64 + 3);
        let rng = &mut *self.rng;
        let on_date = |rng: &mut Rng<'_>, all: &[&str]| {
            (rng.pick(all).to_owned(), rng.pick(&COMPARISONS), FilterValue::Text(date.as_str().into()))
        };
        match (resource, rng.below(8)) {
            (Resource::Accounts | Resource::Volumes, 0..3) | (Resource::AggregatedBalances, 0..5) => {
                on_address(rng, addresses, "address")
            }
            (Resource::Accounts, 3) => on_date(rng, &["first_usage", "insertion_date", "updated_at"]),
            (Resource::Accounts, 4 | 6) | (Resource::Volumes, 4) => on_balance(rng),
            (Resource::Accounts, 5) => {
                ("balance".to_owned(), rng.pick(&COMPARISONS), FilterValue::Integer(Balance::from(0)))
            }
            (Resource::Volumes, 3) => on_date(rng, &["first_usage"]),
            (Resource::Transactions, 0..3) => {
                let key = rng.pick(&["account", "source", "destination"]);
                on_address(rng, addresses, key)
            }
            (Resource::Transactions, 3) => {
                on_date(rng, &["timestamp", "inserted_at", "updated_at", "reverted_at", "timestamp"])
            }
            (Resource::Transactions, 4) => match rng.below(3) {
                0 => ("reverted".to_owned(), Operator::Match, FilterValue::Boolean(rng.one_in(2))),
                _ => ("id".to_owned(), rng.pick(&COMPARISONS), number(rng, ids)),
            },
            (Resource::Transactions, 5) => on_reference(rng),
            (Resource::Logs, 0..3) => on_date(rng, &["date"]),
            (Resource::Logs, 3..5) => ("id".to_owned(), rng.pick(&COMPARISONS), number(rng, ids)),
            (Resource::Logs, _) => {
                let types = [
                    "NEW_TRANSACTION",
                    "REVERTED_TRANSACTION",
                    "SET_METADATA",
                    "DELETE_METADATA",
                    "INSERTED_SCHEMA",
                ];
                ("type".to_owned(), Operator::Match, text(rng.pick(&types)))
            }
            _ => on_metadata(rng),
        }
    }

    fn node(&mut self, resource: Resource, depth: usize) -> FilterNode {
        let several =
            |round: &mut Self| (0..round.rng.below(4)).map(|_| round.node(resource, depth - 1)).collect();
        match self.rng.below(10) {
            0..3 if depth > 0 => FilterNode::And(several(self)),
            3..5 if depth > 0 => FilterNode::Or(several(self)),
            5 if depth > 0 => FilterNode::Not(Box::new(self.node(resource, depth - 1))),
            _ => {
                let (key, operator, value) = self.leaf(resource);
                let field = Field::parse(resource, &key).expect("the leaf names a property of the resource");
                FilterNode::Is(
                    Condition::new(&field, operator, value)
                        .expect("operator and value of the leaf fit the property"),
                )
            }
        }
    }

    /// Returns a random filter. One in six has no conditions.
    pub(super) fn filter<R: Selects>(&mut self) -> FilterOf<R> {
        if self.rng.one_in(6) {
            return FilterOf::all();
        }
        let root = self.node(R::RESOURCE, 3);
        FilterOf::new(root).expect("a tree of depth 3 is within the limits")
    }
}
