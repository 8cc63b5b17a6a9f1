//! What the parameters of lists select.

use ledger_core::{
    AccountAddress, AddressExpression, AddressPattern, AddressRole, AddressTest, Balance, Comparison,
    Condition, DateField, FilterNode, TextField, TextTest,
};

use crate::error::ApiError;
use crate::ledger_v1::list::Parameters;
use crate::request::parse_date;

/// Accounts or sides of postings whose address fits a pattern.
///
/// With an empty segment, or one that is `*`, a pattern is compared segment by segment. Else it is a regular
/// expression that the whole address has to fit.
///
/// # Errors
///
/// `VALIDATION` if it is neither.
pub(crate) fn address(role: AddressRole, pattern: &str) -> Result<FilterNode, ApiError> {
    Ok(FilterNode::Is(Condition::Address { role, test: address_test(pattern)? }))
}

/// Transactions by the accounts of their postings: `source` and `destination` each of some posting, `account` an
/// end of it. Beside one of the two, it is an end of the posting that has that.
///
/// # Errors
///
/// `VALIDATION` if a pattern is none.
pub(crate) fn sides(parameters: &Parameters) -> Result<Vec<FilterNode>, ApiError> {
    let mut nodes = Vec::new();
    let account = parameters.get("account");
    if let Some(pattern) = account {
        nodes.push(address(AddressRole::Any, pattern)?);
    }
    for (name, role) in [("source", AddressRole::Source), ("destination", AddressRole::Destination)] {
        let Some(pattern) = parameters.get(name) else { continue };
        nodes.push(address(role, pattern)?);
        if let Some(account) = account {
            let (test, either) = (address_test(pattern)?, address_test(account)?);
            nodes.push(FilterNode::Is(Condition::Posting { role, test, either }));
        }
    }
    Ok(nodes)
}

fn address_test(pattern: &str) -> Result<AddressTest, ApiError> {
    Ok(if let Ok(address) = AccountAddress::parse(pattern) {
        AddressTest::Fits(AddressPattern::of(&address))
    } else if pattern.split(':').any(|segment| segment.is_empty() || segment == "*") {
        let segments = pattern.split(':').map(|segment| match segment {
            "*" | ".*" => "",
            // Three dots are a segment like others here, one that no address has.
            "..." => ".",
            segment => segment,
        });
        AddressTest::Fits(AddressPattern::parse(&segments.collect::<Vec<_>>().join(":")))
    } else {
        let expression = AddressExpression::whole(pattern)
            .map_err(|error| ApiError::validation(format!("invalid address pattern: {error}")))?;
        AddressTest::Like(expression)
    })
}

/// Rows whose address is less than another.
pub(crate) fn below_address(bound: &str) -> FilterNode {
    let test = AddressTest::Below(bound.into());
    FilterNode::Is(Condition::Address { role: AddressRole::Own, test })
}

/// Rows whose id is less than `after`.
///
/// # Errors
///
/// `VALIDATION` if that is no id.
pub(crate) fn below_id(parameters: &Parameters) -> Result<Option<FilterNode>, ApiError> {
    let Some(text) = parameters.get("after") else { return Ok(None) };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok();
    let value = Balance::parse(text).ok().filter(|_| is_number);
    let value = value.ok_or_else(|| ApiError::validation("invalid 'after' query param"))?;
    Ok(Some(FilterNode::Is(Condition::Id { comparison: Comparison::Less, value })))
}

/// Rows with metadata of this text. Every value counts by its text, and dots lead into objects.
pub(crate) fn metadata(parameters: &Parameters) -> impl Iterator<Item = FilterNode> {
    parameters.metadata().into_iter().map(|(path, value)| {
        let at_path = FilterNode::Is(Condition::MetadataPath { path: path.into(), value: value.into() });
        if path.contains('.') {
            return at_path;
        }
        // Without a dot the index leads there; it cannot tell a text from other values that look like it.
        let test = TextTest::Equal(value.into());
        FilterNode::And(vec![FilterNode::Is(Condition::Metadata { key: path.into(), test }), at_path])
    })
}

