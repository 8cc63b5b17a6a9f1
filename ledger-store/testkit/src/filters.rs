//! Random filters.

use ledger_core::{
    Balance, Condition, Field, FilterNode, FilterOf, FilterValue, Ledgers, Operator, Resource, Selects,
};

use crate::Dice;
use crate::cast::{ADDRESSES, ASSETS, BUCKETS, KEYS, VALUES};
use crate::questions::Round;

const PATTERNS: [&str; 14] = [
    "users:",
    "users::main",
    ":main",
    "",
    "users:...",
    "...",
    "users:1:...",
    "::...",
    "users:9",
    "no such:",
    "bank",
    "users",
    ":1:...",
    "world",
];
const COMPARISONS: [Operator; 5] =
    [Operator::Match, Operator::Lt, Operator::Lte, Operator::Gt, Operator::Gte];

fn text(text: &str) -> FilterValue {
    FilterValue::Text(text.into())
}

fn texts(dice: &mut Dice<'_>, all: &[&str]) -> FilterValue {
    FilterValue::Texts((0..dice.below(4)).map(|_| dice.pick(all).into()).collect())
}

fn on_address(dice: &mut Dice<'_>, there: &[String], key: &str) -> (String, Operator, FilterValue) {
    let (operator, value) = match dice.below(5) {
        0 => (Operator::In, texts(dice, &ADDRESSES)),
        1 => (Operator::Match, text(dice.pick(&ADDRESSES))),
        2 if !there.is_empty() => (Operator::Match, text(&dice.pick(there))),
        _ => (Operator::Match, text(dice.pick(&PATTERNS))),
    };
    (key.to_owned(), operator, value)
}

fn on_metadata(dice: &mut Dice<'_>) -> (String, Operator, FilterValue) {
    let key = dice.pick(&KEYS);
    let of_key = format!("metadata[{key}]");
    match dice.below(6) {
        0 => ("metadata".to_owned(), Operator::Exists, text(key)),
        1 => (of_key, Operator::Like, text(dice.pick(&["%o%", "a", "_", "%"]))),
        2 => (of_key, Operator::In, texts(dice, &VALUES)),
        _ => (of_key, Operator::Match, text(dice.pick(&["a", "b", "", "true", "none"]))),
    }
}

fn number(dice: &mut Dice<'_>, below: u64) -> FilterValue {
    let number = match dice.below(12) {
        0 => Balance::from(-1),
        1 => Balance::parse("99999999999999999999999").expect("digits"),
        _ => Balance::from(dice.below(below) as i64),
    };
    FilterValue::Integer(number)
}

fn on_balance(dice: &mut Dice<'_>) -> (String, Operator, FilterValue) {
    let key = format!("balance[{}]", dice.pick(&ASSETS));
    (key, dice.pick(&COMPARISONS), FilterValue::Integer(Balance::from(dice.below(300) as i64 - 150)))
}

fn on_ledger(dice: &mut Dice<'_>) -> FilterNode {
    let feature = [
        ("HASH_LOGS", ["SYNC", "ASYNC", "DISABLED"]),
        ("MOVES_HISTORY", ["ON", "OFF", "SYNC"]),
        ("MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES", ["SYNC", "DISABLED", "OFF"]),
        ("ACCOUNT_METADATA_HISTORY", ["SYNC", "DISABLED", "ON"]),
        ("TRANSACTION_METADATA_HISTORY", ["SYNC", "DISABLED", "ON"]),
        ("INDEX_ADDRESS_SEGMENTS", ["ON", "OFF", ""]),
    ];
    let (key, operator, value) = match dice.below(8) {
        0 | 1 => ("bucket".to_owned(), Operator::Match, text(dice.pick(&BUCKETS))),
        2 => ("name".to_owned(), Operator::Like, text(dice.pick(&["ledger%", "%-1", "copy-_"]))),
        3 => ("name".to_owned(), Operator::In, texts(dice, &["ledger-0", "ledger-2", "copy-1", "none"])),
        4 | 5 => on_metadata(dice),
        _ => {
            let (name, values) = dice.pick(&feature);
            (format!("features[{name}]"), Operator::Match, text(dice.pick(&values)))
        }
    };
    let field = Field::parse(Resource::Ledgers, &key).expect("a field");
    let condition = FilterNode::Is(Condition::new(&field, operator, value).expect("a condition"));
    if dice.one_in(4) { FilterNode::Not(Box::new(condition)) } else { condition }
}

/// A random filter of ledgers; one in three asks nothing.
pub(crate) fn filter_of_ledgers(dice: &mut Dice<'_>) -> FilterOf<Ledgers> {
    if dice.one_in(3) {
        return FilterOf::all();
    }
    let mut all: Vec<FilterNode> = (0..=dice.below(2)).map(|_| on_ledger(dice)).collect();
    let root = match all.len() {
        1 => all.remove(0),
        _ if dice.one_in(2) => FilterNode::And(all),
        _ => FilterNode::Or(all),
    };
    FilterOf::new(root).expect("a small filter")
}

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

    /// A random filter; one in six asks nothing.
    pub(crate) fn filter<R: Selects>(&mut self) -> FilterOf<R> {
        if self.dice.one_in(6) {
            return FilterOf::all();
        }
        let root = self.node(R::RESOURCE, 3);
        FilterOf::new(root).expect("a small filter")
    }
}
