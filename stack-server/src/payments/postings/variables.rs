//! The variables that a script receives from a payment.

use std::collections::BTreeMap;

use ledger_core::VariableValue;
use ledger_core::script::{Program, Type};

use crate::payments::ids::AccountId;
use crate::payments::payment::Payment;

/// Every variable with its type. `docs/connectors.md` lists them with their values.
const VARIABLES: [(&str, Type); 12] = [
    ("amount", Type::Monetary),
    ("asset", Type::Asset),
    ("source", Type::Account),
    ("destination", Type::Account),
    ("id", Type::Text),
    ("reference", Type::Text),
    ("type", Type::Text),
    ("status", Type::Text),
    ("scheme", Type::Text),
    ("created", Type::Text),
    ("connector", Type::Text),
    ("provider", Type::Text),
];

/// Returns the names of the variables.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().map(|(name, _)| *name)
}

/// Returns the type of a variable, or `None` if payments do not provide it.
pub(crate) fn type_of(name: &str) -> Option<Type> {
    VARIABLES.iter().find(|(have, _)| *have == name).map(|(_, of)| *of)
}

/// Returns the values of the variables that a script declares.
pub(crate) fn values(
    program: &Program,
    payment: &Payment,
    account_prefix: &str,
    connector_name: &str,
) -> BTreeMap<String, VariableValue> {
    let declared = program.needed_variables().map(|(name, _)| name.to_owned());
    let given = |name: String| value(&name, payment, account_prefix, connector_name).map(|text| (name, text));
    declared.filter_map(given).map(|(name, text)| (name, VariableValue::Text(text))).collect()
}

fn value(name: &str, payment: &Payment, account_prefix: &str, connector_name: &str) -> Option<String> {
    Some(match name {
        "amount" => {
            let mut text = format!("{} ", payment.asset).into_bytes();
            payment.amount.write_to(&mut text);
            String::from_utf8(text).ok()?
        }
        "asset" => payment.asset.clone(),
        "source" => address(payment.source.as_ref(), payment, account_prefix),
        "destination" => address(payment.destination.as_ref(), payment, account_prefix),
        "id" => payment.id.text(),
        "reference" => payment.id.reference.clone(),
        "type" => payment.id.kind.name().to_owned(),
        "status" => payment.status.name().to_owned(),
        "scheme" => payment.scheme.name().to_owned(),
        "created" => payment.created_at.to_string(),
        "connector" => connector_name.to_owned(),
        "provider" => payment.id.connector.provider.as_ref().to_owned(),
        _ => return None,
    })
}

/// Returns the ledger account of an account at a provider. Without an account, money enters or leaves the ledger.
fn address(account: Option<&AccountId>, payment: &Payment, account_prefix: &str) -> String {
    let Some(account) = account else { return ledger_core::AccountAddress::world().to_string() };
    let reference = segment(&account.reference);
    if account.connector == payment.id.connector {
        return format!("{account_prefix}:{reference}");
    }
    // An account of another installation may have the same reference.
    format!("{account_prefix}:{}:{reference}", account.connector.installation)
}

/// Returns a segment of an account address for a text. Different texts have different segments: each invalid byte
/// becomes `__` and its two hexadecimal digits, and so does an underscore before another underscore.
pub(crate) fn segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric()
            || *byte == b'-'
            || (*byte == b'_' && bytes.get(at + 1) != Some(&b'_'));
        if is_plain {
            segment.push(char::from(*byte));
        } else {
            segment.push_str(&format!("__{byte:02X}"));
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn segments_tell_references_apart() {
        assert_eq!(segment("acct_1-x"), "acct_1-x");
        assert_eq!(segment("a b"), "a__20b");
        let texts = ["a b", "a__20b", "a_ b", "a___20b", "a__5F_20b", "ü", "_", "__", "___", "a:b", "a__3Ab"];
        let segments: BTreeSet<_> = texts.map(segment).into();
        assert_eq!(segments.len(), texts.len(), "{segments:?}");
        for segment in segments {
            assert!(ledger_core::AccountAddress::parse(&segment).is_ok(), "{segment}");
            assert!(!segment.contains(':'));
        }
    }
}