/// Rows dated in the window of the parameters: its start is in it, its end is not.
///
/// # Errors
///
/// `VALIDATION` for what is no date, under the name by which it was read.
pub(crate) fn window(parameters: &Parameters) -> Result<Vec<FilterNode>, ApiError> {
    let mut nodes = Vec::new();
    for (names, comparison) in [
        (["startTime", "start_time"], Comparison::GreaterOrEqual),
        (["endTime", "end_time"], Comparison::Less),
    ] {
        let mut dates = Vec::new();
        for name in names {
            if let Some(text) = parameters.get(name) {
                let invalid = |_| ApiError::validation(format!("invalid '{name}' query param"));
                dates.push(parse_date(text).map_err(invalid)?);
            }
        }
        // The new name wins, but both are looked at.
        if let Some(value) = dates.first() {
            let field = DateField::Timestamp;
            nodes.push(FilterNode::Is(Condition::Date { field, comparison, value: *value }));
        }
    }
    Ok(nodes)
}

/// Transactions with a reference.
pub(crate) fn reference(text: &str) -> FilterNode {
    let test = TextTest::Equal(text.into());
    FilterNode::Is(Condition::Text { field: TextField::Reference, test })
}

/// Accounts of which some balance compares so with `balance`.
///
/// # Errors
///
/// `VALIDATION` for what is no number, and for an operator that is none, used or not.
pub(crate) fn balance(parameters: &Parameters) -> Result<Option<FilterNode>, ApiError> {
    let value = match parameters.get("balance") {
        None => None,
        Some(text) => {
            let number = text
                .parse::<i64>()
                .map_err(|_| ApiError::validation("invalid parameter 'balance', should be a number"))?;
            Some(Balance::from(number))
        }
    };
    let operator = ["balanceOperator", "balance_operator"]
        .into_iter()
        .find_map(|name| Some((name, parameters.get(name)?)));
    let comparisons: &[Comparison] = match operator {
        None | Some((_, "gte")) => &[Comparison::GreaterOrEqual],
        Some((_, "gt")) => &[Comparison::Greater],
        Some((_, "lte")) => &[Comparison::LessOrEqual],
        Some((_, "lt")) => &[Comparison::Less],
        Some((_, "e")) => &[Comparison::Equal],
        Some((_, "ne")) => &[Comparison::Less, Comparison::Greater],
        Some((name, _)) => {
            let message = format!("invalid parameter '{name}', should be one of 'e, ne, gt, gte, lt, lte'");
            return Err(ApiError::validation(message));
        }
    };
    Ok(value.map(|value| any_balance(comparisons, &value)))
}

/// Accounts that ever held something.
pub(crate) fn with_balances() -> FilterNode {
    any_balance(&[Comparison::Less, Comparison::GreaterOrEqual], &Balance::ZERO)
}

fn any_balance(comparisons: &[Comparison], value: &Balance) -> FilterNode {
    let conditions = comparisons.iter().map(|comparison| {
        FilterNode::Is(Condition::Balance { asset: None, comparison: *comparison, value: value.clone() })
    });
    FilterNode::Or(conditions.collect())
}

/// Accounts with one of these addresses.
pub(crate) fn one_of(mut addresses: Vec<AccountAddress>) -> FilterNode {
    addresses.sort_unstable();
    addresses.dedup();
    FilterNode::Is(Condition::Address { role: AddressRole::Own, test: AddressTest::In(addresses) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, fitting: &[&str], others: &[&str]) {
        let node = address(AddressRole::Own, pattern).expect(pattern);
        let FilterNode::Is(Condition::Address { test, .. }) = node else { panic!("{node:?}") };
        for address in fitting {
            assert!(test.passes(address), "{pattern} {address}");
        }
        for address in others {
            assert!(!test.passes(address), "{pattern} {address}");
        }
    }

    #[test]
    fn a_pattern_is_an_address_segments_or_an_expression() {
        check("a:b-c", &["a:b-c"], &["a:b", "a:b-cd"]);
        check("shops:*", &["shops:1"], &["shops", "shops:1:2"]);
        check("shops:", &["shops:1"], &["shops", "shops:1:2"]);
        check("shops:*:.*", &["shops:1:2"], &["shops:1"]);
        check("*:...", &[], &["a", "a:b", "a:b:c"]);
        check("shops:.*", &["shops:1", "shops:1:2"], &["shops"]);
        check("shops:(1|2)", &["shops:1", "shops:2"], &["shops:12"]);
        check("a|b", &["a", "b"], &["ab"]);
        assert!(address(AddressRole::Own, "shops:(").is_err());
    }
}
