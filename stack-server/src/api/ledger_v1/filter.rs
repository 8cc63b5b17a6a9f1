//! Builds filter nodes from the query parameters of v1 lists.

use ledger_core::{
    AccountAddress, AddressExpression, AddressPattern, AddressRole, AddressTest, Balance, Comparison,
    Condition, DateField, FilterNode, TextField, TextTest,
};

use crate::api::ledger_v1::list::Parameters;
use crate::http::error::ApiError;
use crate::http::request::parse_date;

/// Selects accounts, or sides of postings, by a pattern for the address.
///
/// A pattern with an empty segment, or with a segment `*`, is compared segment by segment. Any other pattern is a
/// regular expression that must match the whole address.
///
/// # Errors
///
/// Returns `VALIDATION` if the regular expression is invalid.
pub(crate) fn address(role: AddressRole, pattern: &str) -> Result<FilterNode, ApiError> {
    Ok(FilterNode::Is(Condition::Address { role, test: address_test(pattern)? }))
}

/// Selects transactions by the accounts of their postings. `source` and `destination` each match some posting, and
/// `account` matches either side of a posting. If `account` comes with `source` or `destination`, both must match
/// the same posting.
///
/// # Errors
///
/// Returns `VALIDATION` if a pattern is invalid.
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
            // In v1, three dots are an ordinary segment. No address has a segment of dots, so the pattern matches
            // nothing.
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

/// Selects rows whose address sorts before `bound`.
pub(crate) fn below_address(bound: &str) -> FilterNode {
    let test = AddressTest::Below(bound.into());
    FilterNode::Is(Condition::Address { role: AddressRole::Own, test })
}

/// Selects rows whose id is less than the parameter `after`.
///
/// # Errors
///
/// Returns `VALIDATION` if the parameter is not an id.
pub(crate) fn below_id(parameters: &Parameters) -> Result<Option<FilterNode>, ApiError> {
    let Some(text) = parameters.get("after") else { return Ok(None) };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok();
    let value = Balance::parse(text).ok().filter(|_| is_number);
    let value = value.ok_or_else(|| ApiError::validation("invalid 'after' query param"))?;
    Ok(Some(FilterNode::Is(Condition::Id { comparison: Comparison::Less, value })))
}

/// Selects rows by `metadata[path]=value`. Values of any type are compared by their text. Dots in the path lead
/// into nested objects.
pub(crate) fn metadata(parameters: &Parameters) -> impl Iterator<Item = FilterNode> {
    parameters.metadata().into_iter().map(|(path, value)| {
        let at_path = FilterNode::Is(Condition::MetadataPath { path: path.into(), value: value.into() });
        if path.contains('.') {
            return at_path;
        }
        // The index finds rows by a key without a dot. The second condition is needed because the index cannot tell
        // a string from another value with the same text.
        let test = TextTest::Equal(value.into());
        FilterNode::And(vec![FilterNode::Is(Condition::Metadata { key: path.into(), test }), at_path])
    })
}

/// Selects rows whose date is in the window of the parameters. The window includes its start and excludes its end.
///
/// # Errors
///
/// Returns `VALIDATION` for a malformed date. The text names the spelling of the parameter that the client used.
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
        // The new name takes precedence, but the date under the old name must be valid too.
        if let Some(value) = dates.first() {
            let field = DateField::Timestamp;
            nodes.push(FilterNode::Is(Condition::Date { field, comparison, value: *value }));
        }
    }
    Ok(nodes)
}

/// Selects the transaction with this reference.
pub(crate) fn reference(text: &str) -> FilterNode {
    let test = TextTest::Equal(text.into());
    FilterNode::Is(Condition::Text { field: TextField::Reference, test })
}

/// Selects accounts that have a balance, in any asset, for which the comparison with `balance` holds.
///
/// # Errors
///
/// Returns `VALIDATION` if the balance is not a number, and if the operator is unknown, even when there is no
/// balance to compare with.
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

/// Selects accounts that have taken part in a posting.
pub(crate) fn with_balances() -> FilterNode {
    any_balance(&[Comparison::Less, Comparison::GreaterOrEqual], &Balance::ZERO)
}

fn any_balance(comparisons: &[Comparison], value: &Balance) -> FilterNode {
    let conditions = comparisons.iter().map(|comparison| {
        FilterNode::Is(Condition::Balance { asset: None, comparison: *comparison, value: value.clone() })
    });
    FilterNode::Or(conditions.collect())
}

/// Selects accounts with one of these addresses.
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
