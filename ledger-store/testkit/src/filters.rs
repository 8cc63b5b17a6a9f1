//! Random filters.

use ledger_core::{
    Balance, Condition, Field, FilterNode, FilterOf, FilterValue, Ledgers, Operator, Resource,
};

use crate::Rng;
use crate::fixtures::{ADDRESSES, ASSETS, BUCKETS, KEYS, VALUES};

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
pub(crate) const COMPARISONS: [Operator; 5] =
    [Operator::Match, Operator::Lt, Operator::Lte, Operator::Gt, Operator::Gte];

pub(crate) fn text(text: &str) -> FilterValue {
    FilterValue::Text(text.into())
}

pub(crate) fn texts(rng: &mut Rng<'_>, all: &[&str]) -> FilterValue {
    FilterValue::Texts((0..rng.below(4)).map(|_| rng.pick(all).into()).collect())
}

pub(crate) fn on_address(rng: &mut Rng<'_>, there: &[String], key: &str) -> (String, Operator, FilterValue) {
    let (operator, value) = match rng.below(6) {
        0 => (Operator::In, texts(rng, &ADDRESSES)),
        5 => (Operator::Like, text(rng.pick(&["users:%", "%main%", "users:_", "%", "world", "_ank"]))),
        1 => (Operator::Match, text(rng.pick(&ADDRESSES))),
        2 if !there.is_empty() => (Operator::Match, text(&rng.pick(there))),
        _ => (Operator::Match, text(rng.pick(&PATTERNS))),
    };
    (key.to_owned(), operator, value)
}

pub(crate) fn on_metadata(rng: &mut Rng<'_>) -> (String, Operator, FilterValue) {
    let key = rng.pick(&KEYS);
    let of_key = format!("metadata[{key}]");
    match rng.below(7) {
        0 => ("metadata".to_owned(), rng.pick(&[Operator::Exists, Operator::Match]), text(key)),
        6 => (of_key, Operator::Exists, FilterValue::Boolean(true)),
        1 => (of_key, Operator::Like, text(rng.pick(&["%o%", "a", "_", "%"]))),
        2 => (of_key, Operator::In, texts(rng, &VALUES)),
        _ => (of_key, Operator::Match, text(rng.pick(&["a", "b", "", "true", "none"]))),
    }
}

pub(crate) fn on_reference(rng: &mut Rng<'_>) -> (String, Operator, FilterValue) {
    let (operator, value) = match rng.below(3) {
        0 => (Operator::Like, text("ref-1%")),
        1 => (Operator::In, texts(rng, &["ref-1", "ref-7", "ref-30", "none"])),
        _ => (Operator::Match, text(&format!("ref-{}", rng.below(60)))),
    };
    ("reference".to_owned(), operator, value)
}

pub(crate) fn number(rng: &mut Rng<'_>, below: u64) -> FilterValue {
    let number = match rng.below(12) {
        0 => Balance::from(-1),
        1 => Balance::parse("99999999999999999999999").expect("the literal consists of digits"),
        _ => Balance::from(rng.below(below) as i64),
    };
    FilterValue::Integer(number)
}

pub(crate) fn on_balance(rng: &mut Rng<'_>) -> (String, Operator, FilterValue) {
    let key = format!("balance[{}]", rng.pick(&ASSETS));
    (key, rng.pick(&COMPARISONS), FilterValue::Integer(Balance::from(rng.below(300) as i64 - 150)))
}

fn on_ledger(rng: &mut Rng<'_>) -> FilterNode {
    let feature = [
        ("HASH_LOGS", ["SYNC", "ASYNC", "DISABLED"]),
        ("MOVES_HISTORY", ["ON", "OFF", "SYNC"]),
        ("MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES", ["SYNC", "DISABLED", "OFF"]),
        ("ACCOUNT_METADATA_HISTORY", ["SYNC", "DISABLED", "ON"]),
        ("TRANSACTION_METADATA_HISTORY", ["SYNC", "DISABLED", "ON"]),
        ("INDEX_ADDRESS_SEGMENTS", ["ON", "OFF", ""]),
    ];
    let (key, operator, value) = match rng.below(8) {
        0 | 1 => ("bucket".to_owned(), Operator::Match, text(rng.pick(&BUCKETS))),
        2 => ("name".to_owned(), Operator::Like, text(rng.pick(&["ledger%", "%-1", "copy-_"]))),
        3 => ("name".to_owned(), Operator::In, texts(rng, &["ledger-0", "ledger-2", "copy-1", "none"])),
        4 | 5 => on_metadata(rng),
        _ => {
            let (name, values) = rng.pick(&feature);
            (format!("features[{name}]"), Operator::Match, text(rng.pick(&values)))
        }
    };
    let field = Field::parse(Resource::Ledgers, &key).expect("the key is a property of ledgers");
    let condition =
        FilterNode::Is(Condition::new(&field, operator, value).expect("operator and value fit the property"));
    if rng.one_in(4) { FilterNode::Not(Box::new(condition)) } else { condition }
}

/// Returns a random filter of ledgers. One in three has no conditions.
pub(crate) fn filter_of_ledgers(rng: &mut Rng<'_>) -> FilterOf<Ledgers> {
    if rng.one_in(3) {
        return FilterOf::all();
    }
    let mut all: Vec<FilterNode> = (0..=rng.below(2)).map(|_| on_ledger(rng)).collect();
    let root = match all.len() {
        1 => all.remove(0),
        _ if rng.one_in(2) => FilterNode::And(all),
        _ => FilterNode::Or(all),
    };
    FilterOf::new(root).expect("a few nodes are within the limits")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the operators that a field accepts with some value.
    fn accepted(resource: Resource, key: &str) -> Vec<Operator> {
        let field = Field::parse(resource, key).expect("a field");
        let values = || {
            [
                text("a"),
                FilterValue::Texts(vec!["a".into()]),
                FilterValue::Integer(Balance::from(1)),
                FilterValue::Boolean(true),
            ]
        };
        let fits =
            |operator| values().into_iter().any(|value| Condition::new(&field, operator, value).is_ok());
        Operator::ALL.into_iter().filter(|operator| fits(*operator)).collect()
    }

    #[test]
    fn random_filters_use_every_operator() {
        type Draw = fn(&mut Rng<'_>) -> (String, Operator, FilterValue);
        let fields: [(&str, Resource, &str, Draw); 5] = [
            ("address", Resource::Accounts, "address", |rng| {
                on_address(rng, &["users:1".to_owned()], "address")
            }),
            ("metadata[", Resource::Accounts, "metadata[k]", on_metadata),
            ("metadata", Resource::Accounts, "metadata", on_metadata),
            ("balance[", Resource::Accounts, "balance[EUR]", on_balance),
            ("reference", Resource::Transactions, "reference", on_reference),
        ];
        for (shown, resource, key, draw) in fields {
            let mut rng = Rng::from_seed(1);
            let drawn = (0..400).map(|_| draw(&mut rng));
            let is_of_field =
                |drawn: &str| if shown.ends_with('[') { drawn.starts_with(shown) } else { drawn == shown };
            let drawn: Vec<Operator> =
                drawn.filter(|(key, ..)| is_of_field(key)).map(|(_, operator, _)| operator).collect();
            let mut missing = accepted(resource, key);
            missing.retain(|operator| !drawn.contains(operator));
            assert!(missing.is_empty(), "no random filter on {key} uses {missing:?}");
        }
    }
}
