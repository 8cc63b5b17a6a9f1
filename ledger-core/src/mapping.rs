//! The mapping of a ledger: contracts that say how low the balances of accounts may fall.
//!
//! Contracts are part of the first generation of the API. They are asked about postings that are sent to it, and
//! about nothing else.

use std::borrow::Cow;

use compact_str::CompactString;

use crate::amount::Balance;
use crate::condition::Comparison;
use crate::expression::AddressExpression;
use crate::json_text::write_json_text;
use crate::metadata::{Metadata, MetadataValue};
use crate::names::AccountAddress;

/// The contracts of a ledger, in the order in which they are tried.
///
/// The first that names an account decides about it; where none does, the balance must not be negative.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping(Vec<Contract>);

/// What must hold of some accounts after a transaction that lowers their balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The accounts, as an expression that is searched for in the address.
    pub accounts: AddressExpression,
    /// What must hold.
    pub rule: Rule,
}

/// A truth about an account after a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// All of these hold; true without any.
    And(Vec<Rule>),
    /// One of these holds; false without any.
    Or(Vec<Rule>),
    /// Two operands compare so. Equality is that of values of one type; order is only between integers, and
    /// false between others.
    Compare(Comparison, Operand, Operand),
}

/// A value in a [`Rule`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The balance after the transaction of the asset that is checked.
    Balance,
    /// A variable that does not exist: it equals nothing.
    Undefined,
    /// The account's metadata of this key; absent, it equals nothing.
    Metadata(CompactString),
    /// An integer.
    Integer(Balance),
    /// Any other constant, as compact JSON text with the keys of objects ascending.
    Json(CompactString),
}

/// What an operand stands for.
#[derive(PartialEq, Eq)]
enum Value<'a> {
    Integer(Cow<'a, Balance>),
    Json(Cow<'a, str>),
}

impl Mapping {
    /// Contracts, in the order in which they are tried.
    pub fn new(contracts: Vec<Contract>) -> Self {
        Self(contracts)
    }

    /// Whether an account whose balance falls to `balance` keeps to its contract.
    pub fn allows(&self, account: &AccountAddress, balance: &Balance, metadata: &Metadata) -> bool {
        match self.contract_of(account) {
            Some(contract) => contract.rule.holds(balance, metadata),
            None => !balance.is_negative(),
        }
    }

    /// Whether the contract of an account asks for its metadata.
    pub fn asks_metadata_of(&self, account: &AccountAddress) -> bool {
        self.contract_of(account).is_some_and(|contract| contract.rule.asks_metadata())
    }

    fn contract_of(&self, account: &AccountAddress) -> Option<&Contract> {
        self.0.iter().find(|contract| contract.accounts.matches(account.as_str()))
    }
}

impl Rule {
    fn holds(&self, balance: &Balance, metadata: &Metadata) -> bool {
        match self {
            Self::And(rules) => rules.iter().all(|rule| rule.holds(balance, metadata)),
            Self::Or(rules) => rules.iter().any(|rule| rule.holds(balance, metadata)),
            Self::Compare(comparison, left, right) => {
                let (Some(left), Some(right)) =
                    (left.value(balance, metadata), right.value(balance, metadata))
                else {
                    return false;
                };
                match (comparison, left, right) {
                    (comparison, Value::Integer(left), Value::Integer(right)) => {
                        comparison.holds(&*left, &*right)
                    }
                    (Comparison::Equal, left, right) => left == right,
                    _ => false,
                }
            }
        }
    }

    fn asks_metadata(&self) -> bool {
        match self {
            Self::And(rules) | Self::Or(rules) => rules.iter().any(Self::asks_metadata),
            Self::Compare(_, left, right) => {
                matches!(left, Operand::Metadata(_)) || matches!(right, Operand::Metadata(_))
            }
        }
    }
}

impl Operand {
    fn value<'a>(&'a self, balance: &'a Balance, metadata: &'a Metadata) -> Option<Value<'a>> {
        Some(match self {
            Self::Balance => Value::Integer(Cow::Borrowed(balance)),
            Self::Undefined => return None,
            Self::Integer(integer) => Value::Integer(Cow::Borrowed(integer)),
            Self::Json(json) => Value::Json(Cow::Borrowed(json)),
            Self::Metadata(key) => match metadata.get(key)? {
                MetadataValue::Json(json) => match Balance::parse(json) {
                    Ok(integer) => Value::Integer(Cow::Owned(integer)),
                    Err(_) => Value::Json(Cow::Borrowed(json)),
                },
                MetadataValue::Text(text) => {
                    let mut json = Vec::with_capacity(text.len() + 2);
                    write_json_text(text, &mut json);
                    Value::Json(Cow::Owned(String::from_utf8_lossy(&json).into_owned()))
                }
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(address: &str) -> AccountAddress {
        AccountAddress::parse(address).expect(address)
    }

    fn integer(value: i64) -> Operand {
        Operand::Integer(Balance::from(value))
    }

    fn contract(accounts: &str, rule: Rule) -> Contract {
        Contract { accounts: AddressExpression::anywhere(accounts).expect(accounts), rule }
    }

    #[test]
    fn the_first_contract_that_names_an_account_decides() {
        let at_least = |value| Rule::Compare(Comparison::GreaterOrEqual, Operand::Balance, integer(value));
        let mapping = Mapping::new(vec![contract("cards:.*", at_least(-50)), contract("cards", at_least(9))]);
        for (address, balance, allowed) in [
            ("cards:1", -50, true),
            ("cards:1", -51, false),
            ("old:cards:1", -50, true),
            ("cards", 9, true),
            ("cards", 8, false),
            ("other", 0, true),
            ("other", -1, false),
        ] {
            let balance = Balance::from(balance);
            assert_eq!(mapping.allows(&account(address), &balance, &Metadata::EMPTY), allowed, "{address}");
        }
    }

    #[test]
    fn values_of_different_types_are_neither_equal_nor_ordered() {
        let mut metadata = Metadata::EMPTY;
        metadata.insert("limit", MetadataValue::Json("-7".into()));
        metadata.insert_text("word", "open <");
        metadata.insert("list", MetadataValue::Json("[1,2]".into()));
        let limit = || Operand::Metadata("limit".into());
        let word = || Operand::Metadata("word".into());
        let text = |json: &str| Operand::Json(json.into());
        for (comparison, left, right, holds) in [
            (Comparison::GreaterOrEqual, Operand::Balance, limit(), true),
            (Comparison::Equal, limit(), integer(-7), true),
            (Comparison::Equal, limit(), text("\"-7\""), false),
            (Comparison::Equal, word(), text(r#""open \u003c""#), true),
            (Comparison::GreaterOrEqual, word(), word(), false),
            (Comparison::Equal, Operand::Metadata("list".into()), text("[1,2]"), true),
            (Comparison::Equal, Operand::Metadata("nosuch".into()), text("null"), false),
            (Comparison::Equal, Operand::Undefined, Operand::Undefined, false),
            (Comparison::Less, integer(1), Operand::Undefined, false),
        ] {
            let rule = Rule::Compare(comparison, left, right);
            assert_eq!(rule.holds(&Balance::from(-7), &metadata), holds, "{rule:?}");
        }
        assert!(Rule::And(Vec::new()).holds(&Balance::ZERO, &metadata));
        assert!(!Rule::Or(Vec::new()).holds(&Balance::ZERO, &metadata));
    }
}
