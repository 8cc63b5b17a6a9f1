//! Contracts of a ledger: rules that say how far the balances of accounts may fall.
//!
//! Contracts are part of API v1. They check only postings that arrive through it.

use std::borrow::Cow;

use smol_str::SmolStr;

use crate::condition::Comparison;
use crate::expression::AddressExpression;
use ledger_values::json_text::write_json_text;
use ledger_values::{AccountAddress, Balance, Metadata, MetadataValue};

/// The contracts of a ledger in the order in which they are tried.
///
/// The first contract that matches an account applies. Accounts without a contract may not have a negative
/// balance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping(Vec<Contract>);

/// A rule for some accounts. It must hold after every transaction that lowers their balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Selects the accounts. The expression may match anywhere in the address.
    pub accounts: AddressExpression,
    /// The rule that must hold.
    pub rule: Rule,
}

/// A condition on an account after a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// All of these hold. True if there are none.
    And(Vec<Rule>),
    /// At least one of these holds. False if there are none.
    Or(Vec<Rule>),
    /// Two operands are in this relation. Values of different types are never equal, and only integers are
    /// ordered.
    Compare(Comparison, Operand, Operand),
}

/// An operand of a [`Rule`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The balance of the checked asset after the transaction.
    Balance,
    /// A variable that does not exist. It equals nothing.
    Undefined,
    /// The metadata value of this key. An absent value equals nothing.
    Metadata(SmolStr),
    /// An integer constant.
    Integer(Balance),
    /// Any other constant, as compact JSON with sorted keys.
    Json(SmolStr),
}

/// The value of an operand.
#[derive(PartialEq, Eq)]
enum Value<'a> {
    Integer(Cow<'a, Balance>),
    Json(Cow<'a, str>),
}

impl Mapping {
    /// Makes a mapping of contracts in the order in which they are tried.
    pub fn new(contracts: Vec<Contract>) -> Self {
        Self(contracts)
    }

    /// Tells whether an account may have a balance that fell to `balance`.
    pub(crate) fn allows(&self, account: &AccountAddress, balance: &Balance, metadata: &Metadata) -> bool {
        match self.contract_of(account) {
            Some(contract) => contract.rule.holds(balance, metadata),
            None => !balance.is_negative(),
        }
    }

    /// Tells whether the contract of an account reads the account's metadata.
    pub(crate) fn asks_metadata_of(&self, account: &AccountAddress) -> bool {
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
    fn first_matching_contract_applies() {
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
    fn values_of_different_types_never_compare() {
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
