//! Random filters for questions about a ledger.

use ledger_core::{
    Balance, Condition, Field, FilterNode, FilterOf, FilterValue, Operator, Resource, Selects,
};

use super::round::Round;
use crate::Dice;
use crate::filters::{COMPARISONS, number, on_address, on_balance, on_metadata, text, texts};

impl Round<'_, '_> {
    fn leaf(&mut self, resource: Resource) -> (String, Operator, FilterValue) {
        let date = self.date().to_string();
        let (addresses, ids) = (self.addresses, self.model.log(self.ledger).len() as u64 + 3);
        let dice = &mut *self.dice;
        let on_date = |dice: &mut Dice<'_>, all: &[&str]| {
            (dice.pick(all).to_owned(), dice.pick(&COMPARISONS), FilterValue::Text(date.as_str().into()))
        };
        match (resource, dice.below(8)) {
            (Resource::Accounts | Resource::Volumes, 0..3) | (Resource::AggregatedBalances, 0..5) => {
                on_address(dice, addresses, "address")
            }
            (Resource::Accounts, 3) => on_date(dice, &["first_usage", "insertion_date", "updated_at"]),
            (Resource::Accounts, 4 | 6) | (Resource::Volumes, 4) => on_balance(dice),
            (Resource::Accounts, 5) => {
                ("balance".to_owned(), dice.pick(&COMPARISONS), FilterValue::Integer(Balance::from(0)))
            }
            (Resource::Volumes, 3) => on_date(dice, &["first_usage"]),
            (Resource::Transactions, 0..3) => {
                let key = dice.pick(&["account", "source", "destination"]);
                on_address(dice, addresses, key)
            }
            (Resource::Transactions, 3) => {
                on_date(dice, &["timestamp", "inserted_at", "updated_at", "reverted_at", "timestamp"])
            }
            (Resource::Transactions, 4) => match dice.below(3) {
                0 => ("reverted".to_owned(), Operator::Match, FilterValue::Boolean(dice.one_in(2))),
                _ => ("id".to_owned(), dice.pick(&COMPARISONS), number(dice, ids)),
            },
            (Resource::Transactions, 5) => match dice.below(3) {
                0 => ("reference".to_owned(), Operator::Like, text("ref-1%")),
                1 => {
                    ("reference".to_owned(), Operator::In, texts(dice, &["ref-1", "ref-7", "ref-30", "none"]))
                }
                _ => ("reference".to_owned(), Operator::Match, text(&format!("ref-{}", dice.below(60)))),
            },
            (Resource::Logs, 0..3) => on_date(dice, &["date"]),
            (Resource::Logs, 3..5) => ("id".to_owned(), dice.pick(&COMPARISONS), number(dice, ids)),
            (Resource::Logs, _) => {
                let types = [
                    "NEW_TRANSACTION",
                    "REVERTED_TRANSACTION",
                    "SET_METADATA",
                    "DELETE_METADATA",
                    "INSERTED_SCHEMA",
                ];
                ("type".to_owned(), Operator::Match, text(dice.pick(&types)))
            }
            _ => on_metadata(dice),
        }
    }

    fn node(&mut self, resource: Resource, depth: usize) -> FilterNode {
        let several =
            |round: &mut Self| (0..round.dice.below(4)).map(|_| round.node(resource, depth - 1)).collect();
        match self.dice.below(10) {
            0..3 if depth > 0 => FilterNode::And(several(self)),
            3..5 if depth > 0 => FilterNode::Or(several(self)),
            5 if depth > 0 => FilterNode::Not(Box::new(self.node(resource, depth - 1))),
            _ => {
                let (key, operator, value) = self.leaf(resource);
                let field = Field::parse(resource, &key).expect("a field");
                FilterNode::Is(Condition::new(&field, operator, value).expect("a condition"))
            }
        }
    }

    /// Returns a random filter. One in six has no conditions.
    pub(super) fn filter<R: Selects>(&mut self) -> FilterOf<R> {
        if self.dice.one_in(6) {
            return FilterOf::all();
        }
        let root = self.node(R::RESOURCE, 3);
        FilterOf::new(root).expect("a small filter")
    }
}
